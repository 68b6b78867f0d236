//! Chunks: units near each other belong to the same worker, and workers have several runs.
//!
//! Each unit is predicted by its nearest neighbour (in position, or within its row). Rule:
//! kappa of the mean agreement >= 0.45 + 0.75 / sqrt(units).
//!
//! Of chunks, the units that are closest must agree more often: they lie in one chunk. Where they do not, several workers use each part, as
//! in work by rows and by columns in turn: half of the accesses to each half row are one worker's, and the other half another's in some half rows only.

use super::{Chance, Unit};
use std::collections::BTreeMap;

/// One in so many pairs is among the closest, and so many are needed.
const CLOSEST: usize = 4;
const LEAST_CLOSEST: usize = 40;
/// The kappa that the closest must reach if there are many.
const AGREE: f64 = 0.7;

/// The kappa that `n` units must reach.
pub(super) fn threshold(n: usize) -> f64 {
    0.45 + 0.75 / (n.max(1) as f64).sqrt()
}

/// The owner of each row, if each row (object of a group) has one owner. Units are predicted by the nearest unit in their row.
pub(super) fn rows(units: &[&Unit], chance: &Chance, stride: u64, rows: usize) -> Option<BTreeMap<u64, usize>> {
    if rows < 2 || stride == 0 {
        return None;
    }
    let row = |u: &Unit| u.position / stride;
    let (mut agreement, mut pairs) = (0.0, 0usize);
    for (i, unit) in units.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|j| units.get(j)).filter(|u| row(u) == row(unit));
        let after = units.get(i + 1).filter(|u| row(u) == row(unit));
        if let Some(near) = before.into_iter().chain(after).min_by_key(|u| u.position.abs_diff(unit.position)) {
            agreement += unit.agreement(near);
            pairs += 1;
        }
    }
    if pairs < 12 || chance.kappa(agreement / pairs as f64) < threshold(pairs) {
        return None;
    }
    let mut votes: BTreeMap<u64, BTreeMap<usize, f64>> = BTreeMap::new();
    let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
    for unit in units {
        *counts.entry(row(unit)).or_default() += 1.0;
        for &(worker, share) in &unit.shares {
            *votes.entry(row(unit)).or_default().entry(worker).or_default() += share;
        }
    }
    // Neighbours in a row also agree if each row is divided into blocks, as arrays of one site are. So all other units of the row must
    // agree, at any distance.
    let (mut agreement, mut judged) = (0.0, 0usize);
    for unit in units {
        let others = counts[&row(unit)] - 1.0;
        if others >= 1.0 {
            let of = |worker: usize, share: f64| (votes[&row(unit)].get(&worker).copied().unwrap_or(0.0) - share) / others;
            agreement += unit.shares.iter().map(|&(worker, share)| share * of(worker, share)).sum::<f64>();
            judged += 1;
        }
    }
    if chance.kappa(agreement / judged.max(1) as f64) < threshold(judged) {
        return None;
    }
    let winner = |votes: BTreeMap<usize, f64>| votes.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|v| v.0);
    Some(votes.into_iter().filter_map(|(row, votes)| winner(votes).map(|worker| (row, worker))).collect())
}

/// Positions and workers, if neighbours agree, and the distance up to which they apply: the median gap between neighbours.
pub(super) fn chunks(units: &[&Unit], chance: &Chance) -> Option<(Vec<(u64, usize)>, u64)> {
    let positions: Vec<f64> = units.iter().map(|u| u.position as f64).collect();
    let pairs = pairs(units, &positions);
    if chance.kappa(mean(&pairs)) < threshold(units.len()) || !closest_agree(pairs, chance) {
        return None;
    }
    let mut gaps: Vec<u64> = units.windows(2).map(|pair| pair[1].position - pair[0].position).collect();
    gaps.sort_unstable();
    let reach = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
    Some((units.iter().map(|u| (u.position, u.main_worker())).collect(), reach))
}

/// The worker of the nearest position in `list` (sorted), within `reach` bytes.
pub(super) fn owner(list: &[(u64, usize)], reach: u64, position: u64) -> Option<usize> {
    let place = list.partition_point(|p| p.0 <= position);
    let near = [place.checked_sub(1).and_then(|i| list.get(i)), list.get(place)];
    let near = near.into_iter().flatten().min_by_key(|p| p.0.abs_diff(position))?;
    (near.0.abs_diff(position) <= reach).then_some(near.1)
}

/// How far away the nearer of the two neighbours of each unit is, and how far the two agree; `places` (sorted) are the positions of the units.
fn pairs(units: &[&Unit], places: &[f64]) -> Vec<(f64, f64)> {
    let gap = |i: usize| places.get(i + 1).map_or(f64::INFINITY, |next| next - places[i]);
    let nearer = |i: usize| if i > 0 && gap(i - 1) < gap(i) { i - 1 } else { (i + 1).min(units.len() - 1) };
    let pair = |i: usize| ((places[nearer(i)] - places[i]).abs(), units[i].agreement(units[nearer(i)]));
    (0..units.len()).map(pair).collect()
}

fn mean(pairs: &[(f64, f64)]) -> f64 {
    pairs.iter().map(|pair| pair.1).sum::<f64>() / pairs.len().max(1) as f64
}

/// Whether the closest units agree as those of one chunk do. Few of them show nothing.
fn closest_agree(mut pairs: Vec<(f64, f64)>, chance: &Chance) -> bool {
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let closest = &pairs[..pairs.len() / CLOSEST];
    closest.len() < LEAST_CLOSEST || chance.kappa(mean(closest)) >= AGREE - 0.75 / (closest.len() as f64).sqrt()
}
