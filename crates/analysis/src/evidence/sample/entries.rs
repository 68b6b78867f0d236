//! How the entries of a loop follow each other, where they do not go through memory without gaps.
//!
//! A loop over a part of each row, as in `for i { for j in from..to { a[i][j] } }`, goes round as often in each row, and the place where it ends in
//! memory moves by the length of a whole row. The address of an operand alone would count the parts of the row that other threads have. A loop over
//! columns goes round as often as there are rows, and its end moves by one element: there, the address hardly moves at all.
//!
//! Samples show how many rounds of their entry follow (`SampledLoop::left`), so an operand's address at the end of the entry is known. If these ends
//! lie on a lattice, and as many rounds follow as in entries that all have the same length, then the ends of two samples show how many entries
//! lie between them.

use super::instructions::Instructions;
use super::loops::Loop;
use super::pairs::{LONGEST_BURST_NS, Moved};
use super::times::is_for_rates;
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
/// The part of the distances that must be multiples of the lattice's. One end beside it, as that of an operand that is a round ahead, has two of them. Seen:
/// two ends of 76.
const ON_LATTICE: f64 = 0.9;
/// The part of the ends that must be within the columns of blocks.
const IN_BLOCKS: f64 = 0.95;
/// The part of the distances on the lattice of the others, of a thread whose own samples show none.
const ALIKE: f64 = 0.8;
/// Gaps are at least this part of the distance from end to end.
const NO_GAPS: f64 = 0.03;
/// Entries have one length if the rounds that follow are spread over it nearly evenly: the distribution differs from that by less than this, and
/// chance (Kolmogorov's test, at 5 %). The first rounds of an entry are slower, since what they need was not yet prefetched: seen, 0.17. Lengths
/// that grow from nothing have 0.25.
const UNEVEN: f64 = 0.2;
const CHANCE: f64 = 1.36;
/// Samples in the first round of an entry, the part of all that they are, and how many times as many they are as in any other round, from which on
/// all entries are taken to begin there. Seen, for pages of 512 words on a busy machine: 29 % in the first round, 3 % in the next most frequent; for 15
/// rounds of OpenBLAS's packing: 33 % and 11 %.
const FIRST_ROUNDS: usize = 5;
const FIRST_ROUND: f64 = 0.1;
const ABOVE_OTHERS: usize = 2;
/// Entries of so many rounds tell an end that is a round ahead from one of another entry.
const LEAST_AHEAD: i64 = 8;
/// Ends that are closer than this part of what the thread goes through show the direction.
const CLOSE: u64 = 4;
/// So many distances of bursts show it without those of ticks.
const SHOW_DIRECTION: usize = 5;
/// More distances one way than the other, in standard errors of equally many.
const BEYOND_CHANCE: f64 = 2.0;

/// An operand whose stride is the same in fewer of its samples goes where other data say (`x[column[k]]`): its distance from one round to the next is
/// no stride, and its ends tell nothing.
const STEADY: f64 = 0.9;

/// An operand of a loop: its instruction (`instructions.rs`), its object and its stride.
type Operand = (Option<Id>, Id, i64);

/// What a sample shows of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    /// The operand's address at the end of the entry.
    address: u64,
    /// The rounds until then.
    left: u64,
    /// The sample is one of a burst.
    is_burst: bool,
    cpu_ns: u64,
}

/// From the end of one entry to that of another one.
#[derive(Clone, Copy, Debug)]
struct Distance {
    bytes: i64,
    /// Both are of one burst: little time lies between them.
    is_burst: bool,
}

/// What a thread's samples in a loop show of its operands.
type Seen = BTreeMap<Operand, Vec<End>>;

/// Gathers what samples show.
#[derive(Debug, Default)]
pub struct Ends(HashMap<(Loop, Id), Seen>);

