use super::*;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Access, FirstTouch, Frame, Lost, Site, Thread, TimerSample};

const MS: u64 = 1_000_000;

fn thread(id: Id, cpu_ms: Option<u64>) -> Thread {
    Thread { id, process: 1, tid: 100, born_ns: 0, cpu_ns: cpu_ms.map(|ms| ms * MS), ..Thread::default() }
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

/// Check that a thread which hands out work takes no place: it has a seventh of a worker's CPU time and hardly any accesses. One with as many accesses for
/// its time, or with half of the time, does; so does one with a part of the first touches, and where few accesses were seen.
#[test]
fn threads_that_hand_out_work_take_no_place() {
    let run = |handler_ms: u64, accesses: [usize; 2], touched: f64| {
        let workers = (1..=4).map(|id| thread(id, Some(1000)));
        let mut run = profile(workers.chain([thread(5, Some(handler_ms))]).collect());
        run.threads[0].cpu_ns = Some(1000 * MS);
        run.accesses = (0..5).flat_map(|id| std::iter::repeat_n(id, accesses[0])).map(access).collect();
        run.accesses.extend(std::iter::repeat_n(5, accesses[1]).map(access));
        run.first_touches = vec![touch(0, 100.0), touch(5, touched)];
        idle(&run)
    };
    assert_eq!(run(140, [300, 3], 0.0), [5]);
    assert_eq!(run(140, [300, 40], 0.0), [0; 0]);
    assert_eq!(run(500, [300, 3], 0.0), [0; 0]);
    assert_eq!(run(140, [300, 3], 10.0), [0; 0]);
    assert_eq!(run(140, [30, 0], 0.0), [0; 0]);
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
    all.samples = ticks(1, 400, SampleState::InKernel).collect();
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

/// Check a run of half a second: a helper thread that waited in its few samples is idle, although a sample is more than 2 % of the CPU time, and
/// so are handler threads of less than a tick beside workers. They are not if nobody else computes beside the main thread.
#[test]
fn sleeping_helpers_take_no_place() {
    let lived = |id: Id, ms: u64| Thread { died_ns: Some(ms * MS), ..thread(id, None) };
    let read = |id: Id, ms: u64| Thread { cpu_ns: Some(MS / 2), ..lived(id, ms) };
    let mut all = profile(vec![lived(1, 430), lived(2, 60), lived(3, 70), read(4, 590), read(5, 590)]);
    all.meta.end_ns = Some(600 * MS);
    all.threads[0].cpu_ns = Some(180 * MS);
    all.samples = ticks(0, 45, SampleState::Computing).chain(ticks(1, 3, SampleState::InKernel)).collect();
    all.samples.extend(ticks(2, 2, SampleState::Computing).chain(ticks(3, 3, SampleState::Computing)));
    assert_eq!(idle(&all), [1, 4, 5]);
    let mut alone = all.clone();
    alone.samples.retain(|sample| sample.thread < 2);
    assert_eq!(idle(&alone), [4, 5], "1 may be the only worker");
    all.threads[4].cpu_ns = Some(20 * MS);
    assert_eq!(idle(&all), [1, 5], "the timer of 4 did not work");
    all.threads[5].cpu_ns = None;
    assert_eq!(idle(&all), [1], "nothing but samples tells of 5");
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

/// Check that the gaps of threads that hardly get a CPU, or have few samples, are no pauses, and that those of a pool that works in turn are.
#[test]
fn gaps_of_chance_are_no_pauses() {
    let count = |gap_ms: u64, samples: u64, pause_ms: f64| {
        let half = |from: u64| (0..samples / 2).map(move |at| (from + at * 10) * MS);
        let times: Vec<u64> = half(0).chain(half(gap_ms + samples / 2 * 10)).collect();
        stretches(times, samples, pause_ms * MS as f64).len()
    };
    assert_eq!([count(1500, 400, 500.0), count(1500, 400, 1600.0)], [2, 1]);
    assert_eq!([count(600, 8, 100.0), count(600, 200, 100.0)], [1, 2]);
}
