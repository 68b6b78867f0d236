//! Counters of the kernel.

use serde::{Deserialize, Serialize};

/// A counter of the kernel, for the whole system or one node, at the start and at the last reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    pub name: String,
    pub node: Option<u32>,
    pub at_start: u64,
    pub at_end: u64,
}

impl Counter {
    /// The growth between the two readings; 0 if the counter was reset.
    #[must_use]
    pub fn growth(&self) -> u64 {
        self.at_end.saturating_sub(self.at_start)
    }
}