impl Ends {
    pub fn see(&mut self, key: Loop, sample: &TimerSample, accesses: &[SampledAccess], instructions: &Instructions) {
        let Some(left) = sample.around.and_then(|around| around.left) else { return };
        let seen = self.0.entry((key, sample.thread)).or_default();
        for (operand, end) in ends(accesses, left, instructions) {
            let all = seen.entry(operand).or_default();
            if all.len() < MOST_SAMPLES {
                all.push(End { address: end, left, is_burst: is_for_rates(sample), cpu_ns: sample.cpu_ns });
            }
        }
    }

    /// The entries of loops whose entries are of one length and have gaps between them. All threads of a loop are counted in the same way: one of
    /// them whose samples do not show its entries has those of the others, or of all samples together, if its ends lie as they say.
    pub fn entries(mut self) -> HashMap<(Loop, Id), Entries> {
        self.drop_indirect();
        let mut by_loop: BTreeMap<Loop, Vec<(Id, &Seen)>> = BTreeMap::new();
        for ((key, thread), seen) in &self.0 {
            by_loop.entry(*key).or_default().push((*thread, seen));
        }
        let of_loop = |(key, threads): (Loop, Vec<(Id, &Seen)>)| {
            of_threads(&threads).into_iter().map(move |(thread, entries)| ((key, thread), entries))
        };
        by_loop.into_iter().flat_map(of_loop).collect()
    }

