//! The page-fault counts of the threads of a process: of all of them at each reading, and of one thread when it was sampled.

use firsttouch_model::rows::{FaultCount, Id};
use std::collections::BTreeMap;

/// A thread, or (`None`) those that have ended or are not known, together.
pub(super) type Toucher = Option<Id>;

/// The counts of a process.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Times of readings, ascending. Each has a count of the threads that are not known.
    times: Vec<u64>,
    /// By thread: (time, count), ascending. A count holds until the next one.
    of: BTreeMap<Toucher, Vec<(u64, u64)>>,
}

impl Counts {
    pub fn new<'a>(rows: impl Iterator<Item = &'a FaultCount>) -> Self {
        let mut counts = Self::default();
        for row in rows {
            if row.thread.is_none() {
                counts.times.push(row.time_ns);
            }
            counts.of.entry(row.thread).or_default().push((row.time_ns, row.faults));
        }
        counts.times.sort_unstable();
        counts.times.dedup();
        counts.of.values_mut().for_each(|list| list.sort_unstable());
        counts
    }

    /// The last reading at this time or before.
    pub fn reading_before(&self, time: u64) -> Option<u64> {
        self.times[..self.times.partition_point(|&at| at <= time)].last().copied()
    }

    /// The faults of each thread between the last reading before a stretch of time and the first one after it, as far as there were any. `None`
    /// without a reading after it.
    pub fn between(&self, from: u64, to: u64) -> Option<BTreeMap<Toucher, u64>> {
        let after = *self.times.get(self.times.partition_point(|&at| at < to))?;
        let before = self.reading_before(from);
        let faults = |list: &[(u64, u64)]| faults(list, before, after);
        Some(self.of.iter().map(|(&thread, list)| (thread, faults(list))).filter(|(_, faults)| *faults > 0).collect())
    }

    /// The same of one thread.
    pub fn of_between(&self, thread: Toucher, from: u64, to: u64) -> Option<u64> {
        let after = *self.times.get(self.times.partition_point(|&at| at < to))?;
        Some(self.of.get(&thread).map_or(0, |list| faults(list, self.reading_before(from), after)))
    }

    /// The count of a thread at the last reading before a time.
    pub fn at(&self, thread: Toucher, time: u64) -> u64 {
        self.of.get(&thread).and_then(|list| list[..list.partition_point(|row| row.0 <= time)].last()).map_or(0, |row| row.1)
    }

    /// The count of a thread at a time, if it was read just then.
    pub fn exactly_at(&self, thread: Id, time: u64) -> Option<u64> {
        let list = self.of.get(&Some(thread))?;
        let row = list[..list.partition_point(|row| row.0 <= time)].last()?;
        (row.0 == time).then_some(row.1)
    }

    /// The faults of a thread in a stretch of time before and after it had this count.
    pub fn around(&self, thread: Id, count: u64, (from, to): (u64, u64)) -> Option<(u64, u64)> {
        let after = *self.times.get(self.times.partition_point(|&at| at < to))?;
        let before = self.reading_before(from).map_or(0, |time| self.at(Some(thread), time));
        Some((count.saturating_sub(before), self.at(Some(thread), after).saturating_sub(count)))
    }
}

fn faults(list: &[(u64, u64)], before: Option<u64>, after: u64) -> u64 {
    let at = |time: u64| list[..list.partition_point(|row| row.0 <= time)].last().map_or(0, |row| row.1);
    at(after).saturating_sub(before.map_or(0, at))
}
