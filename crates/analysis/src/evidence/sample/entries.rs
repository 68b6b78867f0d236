//! How the entries of a loop follow each other, where they do not go through memory without gaps.
//!
//! A loop over a part of each row, as in `for i { for j in from..to { a[i][j] } }`, goes round as often in each row, and the place where it ends in
//! memory moves by the length of a whole row. The address of an operand alone would count the parts of the row that other threads have. A loop over
//! columns goes round as often as there are rows, and its end moves by one element: there, the address hardly moves at all.
//!
//! Samples show how many rounds of their entry follow (`SampledLoop::left`), so an operand's address at the end of the entry is known. If these ends
//! lie on a lattice, and as many rounds follow as in entries that all have the same length, then the ends of two samples show how many entries
//! lie between them.

use super::loops::Loop;
use super::pairs::Moved;
use firsttouch_model::rows::{Id, SampledAccess, TimerSample};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Samples of a thread, and different ends among them, that are needed.
const SAMPLES: usize = 16;
const ENDS: usize = 8;
/// Samples of a thread that are looked at.
const MOST_SAMPLES: usize = 2048;
/// Pairs of distances between ends whose common divisors are tried.
const TRIED: usize = 32;
/// The part of the distances that must be multiples of the lattice's.
const ON_LATTICE: f64 = 0.95;
/// The same, of a thread whose own samples show no lattice.
const ALIKE: f64 = 0.8;
/// Gaps are at least this part of the distance from end to end.
const NO_GAPS: f64 = 0.03;
/// Entries have one length if the rounds that follow are spread over it nearly evenly: the distribution differs from that by less than this, and
/// chance (Kolmogorov's test, at 5 %). The first rounds of an entry are slower, since what they need was not yet prefetched: seen, 0.17. Lengths
/// that grow from nothing have 0.25.
const UNEVEN: f64 = 0.2;
const CHANCE: f64 = 1.36;
/// Samples in the first round of an entry, the part of all that they are, and how many times as many they are as in any other round, from which on
/// all entries are taken to begin there. Seen, for pages of 512 words on a busy machine: 29 % in the first round, 3 % in the next most frequent.
const FIRST_ROUNDS: usize = 5;
const FIRST_ROUND: f64 = 0.1;
const ABOVE_OTHERS: usize = 3;
/// Ends that are closer than this part of what the thread goes through show the direction.
const CLOSE: u64 = 4;

/// An operand of a loop: its instruction, its object and its stride.
type Operand = (Option<Id>, Id, i64);

/// What a thread's samples in a loop show of an operand: its address at the end of the entry, and the rounds until then.
type Seen = BTreeMap<Operand, Vec<(u64, u64)>>;

/// Gathers what samples show.
#[derive(Debug, Default)]
pub struct Ends(HashMap<(Loop, Id), Seen>);

impl Ends {
    pub fn see(&mut self, key: Loop, sample: &TimerSample, accesses: &[SampledAccess]) {
        let Some(left) = sample.around.and_then(|around| around.left) else { return };
        let seen = self.0.entry((key, sample.thread)).or_default();
        for (operand, end) in ends(accesses, left) {
            let all = seen.entry(operand).or_default();
            if all.len() < MOST_SAMPLES {
                all.push((end, left));
            }
        }
    }

    /// The entries of loops whose entries are of one length and have gaps between them. All threads of a loop are counted in the same way: one of
    /// them whose samples do not show its entries has those of the others, or of all samples together, if its ends lie as they say.
    pub fn entries(&self) -> HashMap<(Loop, Id), Entries> {
        let mut by_loop: BTreeMap<Loop, Vec<(Id, &Seen)>> = BTreeMap::new();
        for ((key, thread), seen) in &self.0 {
            by_loop.entry(*key).or_default().push((*thread, seen));
        }
        let of_loop = |(key, threads): (Loop, Vec<(Id, &Seen)>)| {
            of_threads(&threads).into_iter().map(move |(thread, entries)| ((key, thread), entries))
        };
        by_loop.into_iter().flat_map(of_loop).collect()
    }
}

