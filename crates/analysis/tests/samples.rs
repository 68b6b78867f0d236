//! Samples of registers, simulated: threads alternate between two loops of known speed, and a tick samples each of them.

use crate::simulated::{FakeSources, MIB, MS, Random, S, target};
use firsttouch_analysis::{Analysis, PartitionKind, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::*;

const THREADS: usize = 4;
const TICK: u64 = 4 * MS;
const BYTES: u64 = 64 * MIB;
const A: u64 = 0x10_0000_0000;
const B: u64 = 0x20_0000_0000;

/// A loop over a thread's block of one object, one word a round.
#[derive(Clone, Copy)]
struct Kernel {
    object: Id,
    base: u64,
    ns_a_round: f64,
    usual_ns: f64,
    /// The loop's register shows its progress.
    has_progress: bool,
}

/// A run, and the rounds of both loops, by thread.
struct Run {
    profile: Profile,
    by_thread: [[f64; 2]; THREADS],
}

impl Run {
    /// A's share of all rounds.
    fn share_of_a(&self) -> f64 {
        let sum = |which: usize| self.by_thread.iter().map(|rounds| rounds[which]).sum::<f64>();
        sum(0) / (sum(0) + sum(1))
    }
}

fn object(id: Id, name: &str, address: u64) -> Object {
    Object {
        id,
        process: 1,
        kind: ObjectKind::Heap,
        call: Some("malloc".into()),
        name: Some(name.into()),
        address,
        bytes: BYTES,
        born_ns: 0,
        died_ns: None,
        site: Some(id),
        thread: Some(0),
    }
}

pub fn thread(id: Id) -> Thread {
    Thread {
        id,
        process: 1,
        tid: 10 + i32::try_from(id).unwrap(),
        parent: (id > 0).then_some(0),
        name: None,
        born_ns: 0,
        died_ns: None,
        cpu_ns: Some(10 * S),
        omp_number: None,
        user_faults: None,
        all_faults: None,
        allowed_cpus: None,
        node_moves: 0,
    }
}

fn site(id: Id, line: u32) -> (Id, Site) {
    let frame = Frame { address: 0x1000 * u64::from(line), file: Some("a.c".into()), line: Some(line), ..Frame::default() };
    (id, Site { id, process: 1, frames: vec![frame] })
}

/// Samples of a burst, the time between two of them, and between two bursts of a thread.
const BURST: u64 = 4;
const BURST_TICK: u64 = MS / 5;
const BURSTS: u64 = 200 * MS;
/// What a sample of a burst takes from its loop.
const BURST_COST: u64 = MS / 50;

/// `slower`: how much slower each thread is than the loops say.
fn run_of(seed: u64, loops: [Kernel; 2], seconds: u64, slower: [f64; THREADS]) -> Run {
    run_with(seed, loops, seconds, slower, false)
}

fn run_with(seed: u64, loops: [Kernel; 2], seconds: u64, slower: [f64; THREADS], has_bursts: bool) -> Run {
    run_at(seed, loops, seconds, slower, has_bursts.then_some(BURSTS), TICK)
}

/// `bursts`: the time between two bursts of a thread, if there are any. `tick`: the time between two other samples.
fn run_at(seed: u64, loops: [Kernel; 2], seconds: u64, slower: [f64; THREADS], bursts: Option<u64>, tick: u64) -> Run {
    let mut random = Random(seed);
    let mut profile = Profile {
        processes: vec![Process { id: 1, pid: 10, parent: None, exe: None, born_ns: 0, died_ns: None }],
        threads: (0..THREADS as Id).map(thread).collect(),
        objects: vec![object(1, "A", A), object(2, "B", B)],
        sites: [site(1, 1), site(2, 2), site(11, 11), site(12, 12), site(20, 20)].into(),
        evidence: vec![Evidence { source: "sample".into(), available: true, samples: 1, detail: String::new() }],
        ..Profile::default()
    };
    profile.meta.set("start_ns", "0");
    if bursts.is_some() {
        profile.meta.set("tick_ns", &BURST_COST.to_string());
    }
    profile.meta.set("end_ns", &(seconds * S).to_string());
    for (id, base) in [(1u64, A), (2, B)] {
        profile.first_touches.extend((0..BYTES / 65536).map(|page| FirstTouch {
            id: Id::try_from(id * 100_000 + page).unwrap(),
            process: 1,
            time_ns: 1 + page,
            thread: 0,
            cpu: 0,
            address: base + page * 65536,
            weight: 16.0,
            by_kernel: false,
            site: Some(20),
            mapped_bytes: None,
            node: None,
        }));
    }
    let (mut by_thread, mut samples) = ([[0.0; 2]; THREADS], Vec::new());
    for thread in 0..THREADS {
        let (mut cpu, mut next, mut which) = (0.0, random.unit() * tick as f64, 0);
        let first = random.unit();
        let mut next_burst = bursts.map_or(f64::MAX, |bursts| first * bursts as f64);
        while cpu < (seconds * S) as f64 {
            let kernel = loops[which];
            let ns_a_round = kernel.ns_a_round * slower[thread];
            let length = kernel.usual_ns * (0.8 + 0.4 * random.unit());
            by_thread[thread][which] += length / ns_a_round;
            while next < cpu + length {
                samples.push((next as u64, thread, which, ((next - cpu) / ns_a_round) as u64, false));
                next += tick as f64;
            }
            while next_burst < cpu + length {
                // Each sample but the first follows an interruption.
                let at = |i: u64| ((next_burst - cpu) + (i * (BURST_TICK - BURST_COST)) as f64) / ns_a_round;
                samples.extend((0..BURST).map(|i| (next_burst as u64 + i * BURST_TICK, thread, which, at(i) as u64, true)));
                next_burst += bursts.unwrap_or(BURSTS) as f64;
            }
            cpu += length;
            which = 1 - which;
        }
    }
    samples.sort_unstable();
    for (number, (cpu_ns, thread, which, round, is_burst)) in samples.into_iter().enumerate() {
        let (kernel, id, block) = (loops[which], Id::try_from(number).unwrap() + 1, BYTES / THREADS as u64);
        let progress = kernel.has_progress.then_some(Progress { value: round, step: 1 });
        profile.samples.push(TimerSample {
            id,
            thread: thread as Id,
            time_ns: S + cpu_ns,
            cpu: 0,
            cpu_ns,
            weight: if is_burst { 0.0 } else { 1.0 },
            site: Some(10 + kernel.object),
            state: SampleState::Computing,
            around: Some(SampledLoop {
                end: 0x100 * which as u64,
                entry: if kernel.has_progress { thread as u64 } else { round * 8 / block },
                progress,
            }),
            unknown: 0,
            elsewhere: 0.0,
        });
        profile.sampled_accesses.push(SampledAccess {
            sample: id,
            object: kernel.object,
            address: kernel.base + thread as u64 * block + round * 8 % block,
            bytes: 8,
            words: 1.0,
            kind: AccessKind::Read,
            site: Some(10 + kernel.object),
            stride: Some(8),
        });
    }
    Run { profile, by_thread }
}

fn run(seed: u64, loops: [Kernel; 2], seconds: u64) -> Run {
    run_of(seed, loops, seconds, [1.0; THREADS])
}

const FAST: Kernel = Kernel { object: 1, base: A, ns_a_round: 2.0, usual_ns: 30e6, has_progress: true };
const SLOW: Kernel = Kernel { object: 2, base: B, ns_a_round: 8.0, usual_ns: 60e6, has_progress: true };

fn judged(run: &Run) -> Analysis {
    analyse(&run.profile, &target(2), &FakeSources(TouchCause::Loop))
}

/// Check that loops are compared by accesses and not by time: A has a third of the time and two thirds of the accesses. The intervals cover the
/// truth, the blocks and the serial first touch are found, and the figures say which source they come from.
#[test]
fn accesses_are_rated_by_progress() {
    let (mut inside, mut sum, runs) = (0, 0.0, 60);
    for seed in 0..runs {
        let run = run(seed, [FAST, SLOW], 5);
        let truth = run.share_of_a();
        let analysis = judged(&run);
        let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
        let [low, high] = a.access_share_interval.unwrap();
        inside += u64::from((low..=high).contains(&truth));
        sum += a.access_share.unwrap() - truth;
        assert!(high - low < 0.08, "{low} {high}");
        // 30 ms of each 90 ms.
        let (time, [low, high]) = (a.time_share.unwrap(), a.time_share_interval.unwrap());
        assert!((time - 1.0 / 3.0).abs() < 0.03 && low < 1.0 / 3.0 && 1.0 / 3.0 < high, "{low} {time} {high}");
        assert_eq!((a.partition, a.evidence.as_str()), (PartitionKind::Block, "sample"));
        let kinds: Vec<FindingKind> = analysis.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::SerialFirstTouch; 2]);
        let remote = analysis.remote_interval.unwrap();
        assert!(remote[0] < 0.5 && 0.5 < remote[1] && remote[1] - remote[0] < 0.06, "{remote:?}");
    }
    assert!(inside * 100 >= runs * 93, "{inside} of {runs} intervals contain the truth");
    assert!((sum / runs as f64).abs() < 0.01, "bias {}", sum / runs as f64);
}

