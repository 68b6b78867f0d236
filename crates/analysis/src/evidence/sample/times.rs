//! The CPU time that each sample stands for.
//!
//! A sample stands for the CPU time since its thread's sample before, so all samples of a thread stand for all of its CPU time. If threads share
//! processors, a tick hits a thread now and then: the times between the samples of one thread spread like those of a random process (half of them
//! are below 0.7 of the mean, and one in twenty is above 3). How long the time before one sample was says nothing about what the sample saw then.
//! Therefore some successive samples of a thread share their time: this halves the variance, and their sum stays as it is.
//!
//! They share it in proportion to what samples in their loop stand for on average, over all threads. Where threads share processors, a loop that
//! all of them run at the same time is hit by ticks less often than one that a thread runs alone, and a tick that is due in the one hits the other:
//! by the times before its samples, the first thread of `tests/programs/truth/born_and_die`, which initialises between the sweeps, would have spent
//! a fifth less time in the sweeps than the others, and it spent the same. For the same reason, half of the usual time before a sample in the
//! kernel belongs to the loop before: a tick that falls into a system call waits for its end.
//!
//! Only times that no random process would leave are cut: the thread was not sampled then on purpose, or samples were lost. (Cutting at 4 times the
//! median lost 5 to 28 % of the time of each thread of `tests/programs/truth/copies` on a machine with four threads a processor, and with it the
//! threads' shares.)

use super::loops::Loop;
use firsttouch_model::rows::{Id, Profile, SampleState, Thread, TimerSample};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// A sample stands for at most this many times the usual time, which is the median: in a random process, one time in 4,000 is longer.
const LONGEST: f64 = 12.0;
/// The same of samples that stand for others that were left out: those make longer times.
const LONGEST_THINNED: f64 = 4.0;
/// Successive samples that share their time.
const SHARING: usize = 8;
/// So many standard errors of a loop's mean time may be chance.
const CHANCE: f64 = 2.0;
/// Of a thread that ends after fewer of the usual times, the number of samples is a poor measure of its CPU time.
const SHORT: f64 = 25.0;
/// With fewer samples, those of a place do not stand for its threads without one; and they stand for at least and at most so many times their own time. (A
/// CPU time that was read before the end of its thread is too small.)
const LEAST_OF_PLACE: usize = 8;
const LEAST_SEEN: f64 = 0.75;
const MOST_UNSEEN: f64 = 3.0;
/// Recorders do not thin out more than this.
const MOST_WEIGHT: f64 = 1e6;

/// Was the sample taken to show how fast a loop is, at a time that has nothing to do with the other samples? It stands for no time.
pub fn is_for_rates(sample: &TimerSample) -> bool {
    sample.weight == 0.0
}

/// The times of all samples, by number, ns.
#[derive(Debug, Default)]
pub struct Times {
    shared: HashMap<Id, f64>,
    before: HashMap<Id, f64>,
    /// The median time between two samples of a thread.
    pub usual: f64,
}

