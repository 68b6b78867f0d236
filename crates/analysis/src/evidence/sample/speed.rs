//! Which pairs of samples show the speed of a loop.
//!
//! A loop that goes through its part of an array again and again shows its place between two samples, not how many laps and other loops
//! lie between them. Two things tell the pairs in which it went straight on:
//! - **One speed explains all.** At the true speed, a sample whose lap has enough left is followed by one farther on in the same lap, as far as the
//!   speed says, whether the second sample comes after 0.07 ms or after 4 ms. At a wrong one, which counts whole laps as none, that is so at one
//!   distance in time and not at others. The speed that explains most pairs is taken if they are nearly all that it should explain.
//! - **By the first sample only.** A pair counts if the lap has enough left for it at its first sample. Counting each pair that is seen to end in
//!   the same lap instead prefers laps that took long: near the end of a lap no others have such pairs.

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
/// Distances in time that differ by less than this factor are one. (The periods of bursts differ by at least 1.36, and early ticks come by up to 1.5.)
const DISTANCE: f64 = 1.1;
/// Pairs that are needed at other distances than most, and the part of them that must agree.
const LEAST_OTHERS: usize = 6;
const AGREE_OF_OTHERS: f64 = 0.6;
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
    // A slow speed explains more pairs than the mean one, so the mean of its pairs decides.
    let first = counted(threads, speed);
    let (ns, rounds) = first.iter().flat_map(|(_, pairs)| pairs).fold((0.0, 0.0), |sum, pair| (sum.0 + pair.ns, sum.1 + pair.rounds));
    let second = counted(threads, rounds / f64::max(ns, f64::MIN_POSITIVE));
    let pairs: usize = second.iter().map(|(_, pairs)| pairs.len()).sum();
    Some(if pairs >= LEAST_PAIRS { second } else { first })
}

/// The pairs whose lap has enough left at their first sample, at this speed.
fn counted<T: Copy>(threads: &[(T, Vec<Pair>)], speed: f64) -> Vec<(T, Vec<Pair>)> {
    let counts = |pair: &&Pair| pair.rounds >= 0.0 && pair.left >= LEFT * speed * pair.ns;
    threads.iter().map(|(thread, pairs)| (*thread, pairs.iter().filter(counts).copied().collect())).collect()
}

