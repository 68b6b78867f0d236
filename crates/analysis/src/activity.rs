//! Which workers did nothing: helper threads of runtimes and libraries, or a main thread that only waits.
//!
//! A worker is idle if it hardly used CPU time and hardly any memory: less than `IDLE` of the CPU time of the busiest worker and of the observed
//! accesses and samples, and less than `LITTLE_MEMORY` of the first touches. (A runtime's helper prepares tables of its own.) Doubt counts as
//! work: an idle thread that takes a place shifts others, but a worker without a place is judged on the wrong node. A worker is idle too if it
//! has less than a tenth of the median worker's CPU time (`LIGHT`), or if it waited in each of its samples while others computed, or used less than the
//! time between two samples beside workers with several: in a run of 200 ms, one sample is 2 % of the CPU time. So is one that uses less than a third of
//! the median worker's CPU time (`HANDLER`) and makes hardly any accesses to recorded objects: the threads by which a pool hands out its work and
//! collects the results.
//!
//! Which whole processes take no place is `activity/processes.rs`'s question.
//!
//! - How much CPU time a thread used at most is `activity/cpu_time.rs`'s question.
//! - When firsttouch attached to a program, the times contain the life of the program before. So the busiest worker counts with at most the
//!   observed time.
//! - CPU time in which a thread only waited, as its samples show, is not work: helper threads of libraries yield in a loop until they are needed. It
//!   waited in the kernel if it had called a function that waits (`sched_yield`, `poll`) or was in an OpenMP runtime. Other time in the kernel is
//!   work: `read` fills the program's memory. One tick more than were seen may have been work.
//! - Threads of an OpenMP team have places by their number, whether they work or not. They are not idle.

use crate::slots::Lifetime;
use cpu_time::CpuTimes;
use firsttouch_model::openmp::is_openmp_runtime;
use firsttouch_model::rows::{Id, Profile, SampleState, TimerSample};
use hashbrown::{HashMap, HashSet};

mod cpu_time;
mod processes;

pub use processes::without_work;

/// The process of a worker, and its number there.
pub type WorkerId = (Id, usize);

/// An idle worker has less than this fraction. (With 5 %, workers of 40 ms after a serial phase of 1.2 s would be idle.)
pub(crate) const IDLE: f64 = 0.02;
/// Nor does a worker take a place that has less than this fraction of the median worker's CPU time: helper threads of 3 % would fill a node, and all
/// workers would sit on the other ones. Where most workers are short (after a long serial phase), the median is theirs.
const LIGHT: f64 = 0.1;
/// Nor does one that has less than this fraction of the median worker's CPU time, and less than `LITTLE_USE` of its accesses to recorded objects. Seen of
/// Python's `ThreadPool`: 14 to 22 % of the CPU time, 1 % of the accesses.
const HANDLER: f64 = 1.0 / 3.0;
/// If the median worker has so many.
const ENOUGH_ACCESSES: f64 = 100.0;
/// And this fraction of the observed accesses and samples.
const LITTLE_USE: f64 = 0.05;
/// Of the first touches.
const LITTLE_MEMORY: f64 = 0.05;
/// The number of samples that show when a thread works.
const ENOUGH_SAMPLES: u64 = 8;
/// So many samples, in all of which a worker waited, show that it only waits.
const ENOUGH_WAITS: f64 = 3.0;
/// Less than one sample is little beside workers that computed in so many.
const ENOUGH_TICKS: f64 = 3.0;
/// If the busiest worker used less CPU time, nobody is idle: some kernels count CPU time in ticks of 10 ms.
pub(crate) const LEAST_BUSY_NS: f64 = 100e6;

/// What is known of one worker's work; its threads have successive lifetimes.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// CPU time that it used at least, ns.
    least_ns: u64,
    /// CPU time that it used at most, ns, without that in which it only waited; `None` if that is unknown.
    most_ns: Option<u64>,
    /// The same with the time in which it only waited.
    ran_ns: Option<u64>,
    in_team: bool,
    /// Samples at ticks of its CPU time, and those in which it may have computed.
    ticks: [f64; 2],
    /// Samples of it may be missing.
    has_gaps: bool,
    /// Its threads that used less than a tick, and all of them.
    unseen: [usize; 2],
    /// First touches, observed accesses, samples.
    records: [f64; 3],
    /// Accesses to recorded objects that samples of registers show.
    sampled: f64,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            least_ns: 0,
            most_ns: Some(0),
            ran_ns: Some(0),
            in_team: false,
            ticks: [0.0; 2],
            has_gaps: false,
            unseen: [0; 2],
            records: [0.0; 3],
            sampled: 0.0,
        }
    }
}

