//! Rates of loops that begin anew between two ticks: bursts of samples show them.

use crate::samples::{FAST, Kernel, SLOW, THREADS, TICK, judged, run_at, run_with};
use crate::simulated::MS;

/// Check that bursts rate loops that begin anew several times between two ticks: threads of different speed get their shares, within an
/// interval that is wider without bursts. The samples of bursts count for nothing else.
#[test]
fn bursts_rate_short_laps() {
    let short = Kernel { ns_a_round: 0.5, has_progress: false, ..FAST };
    let shorter = Kernel { ns_a_round: 0.4, has_progress: false, ..SLOW };
    let (mut inside, mut checked, mut width, mut width_without) = (0, 0, 0.0, 0.0);
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
            (width, width_without) = (width + high - low, width_without + wide_high - wide_low);
        }
        assert_eq!(with.used_by_thread_samples, without.used_by_thread_samples);
    }
    assert!(inside * 100 >= checked * 90, "{inside} of {checked}");
    // Early ticks show the speeds of the loops too, less precisely.
    assert!(width < 0.75 * width_without, "{width} {width_without}");
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
