//! Sources of evidence: the number of samples of each, and of lost ones.

use serde::{Deserialize, Serialize};

/// A source of evidence: whether it was available, and if not, why and what the user can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// `touch`, `watch`, `hint`, `resident`, `agent`, ...
    pub source: String,
    pub available: bool,
    pub samples: u64,
    /// Empty if nothing is missing; else what was not seen, why, and what the user can do.
    pub detail: String,
}

/// A count of lost evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    pub source: String,
    pub reason: String,
    pub count: u64,
}
