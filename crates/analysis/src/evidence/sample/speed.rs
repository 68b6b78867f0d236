//! Which pairs of samples show the speed of a loop.
//!
//! A loop that goes through its part of an array again and again shows its place between two samples, not how many laps and other loops
//! lie between them. Two things tell the pairs in which it went straight on:
//! - **One speed explains all.** At the true speed, a sample whose lap has enough left is followed by one farther on in the same lap, as far as the
//!   speed says, whether the second sample comes after 0.07 ms or after 4 ms. At a wrong one, which counts whole laps as none, that is so at one
//!   distance in time and not at others. The speed that explains most pairs is taken if they are nearly all that it should explain.
//! - **By the first sample only.** A pair counts if the lap has enough left for it at its first sample. Counting each pair that is seen to end in
//!   the same lap instead prefers laps that took long: near the end of a lap no others have such pairs. (Bursts begin when a thread wakes up, so in
//!   programs with barriers their samples are at the same places of each sweep. `tests/programs/truth/copies`: 5 to 10 % too slow.)

use super::pairs::Pair;

/// Pairs, the closest ones, whose speeds are tried.
const TRIED: usize = 48;
/// A speed is looked at in pairs of which it says that they end before this part of the lap.
const ENDS_BEFORE: f64 = 0.9;
/// A pair agrees with a speed if it went between 1 / this and this times as far: threads on remote memory are slower.
const FACTOR: f64 = 2.2;
/// And this part of a lap more or less.
const PLACE: f64 = 0.02;
/// The part of the pairs that must agree. Of differences of random places, up to 40 % do.
const AGREE: f64 = 0.65;
/// The same of the pairs at one distance in time, if there are so many.
const AGREE_AT: f64 = 0.45;
const PAIRS_AT: usize = 5;
/// Distances in time that differ by less than this factor are one. (The periods of bursts differ by at least 1.36.)
const DISTANCE: f64 = 1.25;
/// Pairs that are needed.
const LEAST_PAIRS: usize = 8;
/// If all pairs have the same distance, whole laps may lie between them unless the progress is less than this part of a lap: laps whose length has
/// nothing to do with the ticks are taken for progress so often.
const UNCHECKED: f64 = 0.05;
/// A pair counts if its lap has this many times what is needed left: other threads are faster, and so are some laps.
const LEFT: f64 = 1.35;

/// The pairs, by thread, in which the loop went straight on, if one speed explains them.
pub fn straight_on<T: Copy>(threads: &[(T, Vec<Pair>)]) -> Option<Vec<(T, Vec<Pair>)>> {
    let mut all: Vec<Pair> = threads.iter().flat_map(|(_, pairs)| pairs).filter(|pair| pair.ns > 0.0).copied().collect();
    all.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    let speeds = all.iter().filter(|pair| pair.rounds > 0.0).take(TRIED).map(|pair| pair.rounds / pair.ns);
    let (speed, _) = speeds.filter_map(|speed| Some((speed, explained(&all, speed)?))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let counts = |pair: &&Pair| pair.rounds >= 0.0 && pair.left >= LEFT * speed * pair.ns;
    Some(threads.iter().map(|(thread, pairs)| (*thread, pairs.iter().filter(counts).copied().collect())).collect())
}

/// How many pairs a speed explains, less those that it does not. `None` if these are too many. `pairs`: by distance in time.
fn explained(pairs: &[Pair], speed: f64) -> Option<f64> {
    let is_explicable = |pair: &&Pair| pair.lap - pair.left + speed * pair.ns <= ENDS_BEFORE * pair.lap;
    let agrees = |pair: &Pair| {
        let (way, place) = (speed * pair.ns, PLACE * pair.lap);
        (way / FACTOR - place..=way * FACTOR + place).contains(&pair.rounds)
    };
    let own: Vec<Pair> = pairs.iter().filter(is_explicable).copied().collect();
    let (first, last) = own.first().zip(own.last())?;
    let count = |pairs: &[Pair]| pairs.iter().filter(|pair| agrees(pair)).count() as f64;
    let is_checked = last.ns > DISTANCE * first.ns || speed * last.ns < UNCHECKED * last.lap;
    let is_bad_at = |at: &[Pair]| at.len() >= PAIRS_AT && count(at) < AGREE_AT * at.len() as f64;
    let agree = count(&own);
    if own.len() < LEAST_PAIRS || !is_checked || agree < AGREE * own.len() as f64 || distances(&own).any(is_bad_at) {
        return None;
    }
    Some(2.0 * agree - own.len() as f64)
}

/// Pairs of the same distance in time. `pairs`: by that distance.
fn distances(pairs: &[Pair]) -> impl Iterator<Item = &[Pair]> {
    let mut rest = pairs;
    std::iter::from_fn(move || {
        let shortest = rest.first()?.ns;
        let (at, others) = rest.split_at(rest.partition_point(|pair| pair.ns <= DISTANCE * shortest));
        rest = others;
        Some(at)
    })
}