/// How a thread goes through memory in a loop, by its samples.
enum Shape {
    Gaps(Entries),
    Sweep,
    Unknown,
}

impl Shape {
    fn of(seen: &Seen) -> Self {
        let all: Vec<Entries> = seen.iter().filter_map(|(operand, seen)| Entries::of(*operand, seen)).collect();
        // Without gaps in one operand, its address shows the progress.
        let has_gaps = all.iter().all(Entries::is_no_sweep);
        match all.into_iter().max_by(|a, b| a.lap().total_cmp(&b.lap())) {
            Some(longest) if has_gaps => Self::Gaps(longest),
            Some(_) => Self::Sweep,
            None => Self::Unknown,
        }
    }
}

/// The entries of the threads of one loop.
fn of_threads(threads: &[(Id, &Seen)]) -> Vec<(Id, Entries)> {
    let shapes: Vec<(Id, &Seen, Shape)> = threads.iter().map(|(thread, seen)| (*thread, *seen, Shape::of(seen))).collect();
    let mut gaps: Vec<Entries> =
        shapes.iter().filter_map(|(.., shape)| if let Shape::Gaps(own) = shape { Some(*own) } else { None }).collect();
    gaps.sort_by_key(|own| (own.distance.unsigned_abs(), own.low));
    let sweeps = shapes.iter().filter(|(.., shape)| matches!(shape, Shape::Sweep)).count();
    let usual = match gaps.get(gaps.len() / 2) {
        Some(usual) if gaps.len() > sweeps => Some(*usual),
        None if sweeps == 0 => together(threads),
        _ => None,
    };
    let entries = |(thread, seen, shape): (Id, &Seen, Shape)| match shape {
        Shape::Gaps(own) => Some((thread, own)),
        Shape::Sweep => None,
        Shape::Unknown => Some((thread, usual?.in_thread(seen)?)),
    };
    shapes.into_iter().filter_map(entries).collect()
}

/// What the samples of all threads show of an operand.
struct Together {
    operand: Operand,
    left: Vec<u64>,
    /// Within a thread.
    moved: Vec<i64>,
    span: (u64, u64),
}

/// The entries by the samples of all threads, of which none shows them alone.
fn together(threads: &[(Id, &Seen)]) -> Option<Entries> {
    let mut all: BTreeMap<(Option<Id>, i64), Together> = BTreeMap::new();
    for (operand, seen) in threads.iter().flat_map(|(_, seen)| seen.iter()) {
        let new = || Together { operand: *operand, left: Vec::new(), moved: Vec::new(), span: (u64::MAX, 0) };
        let own = all.entry((operand.0, operand.2)).or_insert_with(new);
        own.left.extend(seen.iter().map(|(_, left)| *left));
        own.moved.extend(distances(seen));
        own.span = seen.iter().fold(own.span, |(low, high), (end, _)| (low.min(*end), high.max(*end)));
    }
    let entries = all.into_values().filter_map(|one| Entries::by(one.operand, one.left, &one.moved, one.span));
    let entries: Vec<Entries> = entries.collect();
    let has_gaps = entries.iter().all(Entries::is_no_sweep);
    entries.into_iter().max_by(|a, b| a.lap().total_cmp(&b.lap())).filter(|_| has_gaps)
}

/// From the end of an entry to that of the next sample's, if that is another one, bytes.
fn distances(seen: &[(u64, u64)]) -> Vec<i64> {
    seen.windows(2).map(|two| two[1].0.wrapping_sub(two[0].0).cast_signed()).filter(|moved| *moved != 0).collect()
}

