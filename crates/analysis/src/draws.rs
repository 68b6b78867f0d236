//! Numbers for tests that look random, and are the same in each run.

/// A linear congruential generator (Knuth's MMIX).
pub struct Draws(u64);

impl Draws {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
