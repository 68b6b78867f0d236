//! The predictions of a model for a program, as far as reports and limits need them.

use serde::{Deserialize, Serialize};

/// The prediction for the program as it is, compared with the best placement of its memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Time / time with the best placement.
    pub slowdown: f64,
    /// Two-sided 95 % interval: low, high.
    pub interval: [f64; 2],
    /// The best placement: `as-is`, `parallel-first-touch`, ...
    pub best: String,
}

/// How much faster the program would be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Time as it is / time after the change.
    pub gain: f64,
    pub interval: [f64; 2],
}
