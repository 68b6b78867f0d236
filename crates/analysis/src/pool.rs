//! What is known of a pool: blocks that are too small to be recorded one by one, as one object (`pools/`).

use firsttouch_model::rows::Id;

/// What is known of a pool besides its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// A stack of each place that allocates it, the one with the most bytes first; empty if these are many.
    pub sites: Vec<(Option<Id>, String)>,
    /// Places that allocate it.
    pub places: usize,
    /// Size of a block, on average.
    pub block_bytes: u64,
    /// Blocks alive at the same time, estimated.
    pub blocks: u64,
}
