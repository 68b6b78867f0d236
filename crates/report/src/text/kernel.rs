//! What the kernel counted while the program ran, as a sentence.

use super::words::{percent, thousands};
use firsttouch_analysis::Analysis;
use firsttouch_model::format_bytes;

const PAGE: u64 = 4096;

/// None if the profile is judged on another machine, or if nothing relevant was counted.
pub fn sentences(analysis: &Analysis) -> Option<String> {
    let kernel = analysis.kernel.as_ref().filter(|_| !analysis.machine.virtual_machine && analysis.machine.nodes > 1)?;
    let grown = |name: &str| kernel.counters.iter().filter(|c| c.name == name).map(|c| c.growth).fold(0, u64::saturating_add);
    let mut parts = Vec::new();
    let (faults, local) = (grown("numa_hint_faults"), grown("numa_hint_faults_local"));
    if faults > 0 {
        parts.push(format!("{} hinting faults ({} local)", thousands(faults), percent(local as f64 / faults as f64)));
    }
    let migrated = grown("numa_pages_migrated");
    if migrated > 0 {
        parts.push(format!("{} pages ({}) moved by the balancing", thousands(migrated), format_bytes(migrated.saturating_mul(PAGE))));
    }
    let others = grown("pgmigrate_success").saturating_sub(migrated);
    if others > 0 {
        parts.push(format!("{} pages moved for other reasons", thousands(others)));
    }
    let missed = grown("numa_foreign");
    if missed > 0 {
        parts.push(format!("{} pages allocated off the node that was wanted, for want of room", thousands(missed)));
    }
    if parts.is_empty() {
        return None;
    }
    Some(format!("The kernel meanwhile, for all processes: {}.", parts.join(", ")))
}
