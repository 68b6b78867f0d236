//! Tests whose outcome depends on what was sampled.

use std::panic::{RefUnwindSafe, catch_unwind};

/// Runs of a test that may fail before it has failed.
const RUNS: usize = 3;

/// Run a test that rests on samples until it passes, up to three times.
///
/// An emulated CPU takes few samples a second, and gives the guest's threads their turns in long slices: a share of few samples, or
/// what the kernel's balancing does, may be far from what is usual once in some tens of runs. A defect fails all three.
pub fn sampled(test: impl Fn() + RefUnwindSafe) {
    for run in 1..RUNS {
        let Err(failure) = catch_unwind(&test) else { return };
        let text = failure.downcast_ref::<String>().map(String::as_str).or(failure.downcast_ref::<&str>().copied());
        // Where the console shows it also if the next run passes.
        eprintln!("run {run} of {RUNS} failed: {}", text.unwrap_or("of no text").lines().next().unwrap_or_default());
    }
    test();
}
