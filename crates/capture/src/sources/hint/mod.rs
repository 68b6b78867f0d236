//! Access evidence from the hinting faults of NUMA balancing: the kernel marks pages to see who uses them. The page-fault event
//! reports these faults together with first touches; the size of the page that was mapped distinguishes them.

use crate::source::{Account, NEVER, Occasion, Source, Target, Unavailable};
use crate::timeline::Record;
use crate::track::Tracker;
use firsttouch_model::rows::Machine;
use firsttouch_system::balancing;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::perf::kernel_reports_page_sizes;

/// How often the kernel's setting is read while it is off.
const EVERY_NS: u64 = 5_000_000_000;

pub struct Hint {
    machine: Machine,
    next_ns: u64,
    samples: u64,
}

impl Hint {
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        Self { machine, next_ns: 0, samples: 0 }
    }

    /// Balancing that was switched on meanwhile makes hinting faults from then on.
    fn read_setting(&mut self, now: u64, tracker: &mut Tracker) {
        self.next_ns = now.saturating_add(EVERY_NS);
        if tracker.scope.may_hint || !tracker.scope.has_nodes() {
            return;
        }
        let value = balancing::read(&tracker.scope.root).value.unwrap_or(0);
        if value != 0 {
            tracker.scope.may_hint = true;
            self.machine.numa_balancing = value;
            tracker.sink.write(|w| w.machine(&self.machine));
        }
    }
}

impl Source for Hint {
    fn name(&self) -> &'static str {
        "hint"
    }

    fn start(&mut self, _target: &Target<'_>, tracker: &mut Tracker) -> Result<(), Unavailable> {
        self.read_setting(monotonic_ns(), tracker);
        Ok(())
    }

    fn take(&mut self, record: &Record, tracker: &mut Tracker) -> bool {
        let Record::Fault(fault) = record else { return false };
        let sample = &fault.sample;
        self.samples += u64::from(tracker.scope.includes(sample.pid) && tracker.scope.is_hint(sample.page_bytes));
        // The row of the fault is written by the source that opened the event.
        false
    }

    fn act(&mut self, occasion: Occasion, now: u64, tracker: &mut Tracker) -> u64 {
        if occasion == Occasion::End || (occasion == Occasion::Flush && now >= self.next_ns) {
            self.read_setting(now, tracker);
        }
        NEVER
    }

    fn account(&self, tracker: &Tracker) -> Option<Account> {
        if !tracker.scope.may_hint || !tracker.activity.is_reported {
            return None;
        }
        if kernel_reports_page_sizes() {
            return Some(Account::available(self.samples));
        }
        let reason = "this kernel does not distinguish hinting faults from first touches (Linux 5.11 does): later faults on memory that was never given back are left out";
        Some(Account { is_warning: false, ..Account::missing(self.samples, reason) })
    }
}
