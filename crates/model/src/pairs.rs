//! Figures of pairs: access to a node's memory from certain CPUs.

/// The kind of a figure. Bandwidths are in MiB/s, latencies in ns, as in hwloc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairKind {
    /// Of reads and writes in an unknown mix.
    Bandwidth,
    ReadBandwidth,
    Latency,
    ReadLatency,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairFigure {
    pub kind: PairKind,
    /// The node of the memory.
    pub memory: u32,
    /// Nodes of the CPUs that use it; several if a figure holds for a whole package.
    pub from: Vec<u32>,
    pub value: u64,
}
