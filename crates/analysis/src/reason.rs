//! Why an object is not judged.

use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::format_bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why an object is not judged, and what the user can do about it. The JSON holds its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum NotJudgedReason {
    /// It fits in a core's private cache.
    Cached {
        cache_bytes: u64,
    },
    /// The profile has no evidence of accesses.
    NoAccessEvidence(Missing),
    /// No sample was drawn on it.
    NotSampled,
    /// Its samples saw no access.
    NoAccess {
        samples: u64,
    },
    TooFewSamples {
        seen: u64,
        source: EvidenceSource,
        needed: u64,
    },
    /// The kernel touched it on behalf of several threads.
    KernelTouched,
    /// Most records of its first touches were lost.
    TouchesLost,
    TouchesNotSeen(Missing),
    TooFewTouches {
        records: u64,
        pages: u64,
        missing: Missing,
    },
    UnknownNodes,
    /// The samples do not show how threads divide it.
    UnclearPartition {
        threads: usize,
        seen: u64,
        source: EvidenceSource,
    },
    /// A sentence from an earlier report.
    Recorded(String),
}

/// Why evidence is missing. Its text continues a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// firsttouch attached after the first touches were made.
    Attached,
    /// The explanation in the profile.
    Detail(String),
    Unavailable(EvidenceSource),
    Unknown,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached => write!(f, "; firsttouch attached after they were made"),
            Self::Detail(detail) => write!(f, ": {detail}"),
            Self::Unavailable(source) => write!(f, ": no {source} evidence on this system"),
            Self::Unknown => Ok(()),
        }
    }
}

/// `12 samples`, `12 hinting faults`.
fn sampled(count: u64, source: &EvidenceSource) -> String {
    let what = if *source == EvidenceSource::Hint { "hinting fault" } else { "sample" };
    firsttouch_model::counted(count, what)
}

impl fmt::Display for NotJudgedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cached { cache_bytes } => write!(f, "fits in a core's cache ({})", format_bytes(*cache_bytes)),
            Self::NoAccessEvidence(missing) => write!(f, "no accesses were sampled{missing}"),
            Self::NotSampled => write!(f, "no sample was taken on it: too small a part of the memory, or too short-lived"),
            Self::NoAccess { samples } => write!(f, "no access was seen in {}", firsttouch_model::counted(*samples, "sample")),
            Self::TooFewSamples { seen, source, needed } => {
                write!(f, "too few samples: {} seen, {needed} are needed; profile a longer run", sampled(*seen, source))
            }
            Self::KernelTouched => {
                write!(
                    f,
                    "the kernel touched its pages on behalf of several threads (I/O), which cannot be distinguished without privilege"
                )
            }
            Self::TouchesLost => write!(f, "records of most of its first touches were lost: profile it again, with less else running"),
            Self::TouchesNotSeen(missing) => write!(f, "its first touches were not seen{missing}"),
            Self::TooFewTouches { records, pages, missing } => {
                write!(f, "too few first touches seen: {records} records for {pages} pages{missing}")
            }
            Self::UnknownNodes => write!(f, "the node of most of its accessed pages is not known"),
            Self::UnclearPartition { threads, seen, source } => {
                write!(f, "too few samples to show how {threads} threads divide it: {} seen", sampled(*seen, source))
            }
            Self::Recorded(text) => f.write_str(text),
        }
    }
}

impl From<String> for NotJudgedReason {
    fn from(text: String) -> Self {
        Self::Recorded(text)
    }
}

impl From<&str> for NotJudgedReason {
    fn from(text: &str) -> Self {
        Self::Recorded(text.to_owned())
    }
}

impl From<NotJudgedReason> for String {
    fn from(reason: NotJudgedReason) -> Self {
        reason.to_string()
    }
}
