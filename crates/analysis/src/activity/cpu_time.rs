//! How much CPU time a thread used, from the kernel's readings of it and from the samples at its ticks.
//!
//! - CPU times are read every half second. A thread that lived for less than a second counts with its whole life, because most of its work
//!   may have come after the reading. So does a thread that was never read; if its end is not known either, it is not known how much it used at
//!   most.
//! - Samples bound that where none are missing: the next one would have come a tick later. A thread without any sample used less than a tick,
//!   if the kernel's reading says so too and other threads of its process were sampled.

use super::works;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Id, Profile, Thread};
use hashbrown::{HashMap, HashSet};

/// A thread that only waits computes in at most this fraction of its samples.
const HARDLY: f64 = 0.1;
/// If more than this fraction of all samples was lost, a thread may have worked without one.
const MOST_LOST: f64 = 0.25;
/// The CPU time that was read of a thread tells what it did if the thread lived for two readings.
const TWO_READINGS_NS: u64 = 1_000_000_000;
/// Ticks of a thread that show how long a tick is.
const ENOUGH_TICKS: f64 = 8.0;

/// The samples of one thread at ticks of its CPU time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled {
    /// Its CPU time at the last one, ns.
    last_ns: u64,
    pub ticks: f64,
    /// Of these, in how many it may have computed.
    pub computing: f64,
    /// Samples of it may be missing.
    pub has_gaps: bool,
}

impl Sampled {
    /// The CPU time at the tick that would have come next; `None` if samples may be missing.
    fn next_ns(&self) -> Option<u64> {
        let is_known = !self.has_gaps && self.ticks >= 1.0;
        is_known.then(|| self.last_ns.saturating_add((self.last_ns as f64 / self.ticks) as u64))
    }

    /// Whether it hardly computed.
    fn waits(&self) -> bool {
        self.computing <= HARDLY * self.ticks
    }
}

/// The CPU time of all threads.
#[derive(Debug, Default)]
pub(super) struct CpuTimes {
    of_thread: HashMap<Id, Sampled>,
    /// The CPU time between two samples of a thread, ns; `None` if samples may be missing, or are too few to tell.
    tick_ns: Option<u64>,
    /// The processes whose threads were sampled.
    sampled: HashSet<Id>,
    /// The end of the observation.
    end: Option<u64>,
}

impl CpuTimes {
    /// Samples that stand for no time have another clock.
    pub fn new(profile: &Profile) -> Self {
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
        let is_enough = |sampled: &&Sampled| sampled.ticks >= ENOUGH_TICKS;
        let mut ticks: Vec<u64> = of_thread.values().filter(is_enough).map(|one| (one.last_ns as f64 / one.ticks) as u64).collect();
        ticks.sort_unstable();
        let tick_ns = ticks.get(ticks.len() / 2).copied().filter(|_| of_thread.values().all(|sampled| !sampled.has_gaps));
        let is_sampled = |thread: &&Thread| of_thread.get(&thread.id).as_ref().is_some_and(is_enough);
        let sampled = profile.threads.iter().filter(is_sampled).map(|thread| thread.process).collect();
        Self { of_thread, tick_ns, sampled, end: profile.meta.end_ns }
    }

    /// The samples of a thread, if it has any.
    pub fn sampled(&self, thread: &Thread) -> Option<&Sampled> {
        self.of_thread.get(&thread.id)
    }

    /// The CPU time that a thread used at least, ns.
    pub fn least_ns(&self, thread: &Thread) -> u64 {
        thread.cpu_ns.max(self.sampled(thread).map(|sampled| sampled.last_ns)).unwrap_or(0)
    }

    /// The CPU time that a thread used at most, ns, if that is known. Doubt counts as work: a thread that computed in a sample counts with its
    /// life.
    pub fn most_ns(&self, thread: &Thread) -> Option<u64> {
        let life = thread.died_ns.map(|died| died.saturating_sub(thread.born_ns));
        let seen_for = life.or(self.end.map(|end| end.saturating_sub(thread.born_ns)));
        let read = thread.cpu_ns.filter(|_| seen_for.is_some_and(|ns| ns >= TWO_READINGS_NS));
        let by_samples = self.sampled(thread).filter(|sampled| sampled.waits()).and_then(Sampled::next_ns);
        let by_samples = by_samples.or_else(|| self.less_than_a_tick(thread)).filter(|_| seen_for.is_some());
        let unread = life.into_iter().chain(by_samples).min();
        read.map(|read| read.max(self.sampled(thread).map_or(0, |sampled| sampled.last_ns))).or(unread)
    }

    /// A tick, if the thread used less: its timer may not have worked, so the kernel's reading has to agree.
    pub fn less_than_a_tick(&self, thread: &Thread) -> Option<u64> {
        let has_none = self.sampled(thread).is_none() && self.sampled.contains(&thread.process);
        self.tick_ns.filter(|tick| has_none && thread.cpu_ns.is_some_and(|read| read <= *tick))
    }
}