/// Addresses of operands when their loop ends.
fn ends(accesses: &[SampledAccess], left: u64) -> impl Iterator<Item = (Operand, u64)> {
    accesses.iter().filter_map(move |access| {
        let stride = access.stride.filter(|stride| *stride != 0)?;
        let end = access.address.wrapping_add((left as i64).wrapping_mul(stride).cast_unsigned());
        Some(((access.site, access.object, stride), end))
    })
}

/// The entries of a loop of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Entries {
    operand: Operand,
    /// From the end of one entry to that of the next, bytes; below 0 if the ends go down.
    distance: i64,
    /// Rounds of an entry.
    rounds: f64,
    low: u64,
    high: u64,
}

impl Entries {
    fn of(operand: Operand, seen: &[(u64, u64)]) -> Option<Self> {
        let span = (seen.iter().map(|(end, _)| *end).min()?, seen.iter().map(|(end, _)| *end).max()?);
        Self::by(operand, seen.iter().map(|(_, left)| *left).collect(), &distances(seen), span)
    }

    /// `left`: the rounds that follow each sample in its entry. `moved`: distances between ends.
    fn by(operand: Operand, left: Vec<u64>, moved: &[i64], (low, high): (u64, u64)) -> Option<Self> {
        let rounds = even_rounds(left)?;
        let divisor = lattice(moved)?;
        let close = moved.iter().filter(|moved| moved.unsigned_abs() <= (high - low) / CLOSE).map(|moved| moved.signum()).sum::<i64>();
        let distance = i64::try_from(divisor).ok()? * if close < 0 { -1 } else { 1 };
        Some(Self { operand, distance, rounds, low, high })
    }

    /// These entries in another thread, whose ends lie on the same lattice.
    fn in_thread(&self, seen: &Seen) -> Option<Self> {
        // The main thread is at the same instruction by another call stack.
        let alike = seen.iter().filter(|(operand, _)| operand.2 == self.operand.2);
        let (operand, seen) = alike.max_by_key(|(operand, seen)| (operand.0 == self.operand.0, seen.len()))?;
        let (low, high) = (seen.iter().map(|(end, _)| *end).min()?, seen.iter().map(|(end, _)| *end).max()?);
        let moved = distances(seen);
        let on = moved.iter().filter(|moved| moved.unsigned_abs() % self.distance.unsigned_abs() == 0).count();
        (on as f64 >= ALIKE * moved.len() as f64).then_some(Self { operand: *operand, low, high, ..*self })
    }

    /// Whether entries leave gaps between them, or each goes through all rows and begins a little behind the one before. Entries of several
    /// lengths one behind the other, such as the rows of a sparse matrix, have neither.
    fn is_no_sweep(&self) -> bool {
        let (stride, distance) = (self.operand.2.unsigned_abs(), self.distance.unsigned_abs());
        distance < stride || self.rounds * stride as f64 / distance as f64 <= 1.0 - NO_GAPS
    }

    /// Rounds from the first to the last end seen.
    fn lap(&self) -> f64 {
        ((self.high - self.low) as f64 / self.distance.unsigned_abs() as f64 + 1.0) * self.rounds
    }

    /// Rounds between two samples, in a lap, and from the first to the end of its lap.
    pub fn advance(&self, now: (&TimerSample, &[SampledAccess]), then: (&TimerSample, &[SampledAccess])) -> Option<Moved> {
        let seen = |(sample, accesses): (&TimerSample, &[SampledAccess])| {
            let left = sample.around?.left?;
            let end = ends(accesses, left).find(|(operand, _)| *operand == self.operand)?.1;
            Some((left as f64, end))
        };
        let ((left_now, now), (left_then, then)) = (seen(now)?, seen(then)?);
        let rounds = |bytes: f64| bytes / self.distance as f64 * self.rounds;
        let moved = rounds(now.wrapping_sub(then).cast_signed() as f64) + left_then - left_now;
        let last = if self.distance > 0 { self.high } else { self.low };
        Some((moved, self.lap(), (rounds(last.wrapping_sub(then).cast_signed() as f64) + left_then).max(0.0)))
    }
}

