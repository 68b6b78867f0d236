//! Which processes took no part in the work, and so take no place beside those that did: they
//!
//! - only start others (mpirun, a script): they used hardly any CPU time beside the busiest one, and prepared hardly any memory;
//! - did nothing but start and end (Python's `multiprocessing.resource_tracker`, a shell that waits). Starting an interpreter takes as much CPU
//!   time as some ranks of a short run use, so CPU times do not tell. Between the first and the last part of its life, such a process has hardly
//!   any of the samples that computed, beside the process with the most of them; it neither uses memory that processes share nor made much of
//!   the first touches; and it has no OpenMP team;
//! - prepare memory and then wait while processes that they created work on it (a pool of forked workers): while these live, they have hardly
//!   any of the samples. What such a process did before, it did alone.
//!
//! Processes that take turns ([`Turns`]) count as one: each of them may be small beside the process that creates them. The first stands for them.

use super::CpuTimes;
use crate::turns::Turns;
use firsttouch_model::rows::{Id, Profile, SampleState};
use hashbrown::{HashMap, HashSet};

/// A process with less than this fraction of the CPU time of the busiest process, and of all first touches, only starts the others.
const DRIVER: f64 = 0.1;
/// If the busiest process used less CPU time, none only starts others.
const LEAST_BUSY_NS: f64 = 100e6;
/// What counts as start: this part of a process's life, but at least so long, ns.
const START: u64 = 4;
const LEAST_START_NS: u64 = 300_000_000;
/// What counts as end, likewise.
const END: u64 = 10;
const LEAST_END_NS: u64 = 100_000_000;
/// It has less than this fraction of the samples in between of the busiest process, which has at least so many.
const IDLE: f64 = 0.05;
const ENOUGH_SAMPLES: f64 = 8.0;
/// And less than this fraction of all first touches.
const LITTLE_MEMORY: f64 = 0.25;
/// A process that waits for those that it created has less than this fraction of the samples of the busiest of them.
const WAITS: f64 = 0.2;

/// The processes that took no part in the work.
#[must_use]
pub fn without_work(profile: &Profile, turns: &Turns) -> HashSet<Id> {
    let mut found = starters(profile, turns);
    found.extend(only_started(profile, turns));
    found.extend(waiting_parents(profile, turns));
    found
}

/// The processes that only start others.
fn starters(profile: &Profile, turns: &Turns) -> HashSet<Id> {
    let times = CpuTimes::new(profile);
    let mut used: HashMap<Id, Option<u64>> = HashMap::new();
    for thread in &profile.threads {
        let all = used.entry(turns.first(thread.process)).or_insert(Some(0));
        *all = all.zip(times.most_ns(thread)).map(|(sum, own)| sum.saturating_add(own));
    }
    let busiest_ns = used.values().flatten().max().copied().unwrap_or(0) as f64;
    if busiest_ns < LEAST_BUSY_NS {
        return HashSet::new();
    }
    let touched = touched(profile, turns);
    let all: f64 = touched.values().sum();
    let is_small = |(process, ns): &(Id, Option<u64>)| {
        ns.is_some_and(|ns| (ns as f64) < DRIVER * busiest_ns) && touched.get(process).is_none_or(|own| *own < DRIVER * all)
    };
    used.into_iter().filter(is_small).map(|(process, _)| process).collect()
}

/// The processes that did nothing between their start and their end.
fn only_started(profile: &Profile, turns: &Turns) -> HashSet<Id> {
    let later = later_samples(profile, turns);
    let most = later.values().copied().fold(0.0, f64::max);
    if most < ENOUGH_SAMPLES {
        return HashSet::new();
    }
    let (sharing, touched) = (users_of_shared_memory(profile, turns), touched(profile, turns));
    let all: f64 = touched.values().sum();
    let teams = with_openmp(profile, turns);
    let is_small = |(process, later): &(Id, f64)| {
        *later < IDLE * most
            && !sharing.contains(process)
            && !teams.contains(process)
            && touched.get(process).is_none_or(|own| *own < LITTLE_MEMORY * all)
    };
    later.into_iter().filter(is_small).map(|(process, _)| process).collect()
}