impl Work {
    /// Accesses to recorded objects that were seen, of all sources.
    fn uses(&self) -> f64 {
        self.records[1] + self.sampled
    }

    /// Whether it waited whenever it was looked at.
    fn only_waits(&self) -> bool {
        !self.has_gaps && self.ticks[0] >= ENOUGH_WAITS && self.ticks[1] <= 0.0
    }

    /// Whether it is one thread that used less than a tick.
    fn is_unseen(&self) -> bool {
        self.unseen == [1, 1]
    }

    /// Whether it has less CPU time, and less of the records, where `all` are those of all workers.
    fn has_less(&self, ns: Option<u64>, limit_ns: f64, all: &[f64; 3], limit: f64) -> bool {
        let mut records = self.records.iter().zip(all).zip([LITTLE_MEMORY, limit, limit]);
        !self.in_team && ns.is_some_and(|ns| (ns as f64) < limit_ns) && records.all(|((own, all), limit)| *own == 0.0 || *own < limit * all)
    }
}

/// The workers that did nothing. `worker_of` has the worker of each thread.
#[must_use]
pub fn idle_workers(profile: &Profile, worker_of: &HashMap<Id, WorkerId>) -> HashSet<WorkerId> {
    let (works, all) = works_of(profile, worker_of);
    let busiest_ns = works.values().map(|work| work.least_ns).max().unwrap_or(0) as f64;
    if busiest_ns < LEAST_BUSY_NS {
        return HashSet::new();
    }
    let limit_ns = IDLE * busiest_ns.min(profile.meta.wall_s() * 1e9);
    let computed: Vec<u64> = works.values().map(|work| work.ticks[1] as u64).filter(|ticks| *ticks > 0).collect();
    let have_others = computed.len() >= 2;
    let is_tick_little = median(computed) >= ENOUGH_TICKS;
    let did_nothing = |work: &Work| {
        let shows_nothing = (have_others && work.only_waits()) || (is_tick_little && work.is_unseen());
        shows_nothing && work.has_less(Some(0), f64::INFINITY, &all, IDLE) || work.has_less(work.most_ns, limit_ns, &all, IDLE)
    };
    let (mut idle, others): (HashMap<_, _>, HashMap<_, _>) = works.into_iter().partition(|(_, work)| did_nothing(work));
    let usual_ns = LIGHT * median(others.values().map(|work| work.ran_ns.unwrap_or(u64::MAX)).collect());
    let (light, others): (HashMap<_, _>, HashMap<_, _>) =
        others.into_iter().partition(|(_, work)| work.has_less(work.ran_ns, usual_ns, &all, LITTLE_USE));
    let usual_ns = HANDLER * median(others.values().map(|work| work.ran_ns.unwrap_or(u64::MAX)).collect());
    let usual_uses = median(others.values().map(|work| work.uses() as u64).collect());
    let only_hands_out = |work: &Work| {
        usual_uses >= ENOUGH_ACCESSES && work.uses() < LITTLE_USE * usual_uses && work.has_less(work.ran_ns, usual_ns, &all, f64::INFINITY)
    };
    idle.extend(light);
    idle.extend(others.into_iter().filter(|(_, work)| only_hands_out(work)));
    idle.into_keys().collect()
}