/// How many pairs a speed explains, less those that it does not. `None` if these are too many. `pairs`: by distance in time.
fn explained(pairs: &[Pair], speed: f64) -> Option<f64> {
    let is_explicable = |pair: &&Pair| pair.lap - pair.left + speed * pair.ns <= ENDS_BEFORE * pair.lap;
    let agrees = |pair: &Pair| {
        let (way, place) = (speed * pair.ns, PLACE * pair.lap);
        (way / FACTOR - place..=way * FACTOR + place).contains(&pair.rounds)
    };
    let own: Vec<Pair> = pairs.iter().filter(is_explicable).copied().collect();
    let last = own.last()?;
    let count = |pairs: &[Pair]| pairs.iter().filter(|pair| agrees(pair)).count() as f64;
    let is_bad_at = |at: &[Pair]| at.len() >= PAIRS_AT && count(at) < AGREE_AT * at.len() as f64;
    let agree = count(&own);
    if own.len() < LEAST_PAIRS || agree < AGREE * own.len() as f64 || distances(&own).any(is_bad_at) {
        return None;
    }
    let most = distances(&own).max_by_key(|at| at.len()).unwrap_or_default();
    let (others, agree_of_others) = (own.len() - most.len(), agree - count(most));
    let is_checked = others >= LEAST_OTHERS && agree_of_others >= AGREE_OF_OTHERS * others as f64;
    if !is_checked && speed * last.ns >= UNCHECKED * last.lap {
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

#[cfg(test)]
mod tests {
    use super::*;

    const LAP: f64 = 100_000.0;

    fn unit(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// What samples at two times in a thread see of a loop whose laps take `lap_ns` of the `cycle_ns` that a sweep takes.
    fn pair(first_ns: f64, ns: f64, lap_ns: f64, cycle_ns: f64) -> Option<Pair> {
        let place = |at: f64| Some(at.rem_euclid(cycle_ns) / lap_ns).filter(|part| *part < 1.0).map(|part| part * LAP);
        let (from, to) = (place(first_ns)?, place(first_ns + ns)?);
        Some(Pair { ns, rounds: to - from, lap: LAP, left: LAP - from, run: 0, is_burst: true, has_faults: false })
    }

    /// Pairs at the distances of bursts, at random times.
    fn pairs(lap_ns: f64, cycle_ns: f64, count: usize) -> Vec<(u8, Vec<Pair>)> {
        let mut state = (lap_ns + cycle_ns) as u64;
        let mut one = |at: usize| {
            let ns = [70e3, 110e3, 200e3, 300e3][at % 4] * (0.99 + 0.02 * unit(&mut state));
            pair(1e7 * unit(&mut state), ns, lap_ns, cycle_ns)
        };
        vec![(0, (0..count).filter_map(&mut one).collect())]
    }

    fn ns_a_lap(straight: &[(u8, Vec<Pair>)]) -> f64 {
        let (ns, rounds) = straight[0].1.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.ns, sum.1 + pair.rounds));
        LAP * ns / rounds
    }

    /// Check that pairs of short laps show their time, alone and among others, and that laps shorter than every distance show none, in particular
    /// not those whose multiples are a distance.
    #[test]
    fn laps_are_not_taken_for_progress() {
        for (lap_ns, cycle_ns) in [(0.2e6, 0.2e6), (0.2e6, 1.2e6), (0.3e6, 0.6e6), (0.65e6, 1e6), (5e6, 5e6)] {
            let straight = straight_on(&pairs(lap_ns, cycle_ns, 2000)).unwrap_or_else(|| panic!("{lap_ns} of {cycle_ns}"));
            let seen = ns_a_lap(&straight);
            assert!((seen / lap_ns - 1.0).abs() < 0.02, "{seen}, truth {lap_ns} of {cycle_ns}");
        }
        for (lap_ns, cycle_ns) in [(5e3, 5e3), (23e3, 23e3), (33e3, 66e3), (35e3, 35e3), (49e3, 50e3), (60e3, 60e3), (69e3, 69e3)] {
            if let Some(straight) = straight_on(&pairs(lap_ns, cycle_ns, 2000)) {
                let seen = ns_a_lap(&straight);
                assert!((seen / lap_ns - 1.0).abs() < 0.1, "{seen}, truth {lap_ns} of {cycle_ns}");
            }
        }
    }

    /// Check that ticks of one grid show nothing, however often they come, unless the progress is tiny.
    #[test]
    fn one_distance_shows_nothing() {
        let of = |lap_ns: f64| {
            let mut state = 3;
            let one = |_| pair(1e9 * unit(&mut state), 4e6, lap_ns, lap_ns);
            straight_on(&[(0, (0..400).filter_map(one).collect::<Vec<Pair>>())])
        };
        assert!(of(3.5e6).is_none() && of(1.9e6).is_none());
        assert!((ns_a_lap(&of(400e6).expect("tiny progress")) / 400e6 - 1.0).abs() < 0.02);
    }

    /// Check that laps which took long are not preferred: one in four takes twice as long.
    #[test]
    fn slow_laps_are_not_preferred() {
        let mut state = 9;
        let one = |at: usize| {
            // A sample hits slow laps as often as they take time.
            let lap_ns = if unit(&mut state) < 0.4 { 0.34e6 } else { 0.17e6 };
            pair(lap_ns * unit(&mut state), [70e3, 110e3][at % 2], lap_ns, 1e6)
        };
        let all: Vec<Pair> = (0..4000).filter_map(one).collect();
        let of_all = ns_a_lap(&[(0, all.clone())]);
        let (seen, truth) = (ns_a_lap(&straight_on(&[(0, all)]).expect("a speed")), 0.75 * 0.17e6 + 0.25 * 0.34e6);
        assert!((seen / truth - 1.0).abs() < 0.04 && of_all > 1.06 * truth, "{seen}, truth {truth}, all pairs {of_all}");
    }
}
