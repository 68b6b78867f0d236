//! Tests whose outcome depends on samples.

use std::panic::{RefUnwindSafe, catch_unwind};

/// The number of runs of a test. It fails if all of them fail.
const RUNS: usize = 3;

/// Runs a test that depends on samples until it passes, up to three times.
///
/// An emulated CPU takes few samples per second, and schedules the guest's threads in long slices. So in one of some tens of runs, a share
/// from few samples, or the effect of the kernel's balancing, is far from its usual value. A defect fails all three runs.
pub fn sampled(test: impl Fn() + RefUnwindSafe) {
    for run in 1..RUNS {
        let Err(failure) = catch_unwind(&test) else { return };
        let text = failure.downcast_ref::<String>().map(String::as_str).or(failure.downcast_ref::<&str>().copied());
        // Print it, so that the output shows the failure even if the next run passes.
        eprintln!("run {run} of {RUNS} failed: {}", text.unwrap_or("no message").lines().next().unwrap_or_default());
    }
    test();
}
