//! Puts the records of all rings in order of time.

use crate::agent::records::{AgentEvent, AgentRecord};
use crate::perf::records::{Sample, TaskEvent};
use crate::perf::ticks::ThreadTick;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// A sample of an event that counts something, and the number of occurrences that it stands for.
#[derive(Debug, PartialEq)]
pub struct Fault {
    pub sample: Box<Sample>,
    pub weight: u64,
}

/// A record on its way from a ring to the profile.
#[derive(Debug, PartialEq)]
pub enum Record {
    Fault(Fault),
    /// The registers of a thread at a tick of its CPU clock, taken by the kernel.
    Tick(Box<ThreadTick>),
    Task(TaskEvent),
    Agent(AgentRecord),
}

/// Whether firsttouch should look again soon after a record, because more of its kind may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    None,
    IfMany,
    Soon,
}

impl Record {
    /// Faults in a burst, threads, and memory that comes and goes must be seen soon. Samples of registers and parallel regions can wait, and
    /// so can the few faults of a quiet program: a burst wakes firsttouch.
    #[must_use]
    pub fn urgency(&self, in_burst: bool) -> Urgency {
        match self {
            Self::Fault(_) if !in_burst => Urgency::IfMany,
            Self::Tick(_) => Urgency::None,
            Self::Agent(record) => match record.event {
                AgentEvent::Tick(_)
                | AgentEvent::ParallelBegin { .. }
                | AgentEvent::ParallelEnd { .. }
                | AgentEvent::ImplicitTask { .. } => Urgency::None,
                _ => Urgency::Soon,
            },
            Self::Fault(_) | Self::Task(_) => Urgency::Soon,
        }
    }
}

/// Records of several rings, merged.
///
/// Invariant: a kernel record comes out only if its time is at or before the horizon, the moment when the rings began to be read.
/// Every older record was in some ring at that moment and has been pushed, so no later push precedes it. Newer records wait for the next
/// horizon. Equal times keep the order of arrival. A record is put in its place once, when it is pushed.
///
/// The agent's records keep the order of their ring, whose slots are reserved before the time is taken. They come out ahead of the
/// first kernel record that is newer, and those up to the horizon at the end of a drain.
#[derive(Default)]
pub struct Timeline {
    kernel: BinaryHeap<Waiting>,
    agent: VecDeque<AgentRecord>,
    arrivals: u64,
}

struct Waiting {
    time: u64,
    arrival: u64,
    record: Record,
}

impl Timeline {
    pub fn push_fault(&mut self, fault: Fault) {
        self.push(fault.sample.time, Record::Fault(fault));
    }

    pub fn push_tick(&mut self, tick: Box<ThreadTick>) {
        self.push(tick.time, Record::Tick(tick));
    }

    pub fn push_task(&mut self, event: TaskEvent) {
        self.push(event.time(), Record::Task(event));
    }

    pub fn push_agent(&mut self, record: AgentRecord) {
        self.agent.push_back(record);
    }

    fn push(&mut self, time: u64, record: Record) {
        self.arrivals += 1;
        self.kernel.push(Waiting { time, arrival: self.arrivals, record });
    }

    /// The next record at or before the horizon: a kernel record, or one of the agent's that precedes it.
    pub fn next(&mut self, horizon: u64) -> Option<Record> {
        let time = self.kernel.peek()?.time;
        if time > horizon {
            return None;
        }
        if self.agent.front().is_some_and(|first| first.time < time) {
            return self.next_agent();
        }
        self.kernel.pop().map(|waiting| waiting.record)
    }

    /// The agent's next record, if it is at or before the horizon. A later one waits: a kernel record that precedes it, such as that of
    /// exec, may still be in its ring.
    pub fn next_of_agent(&mut self, horizon: u64) -> Option<Record> {
        self.agent.front().filter(|first| first.time <= horizon)?;
        self.next_agent()
    }

