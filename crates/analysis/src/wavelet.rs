//! Points of a plane, counted and found in a rectangle without a look at each of them.

use crate::work;
use std::ops::Range;

/// The numbers from 0 on, each once, in some order: how many of those at some places lie in a range, and which of them is the k-th. Each answer takes a
/// step for each bit of a number (a wavelet matrix).
#[derive(Debug, Default)]
pub struct WaveletMatrix {
    /// From the highest bit to the lowest.
    levels: Vec<Level>,
}

/// One bit of all numbers, those with the same higher bits beside each other.
#[derive(Debug)]
struct Level {
    bits: Vec<u64>,
    /// The number of ones before each word of `bits`.
    ones: Vec<u32>,
    zeros: usize,
}

impl Level {
    fn new(numbers: &[u32], bit: u32) -> Self {
        let mut bits = vec![0_u64; numbers.len() / 64 + 1];
        for (at, number) in numbers.iter().enumerate() {
            bits[at / 64] |= u64::from(number >> bit & 1) << (at % 64);
        }
        let mut sum = 0;
        let before = |word: &u64| {
            let before = sum;
            sum += word.count_ones();
            before
        };
        let ones: Vec<u32> = bits.iter().map(before).collect();
        Self { bits, ones, zeros: numbers.len() - sum as usize }
    }

    fn ones_before(&self, place: usize) -> usize {
        let below = self.bits[place / 64] & ((1 << (place % 64)) - 1);
        (self.ones[place / 64] + below.count_ones()) as usize
    }

    /// Where the zeros and the ones of these places are on the next level.
    fn parts(&self, places: &Range<usize>) -> [Range<usize>; 2] {
        work::step();
        let (first, last) = (self.ones_before(places.start), self.ones_before(places.end));
        [places.start - first..places.end - last, self.zeros + first..self.zeros + last]
    }
}

impl WaveletMatrix {
    /// `numbers`: those from 0 on, each once.
    #[must_use]
    pub fn new(mut numbers: Vec<u32>) -> Self {
        let bits = u32::BITS - u32::try_from(numbers.len()).unwrap_or(u32::MAX).leading_zeros();
        let mut levels = Vec::new();
        for bit in (0..bits).rev() {
            levels.push(Level::new(&numbers, bit));
            let (zeros, ones): (Vec<u32>, Vec<u32>) = numbers.iter().partition(|number| **number >> bit & 1 == 0);
            numbers = [zeros, ones].concat();
        }
        Self { levels }
    }

    /// The number of steps that an answer takes.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// How many of the numbers at these places are smaller than this one.
    #[must_use]
    pub fn below(&self, mut places: Range<usize>, number: usize) -> usize {
        let mut below = 0;
        for (level, bit) in self.levels.iter().zip((0..self.levels.len()).rev()) {
            let [zeros, ones] = level.parts(&places);
            if number >> bit & 1 == 1 {
                below += zeros.len();
                places = ones;
            } else {
                places = zeros;
            }
        }
        below
    }

    /// The number at these places that is larger than so many others there, of which there must be more.
    #[must_use]
    pub fn nth(&self, mut places: Range<usize>, mut others: usize) -> usize {
        self.levels.iter().fold(0, |number, level| {
            let [zeros, ones] = level.parts(&places);
            let is_one = others >= zeros.len();
            others -= if is_one { zeros.len() } else { 0 };
            places = if is_one { ones } else { zeros };
            number << 1 | usize::from(is_one)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;

    /// Check that the answers are those of looking at all numbers.
    #[test]
    fn answers_are_those_of_a_search() {
        let mut draws = Draws::new(3);
        for count in [0, 1, 2, 3, 63, 64, 65, 300] {
            let mut numbers: Vec<u32> = (0..count as u32).collect();
            (1..count).for_each(|at| numbers.swap(at, draws.below(at as u64 + 1) as usize));
            let ranks = WaveletMatrix::new(numbers.clone());
            for _ in 0..200 {
                let start = draws.below(count as u64 + 1) as usize;
                let places = start..start + draws.below((count - start) as u64 + 1) as usize;
                let number = draws.below(count as u64 + 1) as usize;
                let mut there: Vec<usize> = numbers[places.clone()].iter().map(|&number| number as usize).collect();
                there.sort_unstable();
                assert_eq!(ranks.below(places.clone(), number), there.iter().filter(|&&one| one < number).count(), "{places:?} {number}");
                let all: Vec<usize> = (0..there.len()).map(|others| ranks.nth(places.clone(), others)).collect();
                assert_eq!(all, there, "{places:?}");
            }
        }
    }
}