/// The rounds of an entry, if all entries have as many: then the rounds that follow a sample are any number below that, or those of the first round
/// in many samples, because it waits for memory that was not prefetched (a new page).
fn even_rounds(mut left: Vec<u64>) -> Option<f64> {
    left.sort_unstable();
    let count = left.len() as f64;
    let top = *left.last()?;
    let (mut at_top, mut elsewhere) = (0, 0);
    for same in left.chunk_by(|one, next| one == next) {
        if same[0] == top { at_top = same.len() } else { elsewhere = same.len().max(elsewhere) }
    }
    // Many samples in another round are no sign of shorter entries: a loop also waits where it comes to a new page.
    if at_top >= FIRST_ROUNDS && at_top as f64 >= FIRST_ROUND * count && at_top >= ABOVE_OTHERS * elsewhere {
        return Some(top as f64 + 1.0);
    }
    let most = (top as f64 + 1.0) * (count + 1.0) / count;
    let differs = |(at, left): (usize, &u64)| {
        let even = (*left as f64 + 0.5) / most;
        f64::max((even - at as f64 / count).abs(), (even - (at as f64 + 1.0) / count).abs())
    };
    let differs = left.iter().enumerate().map(differs).fold(0.0, f64::max);
    // Of few rounds, each has a part of the samples.
    (left.len() >= SAMPLES && differs < UNEVEN + 0.5 / most + CHANCE / count.sqrt()).then_some(most)
}

/// The greatest number that divides nearly all of these distances.
fn lattice(moved: &[i64]) -> Option<u64> {
    let mut different: Vec<u64> = moved.iter().map(|moved| moved.unsigned_abs()).collect();
    different.sort_unstable();
    different.dedup();
    if different.len() < ENDS {
        return None;
    }
    let is_on =
        |divisor: u64| different.iter().filter(|moved| **moved % divisor == 0).count() as f64 >= ON_LATTICE * different.len() as f64;
    // Neighbours in size, and far apart: most pairs have no more in common than all.
    let step = (different.len() / TRIED).max(1);
    let pairs = different.iter().step_by(step).zip(different.iter().skip(different.len() / 2).chain(&different));
    let divisors = pairs.map(|(a, b)| divisor(*a, *b)).chain(different.first().copied());
    divisors.filter(|divisor| *divisor > 0 && is_on(*divisor)).max()
}

