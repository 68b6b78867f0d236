//! OpenMP parallel regions.

use crate::sink::Sink;
use firsttouch_model::rows::{Id, Region};
use hashbrown::HashMap;

/// Regions written one by one; the rest is counted.
const REGIONS_KEPT: u64 = 20_000;

#[derive(Default)]
pub struct Regions {
    seen: u64,
    /// By process and the runtime's id.
    open: HashMap<(i32, u64), Region>,
}

impl Regions {
    /// Counts a region; `None` if it is beyond those that are kept.
    pub(super) fn count(&mut self, sink: &mut Sink) -> Option<Id> {
        self.seen += 1;
        if self.seen > REGIONS_KEPT {
            sink.lose("regions", "only the first 20,000 parallel regions are kept", 1);
            return None;
        }
        Some(i64::try_from(self.seen).unwrap_or(i64::MAX))
    }

    pub(super) fn begin(&mut self, pid: i32, runtime_id: u64, region: Region, sink: &mut Sink) {
        sink.write(|w| w.region(&region));
        self.open.insert((pid, runtime_id), region);
    }

    pub(super) fn end(&mut self, pid: i32, runtime_id: u64, time: u64, sink: &mut Sink) {
        if let Some(mut region) = self.open.remove(&(pid, runtime_id)) {
            region.end_ns = Some(time);
            sink.write(|w| w.region(&region));
        }
    }
}