    fn next_agent(&mut self) -> Option<Record> {
        self.agent.pop_front().map(Record::Agent)
    }

    /// A kernel record is at or before the horizon.
    #[must_use]
    pub fn is_ready(&self, horizon: u64) -> bool {
        self.kernel.peek().is_some_and(|first| first.time <= horizon)
    }

    /// Kernel records that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kernel.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kernel.is_empty() && self.agent.is_empty()
    }
}

/// The heap's largest element is the oldest record.
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.arrival).cmp(&(self.time, self.arrival))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(time: u64, tid: i32) -> TaskEvent {
        TaskEvent::Exit { time, pid: 1, tid }
    }

    fn agent(time: u64) -> AgentRecord {
        AgentRecord { pid: 1, tid: 1, time, event: AgentEvent::Attach }
    }

    /// Times of the records up to a horizon: kernel records positive, the agent's negative.
    fn times(timeline: &mut Timeline, horizon: u64) -> Vec<i64> {
        let time = |record| match record {
            Record::Fault(fault) => fault.sample.time.cast_signed(),
            Record::Tick(tick) => tick.time.cast_signed(),
            Record::Task(event) => event.time().cast_signed(),
            Record::Agent(record) => -record.time.cast_signed(),
        };
        std::iter::from_fn(|| timeline.next(horizon)).map(time).collect()
    }

    /// Check which records make firsttouch look again soon.
    #[test]
    fn urgent_records() {
        let fault = Record::Fault(Fault { sample: Box::new(Sample::default()), weight: 1 });
        assert_eq!((fault.urgency(false), fault.urgency(true)), (Urgency::IfMany, Urgency::Soon));
        assert_eq!(Record::Task(exit(1, 1)).urgency(false), Urgency::Soon);
        assert_eq!(Record::Agent(agent(1)).urgency(false), Urgency::Soon);
        let region = AgentRecord { event: AgentEvent::ParallelEnd { id: 1 }, ..agent(1) };
        assert_eq!(Record::Agent(region).urgency(true), Urgency::None);
    }

    /// Check that records of several rings come out in order of time, newer ones only with a later horizon.
    #[test]
    fn rings_are_merged_in_order_of_time() {
        let mut timeline = Timeline::default();
        for time in [10, 40, 90, 20, 50, 30] {
            timeline.push_task(exit(time, 0));
        }
        timeline.push_fault(Fault { sample: Box::new(Sample { time: 35, ..Sample::default() }), weight: 1 });
        assert_eq!(times(&mut timeline, 45), [10, 20, 30, 35, 40]);
        assert!(!timeline.is_ready(45) && timeline.is_ready(50) && timeline.len() == 2);
        timeline.push_task(exit(60, 0));
        assert_eq!(times(&mut timeline, u64::MAX), [50, 60, 90]);
        assert!(timeline.is_empty());
    }

    /// Check that the agent's records precede newer kernel records in the order of their ring, and that the rest is left for the end.
    #[test]
    fn the_agents_records_keep_their_order() {
        let mut timeline = Timeline::default();
        for time in [15, 12, 30, 70] {
            timeline.push_agent(agent(time));
        }
        for time in [10, 15, 20, 40] {
            timeline.push_task(exit(time, 0));
        }
        assert_eq!(times(&mut timeline, 45), [10, 15, -15, -12, 20, -30, 40]);
        assert_eq!(timeline.next_of_agent(69), None);
        assert_eq!(timeline.next_of_agent(70), Some(Record::Agent(agent(70))));
        assert!(timeline.is_empty());
    }

    /// Check that records of the same time keep the order in which they arrived.
    #[test]
    fn equal_times_keep_their_order() {
        let mut timeline = Timeline::default();
        for tid in 0..100 {
            timeline.push_task(exit(7, tid));
        }
        for tid in 0..100 {
            assert_eq!(timeline.next(7), Some(Record::Task(exit(7, tid))));
        }
    }
}
