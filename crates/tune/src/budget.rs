//! How many bytes may move now: a token bucket. In any time t, at most `bytes_per_s` x (t + 0.1 s) move, or one unit of moving if that is larger.

/// The bucket holds what may move in this time.
const BURST_S: f64 = 0.1;
const PAGE: f64 = 4096.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    bytes_per_s: f64,
    /// What may move now; negative after a unit that was larger.
    left: f64,
    filled_ns: Option<u64>,
}

impl Budget {
    #[must_use]
    pub fn new(bytes_per_s: f64) -> Self {
        Self { bytes_per_s, left: 0.0, filled_ns: None }
    }

    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes_per_s
    }

    fn capacity(&self) -> f64 {
        (self.bytes_per_s * BURST_S).max(PAGE)
    }

    /// The bytes that may move at this time, in whole units of moving: 0 if it is too early for one.
    pub fn allowed(&mut self, now_ns: u64, grain_bytes: u64) -> u64 {
        let passed_s = self.filled_ns.map_or(BURST_S, |before| now_ns.saturating_sub(before) as f64 / 1e9);
        self.filled_ns = Some(now_ns.max(self.filled_ns.unwrap_or(0)));
        let grain = grain_bytes.max(1);
        let capacity = self.capacity().max(grain as f64);
        self.left = (self.left + passed_s * self.bytes_per_s).min(capacity);
        (self.left.max(0.0) as u64) / grain * grain
    }

    pub fn spend(&mut self, bytes: u64) {
        self.left -= bytes as f64;
    }
}