/// Check that a thread which is slower in the same loop, as on remote memory, gets no larger share for it.
#[test]
fn slow_threads_are_not_overestimated() {
    let run = run_of(3, [FAST, SLOW], 8, [1.0, 1.0, 2.0, 3.0]);
    let analysis = judged(&run);
    let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
    let all: f64 = run.by_thread.iter().map(|rounds| rounds[0]).sum();
    for (thread, rounds) in run.by_thread.iter().enumerate() {
        let (truth, [low, high]) = (rounds[0] / all, a.used_by_thread_interval[thread]);
        assert!(low < truth && truth < high && (a.used_by_thread[thread] - truth).abs() < 0.02, "{thread}: {low} {truth} {high}");
    }
}

/// Check that bursts rate loops that begin anew several times between two ticks: threads of different speed get their shares, within an
/// interval that is too wide without bursts. The samples of bursts count for nothing else.
#[test]
fn bursts_rate_short_laps() {
    let short = Kernel { ns_a_round: 0.5, has_progress: false, ..FAST };
    let shorter = Kernel { ns_a_round: 0.4, has_progress: false, ..SLOW };
    let (mut inside, mut checked) = (0, 0);
    for seed in 0..10 {
        let of = |has_bursts| {
            let run = run_with(seed, [short, shorter], 10, [1.0, 1.0, 1.25, 1.5], has_bursts);
            let analysis = judged(&run);
            let a = analysis.objects.into_iter().find(|object| object.name == "A").unwrap();
            (run, a)
        };
        let ((run, with), (_, without)) = (of(true), of(false));
        let all: f64 = run.by_thread.iter().map(|rounds| rounds[0]).sum();
        for (thread, rounds) in run.by_thread.iter().enumerate() {
            let (truth, [low, high]) = (rounds[0] / all, with.used_by_thread_interval[thread]);
            assert!((with.used_by_thread[thread] - truth).abs() < 0.03, "{seed} {thread}: {} {truth}", with.used_by_thread[thread]);
            inside += u32::from(low < truth && truth < high);
            checked += 1;
            let [wide_low, wide_high] = without.used_by_thread_interval[thread];
            assert!(high - low < 0.6 * (wide_high - wide_low), "{seed} {thread}: {low} {high} {wide_low} {wide_high}");
        }
        assert_eq!(with.used_by_thread_samples, without.used_by_thread_samples);
    }
    assert!(inside * 100 >= checked * 90, "{inside} of {checked}");
}

