//! Samples of registers, simulated: threads alternate between two loops of known speed, and a tick samples each of them.

use crate::simulated::{FakeSources, MIB, MS, Random, S, target};
use firsttouch_analysis::{Analysis, Note, PartitionKind, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::finding::{FindingKind, FixKind};
use firsttouch_model::rows::*;

pub const THREADS: usize = 4;
pub const TICK: u64 = 4 * MS;
pub const BYTES: u64 = 64 * MIB;
pub const A: u64 = 0x10_0000_0000;
pub const B: u64 = 0x20_0000_0000;

/// A loop over a thread's block of one object, one word a round.
#[derive(Clone, Copy)]
pub struct Kernel {
    pub object: Id,
    pub base: u64,
    pub ns_a_round: f64,
    pub usual_ns: f64,
    /// The loop's register shows its progress.
    pub has_progress: bool,
}

/// A run, and the rounds of both loops, by thread.
pub struct Run {
    pub profile: Profile,
    pub by_thread: [[f64; 2]; THREADS],
}

impl Run {
    /// A's share of all rounds.
    pub fn share_of_a(&self) -> f64 {
        let sum = |which: usize| self.by_thread.iter().map(|rounds| rounds[which]).sum::<f64>();
        sum(0) / (sum(0) + sum(1))
    }
}

pub fn object(id: Id, name: &str, address: u64) -> Object {
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

/// A timer sample of a thread that computes, outside of loops.
pub fn computing(id: Id, thread: Id, time_ns: u64, cpu_ns: u64, site: Id) -> TimerSample {
    TimerSample {
        id,
        thread,
        time_ns,
        cpu: 0,
        cpu_ns,
        weight: 1.0,
        site: Some(site),
        state: SampleState::Computing,
        around: None,
        unknown: 0,
        elsewhere: 0.0,
    }
}

/// The read of a word in a sample.
pub fn read_of(sample: Id, object: Id, address: u64, site: Id) -> SampledAccess {
    SampledAccess { sample, object, address, bytes: 8, words: 1.0, kind: AccessKind::Read, site: Some(site), stride: Some(8) }
}

pub fn thread(id: Id) -> Thread {
    Thread {
        id,
        process: 1,
        tid: 10 + i32::try_from(id).unwrap(),
        parent: (id > 0).then_some(0),
        born_ns: 0,
        cpu_ns: Some(10 * S),
        ..Thread::default()
    }
}

fn site(id: Id, line: u32) -> (Id, Site) {
    let frame = Frame { address: 0x1000 * u64::from(line), file: Some("a.c".into()), line: Some(line), ..Frame::default() };
    (id, Site { id, process: 1, frames: vec![frame] })
}

/// Samples of a burst, the times between two of them, of which each burst has one, and the time between two bursts of a thread.
const BURST: u64 = 4;
const BURST_TICKS: [u64; 4] = [MS * 7 / 100, MS * 11 / 100, MS / 5, MS * 3 / 10];
pub const BURSTS: u64 = 200 * MS;
/// What a sample of a burst takes from its loop.
const BURST_COST: u64 = MS / 50;

/// One in so many ticks comes early, by up to a third: after a sleep of the recorder (docs/samples.md, shifted ticks), or because the scheduler took
/// the CPU from the thread.
const EARLY: u64 = 25;

/// `slower`: how much slower each thread is than the loops say.
fn run_of(seed: u64, loops: [Kernel; 2], seconds: u64, slower: [f64; THREADS]) -> Run {
    run_with(seed, loops, seconds, slower, false)
}

pub fn run_with(seed: u64, loops: [Kernel; 2], seconds: u64, slower: [f64; THREADS], has_bursts: bool) -> Run {
    run_at(seed, loops, seconds, slower, has_bursts.then_some(BURSTS), TICK)
}

/// `bursts`: the time between two bursts of a thread, if there are any. `tick`: the time between two other samples.
pub fn run_at(seed: u64, loops: [Kernel; 2], seconds: u64, slower: [f64; THREADS], bursts: Option<u64>, tick: u64) -> Run {
    // Bursts change nothing else.
    let (mut random, mut of_bursts) = (Random(seed), Random(seed + 1));
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
                next += tick as f64 * if random.below(EARLY) == 0 { 1.0 - 0.35 * random.unit() } else { 1.0 };
            }
            while next_burst < cpu + length {
                let tick = BURST_TICKS[of_bursts.below(BURST_TICKS.len() as u64) as usize];
                // Each sample but the first follows an interruption.
                let at = |i: u64| ((next_burst - cpu) + (i * (tick - BURST_COST)) as f64) / ns_a_round;
                samples.extend((0..BURST).map(|i| (next_burst as u64 + i * tick, thread, which, at(i) as u64, true)));
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
                left: None,
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

pub fn run(seed: u64, loops: [Kernel; 2], seconds: u64) -> Run {
    run_of(seed, loops, seconds, [1.0; THREADS])
}

pub const FAST: Kernel = Kernel { object: 1, base: A, ns_a_round: 2.0, usual_ns: 30e6, has_progress: true };
pub const SLOW: Kernel = Kernel { object: 2, base: B, ns_a_round: 8.0, usual_ns: 60e6, has_progress: true };

pub fn judged(run: &Run) -> Analysis {
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

/// Check that loops that follow pointers are taken neither for faster than a load from the first cache, nor for about as fast as the others: the
/// intervals contain the truth for rounds of a cached list and for those of one in memory.
#[test]
fn loops_that_follow_pointers() {
    for ns_a_round in [1.5, 12.0, 60.0, 130.0] {
        let chain = Kernel { ns_a_round, usual_ns: 30e6, has_progress: false, ..SLOW };
        let mut run = run(1, [FAST, chain], 5);
        run.profile.sampled_accesses.iter_mut().filter(|access| access.object == 2).for_each(|access| access.stride = None);
        let analysis = judged(&run);
        let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
        let ([low, high], truth) = (a.access_share_interval.unwrap(), run.share_of_a());
        assert!(low < truth && truth < high, "{ns_a_round} ns: {low} {truth} {high}");
        // FAST takes 2 ns a round, and both have half of the time.
        assert!(low > 0.3, "a round of 1 ns makes a third: {low}");
    }
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

/// Check that the report of a program that ran under a plan says where the plan did nothing.
#[test]
fn plans_do_nothing_on_one_node() {
    let mut run = run(1, [FAST, SLOW], 1);
    let mut notes_of = |command: &[&str], nodes: u32| {
        run.profile.meta.command = command.iter().map(|word| (*word).to_owned()).collect();
        run.profile.machine.node_cpus = (0..nodes).map(|node| (node, vec![node])).collect();
        judged(&run).notes
    };
    let under_plan = ["/usr/bin/firsttouch", "run", "--plan=p.toml", "--", "./x"];
    assert!(notes_of(&under_plan, 1).contains(&Note::PlanWithoutNodes));
    assert!(!notes_of(&under_plan, 2).contains(&Note::PlanWithoutNodes));
    assert!(!notes_of(&["./x"], 1).contains(&Note::PlanWithoutNodes));
}

/// Check that threads of another process, on other nodes, change no figure: workers have the same numbers in both processes.
#[test]
fn unrelated_processes() {
    let mut alone = run(3, [FAST, SLOW], 2);
    for touch in &mut alone.profile.first_touches {
        touch.thread = Id::try_from(touch.address / 65536).unwrap() % THREADS as Id;
    }
    let mut beside = alone.profile.clone();
    beside.processes.push(Process { id: 2, pid: 20, ..beside.processes[0].clone() });
    beside.threads.extend((10..10 + THREADS as Id).map(|id| Thread { process: 2, parent: None, cpu_ns: Some(0), ..thread(id) }));
    let figures = |profile: &Profile| {
        let analysis = analyse(profile, &target(2), &FakeSources(TouchCause::Loop));
        assert_eq!(analysis.objects.len(), 2);
        analysis.objects.into_iter().map(|object| (object.name, object.remote_interval.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(figures(&beside), figures(&alone.profile));
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

/// Check that samples without large objects are computing, except where an MPI library polls for messages: that is waiting.
#[test]
fn polling_for_messages_is_waiting() {
    let share_in = |module: &str| {
        let mut run = run(3, [FAST, SLOW], 2);
        run.profile.sampled_accesses.retain(|access| access.object == 1);
        run.profile.objects.retain(|object| object.id == 1);
        run.profile.sites.get_mut(&12).unwrap().frames[0].module = Some(module.into());
        let traffic = judged(&run).traffic;
        traffic.computing.map_or(0.0, |computing| computing.share)
    };
    // The second loop takes two thirds of the time.
    let (in_program, in_library) = (share_in("/home/u/solver"), share_in("/usr/lib/x86_64-linux-gnu/libopen-pal.so.40.30.3"));
    assert!((in_program - 2.0 / 3.0).abs() < 0.05 && in_library == 0.0, "{in_program} {in_library}");
}

/// Both loops use A. `place`: where the second one is, by the number of its sample, its thread, and the position in its thread's block.
fn both_on_a(place: impl Fn(u64, u64, u64) -> u64) -> Profile {
    let mut profile = run(3, [FAST, SLOW], 4).profile;
    let block = BYTES / THREADS as u64;
    profile.objects.retain(|object| object.id == 1);
    profile.first_touches.retain(|touch| touch.address < B);
    for access in profile.sampled_accesses.iter_mut().filter(|access| access.object == 2) {
        let (thread, within) = ((access.address - B) / block, (access.address - B) % block);
        (access.object, access.address) = (1, A + place(access.sample.unsigned_abs(), thread, within) / 8 * 8);
    }
    profile
}

/// Check that an array which two loops go through from both ends has no parts, that one which a loop uses in blocks and another one all over is to be
/// touched as the first loop divides it, and that two loops with the same blocks change nothing.
#[test]
fn loops_divide_an_array_differently() {
    let block = BYTES / THREADS as u64;
    let of = |profile: &Profile| analyse(profile, &target(2), &FakeSources(TouchCause::Loop));
    let reversed = of(&both_on_a(|_, thread, within| BYTES - 8 - thread * block - within));
    assert_eq!(reversed.objects[0].partition, PartitionKind::Irregular);
    assert_eq!(reversed.findings[0].kind, FindingKind::NoStablePartition);
    // The first loop makes two thirds of the accesses.
    assert!(reversed.findings[0].fix.contains("3 % of all accesses to A stay remote (5"), "{}", reversed.findings[0].fix);

    let scattered = of(&both_on_a(|sample, _, _| sample.wrapping_mul(0x9E37_79B9_7F4A_7C15) % BYTES));
    let finding = &scattered.findings[0];
    assert_eq!((finding.kind, finding.fix_kind), (FindingKind::NoStablePartition, FixKind::DivideFirstTouch));
    assert!(finding.fix.starts_with("two loops divide A differently. If its first touch follows the one at a.c:11,"), "{}", finding.fix);
    assert!(
        finding.message.contains("the loop at a.c:11 gives each thread one block of it, the one at a.c:12 does not"),
        "{}",
        finding.message
    );

    let alike = of(&both_on_a(|_, thread, within| thread * block + within));
    assert_eq!((alike.objects[0].partition, alike.findings[0].kind), (PartitionKind::Block, FindingKind::SerialFirstTouch));
}

/// Check that loops of a few ms, where threads wait for CPUs, are not compared with each other as if their samples were fair.
#[test]
fn short_loops_of_waiting_threads() {
    let mut run = run(3, [FAST, SLOW], 4);
    for sample in &mut run.profile.samples {
        sample.around.as_mut().unwrap().left = Some(500_000);
    }
    let width = |profile: &Profile| {
        let [low, high] = judged_of(profile).objects.iter().find(|object| object.name == "A").unwrap().access_share_interval.unwrap();
        high - low
    };
    let alone = width(&run.profile);
    (run.profile.meta.threads_ran_ns, run.profile.meta.threads_delayed_ns) = (8 * S, 8 * S);
    let crowded = width(&run.profile);
    assert!(crowded > alone + 0.1, "{alone} {crowded}");
    // So are the lines that use one array, if they are in different loops.
    let of_line = |delayed: u64| {
        let mut profile = both_on_a(|_, thread, within| thread * (BYTES / THREADS as u64) + within);
        profile.samples.iter_mut().for_each(|sample| sample.around.as_mut().unwrap().left = Some(500_000));
        (profile.meta.threads_ran_ns, profile.meta.threads_delayed_ns) = (8 * S, delayed);
        let [low, high] = judged_of(&profile).objects[0].used_at[0].share_interval.unwrap();
        high - low
    };
    let (alone_line, crowded_line) = (of_line(0), of_line(8 * S));
    assert!(crowded_line > alone_line + 0.1, "{alone_line} {crowded_line}");
    // Entries of more than a few ticks are seen as they are.
    run.profile.samples.iter_mut().for_each(|sample| sample.around.as_mut().unwrap().left = Some(50_000_000));
    assert!((width(&run.profile) - alone).abs() < 0.02);
}

pub fn judged_of(profile: &Profile) -> Analysis {
    analyse(profile, &target(2), &FakeSources(TouchCause::Loop))
}
