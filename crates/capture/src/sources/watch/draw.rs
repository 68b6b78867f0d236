//! What to watch: objects by probability proportional to a weight, then a word of the object uniformly.

use crate::random::Random;
use firsttouch_model::rows::Id;

/// An object that can be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingUnit {
    pub object: Id,
    pub address: u64,
    pub bytes: u64,
    /// Any positive number. It is fixed before the round, so that it cannot depend on what the round will see.
    pub weight: f64,
}

/// A drawn object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// Index of the sampling unit.
    pub unit: usize,
    /// Expected number of windows on this object in this round.
    pub inclusion: f64,
}

/// Systematic sampling with probability proportional to size (Madow 1949): one random start, `slots` equal steps over the
/// cumulated weights. The expected number of draws of unit i is exactly slots * w_i / W.
pub fn draw_objects(random: &mut Random, units: &[SamplingUnit], slots: usize) -> Vec<Draw> {
    let usable = |w: f64| if w.is_finite() && w > 0.0 { w } else { 0.0 };
    let total: f64 = units.iter().map(|c| usable(c.weight)).sum();
    if total <= 0.0 || slots == 0 {
        return Vec::new();
    }
    let step = total / slots as f64;
    let mut next = random.unit() * step;
    let mut cumulated = 0.0;
    let mut draws = Vec::with_capacity(slots);
    for (index, unit) in units.iter().enumerate() {
        let weight = usable(unit.weight);
        cumulated += weight;
        while next < cumulated && draws.len() < slots {
            draws.push(Draw { unit: index, inclusion: weight / step });
            next += step;
        }
    }
    draws
}

/// The words of an object in a low-discrepancy order: position n is frac(start + n * golden ratio). The start is uniform, so
/// every single position is uniform over the object (Cranley and Patterson 1976). Together they spread evenly.
#[derive(Clone, Debug)]
pub struct Positions {
    start: f64,
    n: u64,
}

impl Positions {
    pub fn new(random: &mut Random) -> Self {
        Self { start: random.unit(), n: 0 }
    }

    /// The next position in [0, 1).
    pub fn advance(&mut self) -> f64 {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let position = (self.start + self.n as f64 * GOLDEN).fract();
        self.n += 1;
        position
    }
}

/// The aligned 8-byte word at a position of an object; `None` if the object has no whole word.
#[must_use]
pub fn word_at(address: u64, bytes: u64, position: f64) -> Option<u64> {
    let first = address.checked_add(7)? & !7;
    let words = address.checked_add(bytes)?.checked_sub(first)? / 8;
    if words == 0 {
        return None;
    }
    let index = ((position * words as f64) as u64).min(words - 1);
    Some(first + 8 * index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(weights: &[f64]) -> Vec<SamplingUnit> {
        weights
            .iter()
            .enumerate()
            .map(|(i, &weight)| SamplingUnit { object: i as Id, address: 4096 * i as u64, bytes: 4096, weight })
            .collect()
    }

    /// Check that objects are drawn as often as their inclusion says, also beyond one window a round.
    #[test]
    fn inclusion_is_what_happens() {
        let list = units(&[10.0, 1.0, 0.0, 5.0, f64::NAN, 0.2]);
        let mut random = Random::new(1);
        let rounds = 40_000;
        let mut counts = vec![0.0; list.len()];
        let mut inclusion = vec![0.0; list.len()];
        for _ in 0..rounds {
            let draws = draw_objects(&mut random, &list, 4);
            assert_eq!(draws.len(), 4);
            for d in draws {
                counts[d.unit] += 1.0;
                inclusion[d.unit] = d.inclusion;
            }
        }
        for i in [0, 1, 3, 5] {
            let mean = counts[i] / f64::from(rounds);
            assert!((mean - inclusion[i]).abs() < 0.01, "object {i}: {mean} against {}", inclusion[i]);
        }
        assert_eq!((counts[2], counts[4]), (0.0, 0.0));
        assert!(draw_objects(&mut random, &[], 4).is_empty());
        assert!(draw_objects(&mut random, &units(&[0.0]), 4).is_empty());
    }

    /// Check that words lie inside the object and are aligned, and that objects without a whole word are refused.
    #[test]
    fn words_lie_inside() {
        for (address, bytes) in [(4096u64, 8u64), (4097, 15), (16, 1 << 40), (4100, 100)] {
            for position in [0.0, 0.5, 0.999_999_999] {
                let word = word_at(address, bytes, position).expect("a word");
                assert!(word.is_multiple_of(8) && word >= address && word + 8 <= address + bytes, "{address} {bytes} {position}: {word}");
            }
        }
        assert_eq!(word_at(4096, 7, 0.5), None);
        assert_eq!(word_at(4097, 8, 0.5), None);
        assert_eq!(word_at(u64::MAX - 3, 100, 0.5), None);
    }

    /// Check that any run of positions spreads over the object: no quarter holds more than its share by two.
    #[test]
    fn positions_spread_evenly() {
        let mut random = Random::new(7);
        for _ in 0..50 {
            let mut positions = Positions::new(&mut random);
            for _ in 0..(random.word() % 100) {
                positions.advance();
            }
            let mut quarters = [0i32; 4];
            for _ in 0..40 {
                quarters[(positions.advance() * 4.0) as usize] += 1;
            }
            assert!(quarters.iter().all(|q| (8..=12).contains(q)), "{quarters:?}");
        }
    }
}
