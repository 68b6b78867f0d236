//! What the kernel says, below a root: nodes, processes, threads, memory by node.

mod memory;
mod nodes;
mod processes;
mod threads;

pub use memory::Memory;
pub use nodes::Nodes;
pub use processes::{Processes, tree};
pub use threads::Threads;

use crate::snapshot::rounded;
use crate::window::{Counter, Window};

/// A rate as snapshots have it.
fn rate(counter: &Counter, window: Window) -> Option<f64> {
    counter.rate(window).map(rounded)
}
