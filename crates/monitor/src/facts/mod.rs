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
use firsttouch_system::proc::stat::{age_at, uptime};
use std::path::Path;
use std::time::Duration;

/// What has lived for so long when it is read first has a rate: since its birth. Clocks of 10 ms and the time that a reading takes make that of anything
/// younger too coarse, and a longer life is not what the figures of the last seconds are about.
const YOUNG: std::ops::RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_millis(2_500);

/// The clock of start times at a reading.
#[derive(Clone, Copy)]
struct Births {
    now_ns: u64,
    up: Option<Duration>,
}

impl Births {
    fn new(root: &Path, now_ns: u64) -> Self {
        Self { now_ns, up: uptime(root) }
    }

    /// The CPU time of what is read for the first time: none at its birth, if that was not long ago. `start_ticks`: its birth, since boot.
    fn counter(self, start_ticks: u64) -> Counter {
        let mut ticks = Counter::default();
        if let Some(age) = self.up.map(|up| age_at(up, start_ticks)).filter(|age| YOUNG.contains(age)) {
            ticks.read(self.now_ns.saturating_sub(age.as_nanos() as u64), 0);
        }
        ticks
    }
}

/// A rate as snapshots have it.
fn rate(counter: &Counter, window: Window) -> Option<f64> {
    counter.rate(window).map(rounded)
}
