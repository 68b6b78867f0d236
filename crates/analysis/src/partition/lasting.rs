//! Whether owners are permanent: the owners found from the earlier half of the units must explain the later half.
//!
//! A scan of the kernel catches many pages within a moment, of which about every 31st is recorded. If threads use the whole object in
//! turns, each such moment shows one of them, at its own regular distance of positions. Then position modulo that distance predicts the
//! thread by accident. True owners of parts stay the same.
//!
//! So it is with threads that hardly ever run at the same time (`dealing.rs`): all windows of a round show the thread that runs, whatever
//! their positions. If it runs for many rounds, both halves may even agree. So the round must not predict the worker either.

use super::{Chance, MIN_UNITS, Owners, Unit, neighbours};
use std::collections::BTreeMap;

/// The later half must reach this fraction of the agreement threshold for all units, because the earlier half has half as many units.
const LASTING: f64 = 0.8;

/// Whether `owners` are the same in both halves of the time. `units` are sorted by position. If units of one half are too few to tell:
/// `!in_doubt`.
pub(super) fn lasts(units: &[&Unit], chance: &Chance, owners: &Owners, in_doubt: bool) -> bool {
    let mut rounds: Vec<u64> = units.iter().map(|unit| unit.round).collect();
    rounds.sort_unstable();
    let middle = rounds.get(rounds.len() / 2).copied().unwrap_or(0);
    let (early, late): (Vec<&Unit>, Vec<&Unit>) = units.iter().partition(|unit| unit.round < middle);
    if early.len() < MIN_UNITS || late.len() < MIN_UNITS {
        return !in_doubt;
    }
    let Some(expected) = of_half(&early, owners) else { return !in_doubt };
    let expected = match expected {
        Owners::Nearest(list, _) => {
            let reach = usual_distance(&list, &late);
            Owners::Nearest(list, reach)
        }
        other => other,
    };
    let agreements: Vec<f64> = late.iter().filter_map(|unit| expected.owner(unit.position).map(|worker| unit.share(worker))).collect();
    let n = agreements.len();
    (n < MIN_UNITS && !in_doubt) || chance.kappa(agreements.iter().sum::<f64>() / n as f64) >= LASTING * neighbours::threshold(n)
}

/// Units of the same round agree by this kappa if the round predicts the worker.
const BY_ROUND: f64 = 0.5;

/// Whether the round predicts the worker: windows that are held at the same time, at different positions, show the same one.
pub(super) fn is_by_round(units: &[&Unit], chance: &Chance) -> bool {
    let mut rounds: BTreeMap<u64, Vec<&Unit>> = BTreeMap::new();
    for unit in units {
        rounds.entry(unit.round).or_default().push(unit);
    }
    let (mut agreement, mut pairs) = (0.0, 0usize);
    for round in rounds.values() {
        for (i, unit) in round.iter().enumerate() {
            agreement += round[..i].iter().map(|other| unit.agreement(other)).sum::<f64>();
            pairs += i;
        }
    }
    pairs > 0 && chance.kappa(agreement / pairs as f64) >= BY_ROUND
}

/// The median distance between the later units and the nearest of the earlier ones. It is larger than the distance between units of the
/// same half where one worker is seen several times in a row, at positions close to each other.
fn usual_distance(early: &[(u64, usize)], late: &[&Unit]) -> u64 {
    let distance = |unit: &&Unit| {
        let place = early.partition_point(|entry| entry.0 <= unit.position);
        let near = [place.checked_sub(1).and_then(|i| early.get(i)), early.get(place)];
        near.into_iter().flatten().map(|entry| entry.0.abs_diff(unit.position)).min()
    };
    let mut distances: Vec<u64> = late.iter().filter_map(distance).collect();
    distances.sort_unstable();
    distances.get(distances.len() / 2).copied().unwrap_or(0)
}

/// Finds owners of the same kind from some of the units.
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