/// The greatest common divisor (Euclid).
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Samples of sweeps over `entries` entries of `rounds(entry)` rounds: ends and rounds left.
    fn seen(count: usize, entries: f64, distance: i64, rounds: impl Fn(f64) -> f64) -> Vec<(u64, u64)> {
        let mut state = 7;
        let mut one = |_| {
            let entry = (entries * unit(&mut state)).floor();
            let end = (1_i64 << 40) + entry as i64 * distance;
            (end.cast_unsigned(), (rounds(entry) * unit(&mut state)) as u64)
        };
        (0..count).map(&mut one).collect()
    }

    /// Check that parts of rows, and columns, are seen as what they are: the distance of the lattice and the rounds of an entry.
    #[test]
    fn lattices_are_found() {
        for (distance, stride, rounds) in [(32_768, 8, 2048.0), (8, 24_000, 3000.0), (-4096, -16, 100.0)] {
            for count in [40, 1000] {
                let entries = Entries::of((None, 1, stride), &seen(count, 4000.0, distance, |_| rounds)).expect("a lattice");
                assert_eq!(entries.distance.abs(), distance.abs(), "{count}");
                assert!((entries.rounds / rounds - 1.0).abs() < 4.0 / count as f64 + 0.02, "{} of {rounds}", entries.rounds);
            }
        }
    }

    /// Check that a thread with few samples is counted like the others, that few samples of each suffice together, and that a thread which goes
    /// through memory in another way is not.
    #[test]
    fn threads_of_one_loop_are_alike() {
        let of = |count: usize, distance: i64| -> Seen { BTreeMap::from([((None, 1, 8), seen(count, 4000.0, distance, |_| 512.0))]) };
        let (many, few, none, other) = (of(200, 32_768), of(12, 32_768), of(1, 32_768), of(12, 4096));
        let found = |threads: &[&Seen]| -> Vec<Option<i64>> {
            let threads: Vec<(Id, &Seen)> = (0..).zip(threads.iter().copied()).collect();
            let entries: BTreeMap<Id, Entries> = of_threads(&threads).into_iter().collect();
            threads.iter().map(|(thread, _)| entries.get(thread).map(|own| own.distance.abs())).collect()
        };
        assert_eq!(found(&[&many, &few, &none]), [Some(32_768); 3]);
        let main = BTreeMap::from([((Some(5), 1, 8), seen(12, 4000.0, 32_768, |_| 512.0))]);
        assert_eq!(found(&[&many, &main]), [Some(32_768); 2], "by another call stack");
        assert_eq!(found(&[&few, &few, &few]), [Some(32_768); 3]);
        assert_eq!(found(&[&many, &other, &few]), [Some(32_768), None, Some(32_768)]);
        assert_eq!(found(&[&of(200, 4096), &of(200, 4096), &few]), [None; 3], "the others leave no gaps");
        assert_eq!(found(&[&few]), [None]);
    }

    /// Check that entries whose first round is slow have one length, and that entries of several lengths do not, though their first rounds are slow.
    #[test]
    fn slow_first_rounds() {
        let of = |lengths: &'static [f64]| {
            let (mut state, mut at) = (5, 0);
            let mut one = |_| {
                at += 1;
                let rounds = lengths[at % lengths.len()];
                let part = unit(&mut state);
                if part < 0.45 { rounds as u64 - 1 } else { ((part - 0.45) / 0.55 * rounds) as u64 }
            };
            even_rounds((0..90).map(&mut one).collect())
        };
        assert_eq!(of(&[512.0]), Some(512.0));
        assert_ne!(of(&[512.0, 300.0]), Some(512.0));
        assert_ne!(of(&[512.0, 480.0, 440.0, 390.0, 320.0]), Some(512.0));
    }

    /// Check that new pages within an entry, at which the loop waits as well, are no sign of several lengths: of 768 rounds, a fifth of the samples
    /// are in each of two.
    #[test]
    fn pages_within_an_entry() {
        let mut state = 11;
        let left = (0..260).map(|_| match unit(&mut state) {
            part if part < 0.2 => 767,
            part if part < 0.4 => 257,
            part => ((part - 0.4) / 0.6 * 768.0) as u64,
        });
        let rounds = even_rounds(left.collect()).expect("one length");
        assert!((rounds / 768.0 - 1.0).abs() < 0.02, "{rounds}");
    }

    /// Check that entries of different lengths, and ends without order, are no lattice of equal entries.
    #[test]
    fn other_entries_are_not() {
        assert!(Entries::of((None, 1, 8), &seen(500, 3000.0, 24_008, |entry| entry + 1.0)).is_none(), "a triangle");
        assert!(
            Entries::of((None, 1, 8), &seen(500, 3000.0, 24_000, |entry| 1.0 + (entry * 7.0) % 90.0)).is_none(),
            "rows of many lengths"
        );
        let rows = Entries::of((None, 1, 8), &seen(500, 3000.0, 8, |entry| 50.0 + (entry * 7.0) % 40.0));
        assert!(rows.is_none_or(|rows| !rows.is_no_sweep()), "rows one behind the other");
        assert!(Entries::of((None, 1, 8), &seen(500, 1.0, 24_000, |_| 900.0)).is_none(), "one entry");
        assert!(Entries::of((None, 1, 8), &seen(12, 300.0, 24_000, |_| 900.0)).is_none(), "few samples");
    }
}
