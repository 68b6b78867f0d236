//! Shared use: several lanes at the same addresses.
//!
//! Over windows with at least two hits, within = the chance that two hits of one window (drawn without putting back) are by
//! different lanes; overall = the same for hits of two windows, 1 - sum p^2. When everybody reads everything, within / overall is
//! near 1 or above (a sweep by all threads shows each of them once); when addresses have one owner at a time, near 0.
//! Rule: at least 5 such windows, one in five of all; within / overall >= 0.3 (an oversubscribed host runs few of the threads
//! within one window); and either
//! - a window shows at least half of the lanes that can be seen there, min(effective lanes, CPUs), on average, or
//! - within / overall is above 1 by three standard errors (hits spread more evenly than chance).
//!
//! So a random gather whose windows have few hits each is irregular, and one whose every address is read by most threads
//! is shared: that is what matters for placement. A dynamic schedule whose windows span several sweeps shows few of many lanes
//! a window and is irregular; on hosts with two CPUs that cannot be told from shared use.

use super::{Chance, Unit};

pub(super) fn is_shared(units: &[&Unit], chance: &Chance, cpus: usize) -> bool {
    let overall = 1.0 - chance.agreement;
    let mut within = Vec::new();
    let mut shown = 0.0;
    for unit in units {
        let counts: Vec<f64> = unit.counts.iter().map(|c| c.1 as f64).collect();
        let n: f64 = counts.iter().sum();
        if n < 2.0 {
            continue;
        }
        let same: f64 = counts.iter().map(|c| c * (c - 1.0)).sum::<f64>() / (n * (n - 1.0));
        within.push(1.0 - same);
        shown += counts.iter().filter(|&&c| c >= 0.5).count() as f64;
    }
    let n = within.len() as f64;
    if within.len() < 5 || within.len() * 5 < units.len() || overall < 0.02 {
        return false;
    }
    let mean = within.iter().sum::<f64>() / n;
    let variance = within.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt().max(0.5 / n) / overall;
    let ratio = mean / overall;
    let visible = chance.lanes.min(cpus.max(2) as f64);
    ratio >= 0.3 && (shown / n >= 0.5 * visible.max(2.6) || ratio - 1.0 > 3.0 * error)
}
