//! Processes that did nothing but start and end: Python's `multiprocessing.resource_tracker`, a shell that waits. Starting an interpreter takes as
//! much CPU time as some ranks of a short run use, so CPU times do not tell.
//!
//! A process only started if, between the first and the last part of its life, it has hardly any of the samples that computed, beside the
//! process with the most of them; if it neither uses memory that processes share nor made much of the first touches; and if it has no OpenMP
//! team.

use firsttouch_model::rows::{Id, Profile, SampleState};
use hashbrown::{HashMap, HashSet};

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

/// The processes that did nothing between their start and their end.
#[must_use]
pub fn only_started(profile: &Profile) -> HashSet<Id> {
    let later = later_samples(profile);
    let most = later.values().copied().fold(0.0, f64::max);
    if most < ENOUGH_SAMPLES {
        return HashSet::new();
    }
    let (sharing, touched) = (users_of_shared_memory(profile), touched(profile));
    let all: f64 = touched.values().sum();
    let teams: HashSet<Id> = profile.threads.iter().filter(|thread| thread.omp_number.is_some()).map(|thread| thread.process).collect();
    let is_small = |(process, later): &(Id, f64)| {
        *later < IDLE * most
            && !sharing.contains(process)
            && !teams.contains(process)
            && touched.get(process).is_none_or(|own| *own < LITTLE_MEMORY * all)
    };
    later.into_iter().filter(is_small).map(|(process, _)| process).collect()
}

/// How many samples of each process computed between its start and its end.
fn later_samples(profile: &Profile) -> HashMap<Id, f64> {
    let mut lives: HashMap<Id, (u64, u64)> = HashMap::new();
    for thread in &profile.threads {
        let (born, died) = (thread.born_ns, thread.died_ns.or(profile.meta.end_ns).unwrap_or(thread.born_ns));
        let life = lives.entry(thread.process).or_insert((born, died));
        *life = (life.0.min(born), life.1.max(died));
    }
    let start = |(born, died): &(u64, u64)| born.saturating_add((died.saturating_sub(*born) / START).max(LEAST_START_NS));
    let end = |(born, died): &(u64, u64)| died.saturating_sub((died.saturating_sub(*born) / END).max(LEAST_END_NS));
    // Of a process that lived for a shorter time, nothing else is known.
    lives.retain(|_, life| start(life) < end(life));
    let process_of: HashMap<Id, Id> = profile.threads.iter().map(|thread| (thread.id, thread.process)).collect();
    let mut later: HashMap<Id, f64> = lives.keys().map(|process| (*process, 0.0)).collect();
    let computes = |state| matches!(state, SampleState::Computing | SampleState::Undecoded);
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

fn users_of_shared_memory(profile: &Profile) -> HashSet<Id> {
    let process_of: HashMap<Id, Id> = profile.threads.iter().map(|thread| (thread.id, thread.process)).collect();
    let thread_of: HashMap<Id, Id> = profile.samples.iter().map(|sample| (sample.id, sample.thread)).collect();
    let is_shared = |object: &Id| profile.shared_memory.contains_key(object);
    let windows: HashSet<Id> = profile.windows.iter().filter(|window| is_shared(&window.object)).map(|window| window.id).collect();
    let watched = profile.accesses.iter().filter(|access| access.hits > 0 && windows.contains(&access.window)).map(|access| access.thread);
    let sampled = profile.sampled_accesses.iter().filter(|access| is_shared(&access.object));
    let sampled = sampled.filter_map(|access| thread_of.get(&access.sample).copied());
    watched.chain(sampled).filter_map(|thread| process_of.get(&thread).copied()).collect()
}

fn touched(profile: &Profile) -> HashMap<Id, f64> {
    let mut touched: HashMap<Id, f64> = HashMap::new();
    for touch in profile.first_touches.iter().filter(|touch| touch.weight.is_finite() && touch.weight > 0.0) {
        *touched.entry(touch.process).or_default() += touch.weight;
    }
    touched
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{SampledAccess, SharedMemory, Thread, TimerSample};

    const MS: u64 = 1_000_000;

    fn thread(id: Id, died_ms: u64) -> Thread {
        Thread {
            id,
            process: id,
            tid: 100,
            parent: None,
            name: None,
            born_ns: 0,
            died_ns: Some(died_ms * MS),
            cpu_ns: None,
            omp_number: None,
            user_faults: None,
            all_faults: None,
            allowed_cpus: None,
            node_moves: 0,
        }
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
        assert_eq!(only_started(&profile()), [2].into());
        let mut later = profile();
        later.samples.extend(samples(2, 1400..1500));
        assert_eq!(only_started(&later), [].into());
        let mut nobody = profile();
        nobody.samples.retain(|sample| sample.thread != 1);
        assert_eq!(only_started(&nobody), [].into());
    }

    /// Check that a process that uses shared memory in its start, or that belongs to an OpenMP program, does take a place.
    #[test]
    fn shared_memory_is_work() {
        let mut sharing = profile();
        sharing.shared_memory.insert(7, SharedMemory { memory: "m".to_owned(), offset: 0 });
        let kind = firsttouch_model::rows::AccessKind::Read;
        sharing.sampled_accesses =
            vec![SampledAccess { sample: 20_010, object: 7, address: 0, bytes: 8, words: 1.0, kind, site: None, stride: None }];
        assert_eq!(only_started(&sharing), [].into());
        let mut team = profile();
        team.threads[1].omp_number = Some(0);
        assert_eq!(only_started(&team), [].into());
    }
}