/// Check that many bursts do not hide that the loop begins anew several times between two ticks, as on machines whose ticks are far apart.
#[test]
fn ticks_far_apart() {
    let short = Kernel { ns_a_round: 0.5, usual_ns: 800e6, has_progress: false, ..FAST };
    let shorter = Kernel { ns_a_round: 4.0, usual_ns: 800e6, has_progress: false, ..SLOW };
    let run = run_at(3, [short, shorter], 30, [1.0; THREADS], Some(100 * MS), 32 * MS);
    let analysis = judged(&run);
    let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
    let (truth, [low, high]) = (run.share_of_a(), a.access_share_interval.unwrap());
    assert!(low < truth && truth < high && (a.access_share.unwrap() - truth).abs() < 0.05, "{low} {truth} {high}");
}

/// Check that a loop whose laps take just half a tick is not taken to stand still from tick to tick.
#[test]
fn laps_in_step_with_the_ticks() {
    // 2 Mi rounds a lap.
    let in_step = Kernel { ns_a_round: 2.0 * MS as f64 / (2 << 20) as f64 * 0.998, usual_ns: 800e6, has_progress: false, ..FAST };
    let other = Kernel { ns_a_round: 0.4, usual_ns: 800e6, has_progress: false, ..SLOW };
    let run = run_at(3, [in_step, other], 20, [1.0, 1.0, 1.1, 1.1], Some(100 * MS), TICK);
    let analysis = judged(&run);
    let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
    let (truth, [low, high]) = (run.share_of_a(), a.access_share_interval.unwrap());
    assert!(low < truth && truth < high && (a.access_share.unwrap() - truth).abs() < 0.05, "{low} {truth} {high}");
}

