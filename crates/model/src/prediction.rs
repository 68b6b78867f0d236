//! What a model says of a program, in short: the figures that reports and limits need.

use serde::{Deserialize, Serialize};

/// The program as it is, against the best placement of its memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Time over that of the best placement.
    pub slowdown: f64,
    /// Two-sided, 95 %: low, high.
    pub interval: [f64; 2],
    /// The best placement: `as-is`, `parallel-first-touch`, ...
    pub best: String,
}

/// How much faster the program would be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Time as it is, over the time after.
    pub gain: f64,
    pub interval: [f64; 2],
}