/// The work of each worker, and the records of all.
fn works_of(profile: &Profile, worker_of: &HashMap<Id, WorkerId>) -> (HashMap<WorkerId, Work>, [f64; 3]) {
    let mut works: HashMap<WorkerId, Work> = HashMap::new();
    let times = CpuTimes::new(profile);
    let computing = computing_parts(profile);
    for thread in &profile.threads {
        let Some(worker) = worker_of.get(&thread.id) else { continue };
        let work = works.entry(*worker).or_default();
        work.least_ns = work.least_ns.saturating_add(times.least_ns(thread));
        let part = computing.get(&thread.id).copied().unwrap_or(1.0);
        let ran_ns = times.most_ns(thread);
        let most_ns = ran_ns.map(|ns| (ns as f64 * part) as u64);
        for (sum, own) in [(&mut work.ran_ns, ran_ns), (&mut work.most_ns, most_ns)] {
            *sum = sum.zip(own).map(|(sum, own)| sum.saturating_add(own));
        }
        work.in_team |= thread.omp_number.is_some();
        work.unseen[0] += usize::from(times.less_than_a_tick(thread).is_some());
        work.unseen[1] += 1;
        let sampled = times.sampled(thread);
        work.has_gaps |= sampled.is_none_or(|sampled| sampled.has_gaps);
        if let Some(sampled) = sampled {
            work.ticks = [work.ticks[0] + sampled.ticks, work.ticks[1] + sampled.computing];
        }
    }
    let thread_of: HashMap<Id, Id> = profile.samples.iter().map(|sample| (sample.id, sample.thread)).collect();
    for thread in profile.sampled_accesses.iter().filter_map(|access| thread_of.get(&access.sample)) {
        if let Some(work) = worker_of.get(thread).and_then(|worker| works.get_mut(worker)) {
            work.sampled += 1.0;
        }
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
    (works, all)
}

/// The upper median, ns, so that it is a worker's if half of the threads are helpers; 0 if a single one has so much: beside a long serial phase,
/// all others are short.
fn median(mut times: Vec<u64>) -> f64 {
    times.sort_unstable();
    let half = times.len() / 2;
    times.get(half).filter(|_| times.len() - half >= 2).map_or(0.0, |ns| *ns as f64)
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

/// A thread that is not seen to work for this part of the run did not work in between: it waited for others.
const PAUSE: f64 = 0.1;
/// But not for less than this time in which it could have run: threads that share a CPU wait for it.
const LEAST_PAUSE_NS: f64 = 100e6;
/// Nor for less than this number of its mean times between two samples, which chance hardly makes (`n exp(-12)` times).
const LEAST_PAUSE_SAMPLES: f64 = 12.0;
/// Threads that ran for less than this part of the time in which they could are taken for ones that did.
const LEAST_RUNNING: f64 = 0.02;

/// When threads computed or touched memory first, of those with enough samples to tell: the stretches between their pauses, in order.
#[must_use]
pub fn active_times(profile: &Profile) -> HashMap<Id, Vec<Lifetime>> {
    let (ran, delayed) = (profile.meta.threads_ran_ns as f64, profile.meta.threads_delayed_ns as f64);
    let running = if ran > 0.0 { (ran / (ran + delayed)).max(LEAST_RUNNING) } else { 1.0 };
    let pause = (PAUSE * profile.meta.wall_s() * 1e9).max(LEAST_PAUSE_NS / running);
    let mut times: HashMap<Id, (u64, Vec<u64>)> = HashMap::new();
    let samples = profile
        .samples
        .iter()
        .filter(|sample| sample.weight > 0.0 && works(profile, sample))
        .map(|sample| (sample.thread, sample.time_ns, 1));
    let touches = profile.first_touches.iter().map(|touch| (touch.thread, touch.time_ns, 0));
    for (thread, at, count) in samples.chain(touches) {
        let (seen, times) = times.entry(thread).or_default();
        *seen += count;
        times.push(at);
    }
    let known = times.into_iter().filter(|(_, (seen, _))| *seen >= ENOUGH_SAMPLES);
    known.map(|(thread, (seen, times))| (thread, stretches(times, seen, pause))).collect()
}

/// The stretches of times that follow each other within a pause. `samples`: how many of the times are samples.
fn stretches(mut times: Vec<u64>, samples: u64, pause: f64) -> Vec<Lifetime> {
    times.sort_unstable();
    let span = times.first().zip(times.last()).map_or(0.0, |(first, last)| (last - first) as f64);
    let pause = pause.max(LEAST_PAUSE_SAMPLES * span / samples.max(1) as f64);
    let mut list: Vec<Lifetime> = Vec::new();
    for at in times {
        match list.last_mut() {
            Some(last) if (at - last.released) as f64 <= pause => last.released = at,
            _ => list.push(Lifetime { born: at, released: at }),
        }
    }
    list
}

/// Parts of the names of functions that wait in the kernel.
const WAITING_CALLS: [&str; 10] = ["yield", "futex", "lll_lock", "cond_", "mutex", "sleep", "poll", "select", "sem_", "sigwait"];

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
            // The threads of an OpenMP runtime call the kernel to wait.
            !WAITING_CALLS.iter().any(|part| function.contains(part)) && !is_openmp_runtime(file)
        }
    }
}

#[cfg(test)]
mod tests;
