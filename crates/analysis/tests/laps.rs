//! Programs whose threads go through their blocks again and again: a loop over A, then one over B, then the next sweep. Laps of 0.05 to 5 ms are
//! rated wrongly if whole sweeps between two samples go unnoticed. Whatever the samples say about them, the intervals must contain the truth.

use crate::samples::{A, B, BYTES, object, thread};
use crate::simulated::{FakeSources, MS, Random, S, target};
use firsttouch_analysis::{Analysis, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::*;

/// Simulated runs of each program.
const RUNS: usize = 40;
/// What a sample of a burst takes from its loop, ns.
const BURST_COST: f64 = 15_000.0;
const BURST: usize = 4;
const PERIODS_NS: [f64; 4] = [70_000.0, 110_000.0, 200_000.0, 300_000.0];
/// Between two bursts of all threads together, ns.
const BURSTS_NS: f64 = 50.0 * MS as f64;
const TICK_NS: f64 = 4.0 * MS as f64;

/// The program, and how it is sampled.
#[derive(Clone, Copy)]
struct Program {
    threads: usize,
    /// CPU time of a thread.
    seconds: f64,
    /// CPU time of a lap of each loop, ns.
    laps_ns: [f64; 2],
    /// The speed of each pass varies by so much (relative, uniform).
    uneven: f64,
    /// One pass in so many is slowed by a half.
    disturbed: u64,
    /// Each pass has other values in the registers that the loops leave as they are.
    new_entries: bool,
    /// Ticks come at random in the CPU time of a thread, as if threads shared processors.
    random_ticks: bool,
    has_bursts: bool,
}

const PROGRAM: Program = Program {
    threads: 4,
    seconds: 5.0,
    laps_ns: [0.3e6, 0.3e6],
    uneven: 0.04,
    disturbed: 20,
    new_entries: false,
    random_ticks: false,
    has_bursts: true,
};

/// One pass of a loop through a block.
struct Pass {
    start: f64,
    end: f64,
    which: usize,
    number: u64,
}

/// A thread's passes, one after the other, in CPU time.
fn passes(program: &Program, random: &mut Random) -> Vec<Pass> {
    let (mut cpu, mut passes) = (0.0, Vec::new());
    while cpu < program.seconds * S as f64 {
        for which in 0..2 {
            let slower = if random.below(program.disturbed) == 0 { 1.5 } else { 1.0 };
            let ns = program.laps_ns[which] * slower * (1.0 + program.uneven * (2.0 * random.unit() - 1.0));
            passes.push(Pass { start: cpu, end: cpu + ns, which, number: passes.len() as u64 });
            cpu += ns;
        }
    }
    passes
}

fn random_gap(program: &Program, random: &mut Random) -> f64 {
    if program.random_ticks { -TICK_NS * (1.0 - random.unit()).ln() } else { TICK_NS * (1.0 + 0.002 * (random.unit() - 0.5)) }
}

/// (CPU time on the clock, thread, CPU time of the program's work, for rates only)
type Tick = (u64, usize, f64, bool);

/// The ticks of a thread. Samples of bursts take CPU time that the program does no work in.
fn ticks(program: &Program, thread: usize, random: &mut Random) -> Vec<Tick> {
    let end = program.seconds * S as f64;
    let mut ticks = Vec::new();
    let mut next = random.unit() * TICK_NS;
    while next < end {
        ticks.push((next as u64, thread, next, false));
        next += random_gap(program, random);
    }
    // Threads have bursts in turn.
    let each = BURSTS_NS * program.threads as f64 / (program.threads as f64 / 2.0).max(1.0) * (0.9 + 0.2 * random.unit());
    let mut burst = random.unit() * each;
    while program.has_bursts && burst < end {
        let period = PERIODS_NS[random.below(4) as usize];
        for i in 0..BURST {
            let work = burst + i as f64 * (period - BURST_COST);
            ticks.push(((burst + i as f64 * period) as u64, thread, work, true));
        }
        burst += each * (0.8 + 0.4 * random.unit());
    }
    ticks.sort_by_key(|tick| tick.0);
    ticks
}

/// The profile of a run; A is accessed in half of all rounds.
fn profile(program: &Program, seed: u64) -> Profile {
    let mut random = Random(seed.wrapping_mul(7919).wrapping_add(11));
    let mut profile = Profile {
        processes: vec![Process { id: 1, pid: 10, parent: None, exe: None, born_ns: 0, died_ns: None }],
        threads: (0..program.threads as Id).map(thread).collect(),
        objects: vec![object(1, "A", A), object(2, "B", B)],
        sites: [1, 2, 11, 12].map(|id| (id, Site { id, process: 1, frames: Vec::new() })).into(),
        evidence: vec![Evidence { source: "sample".into(), available: true, samples: 1, detail: String::new() }],
        ..Profile::default()
    };
    profile.meta.set("start_ns", "0");
    profile.meta.set("end_ns", &(((program.seconds + 1.0) * S as f64) as u64).to_string());
    profile.meta.set("tick_ns", &(BURST_COST as u64).to_string());
    let block = BYTES / program.threads as u64;
    let words = block / 8;
    let mut id = 0;
    let mut all: Vec<(Tick, Pass, f64)> = Vec::new();
    for thread in 0..program.threads {
        let passes = passes(program, &mut random);
        let mut at = 0;
        let mut ticks = ticks(program, thread, &mut random);
        ticks.sort_by(|a, b| a.2.total_cmp(&b.2));
        for tick in ticks {
            while passes.get(at).is_some_and(|pass| pass.end <= tick.2) {
                at += 1;
            }
            let Some(pass) = passes.get(at) else { break };
            let part = (tick.2 - pass.start) / (pass.end - pass.start);
            all.push((tick, Pass { ..*pass }, part));
        }
    }
    all.sort_by_key(|(tick, ..)| (tick.0, tick.1));
    for ((cpu_ns, thread, _, is_burst), pass, part) in all {
        id += 1;
        let round = (part * words as f64) as u64;
        let base = [A, B][pass.which] + thread as u64 * block;
        profile.samples.push(TimerSample {
            id,
            thread: thread as Id,
            time_ns: S / 2 + cpu_ns,
            cpu: 0,
            cpu_ns,
            weight: if is_burst { 0.0 } else { 1.0 },
            site: Some(11 + pass.which as Id),
            state: SampleState::Computing,
            around: Some(SampledLoop {
                end: 0x100 + 0x100 * pass.which as u64,
                entry: if program.new_entries { pass.number } else { thread as u64 },
                progress: Some(Progress { value: base + 8 * round, step: 8 }),
                left: None,
            }),
            unknown: 0,
            elsewhere: 0.0,
        });
        profile.sampled_accesses.push(SampledAccess {
            sample: id,
            object: pass.which as Id + 1,
            address: base + 8 * round,
            bytes: 8,
            words: 1.0,
            kind: AccessKind::Read,
            site: Some(11 + pass.which as Id),
            stride: Some(8),
        });
    }
    profile
}

/// How often the intervals contained the truth, and how wide they were.
#[derive(Debug, Default)]
struct Coverage {
    share: usize,
    threads: usize,
    all_threads: usize,
    half_width: f64,
    error: f64,
    far: f64,
}

fn coverage(program: &Program, runs: usize) -> Coverage {
    let mut seen = Coverage::default();
    for seed in 0..runs {
        let analysis: Analysis = analyse(&profile(program, seed as u64), &target(2), &FakeSources(TouchCause::Loop));
        let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
        let [low, high] = a.access_share_interval.unwrap();
        let share = a.access_share.unwrap();
        seen.share += usize::from((low..=high).contains(&0.5));
        seen.half_width += (high - low) / 2.0 / runs as f64;
        seen.error += (share - 0.5).abs() / runs as f64;
        seen.far = seen.far.max((share - 0.5).abs());
        let truth = 1.0 / program.threads as f64;
        for [low, high] in a.used_by_thread_interval.iter() {
            seen.threads += usize::from((*low..=*high).contains(&truth));
            seen.all_threads += 1;
        }
    }
    seen
}

/// Laps of both loops, ms: short ones, different ones, in step with the ticks and not, and longer than a tick.
const LAPS_MS: [[f64; 2]; 8] = [[0.05, 0.05], [0.1, 0.1], [0.3, 0.3], [0.35, 0.65], [0.2, 1.0], [1.9, 2.1], [2.0, 2.001], [3.0, 5.0]];

fn covers(of: &Program, laps_ms: &[[f64; 2]]) {
    for laps_ms in laps_ms {
        let program = Program { laps_ns: laps_ms.map(|ms| ms * 1e6), ..*of };
        let seen = coverage(&program, RUNS);
        assert!(seen.share * 100 >= RUNS * 93, "{laps_ms:?}: {seen:?}");
        assert!(seen.threads * 100 >= seen.all_threads * 93, "{laps_ms:?}: {seen:?}");
    }
}

/// Check that the intervals contain the truth if ticks come every 4 ms.
#[test]
fn ticks_of_a_grid() {
    covers(&PROGRAM, &LAPS_MS);
}

/// The same if ticks come at random, because threads share processors.
#[test]
fn random_ticks() {
    covers(&Program { random_ticks: true, ..PROGRAM }, &LAPS_MS);
}

/// The same without bursts, as where perf is forbidden: the shorter laps with ticks of a grid, the longer ones with ticks at random.
#[test]
fn no_bursts() {
    covers(&Program { has_bursts: false, ..PROGRAM }, &LAPS_MS[..4]);
    covers(&Program { has_bursts: false, random_ticks: true, ..PROGRAM }, &LAPS_MS[4..]);
}

/// The same if each pass through the array is another entry of the loop.
#[test]
fn new_entries() {
    covers(&Program { new_entries: true, random_ticks: true, ..PROGRAM }, &[[0.3, 0.3], [0.2, 1.0]]);
    covers(&Program { new_entries: true, ..PROGRAM }, &[[0.3, 0.3], [0.2, 1.0]]);
}

/// Check that bursts show the speeds of laps of 0.3 ms, and of laps that differ: the intervals are narrow, and the figures right.
#[test]
fn short_laps_are_rated() {
    for laps_ms in [[0.3, 0.3], [0.35, 0.65], [0.2, 1.0]] {
        let seen = coverage(&Program { laps_ns: laps_ms.map(|ms| ms * 1e6), ..PROGRAM }, RUNS);
        assert!(seen.half_width < 0.09 && seen.error < 0.015 && seen.far < 0.06, "{laps_ms:?}: {seen:?}");
    }
}