/// How many samples of each process computed between its start and its end.
fn later_samples(profile: &Profile, turns: &Turns) -> HashMap<Id, f64> {
    let mut lives: HashMap<Id, (u64, u64)> = HashMap::new();
    for thread in &profile.threads {
        let (born, died) = (thread.born_ns, thread.died_ns.or(profile.meta.end_ns).unwrap_or(thread.born_ns));
        let life = lives.entry(turns.first(thread.process)).or_insert((born, died));
        *life = (life.0.min(born), life.1.max(died));
    }
    let start = |(born, died): &(u64, u64)| born.saturating_add((died.saturating_sub(*born) / START).max(LEAST_START_NS));
    let end = |(born, died): &(u64, u64)| died.saturating_sub((died.saturating_sub(*born) / END).max(LEAST_END_NS));
    // Of a process that lived for a shorter time, nothing else is known.
    lives.retain(|_, life| start(life) < end(life));
    let process_of = processes(profile, turns);
    let mut later: HashMap<Id, f64> = lives.keys().map(|process| (*process, 0.0)).collect();
    for sample in profile.samples.iter().filter(|sample| sample.weight > 0.0 && computes(sample.state)) {
        let Some(process) = process_of.get(&sample.thread) else { continue };
        if let (Some(life), Some(count)) = (lives.get(process), later.get_mut(process))
            && (start(life)..end(life)).contains(&sample.time_ns)
        {
            *count += 1.0;
        }
    }
    later
}

/// The processes that wait while those that they created work.
fn waiting_parents(profile: &Profile, turns: &Turns) -> HashSet<Id> {
    let process_of = processes(profile, turns);
    let end = |died: Option<u64>| died.or(profile.meta.end_ns);
    // Of each process that created others: from when to when these lived, and which they are.
    let mut children: HashMap<Id, (u64, u64, HashSet<Id>)> = HashMap::new();
    let mut died: HashMap<Id, u64> = HashMap::new();
    for thread in &profile.threads {
        let Some(until) = end(thread.died_ns) else { continue };
        let process = turns.first(thread.process);
        let last = died.entry(process).or_insert(until);
        *last = (*last).max(until);
        let parent = thread.parent.and_then(|parent| process_of.get(&parent)).filter(|parent| **parent != process);
        if let Some(parent) = parent {
            let of_parent = children.entry(*parent).or_insert((thread.born_ns, until, HashSet::new()));
            (of_parent.0, of_parent.1) = (of_parent.0.min(thread.born_ns), of_parent.1.max(until));
            of_parent.2.insert(process);
        }
    }
    let teams = with_openmp(profile, turns);
    let computing = Computing::new(profile, &process_of);
    let waits = |(process, (from, to, children)): &(Id, (u64, u64, HashSet<Id>))| {
        let lived = to.saturating_sub(*from);
        let left = died.get(process).copied().unwrap_or(*to).saturating_sub(*from);
        // They end one after the other, and it starts to end with the first.
        let to = to.saturating_sub((lived / END).max(LEAST_END_NS).min(lived / 2));
        let count = |process: &Id| computing.within(*process, &(*from..to));
        let most = children.iter().map(count).fold(0.0, f64::max);
        2 * lived >= left && most >= ENOUGH_SAMPLES && count(process) < WAITS * most && !teams.contains(process)
    };
    children.into_iter().filter(waits).map(|(process, _)| process).collect()
}

/// The process of each thread.
fn processes(profile: &Profile, turns: &Turns) -> HashMap<Id, Id> {
    profile.threads.iter().map(|thread| (thread.id, turns.first(thread.process))).collect()
}

