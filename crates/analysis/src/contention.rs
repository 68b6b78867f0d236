//! Threads that wait for a CPU: where more of them work than there are CPUs, samples at ticks are no fair sample of their time.

use firsttouch_model::rows::Profile;

/// With less waiting than this, the shares of short phases were right to a percent or two (docs/samples.md).
const MUCH_WAITING: f64 = 0.25;
/// Of a shorter time, little is known.
const LEAST_SEEN_NS: f64 = 1e9;

/// The part of the time in which threads could run that they waited for a CPU, if it is much.
pub fn waiting(profile: &Profile) -> Option<f64> {
    let (ran, delayed) = (profile.meta.threads_ran_ns as f64, profile.meta.threads_delayed_ns as f64);
    let part = delayed / (ran + delayed).max(1.0);
    (ran + delayed >= LEAST_SEEN_NS && part > MUCH_WAITING).then_some(part)
}
