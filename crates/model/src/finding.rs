//! The kinds of placement defects that an analysis finds, how severe one is, and which placement of memory removes it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A kind of defect. docs/findings.md describes each; its name is part of every JSON output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// One thread initialised an object that many threads use.
    SerialFirstTouch,
    /// Several threads initialised the object, but in another partition than they use.
    MismatchedPartition,
    /// No thread owns a part of the object.
    NoStablePartition,
    /// All threads read the whole object.
    SharedRead,
    /// The kernel touched the object on behalf of one thread.
    IoFirstTouch,
    /// Several threads' parts are in one huge page.
    HugePageSharing,
    /// The object's pages keep the placement of a former owner.
    RecycledMemory,
    /// Threads moved between nodes while they ran.
    UnpinnedThreads,
    /// The kernel's balancing moves pages back and forth.
    BalancingChurn,
    /// The object's pages went to another node because theirs was full.
    NodeFull,
    /// The object's memory policy is worse than first touch.
    PolicyMismatch,
    /// The object is on a node without CPUs, or on slower memory.
    SlowTier,
    /// The threads of a rank are on several nodes without need.
    RankStraddlesNodes,
    /// The memory of a rank is on other nodes than its threads.
    RankMemoryElsewhere,
    /// Ranks share the object, and use it from other nodes than it is on.
    SharedSegment,
    /// The launcher bound no rank to a node.
    RanksUnbound,
}

/// The placement of memory that removes a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Each thread's part is on the node of that thread.
    ParallelFirstTouch,
    /// Each thread finds all that it uses on its own node, because the source was changed: there is a copy a node, or threads have fixed parts.
    Local,
    /// Pages are on all nodes in turn.
    Interleave,
}

/// What the fix of a finding does in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixKind {
    /// Each thread touches first, or allocates, the part that it uses.
    DivideFirstTouch,
    /// As that, with each thread's part on pages of its own.
    AlignParts,
    /// As that, in memory that was not used before.
    FreshMemory,
    /// As that, without the memory policy.
    NoPolicy,
    /// The memory stays on nodes with CPUs.
    FastNodes,
    /// Each thread gets the same part every time, and touches it first.
    FixedParts,
    /// Each node gets a copy.
    CopyPerNode,
    /// Pages go to all nodes in turn.
    Interleave,
    /// It is not about the place of the memory: pin threads, make room.
    #[default]
    NotMemory,
}

impl FixKind {
    /// Where memory is after the fix; `None` if the fix is not about that.
    #[must_use]
    pub fn remedy(self) -> Option<Remedy> {
        match self {
            Self::DivideFirstTouch | Self::AlignParts | Self::FreshMemory | Self::NoPolicy | Self::FastNodes => {
                Some(Remedy::ParallelFirstTouch)
            }
            Self::FixedParts | Self::CopyPerNode => Some(Remedy::Local),
            Self::Interleave => Some(Remedy::Interleave),
            Self::NotMemory => None,
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DivideFirstTouch => "divide-first-touch",
            Self::AlignParts => "align-parts",
            Self::FreshMemory => "fresh-memory",
            Self::NoPolicy => "no-policy",
            Self::FastNodes => "fast-nodes",
            Self::FixedParts => "fixed-parts",
            Self::CopyPerNode => "copy-per-node",
            Self::Interleave => "interleave",
            Self::NotMemory => "not-memory",
        }
    }
}

/// The severity, by remote accesses to the object / all accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Low,
    /// From 0.05.
    Medium,
    /// From 0.20.
    High,
}

impl FindingKind {
    pub const ALL: [Self; 16] = [
        Self::SerialFirstTouch,
        Self::MismatchedPartition,
        Self::NoStablePartition,
        Self::SharedRead,
        Self::IoFirstTouch,
        Self::HugePageSharing,
        Self::RecycledMemory,
        Self::UnpinnedThreads,
        Self::BalancingChurn,
        Self::NodeFull,
        Self::PolicyMismatch,
        Self::SlowTier,
        Self::RankStraddlesNodes,
        Self::RankMemoryElsewhere,
        Self::SharedSegment,
        Self::RanksUnbound,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SerialFirstTouch => "serial-first-touch",
            Self::MismatchedPartition => "mismatched-partition",
            Self::NoStablePartition => "no-stable-partition",
            Self::SharedRead => "shared-read",
            Self::IoFirstTouch => "io-first-touch",
            Self::HugePageSharing => "huge-page-sharing",
            Self::RecycledMemory => "recycled-memory",
            Self::UnpinnedThreads => "unpinned-threads",
            Self::BalancingChurn => "balancing-churn",
            Self::NodeFull => "node-full",
            Self::PolicyMismatch => "policy-mismatch",
            Self::SlowTier => "slow-tier",
            Self::RankStraddlesNodes => "rank-straddles-nodes",
            Self::RankMemoryElsewhere => "rank-memory-elsewhere",
            Self::SharedSegment => "shared-segment",
            Self::RanksUnbound => "ranks-unbound",
        }
    }

    /// The placement of the object's memory, as it is, that removes the defect; `None` if no placement does. Changes of the source can do
    /// more: [`FixKind::remedy`].
    #[must_use]
    pub fn remedy(self) -> Option<Remedy> {
        match self {
            Self::SerialFirstTouch
            | Self::MismatchedPartition
            | Self::IoFirstTouch
            | Self::HugePageSharing
            | Self::RecycledMemory
            | Self::PolicyMismatch
            | Self::SlowTier
            | Self::SharedSegment => Some(Remedy::ParallelFirstTouch),
            Self::NoStablePartition | Self::SharedRead => Some(Remedy::Interleave),
            Self::UnpinnedThreads
            | Self::BalancingChurn
            | Self::NodeFull
            | Self::RankStraddlesNodes
            | Self::RankMemoryElsewhere
            | Self::RanksUnbound => None,
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that no kind of finding has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFinding(pub String);

impl fmt::Display for UnknownFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no kind of finding '{}'", self.0)
    }
}

impl std::error::Error for UnknownFinding {}

impl FromStr for FindingKind {
    type Err = UnknownFinding;

    fn from_str(text: &str) -> Result<Self, UnknownFinding> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| UnknownFinding(text.to_owned()))
    }
}

impl Severity {
    /// The severity of a defect that makes this part of all accesses remote.
    #[must_use]
    pub fn of(remote_share: f64) -> Self {
        match remote_share {
            share if share >= 0.20 => Self::High,
            share if share >= 0.05 => Self::Medium,
            _ => Self::Low,
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that every kind has one name, and parses from it.
    #[test]
    fn names_are_read_back() {
        for kind in FindingKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("serial".parse::<FindingKind>(), Err(UnknownFinding("serial".to_owned())));
    }

    /// Check the bounds of severities, the lower one included.
    #[test]
    fn severities_have_bounds() {
        assert_eq!([0.0, 0.049, 0.05, 0.2, f64::NAN].map(|share| Severity::of(share).as_str()), ["low", "low", "medium", "high", "low"]);
    }
}