fn with_openmp(profile: &Profile, turns: &Turns) -> HashSet<Id> {
    let of_team = profile.threads.iter().filter(|thread| thread.omp_number.is_some());
    of_team.map(|thread| turns.first(thread.process)).collect()
}

/// The samples of each process that computed.
struct Computing(HashMap<Id, Vec<(u64, f64)>>);

impl Computing {
    fn new(profile: &Profile, process_of: &HashMap<Id, Id>) -> Self {
        let mut all: HashMap<Id, Vec<(u64, f64)>> = HashMap::new();
        for sample in profile.samples.iter().filter(|sample| sample.weight > 0.0 && computes(sample.state)) {
            if let Some(process) = process_of.get(&sample.thread) {
                all.entry(*process).or_default().push((sample.time_ns, sample.weight));
            }
        }
        for own in all.values_mut() {
            own.sort_by_key(|(time, _)| *time);
            // The weight of a sample and all before it.
            own.iter_mut().fold(0.0, |sum, (_, weight)| {
                *weight += sum;
                *weight
            });
        }
        Self(all)
    }

    /// How many samples of a process computed in this time.
    fn within(&self, process: Id, time: &std::ops::Range<u64>) -> f64 {
        let Some(own) = self.0.get(&process) else { return 0.0 };
        let before = |end: u64| own[..own.partition_point(|(time, _)| *time < end)].last().map_or(0.0, |(_, sum)| *sum);
        (before(time.end) - before(time.start)).max(0.0)
    }
}

fn computes(state: SampleState) -> bool {
    matches!(state, SampleState::Computing | SampleState::Undecoded)
}

fn users_of_shared_memory(profile: &Profile, turns: &Turns) -> HashSet<Id> {
    let process_of = processes(profile, turns);
    let thread_of: HashMap<Id, Id> = profile.samples.iter().map(|sample| (sample.id, sample.thread)).collect();
    let is_shared = |object: &Id| profile.shared_memory.contains_key(object);
    let windows: HashSet<Id> = profile.windows.iter().filter(|window| is_shared(&window.object)).map(|window| window.id).collect();
    let watched = profile.accesses.iter().filter(|access| access.hits > 0 && windows.contains(&access.window)).map(|access| access.thread);
    let sampled = profile.sampled_accesses.iter().filter(|access| is_shared(&access.object));
    let sampled = sampled.filter_map(|access| thread_of.get(&access.sample).copied());
    watched.chain(sampled).filter_map(|thread| process_of.get(&thread).copied()).collect()
}

