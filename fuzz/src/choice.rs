//! Choices that follow from libFuzzer's seed, so that a run can be repeated (xorshift64).

pub struct Choice(u64);

impl Choice {
    pub fn new(seed: u32) -> Self {
        Self(u64::from(seed) << 16 | 0x9e37)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        if limit == 0 { 0 } else { (self.0 >> 8) as usize % limit }
    }
}
