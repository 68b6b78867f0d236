//! Whether owners last: told from the earlier half of the units, they must explain the later half.
//!
//! The kernel's scans catch many pages within a moment, of which every 31st (or so) is a record. Where threads use all of an object in
//! turns, each such moment shows one of them, on a lattice of its own: position modulo the lattice then tells the thread, and means
//! nothing. Owners of parts stay what they are.

use super::{Chance, MIN_UNITS, Owners, Unit, neighbours};
use std::collections::BTreeMap;

/// Part of the agreement asked of all units that the later half must show: the earlier one has half as many.
const LASTING: f64 = 0.8;

/// Whether `owners`, of units by position, are the same in both halves of the time; true where there is only one moment.
pub(super) fn lasts(units: &[&Unit], chance: &Chance, owners: &Owners) -> bool {
    let mut rounds: Vec<u64> = units.iter().map(|unit| unit.round).collect();
    rounds.sort_unstable();
    let middle = rounds.get(rounds.len() / 2).copied().unwrap_or(0);
    let (early, late): (Vec<&Unit>, Vec<&Unit>) = units.iter().partition(|unit| unit.round < middle);
    if early.len() < MIN_UNITS || late.len() < MIN_UNITS {
        return true;
    }
    let Some(told) = of_half(&early, owners) else { return true };
    let agreements: Vec<f64> = late.iter().filter_map(|unit| told.owner(unit.position).map(|worker| unit.share(worker))).collect();
    let n = agreements.len();
    n < MIN_UNITS || chance.kappa(agreements.iter().sum::<f64>() / n as f64) >= LASTING * neighbours::threshold(n)
}

/// Owners of the same kind, from some of the units.
fn of_half(units: &[&Unit], owners: &Owners) -> Option<Owners> {
    match owners {
        Owners::Rows(stride, _) => {
            let worker_of = |unit: &&Unit| (unit.position / (*stride).max(1), unit.main_worker());
            Some(Owners::Rows(*stride, units.iter().map(worker_of).collect::<BTreeMap<_, _>>()))
        }
        Owners::Periodic(period, _) => {
            let mut phases: Vec<(f64, usize)> =
                units.iter().map(|unit| ((unit.position as f64 / period).fract(), unit.main_worker())).collect();
            phases.sort_by(|a, b| a.0.total_cmp(&b.0));
            Some(Owners::Periodic(*period, phases))
        }
        Owners::Nearest(_, reach) => Some(Owners::Nearest(units.iter().map(|unit| (unit.position, unit.main_worker())).collect(), *reach)),
        Owners::Nobody | Owners::One(_) | Owners::Blocks(_) => None,
    }
}
