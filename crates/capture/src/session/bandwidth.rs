//! Memory bandwidth of the whole system, where the kernel offers counters of it.

use crate::track::Tracker;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::facts::BandwidthCounters;
use firsttouch_model::rows::{Bandwidth, Evidence};
use firsttouch_system::bandwidth::{self, Grown, Meter};

/// Time between two readings: this, or this part of the run so far if that is more. So a long run has some ten thousand readings.
const EVERY_NS: u64 = 100_000_000;
const PART_OF_RUN: u64 = 2_000;

#[derive(Default)]
pub(super) struct BandwidthRecorder {
    meter: Option<Meter>,
    /// Why counters that this system has are not read.
    refused: Option<String>,
    start_ns: u64,
    next_ns: u64,
    readings: u64,
}

impl BandwidthRecorder {
    /// Opens the counters, and reads them for the first time.
    pub(super) fn open(&mut self, now: u64) {
        match bandwidth::open() {
            Ok(meter) => self.start(meter, now),
            Err(BandwidthCounters::Refused { why, remedy }) => {
                let help = if remedy.is_empty() { String::new() } else { format!(". What would help: {remedy}") };
                self.refused = Some(format!("The bandwidth of memory was not counted: {why}{help}"));
            }
            Err(_) => {}
        }
    }

    fn start(&mut self, mut meter: Meter, now: u64) {
        meter.read(now);
        (self.start_ns, self.next_ns, self.meter) = (now, now.saturating_add(EVERY_NS), Some(meter));
    }

    /// Reads the counters if it is time or the run ends.
    pub(super) fn read(&mut self, tracker: &mut Tracker, now: u64, is_end: bool) {
        for row in self.rows(now, is_end) {
            tracker.sink.write(|w| w.bandwidth(&row));
        }
    }

    fn rows(&mut self, now: u64, is_end: bool) -> Vec<Bandwidth> {
        let Some(meter) = self.meter.as_mut().filter(|_| now >= self.next_ns || is_end) else { return Vec::new() };
        self.next_ns = now.saturating_add(EVERY_NS.max(now.saturating_sub(self.start_ns) / PART_OF_RUN));
        self.readings += 1;
        let grown = meter.read(now);
        let source = meter.source();
        let row = |grown: Grown| {
            let Grown { node, from_ns, to_ns, bytes, read_bytes, local_bytes } = grown;
            Bandwidth { source: source.to_owned(), node, from_ns, to_ns, bytes, read_bytes, local_bytes, part: None }
        };
        grown.into_iter().map(row).collect()
    }

    /// `None` if this system has no such counters.
    pub(super) fn evidence(&self) -> Option<Evidence> {
        let is_open = self.meter.is_some();
        let detail = self.meter.as_ref().map(|meter| format!("{}: {}", meter.source(), meter.detail())).or_else(|| self.refused.clone())?;
        Some(Evidence { source: EvidenceSource::Bandwidth.as_str().to_owned(), available: is_open, samples: self.readings, detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_system::bandwidth::{ControllerEvent, Count, Value, open_with};
    use std::cell::Cell;
    use std::path::Path;
    use std::rc::Rc;

    struct Clock(Rc<Cell<u64>>);

    impl Count for Clock {
        fn value(&self) -> Option<Value> {
            self.0.set(self.0.get() + 1);
            Some(Value { count: self.0.get(), ..Value::default() })
        }
    }

    /// Check that readings follow each other at 100 ms, less often in a long run, and that the end has one whenever it comes.
    #[test]
    fn readings_have_their_time() {
        let reads = Rc::new(Cell::new(0));
        let opener = |_: &ControllerEvent| -> std::io::Result<Box<dyn Count>> { Ok(Box::new(Clock(reads.clone()))) };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bandwidth/constructed-intel-2-nodes");
        let mut recorder = BandwidthRecorder::default();
        assert_eq!(recorder.evidence(), None);
        recorder.start(open_with(&root, &opener).unwrap(), 1_000);
        let ms = 1_000_000;
        assert!(recorder.rows(99 * ms, false).is_empty());
        let rows = recorder.rows(101 * ms, false);
        let found: Vec<_> = rows.iter().map(|row| (row.node, row.from_ns, row.to_ns, row.source.as_str())).collect();
        assert_eq!(found, [(0, 1_000, 101 * ms, "uncore"), (1, 1_000, 101 * ms, "uncore")]);
        assert!(rows.iter().all(|row| row.read_bytes.is_some_and(|bytes| bytes > 0 && bytes < row.bytes)));
        assert!(recorder.rows(150 * ms, false).is_empty());
        assert_eq!(recorder.rows(150 * ms, true).len(), 2);
        let hour = 3_600_000 * ms;
        assert_eq!((recorder.rows(hour, false).len(), recorder.rows(hour + 200 * ms, false).len()), (2, 0));
        assert_eq!(recorder.rows(hour + 2_000 * ms, false).len(), 2);
        assert_eq!(recorder.evidence().map(|evidence| (evidence.available, evidence.samples)), Some((true, 4)));
    }
}