impl Times {
    /// `loop_of`: the loop that a sample is in. `place_of`: what a thread has in common with those that follow it.
    pub fn new(profile: &Profile, loop_of: impl Fn(&TimerSample) -> Option<Loop>, place_of: impl Fn(Id) -> Option<(Id, usize)>) -> Self {
        let (mut last, mut gaps): (HashMap<Id, u64>, HashMap<Id, f64>) = (HashMap::new(), HashMap::new());
        let all = || profile.samples.iter().filter(|sample| !is_for_rates(sample));
        for sample in all() {
            if let Some(before) = last.insert(sample.thread, sample.cpu_ns) {
                gaps.insert(sample.id, sample.cpu_ns.saturating_sub(before) as f64);
            }
        }
        let usual = median(gaps.values().copied().collect()).filter(|ns| *ns > 0.0).unwrap_or(1.0);
        let mut times = Self { usual, ..Self::default() };
        let mut sharing: BTreeMap<Id, Vec<Share>> = BTreeMap::new();
        let mut last_shared: HashMap<Id, bool> = HashMap::new();
        for sample in all() {
            // The first samples of threads stand for the usual time.
            let gap = gaps.get(&sample.id).copied().unwrap_or(usual);
            let limited = |longest: f64| if gap > longest * usual { usual } else { gap.max(1.0) };
            let is_thinned = sample.weight > 1.0 || !sample.weight.is_finite();
            let weight = if sample.weight.is_finite() { sample.weight.clamp(1.0, MOST_WEIGHT) } else { 1.0 };
            times.before.insert(sample.id, limited(LONGEST_THINNED) * weight);
            let longest = if is_thinned { LONGEST_THINNED } else { LONGEST };
            let mut own = limited(longest);
            let may_share = !is_thinned && may_share(sample);
            if may_share {
                let class = loop_of(sample);
                sharing.entry(sample.thread).or_default().push(Share { sample: sample.id, class, ns: own });
            } else if !is_thinned
                && last_shared.get(&sample.thread) == Some(&true)
                && let Some(before) = sharing.get_mut(&sample.thread).and_then(|own| own.last_mut())
            {
                let of_loop = own.min(usual) / 2.0;
                own -= of_loop;
                before.ns += of_loop;
            }
            last_shared.insert(sample.thread, may_share);
            times.shared.insert(sample.id, own * weight);
        }
        let mean_of = means(sharing.values().flatten());
        for block in sharing.values().flat_map(|own| own.chunks(SHARING)) {
            let all: f64 = block.iter().map(|share| share.ns).sum();
            let parts: f64 = block.iter().map(|share| mean_of[&share.class]).sum();
            times.shared.extend(block.iter().map(|share| (share.sample, all * mean_of[&share.class] / parts)));
        }
        times.give_short_threads_their_lives(profile, place_of);
        times
    }

    /// Makes the samples of a short thread stand for its CPU time together, and all samples of the short threads that follow each other in a place for the
    /// CPU time of all of them.
    fn give_short_threads_their_lives(&mut self, profile: &Profile, place_of: impl Fn(Id) -> Option<(Id, usize)>) {
        let lives = lives(profile, self.usual);
        let mut seen: BTreeMap<Id, Vec<Id>> = BTreeMap::new();
        for sample in profile.samples.iter().filter(|sample| !is_for_rates(sample) && lives.contains_key(&sample.thread)) {
            seen.entry(sample.thread).or_default().push(sample.id);
        }
        let mut places: BTreeMap<(Id, usize), Place> = BTreeMap::new();
        for (thread, own) in seen {
            let (life, all) = (lives[&thread], own.iter().filter_map(|sample| self.shared.get(sample)).sum::<f64>());
            // The sample of one that ran for less stands for those without one.
            let factor = if life < self.usual { 1.0 } else { (life / all).clamp(1.0 / LONGEST, LONGEST) };
            self.scale(&own, factor);
            if let Some(place) = place_of(thread).map(|place| places.entry(place).or_default()) {
                place.seen_ns += all * factor;
                place.samples.extend(&own);
            }
        }
        for (thread, ns) in &lives {
            if let Some(place) = place_of(*thread).and_then(|place| places.get_mut(&place)) {
                place.ran_ns += ns;
            }
        }
        for place in places.values().filter(|place| place.samples.len() >= LEAST_OF_PLACE) {
            self.scale(&place.samples, (place.ran_ns / place.seen_ns).clamp(LEAST_SEEN, MOST_UNSEEN));
        }
    }

    fn scale(&mut self, samples: &[Id], factor: f64) {
        for sample in samples {
            self.shared.entry(*sample).and_modify(|ns| *ns *= factor);
        }
    }

    /// What the sample stands for.
    pub fn of(&self, sample: &TimerSample) -> f64 {
        self.shared.get(&sample.id).copied().unwrap_or(0.0)
    }

    /// The time right before the sample in which its loop may have run, times its weight.
    pub fn before(&self, sample: &TimerSample) -> f64 {
        self.before.get(&sample.id).copied().unwrap_or(0.0)
    }
}

