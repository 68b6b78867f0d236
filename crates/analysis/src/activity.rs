//! Which workers did nothing: helper threads of runtimes and libraries, or a main thread that only waits.
//!
//! A worker is idle if it hardly used CPU time and hardly any memory: less than `IDLE` of the CPU time of the busiest worker and of the observed
//! accesses and samples, and less than `LITTLE_MEMORY` of the first touches. (A runtime's helper prepares tables of its own.) Doubt counts as work: an idle thread that takes a place shifts others, but a worker
//! without a place is judged on the wrong node. A worker is idle too if it has less than a tenth of the
//! median worker's CPU time (`LIGHT`).
//!
//! - CPU times are read every half second. A thread that lived for less than a second counts with its whole life, because most of its work
//!   may have come after the reading. So does a thread that was never read; if its end is not known either, it is not idle. But if it only waited in
//!   its samples at ticks of its CPU time, and few samples were lost, it used at most one tick more than at its last sample.
//! - When firsttouch attached to a program, the times contain the life of the program before. So the busiest worker counts with at most the
//!   observed time.
//! - CPU time in which a thread only waited, as its samples show, is not work: helper threads of libraries yield in a loop until they are needed. It
//!   waited in the kernel if it had called a function that waits (`sched_yield`, `poll`) or was in an OpenMP runtime. Other time in the kernel is
//!   work: `read` fills the program's memory. One tick more than were seen may have been work.
//! - Threads of an OpenMP team have places by their number, whether they work or not. They are not idle.

use crate::slots::Lifetime;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Id, Profile, SampleState, Thread, TimerSample};
use hashbrown::{HashMap, HashSet};

/// The process of a worker, and its number there.
pub type WorkerId = (Id, usize);

/// An idle worker has less than this fraction. (With 5 %, workers of 40 ms after a serial phase of 1.2 s would be idle.)
const IDLE: f64 = 0.02;
/// Nor does a worker take a place that has less than this fraction of the median worker's CPU time: helper threads of 3 % would fill a node, and all
/// workers would sit on the other ones. Where most workers are short (after a long serial phase), the median is theirs.
const LIGHT: f64 = 0.1;
/// And this fraction of the observed accesses and samples.
const LITTLE_USE: f64 = 0.05;
/// Of the first touches.
const LITTLE_MEMORY: f64 = 0.05;
/// A process with less than this fraction of the CPU time of the busiest process, and of all first touches, only starts the others (mpirun, a
/// script).
const DRIVER: f64 = 0.1;
/// The number of samples that show when a thread works.
const ENOUGH_SAMPLES: u64 = 8;
/// A thread that only waits computes in at most this fraction of its samples.
const HARDLY: f64 = 0.1;
/// If more than this fraction of all samples was lost, a thread may have worked without one.
const MOST_LOST: f64 = 0.25;
/// If the busiest worker used less CPU time, nobody is idle: some kernels count CPU time in ticks of 10 ms.
const LEAST_BUSY_NS: f64 = 100e6;
/// The CPU time that was read of a thread tells what it did if the thread lived for two readings.
const TWO_READINGS_NS: u64 = 1_000_000_000;

/// What is known of one worker's work; its threads have successive lifetimes.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// CPU time that it used at least, ns.
    least_ns: u64,
    /// CPU time that it used at most, ns; `None` if that is unknown.
    most_ns: Option<u64>,
    /// The same with the time in which it only waited.
    ran_ns: Option<u64>,
    in_team: bool,
    /// First touches, observed accesses, samples.
    records: [f64; 3],
}

impl Default for Work {
    fn default() -> Self {
        Self { least_ns: 0, most_ns: Some(0), ran_ns: Some(0), in_team: false, records: [0.0; 3] }
    }
}