fn touched(profile: &Profile, turns: &Turns) -> HashMap<Id, f64> {
    let mut touched: HashMap<Id, f64> = HashMap::new();
    for touch in profile.first_touches.iter().filter(|touch| touch.weight.is_finite() && touch.weight > 0.0) {
        *touched.entry(turns.first(touch.process)).or_default() += touch.weight;
    }
    touched
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{FirstTouch, SampledAccess, SharedMemory, Thread, TimerSample};

    const MS: u64 = 1_000_000;

    fn thread(id: Id, died_ms: u64) -> Thread {
        Thread { id, process: id, tid: 100, born_ns: 0, died_ns: Some(died_ms * MS), ..Thread::default() }
    }

    /// Samples of a thread every 10 ms in this time.
    fn samples(thread: Id, ms: std::ops::Range<u64>) -> impl Iterator<Item = TimerSample> {
        ms.step_by(10).map(move |at| TimerSample {
            id: thread * 10_000 + at.cast_signed(),
            thread,
            time_ns: at * MS,
            cpu: 0,
            cpu_ns: 0,
            weight: 1.0,
            site: None,
            state: SampleState::Computing,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        })
    }

    fn profile() -> Profile {
        let mut profile = Profile { threads: vec![thread(1, 2000), thread(2, 2000), thread(3, 250)], ..Profile::default() };
        profile.samples = samples(1, 0..2000).chain(samples(2, 0..200)).chain(samples(2, 1950..2000)).chain(samples(3, 0..250)).collect();
        profile
    }

    /// Check that a process that computes in its start and its end only takes no place, although it used a tenth of the CPU time of a rank, and that a short
    /// one, or one without a busy process to compare with, does.
    #[test]
    fn start_is_no_work() {
        assert_eq!(only_started(&profile(), &Turns::default()), [2].into());
        let mut later = profile();
        later.samples.extend(samples(2, 1400..1500));
        assert_eq!(only_started(&later, &Turns::default()), [].into());
        let mut nobody = profile();
        nobody.samples.retain(|sample| sample.thread != 1);
        assert_eq!(only_started(&nobody, &Turns::default()), [].into());
    }

    /// Check which processes only start others.
    #[test]
    fn small_processes_are_starters() {
        let of = |process, id, ms: Option<u64>| Thread { process, died_ns: None, cpu_ns: ms.map(|ms| ms * MS), ..thread(id, 0) };
        let threads = vec![of(1, 1, Some(8000)), of(2, 2, Some(300)), of(2, 3, Some(300)), of(3, 4, Some(8000)), of(4, 5, None)];
        let mut all = Profile { threads, ..Profile::default() };
        (all.meta.start_ns, all.meta.end_ns) = (Some(0), Some(10_000 * MS));
        assert_eq!(starters(&all, &Turns::default()), [2].into());
        let touch = |process, weight| FirstTouch {
            id: 0,
            process,
            time_ns: 0,
            thread: process,
            cpu: 0,
            address: 0,
            weight,
            by_kernel: false,
            site: None,
            mapped_bytes: None,
            node: None,
        };
        all.first_touches = vec![touch(2, 50.0), touch(3, 60.0)];
        assert_eq!(starters(&all, &Turns::default()), [].into(), "it prepared the memory of the others");
        all.threads.retain(|thread| thread.process == 2);
        assert_eq!(starters(&all, &Turns::default()), [].into());
    }

    /// Check that a process that fills memory, creates workers and waits for them takes no place beside them, and that one does that works too, or
    /// that goes on by itself for longer than they lived.
    #[test]
    fn waiting_is_no_work() {
        let child = |id: Id| Thread { parent: Some(1), born_ns: 600 * MS, ..thread(id, 1200) };
        let mut all = Profile { threads: vec![thread(1, 1250), child(2), child(3)], ..Profile::default() };
        // The parent's threads compute again when the pool ends.
        all.samples = samples(1, 0..600).chain(samples(1, 1110..1250)).collect();
        all.samples.extend(samples(2, 620..1180).chain(samples(3, 620..1180)));
        assert_eq!(without_work(&all, &Turns::default()), [1].into());
        let mut works = all.clone();
        works.samples.extend(samples(1, 700..900));
        assert_eq!(without_work(&works, &Turns::default()), [].into());
        let mut goes_on = all.clone();
        goes_on.threads[0].died_ns = Some(3000 * MS);
        assert_eq!(without_work(&goes_on, &Turns::default()), [].into());
        all.threads[0].omp_number = Some(0);
        assert_eq!(without_work(&all, &Turns::default()), [].into());
    }

    /// Check that a process that uses shared memory in its start, or that belongs to an OpenMP program, does take a place.
    #[test]
    fn shared_memory_is_work() {
        let mut sharing = profile();
        sharing.shared_memory.insert(7, SharedMemory { memory: "m".to_owned(), offset: 0, present: None });
        let kind = firsttouch_model::rows::AccessKind::Read;
        sharing.sampled_accesses =
            vec![SampledAccess { sample: 20_010, object: 7, address: 0, bytes: 8, words: 1.0, kind, site: None, stride: None }];
        assert_eq!(only_started(&sharing, &Turns::default()), [].into());
        let mut team = profile();
        team.threads[1].omp_number = Some(0);
        assert_eq!(only_started(&team, &Turns::default()), [].into());
    }
}