/// The CPU time of threads that were short, ns: all their samples together stand for it. A tick of the scheduler, in which one thread takes the place of
/// another, leaves the new one without a sample for a whole period, so that threads of 4.4 ms and of 7.1 ms have one sample each where more threads run than
/// there are CPUs. Left out are threads of which a part of the life was not sampled, or whose samples stand for those of others.
fn lives(profile: &Profile, usual: f64) -> BTreeMap<Id, f64> {
    let ended = profile.threads.iter().filter(|thread| thread.died_ns.is_some());
    let life = |thread: &Thread| Some((thread.id, thread.cpu_ns? as f64));
    let mut lives: BTreeMap<Id, f64> = ended.filter_map(life).filter(|(_, ns)| (1.0..SHORT * usual).contains(ns)).collect();
    let mut last: HashMap<Id, u64> = HashMap::new();
    for sample in profile.samples.iter().filter(|sample| !is_for_rates(sample)) {
        let Some(life) = lives.get(&sample.thread) else { continue };
        let gap = sample.cpu_ns.saturating_sub(last.insert(sample.thread, sample.cpu_ns).unwrap_or(0)) as f64;
        // Or the CPU time was read before the thread ended.
        if *life < sample.cpu_ns as f64 || gap > LONGEST * usual || sample.weight != 1.0 {
            lives.remove(&sample.thread);
        }
    }
    lives
}

/// Threads that follow each other, each of them short.
#[derive(Default)]
struct Place {
    samples: Vec<Id>,
    /// The time that these stand for, and the CPU time of all, ns.
    seen_ns: f64,
    ran_ns: f64,
}

/// A sample that shares its time: the loop that it is in, and the time before it.
struct Share {
    sample: Id,
    class: Option<Loop>,
    ns: f64,
}

/// What samples in each loop stand for on average, ns: the mean of all samples, and of a loop's difference from it what chance does not explain.
fn means<'a>(shares: impl Iterator<Item = &'a Share>) -> HashMap<Option<Loop>, f64> {
    let (mut all, mut of_class) = (Sum::default(), HashMap::<Option<Loop>, Sum>::new());
    for share in shares {
        all.add(share.ns);
        of_class.entry(share.class).or_default().add(share.ns);
    }
    let mean = |sum: &Sum| {
        let difference = sum.mean() - all.mean();
        let by_chance = CHANCE.powi(2) * sum.variance_of_mean() / difference.powi(2).max(f64::MIN_POSITIVE);
        all.mean() + difference * (1.0 - by_chance).max(0.0)
    };
    of_class.iter().map(|(class, sum)| (*class, mean(sum))).collect()
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: f64,
    ns: f64,
    squares: f64,
}

impl Sum {
    fn add(&mut self, ns: f64) {
        *self = Self { count: self.count + 1.0, ns: self.ns + ns, squares: self.squares + ns * ns };
    }

    fn mean(&self) -> f64 {
        self.ns / self.count.max(1.0)
    }

    /// Infinite for a single value.
    fn variance_of_mean(&self) -> f64 {
        let variance = (self.squares / self.count.max(1.0) - self.mean().powi(2)).max(0.0);
        if self.count < 2.0 { f64::INFINITY } else { variance / (self.count - 1.0) }
    }
}