/// The workers that did nothing. `worker_of` has the worker of each thread.
#[must_use]
pub fn idle_workers(profile: &Profile, worker_of: &HashMap<Id, WorkerId>) -> HashSet<WorkerId> {
    let mut works: HashMap<WorkerId, Work> = HashMap::new();
    let sampled = sampled_cpu_ns(profile);
    let computing = computing_parts(profile);
    for thread in &profile.threads {
        let Some(worker) = worker_of.get(&thread.id) else { continue };
        let work = works.entry(*worker).or_default();
        let sampled = sampled.get(&thread.id);
        work.least_ns = work.least_ns.saturating_add(thread.cpu_ns.max(sampled.map(|sampled| sampled.last_ns)).unwrap_or(0));
        let part = computing.get(&thread.id).copied().unwrap_or(1.0);
        let ran_ns = most_cpu_ns(thread, sampled, profile.meta.end_ns);
        let most_ns = ran_ns.map(|ns| (ns as f64 * part) as u64);
        for (sum, own) in [(&mut work.ran_ns, ran_ns), (&mut work.most_ns, most_ns)] {
            *sum = sum.zip(own).map(|(sum, own)| sum.saturating_add(own));
        }
        work.in_team |= thread.omp_number.is_some();
    }
    let mut all = [0.0; 3];
    let touches = profile.first_touches.iter().map(|touch| (0, touch.thread, touch.weight));
    let accesses = profile.accesses.iter().filter(|access| access.hits > 0).map(|access| (1, access.thread, 1.0));
    let computing = profile.samples.iter().filter(|sample| sample.state == SampleState::Computing);
    let samples = computing.map(|sample| (2, sample.thread, sample.weight));
    for (kind, thread, weight) in touches.chain(accesses).chain(samples).filter(|(.., weight)| weight.is_finite() && *weight > 0.0) {
        all[kind] += weight;
        if let Some(work) = worker_of.get(&thread).and_then(|worker| works.get_mut(worker)) {
            work.records[kind] += weight;
        }
    }
    let busiest_ns = works.values().map(|work| work.least_ns).max().unwrap_or(0) as f64;
    if busiest_ns < LEAST_BUSY_NS {
        return HashSet::new();
    }
    let has_less = |work: &Work, ns: Option<u64>, limit_ns: f64, limit: f64| {
        let mut records = work.records.iter().zip(&all).zip([LITTLE_MEMORY, limit, limit]);
        !work.in_team && ns.is_some_and(|ns| (ns as f64) < limit_ns) && records.all(|((own, all), limit)| *own == 0.0 || *own < limit * all)
    };
    let limit_ns = IDLE * busiest_ns.min(profile.meta.wall_s() * 1e9);
    let (mut idle, others): (HashMap<_, _>, HashMap<_, _>) =
        works.into_iter().partition(|(_, work)| has_less(work, work.most_ns, limit_ns, IDLE));
    let usual_ns = LIGHT * median(others.values().map(|work| work.ran_ns.unwrap_or(u64::MAX)).collect());
    idle.extend(others.into_iter().filter(|(_, work)| has_less(work, work.ran_ns, usual_ns, LITTLE_USE)));
    idle.into_keys().collect()
}

/// The upper median, ns, so that it is a worker's if half of the threads are helpers; 0 if a single one has so much: beside a long serial phase,
/// all others are short.
fn median(mut times: Vec<u64>) -> f64 {
    times.sort_unstable();
    let half = times.len() / 2;
    times.get(half).filter(|_| times.len() - half >= 2).map_or(0.0, |ns| *ns as f64)
}

/// The processes that only start others: they used hardly any CPU time, beside the busiest one, and prepared hardly any memory.
#[must_use]
pub fn drivers(profile: &Profile) -> HashSet<Id> {
    let sampled = sampled_cpu_ns(profile);
    let mut used: HashMap<Id, Option<u64>> = HashMap::new();
    for thread in &profile.threads {
        let own = most_cpu_ns(thread, sampled.get(&thread.id), profile.meta.end_ns);
        let all = used.entry(thread.process).or_insert(Some(0));
        *all = all.zip(own).map(|(sum, own)| sum.saturating_add(own));
    }
    let busiest_ns = used.values().flatten().max().copied().unwrap_or(0) as f64;
    if busiest_ns < LEAST_BUSY_NS {
        return HashSet::new();
    }
    let mut touched: HashMap<Id, f64> = HashMap::new();
    for touch in profile.first_touches.iter().filter(|touch| touch.weight.is_finite() && touch.weight > 0.0) {
        *touched.entry(touch.process).or_default() += touch.weight;
    }
    let all: f64 = touched.values().sum();
    let is_small = |(process, ns): &(Id, Option<u64>)| {
        ns.is_some_and(|ns| (ns as f64) < DRIVER * busiest_ns) && touched.get(process).is_none_or(|own| *own < DRIVER * all)
    };
    used.into_iter().filter(is_small).map(|(process, _)| process).collect()
}

/// The part of each sampled thread's CPU time in which it may have computed.
fn computing_parts(profile: &Profile) -> HashMap<Id, f64> {
    let mut counts: HashMap<Id, (u64, u64)> = HashMap::new();
    for sample in profile.samples.iter().filter(|sample| sample.weight > 0.0) {
        let (all, computing) = counts.entry(sample.thread).or_default();
        *all += 1;
        *computing += u64::from(works(profile, sample));
    }
    let part = |(all, computing): (u64, u64)| ((computing + 1) as f64 / (all + 1) as f64).min(1.0);
    counts.into_iter().map(|(thread, counts)| (thread, part(counts))).collect()
}