/// Check that a loop without progress is not taken to be as fast as its time suggests: the interval is wide, and contains the truth.
#[test]
fn unrated_loops_widen_the_interval() {
    let unrated = Kernel { has_progress: false, ..SLOW };
    let mut run = run(1, [FAST, unrated], 5);
    run.profile.sampled_accesses.iter_mut().filter(|access| access.object == 2).for_each(|access| access.stride = None);
    let analysis = judged(&run);
    let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
    let ([low, high], truth) = (a.access_share_interval.unwrap(), run.share_of_a());
    assert!(low < truth && truth < high && high - low > 0.2, "{low} {truth} {high}");
    let thread = a.used_by_thread_interval[0];
    assert!(thread[1] - thread[0] < 0.1, "shares within one loop do not depend on its rate: {thread:?}");
}

/// Check that the first sweep over memory that is older than the attachment counts as use, and that over younger memory as initialisation.
#[test]
fn writes_after_an_attachment() {
    let mut run = run(5, [FAST, SLOW], 5);
    run.profile.sampled_accesses.iter_mut().for_each(|access| access.kind = AccessKind::Write);
    run.profile.first_touches.clear();
    let initialises = |run: &Run| judged(run).notes.iter().any(|note| note.to_string().contains("being initialised"));
    assert!(initialises(&run));
    run.profile.meta.set("mode", "attach");
    assert!(!initialises(&run));
    run.profile.objects[0].born_ns = S;
    assert!(initialises(&run));
}

/// Thread 0 writes each object once, before all threads use their blocks.
fn initialise_in_thread_0(run: &mut Run) {
    let mut own: Vec<(TimerSample, SampledAccess)> = run.profile.samples.drain(..).zip(run.profile.sampled_accesses.drain(..)).collect();
    own.retain(|(sample, _)| sample.thread != 0 || sample.cpu_ns > 200 * MS);
    // 64 MiB in 64 ms, twice: 16 ticks each.
    let writing = |tick: u64| {
        let (id, base) = if tick < 16 { (1, A) } else { (2, B) };
        let round = (tick % 16) * BYTES / 16 / 8 + 1000;
        let around = Some(SampledLoop { end: 0x500, entry: base, progress: Some(Progress { value: round, step: 1 }) });
        let time_ns = S / 2 + tick * TICK;
        let (state, site) = (SampleState::Computing, Some(20));
        let sample = TimerSample {
            id: 0,
            thread: 0,
            time_ns,
            cpu: 0,
            cpu_ns: tick * TICK,
            weight: 1.0,
            site,
            state,
            around,
            unknown: 0,
            elsewhere: 0.0,
        };
        let kind = AccessKind::Write;
        (sample, SampledAccess { sample: 0, object: id, address: base + round * 8, bytes: 8, words: 1.0, kind, site, stride: Some(8) })
    };
    let all: Vec<(TimerSample, SampledAccess)> = (0..32).map(writing).chain(own).collect();
    for (number, (sample, access)) in all.into_iter().enumerate() {
        let id = Id::try_from(number).unwrap() + 1;
        run.profile.samples.push(TimerSample { id, ..sample });
        run.profile.sampled_accesses.push(SampledAccess { sample: id, ..access });
    }
}

