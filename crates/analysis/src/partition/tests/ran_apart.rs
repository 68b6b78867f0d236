//! Threads that hardly ever run at the same time, as on a machine that is busy with something else.

use super::*;

/// Units of rounds of four with this part of a CPU for each of four workers.
fn with_cpus(part: f64, sample: Sample) -> Sample {
    let running = |_: &Unit| (0..4).map(|worker| (worker, part)).collect();
    let units = sample.units.into_iter().map(|unit| Unit { running: running(&unit), ..unit }).collect();
    Sample { units, cpus: 2, ..sample }
}

/// Whole sweeps of a dynamic schedule by one thread each.
fn alone(seed: u64, sweeps: usize) -> Sample {
    in_rounds(seed, 160, 4, |_, _, round| (0..sweeps).map(|_| round.below(4)).collect())
}

/// All workers pass everything; they have run for different times.
fn in_full(seed: u64, passes: usize) -> Sample {
    in_rounds(seed, 160, 4, |x, r, round| {
        let ran: Vec<usize> = (0..4).map(|_| round.below(2 * passes)).collect();
        let seen: Vec<usize> = (0..4).flat_map(|worker| vec![worker; ran[worker] + r.below(2)]).collect();
        if seen.is_empty() { vec![x as usize % 4] } else { seen }
    })
}

fn ran_apart(make: impl Fn(u64) -> Sample) -> usize {
    (0..20).filter(|&seed| classify(&make(seed * 7 + 1)).ran_apart).count()
}

/// Check that sweeps which one thread does alone, because the others have no CPU, do not count as full use by all threads, and that this is
/// the reason. With the same counts and two threads on CPUs at any time, use is in full.
#[test]
fn whole_sweeps_by_one_thread_are_not_shared() {
    for sweeps in [6, 12, 30] {
        let starved = |seed| with_cpus(0.17, alone(seed, sweeps));
        assert_eq!(rate(PartitionKind::Shared, starved), 0, "{sweeps} sweeps");
        let found = ran_apart(starved);
        assert!(found >= 19, "{sweeps} sweeps: {found} of 20");
        let found = rate(PartitionKind::Shared, |seed| with_cpus(0.5, alone(seed, sweeps)));
        assert!(found >= 19, "{sweeps} sweeps, two threads at a time: {found} of 20");
    }
}

/// Check that threads which take turns, a sweep each, do not count as full use because their counts are even.
#[test]
fn turns_of_a_sweep_are_not_shared() {
    let turns = |seed| in_rounds(seed, 160, 4, |_, _, round| (0..16 + round.below(9)).map(|sweep| sweep % 4).collect());
    let starved = |seed| with_cpus(0.17, turns(seed));
    assert_eq!((rate(PartitionKind::Shared, starved), ran_apart(starved)), (0, 20));
    assert_eq!(rate(PartitionKind::Shared, |seed| with_cpus(0.5, turns(seed))), 20);
}

/// Check that memory which all threads read in full is shared if they ran at once, and is not judged, for that reason, if they did not.
#[test]
fn full_use_shows_if_threads_run_at_once() {
    let quiet = rate(PartitionKind::Shared, |seed| with_cpus(0.5, in_full(seed, 6)));
    assert!(quiet >= 19, "{quiet} of 20");
    let busy = |seed| with_cpus(0.17, in_full(seed, 6));
    assert_eq!((rate(PartitionKind::Shared, busy), ran_apart(busy)), (0, 20));
}

/// Check that parts dealt out to the two threads that run are neither shared nor unclear, however many sweeps a window spans; nor are long
/// sweeps, of which a window sees a pass or two.
#[test]
fn threads_that_run_at_once_are_no_reason() {
    // Two of the four threads run at a time, others in each third of a window.
    let pairs = |_: u64, r: &mut Random, round: &mut Random| {
        let pair: Vec<usize> = (0..3).map(|_| round.below(6)).collect();
        let of = |pair: usize, one: usize| [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]][pair][one];
        (0..12).map(|sweep| of(pair[sweep / 4], r.below(2))).collect()
    };
    let dealt = |seed| with_cpus(0.5, in_rounds(seed, 160, 4, pairs));
    assert_eq!((rate(PartitionKind::Shared, dealt), ran_apart(dealt)), (0, 0));
    let long_sweeps = |seed| with_cpus(0.5, in_full(seed, 1));
    assert_eq!(ran_apart(long_sweeps), 0);
}

/// Windows as they were recorded on 2 CPUs. A line is a window: its round, its position in KiB, whether the hit limit cut it off, and for
/// each thread that passed it the thread, its hits, and the thousandths of the window in which it had a CPU.
fn recorded(windows: &str) -> Sample {
    let mut weights: BTreeMap<usize, f64> = BTreeMap::new();
    let unit = |line: &str| {
        let mut words = line.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
        let (round, position, cut) = (number(), number() << 10, number() == 1);
        let threads: Vec<[u64; 3]> = words
            .map(|word| {
                let numbers: Vec<u64> = word.split(':').map(|number| number.parse().expect("a number")).collect();
                numbers.try_into().expect("thread:hits:part")
            })
            .collect();
        let hits: u64 = threads.iter().map(|thread| thread[1]).sum();
        for &[thread, own, _] in &threads {
            *weights.entry(thread as usize).or_default() += own as f64;
        }
        Unit {
            position,
            shares: threads.iter().map(|&[thread, own, _]| (thread as usize, own as f64 / hits as f64)).collect(),
            counts: threads.iter().map(|&[thread, own, _]| (thread as usize, own)).collect(),
            rate: 0.0,
            cut,
            round,
            running: threads.iter().map(|&[thread, _, part]| (thread as usize, part as f64 / 1000.0)).collect(),
        }
    };
    let units = windows.lines().map(unit).collect();
    Sample { units, weights, stride: 32 << 20, rows: 1, cpus: 2, sight: Sight::All }
}

/// Check that a dynamic schedule and tasks, recorded while a compiler or eight busy processes ran beside them, are neither shared nor have
/// owners. Each of them counted as one or the other before CPU times were known.
#[test]
fn recorded_on_a_busy_machine() {
    for (name, windows) in [
        ("a dynamic schedule beside a compiler", include_str!("recorded/dynamic_beside_compiler.txt")),
        ("tasks beside a compiler", include_str!("recorded/tasks_beside_compiler.txt")),
        ("a dynamic schedule beside eight processes", include_str!("recorded/dynamic_beside_eight.txt")),
        ("tasks beside eight processes", include_str!("recorded/tasks_beside_eight.txt")),
        ("long turns of two threads", include_str!("recorded/dynamic_long_turns.txt")),
    ] {
        let sample = recorded(windows);
        let found = classify(&sample);
        assert_eq!((found.kind, found.ran_apart), (PartitionKind::Unknown, true), "{name}");
        let without = sample.units.into_iter().map(|unit| Unit { running: Vec::new(), ..unit }).collect();
        let found = classify(&Sample { units: without, ..sample });
        assert!(
            matches!(found.kind, PartitionKind::Shared | PartitionKind::BlockCyclic),
            "{name}: CPU times made no difference: {found:?}"
        );
    }
}
