//! Which workers did nothing: helper threads of runtimes and libraries, or a main thread that only waits.
//!
//! A worker is idle if it hardly used CPU time and hardly any memory: less than `IDLE` of the CPU time of the busiest worker and of the observed
//! accesses and samples, and less than `LITTLE_MEMORY` of the first touches. (A runtime's helper prepares tables of its own.) Doubt counts as work: an idle thread that takes a place shifts others, but a worker
//! without a place is judged on the wrong node. So is a worker that has less than a tenth of the median worker's CPU time (`LIGHT`).
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
use std::collections::{HashMap, HashSet};

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
/// If the busiest worker used less CPU time, nobody is idle: CPU times are read in ticks of 10 ms.
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
fn works(profile: &Profile, sample: &TimerSample) -> bool {
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
mod tests {
    use super::*;
    use firsttouch_model::rows::{Access, FirstTouch, Frame, Lost, Site, TimerSample};

    const MS: u64 = 1_000_000;

    fn thread(id: Id, cpu_ms: Option<u64>) -> Thread {
        Thread {
            id,
            process: 1,
            tid: 100,
            parent: None,
            name: None,
            born_ns: 0,
            died_ns: None,
            cpu_ns: cpu_ms.map(|ms| ms * MS),
            omp_number: None,
            user_faults: None,
            all_faults: None,
            allowed_cpus: None,
            node_moves: 0,
        }
    }

    /// A run of 10 s in which thread 0 used 8 s, with these other threads.
    fn profile(others: Vec<Thread>) -> Profile {
        let mut profile = Profile { threads: vec![thread(0, Some(8000))], ..Profile::default() };
        profile.threads.extend(others);
        (profile.meta.start_ns, profile.meta.end_ns) = (Some(0), Some(10_000 * MS));
        profile
    }

    /// The same, where threads in the kernel had called this function.
    fn calling(function: &str, mut profile: Profile) -> Profile {
        let frames = vec![Frame { function: Some(function.to_owned()), module: Some("/lib/libc.so.6".to_owned()), ..Frame::default() }];
        profile.sites.insert(9, Site { id: 9, process: 1, frames });
        profile.samples.iter_mut().filter(|sample| sample.state == SampleState::InKernel).for_each(|sample| sample.site = Some(9));
        profile
    }

    fn idle(profile: &Profile) -> Vec<usize> {
        let profile = &if profile.sites.is_empty() { calling("sched_yield", profile.clone()) } else { profile.clone() };
        let worker_of = profile.threads.iter().map(|thread| (thread.id, (1, thread.id as usize))).collect();
        let mut idle: Vec<usize> = idle_workers(profile, &worker_of).into_iter().map(|(_, worker)| worker).collect();
        idle.sort_unstable();
        idle
    }

    fn touch(thread: Id, weight: f64) -> FirstTouch {
        FirstTouch {
            id: 0,
            process: 1,
            time_ns: 0,
            thread,
            cpu: 0,
            address: 0,
            weight,
            by_kernel: false,
            site: None,
            mapped_bytes: None,
            node: None,
        }
    }

    fn access(thread: Id) -> Access {
        Access { window: 0, thread, site: None, hits: 1, estimate: 1.0, watched_ns: 1, cut: false, cpu: None, cpu_ns: None }
    }

    /// Check that threads without work are idle, and that the busiest never is; the limit is 2 % of 8 s.
    #[test]
    fn little_cpu_time_is_idle() {
        assert_eq!(idle(&profile(vec![thread(1, Some(0)), thread(2, Some(150)), thread(3, Some(160))])), [1, 2]);
        assert_eq!(idle(&profile(vec![])), [0; 0]);
        let mut short = profile(vec![thread(1, Some(0))]);
        short.threads[0].cpu_ns = Some(90 * MS);
        assert_eq!(idle(&short), [0; 0], "nobody used enough to compare with");
    }

    /// Check that helper threads of some percent take no places beside workers, and that short workers of a program with a long serial phase do.
    #[test]
    fn light_threads_are_idle_beside_workers() {
        let helpers = (5..8).map(|id| thread(id, Some(240)));
        let workers = (1..5).map(|id| thread(id, Some(8000)));
        assert_eq!(idle(&profile(workers.chain(helpers.clone()).collect())), [5, 6, 7]);
        // A main thread that filled the memory works, although it used as little.
        let mut half = profile((1..5).map(|id| thread(id, Some(8000))).chain(helpers.clone()).collect());
        (half.threads[0].cpu_ns, half.first_touches) = (Some(240 * MS), vec![touch(0, 1000.0)]);
        assert_eq!(idle(&half), [5, 6, 7]);
        assert_eq!(idle(&profile(vec![thread(1, Some(240))])), [0; 0], "the only worker beside a long serial phase");
        assert_eq!(idle(&profile(helpers.collect())), [0; 0], "they are the workers");
    }

    /// Check that a thread whose CPU time is unknown is not idle, unless it lived for less time than an idle thread may use.
    #[test]
    fn unknown_cpu_time_is_not_idle() {
        assert_eq!(idle(&profile(vec![thread(1, None)])), [0; 0]);
        let lived = |ms: u64| Thread { died_ns: Some(ms * MS), ..thread(1, None) };
        assert_eq!(idle(&profile(vec![lived(100)])), [1]);
        assert_eq!(idle(&profile(vec![lived(200)])), [0; 0]);
        let read_once = |ms: u64| Thread { died_ns: Some(ms * MS), ..thread(1, Some(0)) };
        assert_eq!(idle(&profile(vec![read_once(900)])), [0; 0], "it may have worked after the reading");
        assert_eq!(idle(&profile(vec![read_once(1100)])), [1]);
        let mut nothing_known = profile(vec![thread(1, None)]);
        nothing_known.threads[0].cpu_ns = None;
        assert_eq!(idle(&nothing_known), [0; 0]);
        let mut no_times = profile(vec![thread(1, Some(0))]);
        no_times.meta.end_ns = None;
        assert_eq!(idle(&no_times), [0; 0], "without the observed time, no share of it is known");
    }

    /// Check that CPU time comes from samples if the kernel's reading is missing or older.
    #[test]
    fn samples_show_cpu_time() {
        let sample = |thread, cpu_ms: u64| TimerSample {
            id: 0,
            thread,
            time_ns: 0,
            cpu: 0,
            cpu_ns: cpu_ms * MS,
            weight: 1.0,
            site: None,
            state: SampleState::Computing,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        };
        let mut late = profile(vec![thread(1, Some(0)), thread(2, Some(0))]);
        late.threads[0].cpu_ns = None;
        late.samples = vec![sample(0, 8000), sample(1, 900), sample(1, 800)];
        assert_eq!(idle(&late), [2]);
        let mut often = profile(vec![thread(1, Some(0)), thread(2, Some(0))]);
        often.samples = (0..100).map(|number| sample(if number < 97 { 0 } else { 1 }, 1)).chain([sample(2, 1)]).collect();
        assert_eq!(idle(&often), [2]);
        let mut burst = profile(vec![thread(1, Some(0)), thread(2, Some(0))]);
        burst.samples = vec![sample(0, 8000), TimerSample { weight: 0.0, ..sample(1, 5_000_000) }];
        assert_eq!(idle(&burst), [1, 2], "the clock of bursts is another one");
    }

    /// Check that a thread which reads files is no idle thread, although its CPU time is the kernel's.
    #[test]
    fn reading_is_work() {
        let mut all = profile(vec![thread(1, Some(4000)), thread(2, Some(4000))]);
        let sample = |state| TimerSample {
            id: 0,
            thread: 1,
            time_ns: 0,
            cpu: 0,
            cpu_ns: 4000 * MS,
            weight: 1.0,
            site: None,
            state,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        };
        all.samples = (0..400).map(|_| sample(SampleState::InKernel)).collect();
        for (function, expected) in [("pread64", &[][..]), ("sched_yield", &[1]), ("__futex_abstimed_wait_common64", &[1]), ("fill", &[])] {
            assert_eq!(idle(&calling(function, all.clone())), expected, "{function}");
        }
    }

    /// Check that a thread which yields in a loop is idle, and one that computes for as long is not.
    #[test]
    fn waiting_is_not_work() {
        let mut all = profile(vec![thread(1, Some(200)), thread(2, Some(200))]);
        let sample = |thread, state| TimerSample {
            id: 0,
            thread,
            time_ns: 0,
            cpu: 0,
            cpu_ns: MS,
            weight: 1.0,
            site: None,
            state,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        };
        all.samples = (0..2000).map(|_| sample(0, SampleState::Computing)).collect();
        all.samples.extend((0..20).map(|_| sample(1, SampleState::InKernel)));
        all.samples.extend((0..20).map(|_| sample(2, SampleState::Undecoded)));
        assert_eq!(idle(&all), [1]);
    }

    /// Samples of a thread at each 4 ms of its CPU time.
    fn ticks(thread: Id, count: u64, state: SampleState) -> impl Iterator<Item = TimerSample> {
        (1..=count).map(move |tick| TimerSample {
            id: 0,
            thread,
            time_ns: 0,
            cpu: 0,
            cpu_ns: tick * 4 * MS,
            weight: 1.0,
            site: None,
            state,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        })
    }

    /// Check helper threads of a BLAS library in short worker processes: each yields in a loop for 100 ms and then sleeps, until a fork ends it after
    /// less than a second, or to the end. A thread that computes for a few samples, or of which samples may be missing, is not idle.
    #[test]
    fn short_helpers_are_idle() {
        let lived = |id: Id, ms: u64| Thread { died_ns: Some(ms * MS), ..thread(id, Some(10)) };
        let mut all = profile(vec![lived(1, 275), lived(2, 275), lived(3, 275), thread(4, Some(20))]);
        all.meta.end_ns = Some(1200 * MS);
        all.threads[0] = thread(0, Some(350));
        all.samples = ticks(0, 88, SampleState::Computing).chain(ticks(1, 25, SampleState::InKernel)).collect();
        all.samples.extend(ticks(4, 6, SampleState::InKernel));
        all.samples.extend(ticks(2, 25, SampleState::InKernel));
        all.samples.extend(ticks(2, 27, SampleState::Computing).skip(25));
        assert_eq!(idle(&all), [1, 4], "2 computed, 3 was not sampled");
        let lost = Lost { source: EvidenceSource::Sample.as_str().to_owned(), reason: String::new(), count: 50 };
        all.lost = vec![lost];
        assert_eq!(idle(&all), [4], "1 may have worked unseen");
        (all.lost, all.samples[100].weight) = (vec![], 4.0);
        assert_eq!(idle(&all), [4], "part of the time was not sampled");
    }

    /// Check that a short thread that computed counts with its life, as one without samples: after a long serial phase, workers of a few ticks work.
    #[test]
    fn short_workers_work() {
        let lived = |id: Id| Thread { died_ns: Some(40 * MS), ..thread(id, None) };
        let mut all = profile(vec![lived(1), lived(2)]);
        all.threads[0] = thread(0, Some(1200));
        all.samples = ticks(0, 300, SampleState::Computing).chain(ticks(1, 3, SampleState::Computing)).collect();
        all.samples.extend(ticks(2, 3, SampleState::InKernel));
        assert_eq!(idle(&all), [2]);
    }

    /// Check which processes only start others.
    #[test]
    fn small_processes_are_drivers() {
        let of = |process, id, ms| Thread { process, ..thread(id, ms) };
        let mut all = profile(vec![of(2, 1, Some(300)), of(2, 2, Some(300)), of(3, 3, Some(8000)), of(4, 4, None)]);
        assert_eq!(drivers(&all), [2].into());
        all.first_touches = vec![FirstTouch { process: 2, ..touch(1, 50.0) }, FirstTouch { process: 3, ..touch(3, 60.0) }];
        assert_eq!(drivers(&all), [].into(), "it prepared the memory of the others");
        all.threads.retain(|thread| thread.process == 2);
        assert_eq!(drivers(&all), [].into());
    }

    /// Check that a thread that touched or used memory is not idle, and that a few records of its own stack do not count.
    #[test]
    fn memory_is_work() {
        let mut all = profile(vec![thread(1, Some(0)), thread(2, Some(0)), thread(3, Some(0))]);
        all.first_touches = vec![touch(0, 970.0), touch(1, 60.0), touch(2, 25.0), touch(2, f64::NAN)];
        all.accesses = (0..100).map(|number| access(if number < 96 { 0 } else { 3 })).collect();
        assert_eq!(idle(&all), [2]);
    }

    /// Check that 1,000 short threads with successive lifetimes are one worker, which works.
    #[test]
    fn successive_threads_are_one_worker() {
        let short = |id: Id| Thread { born_ns: id as u64 * 9 * MS, died_ns: Some(id as u64 * 9 * MS + 8 * MS), ..thread(id, None) };
        let all = profile((1..1001).map(short).collect());
        let worker_of = all.threads.iter().map(|thread| (thread.id, (1, usize::from(thread.id > 0)))).collect();
        assert_eq!(idle_workers(&all, &worker_of), HashSet::new());
        assert_eq!(idle(&all).len(), 1000, "each by itself did next to nothing");
    }

    /// Check that members of an OpenMP team keep their places, and that a program's life before the recording does not count.
    #[test]
    fn teams_and_earlier_work() {
        assert_eq!(idle(&profile(vec![Thread { omp_number: Some(1), ..thread(1, Some(0)) }])), [0; 0]);
        let mut attached = profile(vec![thread(1, Some(150)), thread(2, Some(3000))]);
        attached.threads[0].cpu_ns = Some(3_600_000 * MS);
        assert_eq!(idle(&attached), [1]);
    }
}
