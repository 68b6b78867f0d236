//! Threads that wait for a CPU: where more of them work than there are CPUs, samples at ticks are no fair sample of their time.

use firsttouch_model::rows::Profile;

/// With less waiting than this, the shares of short phases were right to a percent or two (docs/samples.md).
const MUCH_WAITING: f64 = 0.25;
/// With fewer of the samples from ticks, their error is small.
const FEW_TICKS: f64 = 0.25;
/// Of a shorter time, little is known.
const LEAST_SEEN_NS: f64 = 1e9;

/// The part of the samples that the scheduler's ticks took. The kernel's own clocks of threads are fair.
pub fn by_ticks(profile: &Profile) -> f64 {
    let samples = profile.samples.iter().filter(|sample| sample.weight > 0.0).count();
    (1.0 - profile.meta.samples_outside as f64 / samples.max(1) as f64).max(0.0)
}

/// Whether the samples are no fair sample of the threads' time: the part of the time in which they could run that they waited for a CPU.
pub fn unfair(profile: &Profile) -> Option<f64> {
    waiting(profile).filter(|_| !profile.samples.is_empty() && by_ticks(profile) >= FEW_TICKS)
}

/// The part of the time in which threads could run that they waited for a CPU, if it is much.
pub fn waiting(profile: &Profile) -> Option<f64> {
    let (ran, delayed) = (profile.meta.threads_ran_ns as f64, profile.meta.threads_delayed_ns as f64);
    let part = delayed / (ran + delayed).max(1.0);
    (ran + delayed >= LEAST_SEEN_NS && part > MUCH_WAITING).then_some(part)
}
