//! Sweeps: what two samples in one entry of a loop say about the memory between them.
//!
//! An operand with a constant stride passes every address between two samples of its thread in one entry of its loop. Before the first
//! sample of an entry and behind the last one, it passes as much as the loop's rate allows in the CPU time to the neighbouring samples of
//! the thread. So a few samples show which part of an object had been accessed at a certain time: a write to another part initialises it.

use super::rates::Rates;
use super::times::is_for_rates;
use firsttouch_model::rows::{AccessKind, Id, Profile, SampledAccess, TimerSample};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// A range of an object that one thread passed.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    pub object: Id,
    pub thread: Id,
    pub cpu: u32,
    pub time_ns: u64,
    pub site: Option<Id>,
    pub start: u64,
    pub end: u64,
    pub writes: bool,
    /// The loop writes the object and does not read it, as code that initialises memory does.
    pub fills: bool,
    /// The range lies between two samples in one entry of a loop: the thread passed it without a gap.
    pub is_certain: bool,
}

/// The sweeps of a profile.
#[derive(Debug, Default)]
pub struct Sweeps {
    /// By sample and access: whether it writes memory that no sweep had passed before.
    pub is_first: Vec<Vec<bool>>,
    /// Parts that no sweep had passed before, in the order of time.
    pub first: Vec<Sweep>,
}

/// Addresses, as disjoint ranges: start -> end.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn contains(&self, address: u64) -> bool {
        self.0.range(..=address).next_back().is_some_and(|(_, end)| address < *end)
    }

    /// Adds a range; returns the parts of it that are new.
    fn add(&mut self, start: u64, end: u64) -> Vec<(u64, u64)> {
        if start >= end {
            return Vec::new();
        }
        let before = self.0.range(..start).next_back().filter(|(_, last)| **last >= start).map(|(first, last)| (*first, *last));
        let inside = self.0.range(start..=end).map(|(first, last)| (*first, *last));
        let touching: Vec<(u64, u64)> = before.into_iter().chain(inside).collect();
        let (mut new, mut from) = (Vec::new(), start);
        for &(first, last) in &touching {
            if first > from {
                new.push((from, first.min(end)));
            }
            from = from.max(last);
            self.0.remove(&first);
        }
        if from < end {
            new.push((from, end));
        }
        let low = touching.first().map_or(start, |range| range.0.min(start));
        let high = touching.iter().map(|range| range.1).fold(end, u64::max);
        self.0.insert(low, high);
        new
    }
}

/// Finds the sweeps. `accesses`: those of each sample, in the order of the samples.
pub fn sweeps(profile: &Profile, accesses: &[&[SampledAccess]], rates: &Rates) -> Sweeps {
    let bounds: HashMap<Id, (u64, u64)> =
        profile.objects.iter().map(|object| (object.id, (object.address, object.address.saturating_add(object.bytes)))).collect();
    let mut finder = Finder { bounds, passed: HashMap::new(), first: Vec::new() };
    let mut last: HashMap<Id, usize> = HashMap::new();
    let mut is_first = Vec::with_capacity(accesses.len());
    for (at, (sample, own)) in profile.samples.iter().zip(accesses).enumerate() {
        if is_for_rates(sample) {
            is_first.push(vec![false; own.len()]);
            continue;
        }
        let before = last.insert(sample.thread, at).map(|index| (&profile.samples[index], accesses[index]));
        let reach = rates.reach(sample, own);
        if let Some((previous, theirs)) = before.filter(|(previous, _)| !is_one_entry(previous, sample)) {
            // The loop before went on until, at the latest, this sample.
            let theirs_reach = rates.reach(sample, theirs);
            theirs
                .iter()
                .for_each(|access| finder.pass(previous, access, (access.address, reached(access, theirs_reach)), Passed::default()));
        }
        let mut firsts = Vec::with_capacity(own.len());
        for access in *own {
            firsts.push(access.kind.writes() && access.stride.is_some_and(|stride| stride != 0) && !finder.has_passed(access));
            let from = before.filter(|(previous, _)| is_one_entry(previous, sample)).and_then(|(_, theirs)| same_operand(theirs, access));
            let passed = Passed {
                is_certain: from.is_some(),
                fills: own.iter().filter(|other| other.object == access.object).all(|other| other.kind == AccessKind::Write),
            };
            finder.pass(sample, access, (from.unwrap_or_else(|| reached(access, -reach)), access.address), passed);
        }
        is_first.push(firsts);
    }
    Sweeps { is_first, first: finder.first }
}

fn is_one_entry(previous: &TimerSample, sample: &TimerSample) -> bool {
    previous.around.zip(sample.around).is_some_and(|(then, now)| then.end == now.end && then.entry == now.entry)
}

/// The address of the same operand in the sample before, if it lies behind in the direction of the stride.
fn same_operand(theirs: &[SampledAccess], access: &SampledAccess) -> Option<u64> {
    let stride = access.stride.filter(|stride| *stride != 0)?;
    let is_same = |one: &&SampledAccess| one.site == access.site && one.object == access.object && one.stride == access.stride;
    let before = theirs.iter().find(is_same)?.address;
    (access.address.wrapping_sub(before).cast_signed().signum() == stride.signum()).then_some(before)
}

/// The address of an operand some rounds away.
fn reached(access: &SampledAccess, rounds: f64) -> u64 {
    let stride = access.stride.unwrap_or(0) as f64;
    access.address.saturating_add_signed((rounds * stride).clamp(-9e18, 9e18) as i64)
}

/// What is known of a sweep.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    is_certain: bool,
    fills: bool,
}

struct Finder {
    bounds: HashMap<Id, (u64, u64)>,
    passed: HashMap<Id, Ranges>,
    first: Vec<Sweep>,
}

impl Finder {
    fn has_passed(&self, access: &SampledAccess) -> bool {
        self.passed.get(&access.object).is_some_and(|ranges| ranges.contains(access.address))
    }

    /// The operand passed all addresses from one to the other, the ends included.
    fn pass(&mut self, sample: &TimerSample, access: &SampledAccess, (from, to): (u64, u64), passed: Passed) {
        let Some(&(low, high)) = self.bounds.get(&access.object).filter(|_| access.stride.is_some_and(|stride| stride != 0)) else {
            return;
        };
        let (start, end) = (from.min(to).max(low), from.max(to).saturating_add(u64::from(access.bytes.max(1))).min(high));
        for (start, end) in self.passed.entry(access.object).or_default().add(start, end) {
            self.first.push(Sweep {
                object: access.object,
                thread: sample.thread,
                cpu: sample.cpu,
                time_ns: sample.time_ns,
                site: access.site,
                start,
                end,
                writes: access.kind.writes(),
                fills: passed.fills,
                is_certain: passed.is_certain,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that ranges are joined, and that only new parts are returned.
    #[test]
    fn ranges_are_joined() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(10, 20), [(10, 20)]);
        assert_eq!(ranges.add(30, 40), [(30, 40)]);
        assert_eq!(ranges.add(12, 18), []);
        assert_eq!(ranges.add(5, 35), [(5, 10), (20, 30)]);
        assert_eq!(ranges.add(40, 41), [(40, 41)]);
        assert_eq!(
            (ranges.0.len(), ranges.contains(5), ranges.contains(40), ranges.contains(41), ranges.contains(4)),
            (1, true, true, false, false)
        );
        assert_eq!(ranges.add(7, 7), []);
    }
}
