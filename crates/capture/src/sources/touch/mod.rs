//! First-touch evidence: the page-fault event, with address, thread, CPU and call stack. Its rings also report births, deaths and
//! modules, which the tracker needs.

mod events;
mod faults;
mod period;

use crate::options::Options;
use crate::perf::records::PerfRecord;
use crate::random::Random;
use crate::source::{Account, Drain, NEVER, Occasion, Source, Target, Unavailable};
use crate::timeline::{Fault, Record, Timeline};
use crate::track::Tracker;
use events::TouchEvents;
use faults::Faults;
use firsttouch_system::calls::clock::monotonic_ns;
use period::Period;

const KERNEL_UNSEEN: &str = "faults in system calls are not seen at this privilege (perf_event_paranoid > 1): memory filled by read() is inferred from pages without a record; set perf_event_paranoid to 1 or run with CAP_PERFMON to see them";

pub struct Touch {
    cpus: Vec<u32>,
    follow: bool,
    events: Option<TouchEvents>,
    period: Period,
    faults: Faults,
}

impl Touch {
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let now = monotonic_ns();
        Self {
            cpus: options.cpus(),
            follow: options.follow,
            events: None,
            period: Period::new(Random::new(now)),
            faults: Faults::new(Random::new(!now)),
        }
    }
}

impl Source for Touch {
    fn name(&self) -> &'static str {
        "touch"
    }

    fn start(&mut self, target: &Target<'_>, tracker: &mut Tracker) -> Result<(), Unavailable> {
        let events = TouchEvents::open(&tracker.scope.root, target.tids, &self.cpus, target.is_launched, self.follow);
        self.events = Some(events.map_err(|reason| format!("{reason}; continuing without first-touch evidence"))?);
        tracker.activity.is_reported = true;
        Ok(())
    }

    fn drain(&mut self, drain: &Drain, tracker: &mut Tracker, timeline: &mut Timeline) {
        let Some(events) = &mut self.events else { return };
        if drain.is_tick {
            tracker.activity.faults_counted = self.period.is_on();
        }
        let tids: Vec<i32> = if self.period.in_storm() { tracker.threads.live.keys().copied().collect() } else { Vec::new() };
        let (period, sink) = (&mut self.period, &mut tracker.sink);
        events.drain(|events, record| match record {
            PerfRecord::Sample(sample) => {
                let weight = period.count(events.period_of(sample.event));
                timeline.push_fault(Fault { sample, weight });
            }
            PerfRecord::Task(event) => timeline.push_task(event),
            PerfRecord::Lost { count } => sink.lose("touch", "the kernel's ring was full", count),
            PerfRecord::Throttled => sink.lose("touch", "throttled by the kernel (perf_event_max_sample_rate)", 1),
        });
        // The period adapts at once: handling the records may take longer than the next burst.
        if let Some(switch) = self.period.adapt(drain.elapsed_s, drain.is_tick) {
            events.switch(switch, &tids);
        }
        let unopened = std::mem::take(&mut events.unopened);
        tracker.sink.lose("touch", "page-fault events could not be opened again after a storm", unopened);
        (tracker.activity.in_burst, tracker.activity.in_storm) = (self.period.in_burst(), self.period.in_storm());
    }

    fn take(&mut self, record: &Record, tracker: &mut Tracker) -> bool {
        let Record::Fault(fault) = record else { return false };
        if tracker.scope.includes(fault.sample.pid) {
            self.faults.take(fault, tracker);
        }
        true
    }

    fn act(&mut self, occasion: Occasion, _now: u64, tracker: &mut Tracker) -> u64 {
        if occasion == Occasion::Drained {
            self.faults.place(tracker);
        }
        NEVER
    }

    fn account(&self, _tracker: &Tracker) -> Option<Account> {
        let events = self.events.as_ref()?;
        let account = Account::available(self.faults.samples);
        Some(if events.sees_kernel() { account } else { Account { detail: KERNEL_UNSEEN.to_owned(), ..account } })
    }

    fn stop(&mut self) {
        if let Some(events) = &self.events {
            events.stop();
        }
    }

    fn descriptors(&self) -> Vec<i32> {
        self.events.as_ref().map_or_else(Vec::new, TouchEvents::descriptors)
    }
}
