//! Memory bandwidth of the whole system.

use super::Id;

/// What the counters of a node's memory controllers, or of its CPUs' caches, grew by between two readings. Other programs count too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// `uncore`: memory controllers, so that `node` is the memory's. `resctrl`: caches, so that `node` is that of the CPUs.
    pub source: String,
    pub node: u32,
    pub from_ns: u64,
    pub to_ns: u64,
    pub bytes: u64,
    /// Of memory controllers: the part that was read.
    pub read_bytes: Option<u64>,
    /// Of resctrl: the part whose memory is on the node of the CPUs.
    pub local_bytes: Option<u64>,
    /// The part of a merged profile.
    pub part: Option<Id>,
}
