//! What a file tells of single pairs: a node's memory, used from some CPUs.

/// What a figure of a pair is. Bandwidths are in MiB/s, latencies in ns, as hwloc has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairKind {
    /// Of reads and writes in a mix that the file does not tell.
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
    /// Nodes of the CPUs that use it; several where a figure holds for a whole package.
    pub from: Vec<u32>,
    pub value: u64,
}