/// Most of the time before a sample in the kernel is the kernel's.
fn may_share(sample: &TimerSample) -> bool {
    sample.state != SampleState::InKernel
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::SampledLoop;

    fn sample(id: Id, thread: Id, cpu_ns: u64, weight: f64, state: SampleState) -> TimerSample {
        let around: Option<SampledLoop> = None;
        TimerSample { id, thread, time_ns: cpu_ns, cpu: 0, cpu_ns, weight, site: None, state, around, unknown: 0, elsewhere: 0.0 }
    }

    fn in_one_process(sample: &TimerSample) -> Option<Loop> {
        Some(Loop::InProcess(1, sample.around?.end))
    }

    /// Times between samples, 4 ms on average, as a random process has them.
    fn random_gaps(count: usize) -> Vec<u64> {
        let mut state = 5_u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..count).map(|_| (-4e6 * (1.0 - unit()).ln()) as u64 + 1).collect()
    }

    /// Check that the samples of each thread stand for all of its CPU time, if they come at random, and for equal times nearly.
    #[test]
    fn no_time_is_lost() {
        let mut profile = Profile::default();
        let mut cpu = [0_u64; 4];
        for (number, gap) in random_gaps(2000).into_iter().enumerate() {
            let thread = number % 4;
            cpu[thread] += gap;
            profile.samples.push(sample(number as Id + 1, thread as Id, cpu[thread], 1.0, SampleState::Computing));
        }
        let times = Times::new(&profile, in_one_process, |_| None);
        for (thread, all) in cpu.iter().enumerate() {
            let own: Vec<f64> = profile.samples.iter().filter(|one| one.thread == thread as Id).map(|one| times.of(one)).collect();
            let sum: f64 = own.iter().sum();
            assert!((sum / *all as f64 - 1.0).abs() < 0.02, "thread {thread}: {sum} of {all}");
            let mean = sum / own.len() as f64;
            let variance = own.iter().map(|ns| (ns / mean - 1.0).powi(2)).sum::<f64>() / own.len() as f64;
            assert!(variance < 0.25, "{variance}: 1 without sharing");
        }
    }

    /// Check that a second without samples belongs to no sample, that samples which stand for others do not stand for the time of those twice,
    /// and that time in the kernel stays with the sample there.
    #[test]
    fn times_that_belong_to_others() {
        let mut profile = Profile::default();
        let mut cpu = 0;
        for id in 1..=40 {
            cpu += if id == 20 { 1_000_000_000 } else { 4_000_000 };
            profile.samples.push(sample(id, 0, cpu, 1.0, SampleState::Computing));
        }
        cpu += 30_000_000;
        profile.samples.push(sample(41, 0, cpu, 8.0, SampleState::Computing));
        cpu += 40_000_000;
        profile.samples.push(sample(42, 0, cpu, 1.0, SampleState::InKernel));
        let times = Times::new(&profile, in_one_process, |_| None);
        let of = |id: usize| times.of(&profile.samples[id - 1]);
        assert!((1..=40).all(|id| (of(id) - 4e6).abs() < 1.0), "{times:?}");
        assert!((of(41) - 8.0 * 4e6).abs() < 1.0 && (of(42) - 40e6).abs() < 1.0, "{} {}", of(41), of(42));
    }

    fn short(id: Id) -> Thread {
        Thread { id, process: 1, tid: id as i32, parent: Some(0), born_ns: 0, ..Thread::default() }
    }

    /// Check that the samples of a short thread stand for its CPU time, however many they are; those of one that is shorter than the time between two samples,
    /// or whose CPU time was read before it ended, stand for the usual time.
    #[test]
    fn short_threads_have_their_own_time() {
        let mut profile = Profile::default();
        profile.samples.extend((1..=100).map(|id| sample(id, 0, id as u64 * 4_000_000, 1.0, SampleState::Computing)));
        let mut thread = |id: Id, cpu_ns: u64, died_ns: Option<u64>, seen_ns: &[u64]| {
            let row = Thread { cpu_ns: Some(cpu_ns), died_ns, ..short(id) };
            profile.threads.push(row);
            for at in seen_ns {
                let sample = sample(profile.samples.len() as Id + 1, id, *at, 1.0, SampleState::Computing);
                profile.samples.push(sample);
            }
        };
        thread(1, 4_400_000, Some(1), &[3_900_000]);
        thread(2, 7_100_000, Some(1), &[3_900_000]);
        thread(3, 11_000_000, Some(1), &[1_000_000, 9_000_000]);
        thread(4, 2_000_000, Some(1), &[1_500_000]);
        thread(5, 6_000_000, Some(1), &[7_500_000]);
        thread(6, 6_000_000, None, &[1_000_000]);
        thread(7, 400_000_000, Some(1), &[1_000_000]);
        // Sampled late.
        thread(8, 60_000_000, Some(1), &[55_000_000]);
        // A burst's clock is another one.
        let id = profile.samples.len() as Id + 1;
        profile.samples.push(sample(id, 1, 5_000_000_000, 0.0, SampleState::Computing));
        let times = Times::new(&profile, in_one_process, |_| None);
        let of = |thread: Id| profile.samples.iter().filter(|one| one.thread == thread).map(|one| times.of(one)).sum::<f64>();
        let seen: Vec<f64> = (1..=8).map(|thread| (of(thread) / 1e5).round() / 10.0).collect();
        assert_eq!(seen, [4.4, 7.1, 11.0, 4.0, 4.0, 4.0, 4.0, 4.0]);
    }

    /// Check that threads without a sample have their time too, if others took their place before and after: here, one thread in two has one.
    #[test]
    fn threads_without_samples_have_their_time() {
        let mut profile = Profile::default();
        profile.samples.extend((1..=100).map(|id| sample(id, 0, id as u64 * 4_000_000, 1.0, SampleState::Computing)));
        for id in 1..=40 {
            let cpu_ns = Some(if id % 4 < 2 { 4_500_000 } else { 9_000_000 });
            profile.threads.push(Thread { cpu_ns, died_ns: Some(1), ..short(id) });
            // Shorter than the usual time, and never sampled.
            profile.threads.push(Thread { cpu_ns: Some(1_000_000), died_ns: Some(1), ..short(id + 100) });
            if id % 4 != 0 {
                let number = profile.samples.len() as Id + 1;
                profile.samples.push(sample(number, id, 2_000_000, 1.0, SampleState::Computing));
            }
        }
        // Threads 0 and 1 of each four have 4.5 ms, and thread 0 has no sample.
        let times = Times::new(&profile, in_one_process, |thread| (thread > 0).then_some((1, usize::from(thread % 4 < 2))));
        let of = |place: bool| {
            let own = profile.samples.iter().filter(|one| one.thread > 0 && (one.thread % 4 < 2) == place);
            own.map(|one| times.of(one)).sum::<f64>() / 1e6
        };
        assert!((of(true) - 20.0 * 5.5).abs() < 0.01 && (of(false) - 20.0 * 10.0).abs() < 0.01, "{} {}", of(true), of(false));
    }

    /// What a thread's timer sees: ticks every 4 ms of wall time, of which those count that hit the thread when 4 ms of CPU time are due.
    struct Ticks {
        wall: f64,
        cpu: f64,
        due: f64,
        hits: Vec<(f64, u64)>,
    }

    impl Ticks {
        const NS: f64 = 4e6;

        fn run(&mut self, ns: f64, class: u64) {
            let end = self.wall + ns;
            let mut tick = (self.wall / Self::NS).floor() * Self::NS + Self::NS;
            while tick <= end {
                let cpu = self.cpu + tick - self.wall;
                if cpu >= self.due {
                    self.hits.push((cpu, class));
                    self.due = (cpu / Self::NS).floor() * Self::NS + Self::NS;
                }
                tick += Self::NS;
            }
            (self.wall, self.cpu) = (end, self.cpu + ns);
        }
    }

    /// Check that a thread which works alone between the sweeps of all threads gets its time in these, where threads share processors.
    #[test]
    fn who_works_alone_in_between_keeps_its_time() {
        const SWEEPS: u64 = 1;
        const ALONE: u64 = 2;
        let mut state = 11_u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (mut profile, mut truth) = (Profile::default(), [0.0; 4]);
        for (thread, truth) in truth.iter_mut().enumerate() {
            let mut ticks = Ticks { wall: 1e6 * unit(), cpu: 0.0, due: Ticks::NS * unit(), hits: Vec::new() };
            for _ in 0..1500 {
                if thread == 0 {
                    ticks.run(25e6 + 6e6 * unit(), ALONE);
                } else {
                    ticks.wall += 28e6;
                }
                // Short slices between those of others.
                for _ in 0..4 {
                    let slice = 0.5e6 + 2.5e6 * unit();
                    *truth += slice;
                    ticks.run(slice, SWEEPS);
                    ticks.wall += 2e6 + 5e6 * unit();
                }
            }
            for (cpu, class) in ticks.hits {
                let around = Some(SampledLoop { end: class, entry: 0, progress: None, left: None });
                let id = profile.samples.len() as Id + 1;
                profile.samples.push(TimerSample { around, ..sample(id, thread as Id, cpu as u64, 1.0, SampleState::Computing) });
            }
        }
        let times = Times::new(&profile, in_one_process, |_| None);
        let in_sweeps = |thread: usize| {
            let own =
                profile.samples.iter().filter(|one| one.thread == thread as Id && one.around.is_some_and(|around| around.end == SWEEPS));
            own.map(|one| times.of(one)).sum::<f64>() / truth[thread]
        };
        let seen = [0, 1, 2, 3].map(in_sweeps);
        assert!(seen.iter().all(|ratio| (ratio - 1.0).abs() < 0.06), "{seen:?}");
    }
}
