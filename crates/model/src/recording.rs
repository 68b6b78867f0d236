//! What a recording of a program holds, in figures.

/// Why a profile has no evidence at all.
pub const UNOBSERVED: &str =
    "the limit on open files leaves too few for a recording, so the program runs unobserved; raise it (ulimit -n 256)";

/// The figures of one recording.
#[derive(Debug, Default)]
pub struct RecordingSummary {
    pub threads: u64,
    pub wall_s: f64,
    /// Samples of the registers of threads.
    pub register_samples: u64,
    pub watch_hits: u64,
    pub first_touches: u64,
    /// Faults that the sampled first touches stand for.
    pub touch_weight: f64,
    pub lost: u64,
}
