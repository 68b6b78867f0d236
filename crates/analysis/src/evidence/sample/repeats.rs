//! Loops that go through a part of their memory again and again before the next part.
//!
//! A loop over tiles, each of which it reads five times, moves through its array a fifth as fast as it goes round. Ticks of timers, a few
//! milliseconds apart, see only how far it came. The samples of bursts, which are close together, show what it does meanwhile: it goes back as
//! often as on, or it is as fast in one entry as it goes round.

use super::pairs::{OfLoop, Pair};
use super::steady::quartiles;

/// Pairs that are needed to say no.
const PAIRS: usize = 6;
/// The middle half of the speeds at the shortest distances lies within this part of the median, if a loop goes straight on. Seen: 0.2 to 0.5; of
/// repeated tiles, 2 to 3.
const SPREAD: f64 = 1.0;
/// A pair counts if it should end before this part of the lap.
const ENDS_BEFORE: f64 = 0.9;
/// Speeds that differ by more than this factor contradict each other: threads on remote memory are slower.
const FACTOR: f64 = 2.2;

/// Whether bursts contradict that the loop goes round in so much time, which comes from how far it moved in memory.
pub fn contradict(of_loop: &OfLoop, ns_a_round: f64) -> bool {
    let bursts = of_loop.crossings.values().flatten().filter(|pair| pair.is_burst && pair.ns > 0.0);
    let mut on: Vec<&Pair> = bursts.filter(|pair| pair.lap - pair.left + pair.ns / ns_a_round <= ENDS_BEFORE * pair.lap).collect();
    on.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    on.truncate(on.len().div_ceil(2));
    let speeds = quartiles(on.iter().map(|pair| pair.rounds / pair.ns).collect());
    let goes_back = on.len() >= PAIRS && speeds.is_some_and(|[low, median, high]| high - low > SPREAD * median.max(0.0));
    goes_back || in_entries(of_loop).is_some_and(|ns| !(1.0 / FACTOR..=FACTOR).contains(&(ns / ns_a_round)))
}

/// CPU time of a round in one entry, if enough bursts show it.
fn in_entries(of_loop: &OfLoop) -> Option<f64> {
    let on: Vec<&Pair> = of_loop.entries.values().flatten().filter(|pair| pair.is_burst && pair.rounds > 0.0).collect();
    let (ns, rounds) = on.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.ns, sum.1 + pair.rounds));
    (on.len() >= PAIRS).then_some(ns / rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILE: f64 = 32_768.0;
    const TILES: f64 = 64.0;
    const NS: f64 = 0.9;

    /// What bursts see of a loop that reads each tile so often, in entries of one tile.
    fn of_loop(repeats: f64, count: usize) -> OfLoop {
        let mut state = 7_u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let lap = TILE * TILES;
        let place = |round: f64| (round / (TILE * repeats)).floor() % TILES * TILE + round % TILE;
        let mut of_loop = OfLoop::default();
        for at in 0..count {
            let ns = [15e3, 45e3, 90e3, 200e3][at % 4];
            let from = unit() * lap * repeats;
            let to = from + ns / NS;
            let pair =
                Pair { ns, rounds: place(to) - place(from), lap, left: lap - place(from), run: 0, is_burst: true, has_faults: false };
            let is_one = (from / TILE).floor() == (to / TILE).floor();
            let pairs = if is_one { &mut of_loop.entries } else { &mut of_loop.crossings };
            pairs.entry(1).or_default().push(pair);
        }
        of_loop
    }

    /// Check that the speed through memory of a loop which repeats its tiles is refused, and the speed of one that does not is not.
    #[test]
    fn repeated_tiles_are_seen() {
        for count in [40, 400] {
            assert!(!contradict(&of_loop(1.0, count), NS) && !contradict(&of_loop(1.0, count), 1.3 * NS));
            assert!(contradict(&of_loop(5.0, count), 5.0 * NS));
            assert!(contradict(&of_loop(20.0, count), 20.0 * NS));
        }
        assert!(!contradict(&OfLoop::default(), NS), "nothing contradicts");
    }
}