/// Check that first touches are derived from sweeps only where the kernel could not report them: thread 0 writes each object once, and
/// then all threads use their blocks.
#[test]
fn first_touches_without_perf() {
    let mut run = run(7, [FAST, SLOW], 2);
    run.profile.first_touches.clear();
    run.profile.evidence.push(Evidence { source: "touch".into(), available: false, samples: 0, detail: "perf is forbidden".into() });
    let unseen = judged(&run);
    assert!(unseen.findings.is_empty() && unseen.objects.iter().all(|object| !object.judged), "{:?}", unseen.findings);
    initialise_in_thread_0(&mut run);
    let analysis = judged(&run);
    let kinds: Vec<FindingKind> = analysis.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::SerialFirstTouch; 2], "{:?}", analysis.not_judged);
    let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
    assert_eq!(a.first_touch.by_thread[0], 1.0);
    assert!((10..=18).contains(&a.first_touch.samples), "sweeps are counted, not the records made of them: {}", a.first_touch.samples);
    assert!(analysis.notes.iter().any(|note| note.to_string().contains("32 samples saw memory being initialised")), "{:?}", analysis.notes);
}

/// Pages of both objects.
const PAGES: u64 = 2 * BYTES / 4096;

/// A run without perf, with these counts of page faults of thread 0 and of each other thread.
fn without_perf(faults: [u64; 2], initialise: impl Fn(&mut Run)) -> Run {
    let mut run = run(7, [FAST, SLOW], 2);
    run.profile.first_touches.clear();
    run.profile.evidence.push(Evidence { source: "touch".into(), available: false, samples: 0, detail: "perf is forbidden".into() });
    initialise(&mut run);
    run.profile.threads.iter_mut().for_each(|thread| thread.all_faults = Some(faults[usize::from(thread.id > 0)]));
    run.profile.machine.huge_page_bytes = 2 * MIB;
    run.profile.machine.transparent_huge_pages = "madvise".into();
    answer_with_pages_of(&mut run, 4096);
    run
}

/// The kernel says of four addresses of each object how large the page there is.
fn answer_with_pages_of(run: &mut Run, page_bytes: u64) {
    let page = |(id, base): (Id, u64), i: u64| Page {
        process: 1,
        object: Some(id),
        address: base + i * BYTES / 4,
        time_ns: S,
        node: 0,
        page_bytes,
    };
    run.profile.pages = [(1, A), (2, B)].into_iter().flat_map(|object| (0..4).map(move |i| page(object, i))).collect();
}

/// As `initialise_in_thread_0`, with code that no two samples show in one loop.
fn initialise_in_short_loops(run: &mut Run) {
    initialise_in_thread_0(run);
    run.profile.samples[..32].iter_mut().for_each(|sample| sample.around = None);
}

fn found(run: &Run) -> Vec<FindingKind> {
    judged(run).findings.iter().map(|finding| finding.kind).collect()
}

/// Check that sweeps by threads with too few page faults are no first touches: memory that a former owner or the kernel had touched.
#[test]
fn sweeps_need_page_faults() {
    assert_eq!(found(&without_perf([PAGES, PAGES], initialise_in_thread_0)), [FindingKind::SerialFirstTouch; 2]);
    let analysis = judged(&without_perf([100, PAGES], initialise_in_thread_0));
    assert!(analysis.findings.is_empty() && analysis.objects.iter().all(|object| !object.judged), "{:?}", analysis.findings);
}

