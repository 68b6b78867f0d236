//! Samples at ticks only, whose distances differ, as on a loaded machine: the scheduler takes the CPU from a thread at any time.

use crate::samples::{FAST, Kernel, Run, SLOW, THREADS, judged, run_at};
use crate::simulated::{MS, Random};
use firsttouch_model::rows::Id;
use std::collections::{HashMap, HashSet};

/// Keeps samples of each thread that are 1 to 7 ms apart, at random.
fn keep_uneven(run: &mut Run, seed: u64) {
    let mut random = Random(seed);
    let mut next: HashMap<Id, u64> = HashMap::new();
    let mut left_out: HashSet<Id> = HashSet::new();
    for sample in &run.profile.samples {
        let due = next.entry(sample.thread).or_insert(0);
        if sample.cpu_ns < *due {
            left_out.insert(sample.id);
        } else {
            *due = sample.cpu_ns + MS + (random.unit() * 6.0 * MS as f64) as u64;
        }
    }
    run.profile.samples.retain(|sample| !left_out.contains(&sample.id));
    run.profile.sampled_accesses.retain(|access| !left_out.contains(&access.sample));
}

/// Check that a loop which begins anew after some milliseconds, with a wait in between, is not rated by the few ticks that are close together: its threads
/// are equally fast, and each must have a quarter of the accesses.
#[test]
fn waits_between_laps() {
    let laps = Kernel { ns_a_round: 1.0, usual_ns: 2e6, has_progress: false, ..FAST };
    let waits = Kernel { ns_a_round: 4.0, usual_ns: 1e6, has_progress: false, ..SLOW };
    for seed in 0..20 {
        let mut run = run_at(seed, [laps, waits], 1, [1.0; THREADS], None, MS / 4);
        keep_uneven(&mut run, seed);
        let analysis = judged(&run);
        let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
        let all: f64 = run.by_thread.iter().map(|rounds| rounds[0]).sum();
        for (thread, rounds) in run.by_thread.iter().enumerate() {
            let (truth, share, [low, high]) = (rounds[0] / all, a.used_by_thread[thread], a.used_by_thread_interval[thread]);
            assert!(low - 0.05 < truth && truth < high + 0.05, "{seed} {thread}: {share} [{low}, {high}], not {truth}");
        }
    }
}
