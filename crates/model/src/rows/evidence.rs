//! Sources of evidence: what each saw, and what it lost.

/// One kind of evidence: whether it could be had, and if not why and what would help.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// `touch`, `watch`, `hint`, `resident`, `agent`, ...
    pub source: String,
    pub available: bool,
    pub samples: u64,
    /// Empty when all went well; else what was not seen, why, and what to do about it.
    pub detail: String,
}

/// Evidence that was lost, counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    pub source: String,
    pub reason: String,
    pub count: u64,
}