    /// Leaves out operands that have no constant stride.
    fn drop_indirect(&mut self) {
        let mut counts: HashMap<(Loop, Option<Id>, Id), HashMap<i64, usize>> = HashMap::new();
        for ((key, _), seen) in &self.0 {
            for ((site, object, stride), ends) in seen {
                *counts.entry((*key, *site, *object)).or_default().entry(*stride).or_default() += ends.len();
            }
        }
        let is_steady = |key: Loop, (site, object, stride): Operand| {
            let by_stride = &counts[&(key, site, object)];
            by_stride[&stride] as f64 >= STEADY * by_stride.values().sum::<usize>() as f64
        };
        for ((key, _), seen) in &mut self.0 {
            seen.retain(|operand, _| is_steady(*key, *operand));
        }
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
        // Without gaps in any operand, addresses show the progress. With gaps in one, also if another one has none (packing goes through its buffer
        // without gaps, again and again), the ends of entries do.
        let has_gaps = all.iter().any(Entries::is_no_sweep);
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
    // Ends that lie off the lattice by chance make gaps where others have none.
    if sweeps > 0 && sweeps >= gaps.len() {
        return Vec::new();
    }
    let usual = gaps.get(gaps.len() / 2).copied().or_else(|| together(threads));
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
    moved: Vec<Distance>,
    span: (u64, u64),
}

/// The entries by the samples of all threads, of which none shows them alone.
fn together(threads: &[(Id, &Seen)]) -> Option<Entries> {
    let mut all: BTreeMap<(Option<Id>, i64), Together> = BTreeMap::new();
    for (operand, seen) in threads.iter().flat_map(|(_, seen)| seen.iter()) {
        let new = || Together { operand: *operand, left: Vec::new(), moved: Vec::new(), span: (u64::MAX, 0) };
        let own = all.entry((operand.0, operand.2)).or_insert_with(new);
        own.left.extend(seen.iter().map(|end| end.left));
        own.moved.extend(distances(seen));
        own.span = seen.iter().fold(own.span, |(low, high), end| (low.min(end.address), high.max(end.address)));
    }
    let entries = all.into_values().filter_map(|one| Entries::by(one.operand, one.left, &one.moved, one.span));
    let entries: Vec<Entries> = entries.collect();
    let has_gaps = entries.iter().any(Entries::is_no_sweep);
    entries.into_iter().max_by(|a, b| a.lap().total_cmp(&b.lap())).filter(|_| has_gaps)
}

/// From the end of an entry to that of the next sample's, if that is another one.
fn distances(seen: &[End]) -> Vec<Distance> {
    let distance = |two: &[End]| Distance {
        bytes: two[1].address.wrapping_sub(two[0].address).cast_signed(),
        is_burst: two[0].is_burst && two[1].is_burst && two[1].cpu_ns.saturating_sub(two[0].cpu_ns) as f64 <= LONGEST_BURST_NS,
    };
    seen.windows(2).map(distance).filter(|moved| moved.bytes != 0).collect()
}

/// Whether the ends go down. Ticks that come once in a pass, and a little earlier in each, seem to go down, so enough bursts count without them. What may be
/// chance says nothing: then the entries go as the rounds inside them do.
fn goes_down(stride: i64, moved: &[Distance], span: u64) -> bool {
    let close = || moved.iter().filter(|moved| moved.bytes.unsigned_abs() <= span / CLOSE);
    let signs = |of_bursts: bool| close().filter(move |moved| moved.is_burst || !of_bursts).map(|moved| moved.bytes.signum());
    let of_bursts = signs(true).count() >= SHOW_DIRECTION;
    let (count, sum) = (signs(of_bursts).count() as f64, signs(of_bursts).sum::<i64>() as f64);
    if sum.abs() > BEYOND_CHANCE * count.sqrt() { sum < 0.0 } else { stride < 0 }
}

/// Addresses of operands when their loop ends.
fn ends(accesses: &[SampledAccess], left: u64, instructions: &Instructions) -> impl Iterator<Item = (Operand, u64)> {
    leading(accesses).into_iter().map(move |(access, stride)| {
        let end = access.address.wrapping_add((left as i64).wrapping_mul(stride).cast_unsigned());
        ((instructions.of(access), access.object, stride), end)
    })
}

/// The operands with a constant stride, of each object and stride the one that is farthest behind. A loop that reads several rows side by side (packing,
/// blocks of registers) has many; those that the sampled instruction has passed are a round ahead of the others, so most of them end at one of two
/// addresses, as the instruction may be. The one that is farthest behind ends at one.
fn leading(accesses: &[SampledAccess]) -> Vec<(&SampledAccess, i64)> {
    let mut found: Vec<(&SampledAccess, i64)> = Vec::new();
    for access in accesses {
        let Some(stride) = access.stride.filter(|stride| *stride != 0) else { continue };
        match found.iter_mut().find(|(known, of_known)| (known.object, *of_known) == (access.object, stride)) {
            Some((known, _)) => {
                let is_behind = if stride > 0 { access.address < known.address } else { access.address > known.address };
                *known = if is_behind { access } else { *known };
            }
            None => found.push((access, stride)),
        }
    }
    found
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
    order: Order,
}

/// How the ends of a thread's entries follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// At one distance.
    Even,
    /// Entries over columns, and more of them than a row has: a block of so many bytes, as many rows as an entry has rounds, is read column by column,
    /// and then the next one.
    Blocks(i64),
    /// Neither.
    Unclear,
}

impl Order {
    /// `ends`: of a thread. Columns of one matrix end within a row.
    fn of(entries: &Entries, ends: impl Iterator<Item = u64>) -> Self {
        let (stride, distance) = (entries.operand.2, entries.distance);
        if distance.unsigned_abs() >= stride.unsigned_abs() || entries.high - entries.low <= stride.unsigned_abs() {
            return Self::Even;
        }
        let Some(bytes) =
            stride.checked_mul(entries.rounds.round() as i64).filter(|bytes| stride > 0 && distance > 0 && *bytes > 2 * stride)
        else {
            return Self::Unclear;
        };
        let (mut all, mut inside) = (0, 0);
        for end in ends {
            all += 1;
            inside += u32::from(entries.in_block(end, bytes).1 < stride);
        }
        if f64::from(inside) >= IN_BLOCKS * f64::from(all) { Self::Blocks(bytes) } else { Self::Unclear }
    }
}

impl Entries {
    fn of(operand: Operand, seen: &[End]) -> Option<Self> {
        let ends = || seen.iter().map(|end| end.address);
        let span = (ends().min()?, ends().max()?);
        let even = Self::by(operand, seen.iter().map(|end| end.left).collect(), &distances(seen), span)?;
        Some(Self { order: Order::of(&even, ends()), ..even })
    }