/// From when to when threads computed or touched memory first, of those with enough samples to tell.
#[must_use]
pub fn active_times(profile: &Profile) -> HashMap<Id, Lifetime> {
    let mut times: HashMap<Id, (u64, Lifetime)> = HashMap::new();
    let samples = profile
        .samples
        .iter()
        .filter(|sample| sample.weight > 0.0 && works(profile, sample))
        .map(|sample| (sample.thread, sample.time_ns, 1));
    let touches = profile.first_touches.iter().map(|touch| (touch.thread, touch.time_ns, 0));
    for (thread, at, count) in samples.chain(touches) {
        let (seen, time) = times.entry(thread).or_insert((0, Lifetime { born: at, released: at }));
        *seen += count;
        (time.born, time.released) = (time.born.min(at), time.released.max(at));
    }
    times.into_iter().filter(|(_, (seen, _))| *seen >= ENOUGH_SAMPLES).map(|(thread, (_, time))| (thread, time)).collect()
}

/// Parts of the names of functions that wait in the kernel.
const WAITING_CALLS: [&str; 10] = ["yield", "futex", "lll_lock", "cond_", "mutex", "sleep", "poll", "select", "sem_", "sigwait"];
/// Libraries whose threads call the kernel to wait.
const WAITING_MODULES: [&str; 3] = ["libgomp", "libomp", "libiomp"];

/// Whether a thread may have worked at a sample.
pub(crate) fn works(profile: &Profile, sample: &TimerSample) -> bool {
    match sample.state {
        SampleState::Computing | SampleState::Undecoded => true,
        SampleState::Waiting => false,
        SampleState::InKernel => {
            let frame = sample.site.and_then(|site| profile.sites.get(&site)).and_then(|site| site.frames.first());
            let function = frame.and_then(|frame| frame.function.as_deref()).unwrap_or_default();
            let module = frame.and_then(|frame| frame.module.as_deref()).unwrap_or_default();
            let file = module.rsplit('/').next().unwrap_or(module);
            !WAITING_CALLS.iter().any(|part| function.contains(part)) && !WAITING_MODULES.iter().any(|name| file.starts_with(name))
        }
    }
}

/// The samples of one thread at ticks of its CPU time.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    /// Its CPU time at the last one, ns.
    last_ns: u64,
    ticks: f64,
    /// Of these, in how many it may have computed.
    computing: f64,
    /// Samples of it may be missing.
    has_gaps: bool,
}

impl Sampled {
    /// The CPU time that the thread used at most: the next sample would have come a tick later. `None` if samples may be missing, or if the thread computed:
    /// then doubt counts as work.
    fn most_ns(&self) -> Option<u64> {
        let is_sure = !self.has_gaps && self.ticks >= 1.0 && self.computing <= HARDLY * self.ticks;
        is_sure.then(|| self.last_ns.saturating_add((self.last_ns as f64 / self.ticks) as u64))
    }
}

/// The sampled threads. Samples that stand for no time have another clock.
fn sampled_cpu_ns(profile: &Profile) -> HashMap<Id, Sampled> {
    let lost: u64 = profile.lost.iter().filter(|lost| lost.source == EvidenceSource::Sample.as_str()).map(|lost| lost.count).sum();
    let many_lost = lost as f64 > MOST_LOST * profile.samples.len() as f64;
    let mut of_thread: HashMap<Id, Sampled> = HashMap::new();
    for sample in profile.samples.iter().filter(|sample| sample.weight > 0.0) {
        let sampled = of_thread.entry(sample.thread).or_default();
        sampled.last_ns = sample.cpu_ns.max(sampled.last_ns);
        sampled.ticks += sample.weight;
        sampled.computing += if works(profile, sample) { sample.weight } else { 0.0 };
        // A sample stands for more than one tick where only part of the time is sampled.
        sampled.has_gaps |= many_lost || sample.weight > 1.0;
    }
    of_thread
}

/// The CPU time that a thread used at most, if that is known. `end` is the end of the observation.
fn most_cpu_ns(thread: &Thread, sampled: Option<&Sampled>, end: Option<u64>) -> Option<u64> {
    let life = thread.died_ns.map(|died| died.saturating_sub(thread.born_ns));
    let seen_for = life.or(end.map(|end| end.saturating_sub(thread.born_ns)));
    let read = thread.cpu_ns.filter(|_| seen_for.is_some_and(|ns| ns >= TWO_READINGS_NS));
    let by_samples = sampled.and_then(Sampled::most_ns).filter(|_| seen_for.is_some());
    let unread = life.into_iter().chain(by_samples).min();
    read.map(|read| read.max(sampled.map_or(0, |sampled| sampled.last_ns))).or(unread)
}

#[cfg(test)]
mod tests;
