//! Reproducible random numbers.

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
pub struct SplitMix(u64);

impl SplitMix {
    pub fn new() -> Self {
        Self(0x66_69_72_73_74)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uniform number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// A number of the normal distribution with mean 0 and variance 1 (a sum of twelve uniform numbers, which suffices for 95 % intervals).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| (self.next() >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }

    /// A Poisson number with mean 1 (by inversion).
    pub fn poisson(&mut self) -> f64 {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let (mut number, mut part) = (0.0, (-1.0_f64).exp());
        let mut sum = part;
        while sum < uniform && number < 20.0 {
            number += 1.0;
            part /= number;
            sum += part;
        }
        number
    }
}