/// Check that the thread with nearly all page faults touched what it wrote before others used it, and that nothing is concluded if others
/// have faults too, if counts are missing, or if huge pages may explain them.
#[test]
fn one_thread_has_all_page_faults() {
    let run = without_perf([PAGES, 20], initialise_in_short_loops);
    assert_eq!(found(&run), [FindingKind::SerialFirstTouch; 2], "{:?}", judged(&run).not_judged);
    let lines: Vec<Option<u32>> = judged(&run).objects.iter().map(|object| object.first_touch.at[0].line).collect();
    assert_eq!(lines, [Some(20); 2], "the code that only thread 0 runs");
    for (faults, why) in [([PAGES, PAGES / 10], "others touched memory"), ([PAGES / 2, 20], "too few faults for the memory")] {
        assert_eq!(found(&without_perf(faults, initialise_in_short_loops)), [], "{why}");
    }
    // 20 faults can place 40 MiB.
    for page_bytes in [2 * MIB, 0] {
        let mut run = without_perf([PAGES, 20], initialise_in_short_loops);
        answer_with_pages_of(&mut run, page_bytes);
        assert_eq!(found(&run), [], "pages of {page_bytes} bytes");
    }
    assert_eq!(found(&without_perf([PAGES, 20], |_| ())), [], "nothing shows how the memory was filled");
    for ended in [None, Some(20)] {
        let mut run = without_perf([PAGES, 20], initialise_in_short_loops);
        run.profile.threads.push(Thread { died_ns: Some(S / 10), all_faults: ended, ..thread(9) });
        assert_eq!(found(&run), [], "a thread that ended before its count was read");
    }
}

/// Check that a sweep over memory of a former object shows no first touch, if others have page faults too: they may have touched the former one.
#[test]
fn sweeps_over_recycled_memory() {
    let recycled = without_perf([PAGES, PAGES], |run| {
        initialise_in_thread_0(run);
        for (id, address) in [(1, A), (2, B)] {
            run.profile.objects.push(Object { id: 2 + id, site: Some(20), died_ns: Some(S / 4), ..object(id, "former", address) });
            run.profile.objects.iter_mut().filter(|object| object.id == id).for_each(|object| object.born_ns = S / 4);
        }
    });
    assert_eq!(found(&recycled), []);
}

/// Check that memory which belonged to another object before, and that only thread 0 can have touched, is recycled, and that memory which
/// was filled while thread 0 was in one system call was filled by the kernel.
#[test]
fn former_owners_and_the_kernel() {
    let recycled = without_perf([PAGES, 20], |run| {
        initialise_in_short_loops(run);
        for (id, address) in [(1, A), (2, B)] {
            run.profile.objects.push(Object { id: 2 + id, site: Some(20), died_ns: Some(S / 4), ..object(id, "former", address) });
            run.profile.objects.iter_mut().filter(|object| object.id == id).for_each(|object| object.born_ns = S / 4);
        }
    });
    assert_eq!(found(&recycled), [FindingKind::RecycledMemory; 2], "{:?}", judged(&recycled).not_judged);
    let read = without_perf([PAGES, 20], |run| {
        initialise_in_short_loops(run);
        run.profile.sampled_accesses.retain(|access| access.sample > 32);
        run.profile.samples[..32].iter_mut().for_each(|sample| sample.state = SampleState::InKernel);
    });
    assert_eq!(found(&read), [FindingKind::IoFirstTouch; 2], "{:?}", judged(&read).not_judged);
}

/// Check that accesses to memory of no recorded object are a part of what the report says it covers.
#[test]
fn coverage_counts_other_memory() {
    let mut run = run_of(1, [FAST, SLOW], 2, [1.0; THREADS]);
    let covered = |profile: &Profile| analyse(profile, &target(2), &FakeSources(TouchCause::Loop)).coverage.expect("samples");
    let before = covered(&run.profile);
    assert!(before.judged > 0.999 && before.elsewhere == Some(0.0), "{before:?}");
    run.profile.samples.iter_mut().for_each(|sample| sample.elsewhere = 3.0);
    let after = covered(&run.profile);
    assert!((after.judged - 0.25).abs() < 0.03 && (after.elsewhere.unwrap() - 0.75).abs() < 0.03, "{after:?}");
    assert!(!after.is_too_small() && !before.is_too_small(), "small blocks are not recorded, and stay in a cache");
}