    /// The block that an end is in, and the bytes of its column from that of the lowest end, which is any column of the first block. An instruction that
    /// the sampled one has passed is a round ahead.
    fn in_block(&self, end: u64, bytes: i64) -> (i64, i64) {
        let stride = self.operand.2;
        let from = end.wrapping_sub(self.low).cast_signed().saturating_add(stride);
        let column = from.rem_euclid(bytes) - stride;
        let is_ahead = column >= stride && bytes >= LEAST_AHEAD * stride;
        (from.div_euclid(bytes), if is_ahead { column - stride } else { column })
    }

    /// Rounds of all entries up to the one that ends there, from the lowest or highest end. `None` if the order of the entries is not clear.
    fn rounds_to(&self, end: u64) -> Option<f64> {
        let entries = |bytes: f64| bytes / self.distance as f64;
        let before = match self.order {
            Order::Even => entries(end.wrapping_sub(self.low).cast_signed() as f64),
            Order::Blocks(bytes) => {
                let (block, column) = self.in_block(end, bytes);
                block as f64 * entries(self.operand.2 as f64) + entries(column as f64)
            }
            Order::Unclear => return None,
        };
        Some(before * self.rounds)
    }

    /// `left`: the rounds that follow each sample in its entry. `moved`: distances between ends. Their order is that of a thread, which is not looked at here.
    fn by(operand: Operand, left: Vec<u64>, moved: &[Distance], (low, high): (u64, u64)) -> Option<Self> {
        let rounds = even_rounds(left)?;
        let divisor = lattice(moved)?;
        let distance = i64::try_from(divisor).ok()? * if goes_down(operand.2, moved, high - low) { -1 } else { 1 };
        Some(Self { operand, distance, rounds, low, high, order: Order::Even })
    }

    /// These entries in another thread, whose ends lie on the same lattice.
    fn in_thread(&self, seen: &Seen) -> Option<Self> {
        // The main thread may be at another instruction of the loop.
        let alike = seen.iter().filter(|(operand, _)| operand.2 == self.operand.2);
        let (operand, seen) = alike.max_by_key(|(operand, seen)| (operand.0 == self.operand.0, seen.len()))?;
        let ends = || seen.iter().map(|end| end.address);
        let (low, high) = (ends().min()?, ends().max()?);
        let moved = distances(seen);
        let on = moved.iter().filter(|moved| moved.bytes.unsigned_abs() % self.distance.unsigned_abs() == 0).count();
        let own = Self { operand: *operand, low, high, order: Order::Even, ..*self };
        let order = Order::of(&own, ends());
        (on as f64 >= ALIKE * moved.len() as f64).then_some(Self { order, ..own })
    }

    /// Whether entries leave gaps between them, or each goes through all rows and begins a little behind the one before. Entries of several
    /// lengths one behind the other, such as the rows of a sparse matrix, have neither.
    fn is_no_sweep(&self) -> bool {
        let (stride, distance) = (self.operand.2.unsigned_abs(), self.distance.unsigned_abs());
        distance < stride || self.rounds * stride as f64 / distance as f64 <= 1.0 - NO_GAPS
    }

    /// Rounds from the first to the last end seen.
    fn lap(&self) -> f64 {
        let ends = [self.low, self.high].map(|end| self.rounds_to(end).unwrap_or_default());
        (ends[1] - ends[0]).abs() + self.rounds
    }

