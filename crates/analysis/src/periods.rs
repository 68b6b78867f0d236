//! How many faults a record of a first touch stands for, and from when: sampling periods of the recording that a process belongs to.

use firsttouch_model::rows::{FaultPeriod, Id, Profile};

/// The periods of each recording of a profile. A profile that is not merged is one recording.
#[derive(Clone, Debug, Default)]
pub struct Periods {
    /// The least process of each part of a merged profile.
    first_processes: Vec<Id>,
    /// Of each part, in the order of time.
    by_part: Vec<Vec<FaultPeriod>>,
}

impl Periods {
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        if profile.parts.is_empty() {
            return Self { first_processes: Vec::new(), by_part: vec![profile.fault_periods.clone()] };
        }
        let mut by_part = vec![Vec::new(); profile.parts.len()];
        for period in &profile.fault_periods {
            let part = period.part.and_then(|part| usize::try_from(part).ok()).and_then(|part| by_part.get_mut(part));
            part.into_iter().for_each(|part| part.push(*period));
        }
        Self { first_processes: profile.parts.iter().map(|part| part.first.process).collect(), by_part }
    }

    /// Those of the recording of a process, in the order of time; empty if they were not recorded.
    #[must_use]
    pub fn of(&self, process: Id) -> &[FaultPeriod] {
        let part = self.first_processes.partition_point(|first| *first <= process).saturating_sub(1);
        self.by_part.get(part).map_or(&[], Vec::as_slice)
    }

    /// The most faults that a record stands for in a stretch of time; `None` if they were not recorded.
    #[must_use]
    pub fn longest(&self, process: Id, from: u64, to: u64) -> Option<u64> {
        let periods = self.of(process);
        let first = periods.partition_point(|period| period.time_ns <= from).saturating_sub(1);
        periods[first..].iter().take_while(|period| period.time_ns <= to).map(|period| period.faults).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{FirstIds, Part};

    /// Check that each process has the periods of its own part, also the processes of a part without any, and that those of a profile that is not
    /// merged are those of all.
    #[test]
    fn periods_are_those_of_the_part() {
        let period = |time_ns, faults, part| FaultPeriod { time_ns, faults, part };
        let part = |id, process| Part { id, first: FirstIds { process, ..FirstIds::default() }, ..Part::default() };
        let merged = Profile {
            parts: vec![part(0, 0), part(1, 2), part(2, 3)],
            fault_periods: vec![period(0, 1, Some(0)), period(1, 9, Some(2)), period(5, 4, Some(0)), period(6, 70, None)],
            ..Profile::default()
        };
        let periods = Periods::new(&merged);
        let longest = |process, from, to| periods.longest(process, from, to);
        assert_eq!((longest(0, 0, 4), longest(1, 2, 9), longest(2, 0, 9), longest(3, 7, 9)), (Some(1), Some(4), None, Some(9)));
        let alone = Profile { fault_periods: merged.fault_periods, ..Profile::default() };
        assert_eq!(Periods::new(&alone).longest(7, 0, 9), Some(70));
    }
}
