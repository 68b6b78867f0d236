//! The names of the sources of evidence.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The source of a figure. Profiles and reports contain its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EvidenceSource {
    /// The preloaded recorder of allocations.
    Agent,
    /// First touches.
    Touch,
    /// Accesses, from watchpoints.
    Watch,
    /// Accesses, from the registers of threads at ticks of their CPU clocks.
    Sample,
    /// Accesses, from the kernel's hinting faults.
    Hint,
    /// The node of each page, from the kernel.
    Resident,
    /// Where threads ran, observed at regular intervals ("looks").
    Looks,
    /// Counters of the system's memory bandwidth.
    Bandwidth,
    /// A source recorded by another version of firsttouch.
    Other(String),
}

impl EvidenceSource {
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Agent => "agent",
            Self::Touch => "touch",
            Self::Watch => "watch",
            Self::Sample => "sample",
            Self::Hint => "hint",
            Self::Resident => "resident",
            Self::Looks => "looks",
            Self::Bandwidth => "bandwidth",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for EvidenceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<&str> for EvidenceSource {
    fn from(name: &str) -> Self {
        let known = [Self::Agent, Self::Touch, Self::Watch, Self::Sample, Self::Hint, Self::Resident, Self::Looks, Self::Bandwidth];
        known.into_iter().find(|source| source.as_str() == name).unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

impl From<String> for EvidenceSource {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<EvidenceSource> for String {
    fn from(source: EvidenceSource) -> Self {
        source.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that names are read back, including unknown ones.
    #[test]
    fn names_are_read_back() {
        for name in ["agent", "touch", "watch", "sample", "hint", "resident", "looks", "bandwidth", "pmu"] {
            assert_eq!(EvidenceSource::from(name).as_str(), name);
        }
        assert_eq!(EvidenceSource::from("watch"), EvidenceSource::Watch);
    }
}