    /// Rounds between two samples, in a lap, and from the first to the end of its lap.
    pub fn advance(
        &self,
        now: (&TimerSample, &[SampledAccess]),
        then: (&TimerSample, &[SampledAccess]),
        instructions: &Instructions,
    ) -> Option<Moved> {
        let seen = |(sample, accesses): (&TimerSample, &[SampledAccess])| {
            let left = sample.around?.left?;
            let end = ends(accesses, left, instructions).find(|(operand, _)| *operand == self.operand)?.1;
            Some((left as f64, end))
        };
        let ((left_now, now), (left_then, then)) = (seen(now)?, seen(then)?);
        let (now, then) = (self.rounds_to(now)?, self.rounds_to(then)?);
        let last = self.rounds_to(if self.distance > 0 { self.high } else { self.low })?;
        Some((now - then + left_then - left_now, self.lap(), (last - then + left_then).max(0.0)))
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
fn lattice(moved: &[Distance]) -> Option<u64> {
    let mut different: Vec<u64> = moved.iter().map(|moved| moved.bytes.unsigned_abs()).collect();
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
    use firsttouch_model::rows::AccessKind;

    fn unit(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn of_tick(address: u64, left: u64) -> End {
        End { address, left, is_burst: false, cpu_ns: 0 }
    }

    /// Samples of sweeps over `entries` entries of `rounds(entry)` rounds: ends and rounds left.
    fn seen(count: usize, entries: f64, distance: i64, rounds: impl Fn(f64) -> f64) -> Vec<End> {
        let mut state = 7;
        let mut one = |_| {
            let entry = (entries * unit(&mut state)).floor();
            let end = (1_i64 << 40) + entry as i64 * distance;
            of_tick(end.cast_unsigned(), (rounds(entry) * unit(&mut state)) as u64)
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

    /// Check that ticks which come a little earlier in each pass do not turn the direction of the entries, and bursts do, if the loop goes down.
    #[test]
    fn bursts_show_the_direction() {
        let span = 1 << 24;
        let moves = |bytes: i64, is_burst: bool, count: usize| vec![Distance { bytes, is_burst }; count];
        let early = moves(-200_000, false, 50);
        assert!(!goes_down(64, &[early.clone(), moves(8192, true, 6)].concat(), span));
        assert!(goes_down(64, &[early.clone(), moves(-8192, true, 6)].concat(), span));
        assert!(goes_down(64, &[early.clone(), moves(-8192, true, 5)].concat(), span));
        assert!(
            goes_down(64, &[early.clone(), moves(8192, true, 4)].concat(), span),
            "ticks decide: four distances of bursts may be chance"
        );
        assert!(!goes_down(64, &[early.clone(), moves(-8192, true, 3), moves(8192, true, 3)].concat(), span), "bursts say nothing");
        assert!(goes_down(64, &early, span), "nothing but ticks");
        let either = [moves(-4096, true, 4), moves(4096, true, 3)].concat();
        assert!(!goes_down(64, &either, span) && goes_down(-64, &either, span), "chance says nothing");
    }

    /// Check that entries one behind the other are no gaps where a few ends lie beside the others, and where a thread's ends say so against most threads.
    #[test]
    fn ends_beside_the_lattice_are_no_gaps() {
        let beside = |every: usize| {
            let mut ends = seen(76, 250.0, 65_536, |_| 127.0);
            ends.iter_mut().step_by(every).for_each(|end| end.address += 8);
            BTreeMap::from([((None, 1, 512), ends)])
        };
        let count = |threads: &[Seen]| of_threads(&(0..).zip(threads).collect::<Vec<(Id, &Seen)>>()).len();
        assert_eq!([count(&[beside(200)]), count(&[beside(38)]), count(&[beside(5)])], [0, 0, 1]);
        assert_eq!([count(&[beside(5), beside(38), beside(38)]), count(&[beside(5), beside(5), beside(38)])], [0, 2]);
        assert_eq!([count(&[beside(5), beside(38)]), count(&[beside(5), beside(5)])], [0, 2]);
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

    /// Check the packing of a matrix: 16 rows of 240 bytes are read column by column, and then the next 16. The rounds between two ends are those of
    /// all words between them, also where the sampled instruction has passed the operand; columns of one matrix are no blocks; and ends that leave no
    /// such blocks are not counted.
    #[test]
    fn blocks_of_rows_are_packed() {
        let (mut state, base) = (3, 1_u64 << 40);
        let mut one = |ahead: f64| {
            let (block, column) = ((900.0 * unit(&mut state)).floor(), (30.0 * unit(&mut state)).floor());
            let is_ahead = unit(&mut state) < ahead;
            of_tick(base + block as u64 * 3840 + column as u64 * 8 + u64::from(is_ahead) * 240, (16.0 * unit(&mut state)) as u64)
        };
        let operand = (None, 1, 240);
        for ahead in [0.0, 0.2] {
            let mut all: Vec<End> = (0..400).map(|_| one(ahead)).collect();
            all.sort_unstable();
            let entries = Entries::of(operand, &all).expect("entries");
            assert_eq!((entries.distance, entries.order, entries.rounds.round()), (8, Order::Blocks(3840), 16.0));
            let rounds = |block: u64, column: u64| entries.rounds_to(base + block * 3840 + column * 8).expect("rounds") / entries.rounds;
            let far = [rounds(7, 3) - rounds(7, 2), rounds(8, 0) - rounds(7, 29), rounds(400, 5) - rounds(100, 5)];
            assert_eq!(far.map(f64::round), [1.0, 1.0, 9000.0], "{ahead}");
        }
        let columns: Vec<End> = (0..400).map(|_| one(0.0)).map(|end| End { address: (end.address - base) % 240 + base, ..end }).collect();
        assert_eq!(Entries::of(operand, &columns).expect("entries").order, Order::Even);
        let mut others: Vec<End> =
            (0..400).map(|_| of_tick(base + (unit(&mut state) * 4e5) as u64 * 8, (16.0 * unit(&mut state)) as u64)).collect();
        others.sort_unstable();
        let entries = Entries::of(operand, &others).expect("entries");
        assert_eq!((entries.order, entries.rounds_to(base)), (Order::Unclear, None));
    }

    /// Check that of rows that are read side by side, the same one counts in each sample.
    #[test]
    fn one_of_several_rows_leads() {
        let access = |address: u64, site: Id, stride: i64| SampledAccess {
            sample: 1,
            object: 1,
            address,
            bytes: 8,
            words: 1.0,
            kind: AccessKind::Read,
            site: Some(site),
            stride: Some(stride),
        };
        let of = |rows: &[u64], stride: i64| {
            let all: Vec<SampledAccess> = rows.iter().zip(1..).map(|(row, site)| access(row * 240 + 4096, site, stride)).collect();
            leading(&all).iter().map(|(access, _)| (access.address - 4096) / 240).collect::<Vec<u64>>()
        };
        assert_eq!([of(&[3, 0, 1, 2], 16), of(&[0, 1, 2, 3], 16), of(&[3, 0, 1, 2], -16)], [vec![0], vec![0], vec![3]]);
    }

    /// Check that the elements that a sparse matrix picks are no entries: five in each row, some of them a row of the grid away from the next one.
    #[test]
    fn picked_elements_are_no_columns() {
        let key = Loop::InProcess(1, 7);
        let of = |picks: bool| {
            let mut state = 9;
            let mut seen = Seen::new();
            for _ in 0..400 {
                let (row, column) = ((3000.0 * unit(&mut state)) as u64, (5.0 * unit(&mut state)) as usize);
                let left = 4 - column as u64;
                seen.entry((Some(1), 1, 8)).or_default().push(of_tick((1 << 41) + row * 40 + 32, left));
                let stride = if picks { [9592, 8, 8, 9592, -19_192][column] } else { 24_000 };
                let end = (1_i64 << 40) + row as i64 * 8 + left as i64 * stride;
                seen.entry((Some(2), 2, stride)).or_default().push(of_tick(end.cast_unsigned(), left));
            }
            Ends(HashMap::from([((key, 1), seen)])).entries().len()
        };
        assert_eq!([of(true), of(false)], [0, 1]);
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