/// Check that sweeps also show first touches whose faults fell into a burst of which few were recorded, and that they do not where the
/// faults would have been recorded: then a former owner had touched the memory.
#[test]
fn first_touches_within_a_burst() {
    for (weight, is_hidden) in [(4000.0, true), (31.0, false)] {
        let mut run = run(7, [FAST, SLOW], 2);
        initialise_in_thread_0(&mut run);
        let elsewhere = FirstTouch { address: 0x30_0000_0000, weight, time_ns: S / 2, ..run.profile.first_touches[0].clone() };
        run.profile.first_touches = vec![elsewhere];
        run.profile.evidence.push(Evidence { source: "touch".into(), available: true, samples: 1, detail: String::new() });
        let analysis = judged(&run);
        let found: Vec<FindingKind> = analysis.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(found, if is_hidden { vec![FindingKind::SerialFirstTouch; 2] } else { vec![] }, "{weight}");
        assert!(is_hidden || analysis.objects.iter().all(|object| !object.judged));
    }
}

/// Check that objects which one thread filled and others use are candidates if their samples are too few, and that objects which their
/// users filled are not.
#[test]
fn candidates_have_too_few_samples() {
    for (is_serial, named) in [(true, "2 objects (A, B; 128 MiB) were first touched by one thread"), (false, "no object")] {
        let mut run = run(3, [FAST, SLOW], 1);
        if !is_serial {
            let block = BYTES / THREADS as u64;
            run.profile.first_touches.iter_mut().for_each(|touch| touch.thread = Id::try_from(touch.address % (1 << 32) / block).unwrap());
        }
        let kept: Vec<Id> = (1..=2).flat_map(|object| few(&run.profile, object)).collect();
        run.profile.samples.retain(|sample| kept.contains(&sample.id));
        run.profile.sampled_accesses.retain(|access| kept.contains(&access.sample));
        let analysis = judged(&run);
        assert!(analysis.findings.is_empty() && analysis.objects.iter().all(|object| !object.judged));
        let notes: Vec<String> = analysis.notes.iter().map(ToString::to_string).filter(|note| note.contains("candidates")).collect();
        assert_eq!(notes.len(), usize::from(is_serial), "{notes:?}");
        assert!(notes.iter().all(|note| note.starts_with(named)), "{notes:?}");
    }
}

/// A sample of each thread on an object.
fn few(profile: &Profile, object: Id) -> Vec<Id> {
    let on_it = |thread: usize| {
        let own = profile.samples.iter().filter(move |sample| sample.thread == thread as Id).map(|sample| sample.id);
        own.filter(|id| profile.sampled_accesses.iter().any(|access| access.sample == *id && access.object == object)).take(1)
    };
    (0..THREADS).flat_map(on_it).collect()
}

/// Check that an object of which a small part was touched is not judged by its size, and that it is where its samples are spread.
#[test]
fn touched_part_fits_in_a_cache() {
    for spread in [65_536, BYTES] {
        let mut run = run(3, [FAST, SLOW], 2);
        let of_a = run.profile.sampled_accesses.iter_mut().filter(|access| access.object == 1);
        of_a.for_each(|access| access.address = A + (access.address - A) % spread);
        run.profile.pages.extend((0..1000).map(|page| Page {
            process: 1,
            object: Some(1),
            address: A + page * 16 * 4096,
            time_ns: S,
            node: if page == 0 { 0 } else { -2 },
            page_bytes: 4096,
        }));
        let analysis = judged(&run);
        let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
        let reason = a.reason.as_ref().map(ToString::to_string).unwrap_or_default();
        assert_eq!(reason.starts_with("at most 382"), spread < BYTES, "{reason}");
        let coverage = analysis.coverage.unwrap();
        assert_eq!(coverage.cached > 0.4, spread < BYTES, "{coverage:?}");
    }
}
