//! Recognises from samples how threads divide an address range.
//!
//! A sample ("unit") is a hit of a source of evidence or a first-touch record: a position, and the workers seen there with their shares. A
//! worker is a sequence of threads with successive lifetimes ([`crate::slots`]). The first rule that holds decides:
//!
//! 1. `single`: one worker makes at least 97 % of the accesses.
//! 2. `unknown`: fewer than 16 units.
//! 3. `block` (`block.rs`): one run per worker explains the units, unless several runs per worker explain those that it does not
//!    (`runs.rs`): then it is `block-cyclic`.
//! 4. `shared` (`shared.rs`, `simultaneous.rs`): several workers pass the same addresses within one window equally often, or the same
//!    workers pass all addresses that are watched at the same time equally often.
//! 5. `block-cyclic`: every row of a group of objects has one worker, or position modulo a period determines the worker (`cyclic.rs`), or
//!    a few runs per worker explain the units (`runs.rs`), or neighbouring units agree (`neighbours.rs`: chunks assigned permanently, without a period). A period below two pages does not count,
//!    because then no page has an owner: use is irregular then, and [`Partition::fine`] says the period. If units show only one of several possible workers (hinting faults), owners found from the earlier
//!    half must hold in the later half (`lasting.rs`).
//!    So they must if the workers hardly ran at the same time (`dealing.rs`), and the round of a unit must not predict its worker.
//! 6. `unknown`: fewer than 5 units per worker (effective workers 1 / sum p^2, unbiased): too few to exclude a regular division.
//!    Also if counts agree between addresses only because the workers hardly ran at the same time, or owners do not last then.
//! 7. `irregular`: the worker does not depend on position (dynamic schedules, tasks, random gathers).
//!
//! Agreement is judged by kappa = (agreement - chance) / (1 - chance), against thresholds that rise as the number of units falls. Chance
//! alone passes for fewer than one in about a thousand objects.

mod block;
mod cyclic;
mod dealing;
mod hot;
mod lasting;
mod neighbours;
mod parts;
mod runs;
mod shared;
mod simultaneous;

pub use parts::Divided;
use shared::{Sharing, Use};

use firsttouch_model::contingency::Contingency;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The least number of units for which a partition is recognised.
pub const MIN_UNITS: usize = 16;
/// Fewer samples of a loop with a dynamic schedule may show owners by chance: neighbouring rows are often by one thread.
const CERTAIN_UNITS: usize = 100;
/// If there are more units, every n-th is used.
const MAX_UNITS: usize = 2000;
/// More turns than this are more likely to be chunks than several arrays side by side.
const MOST_TURNS: usize = 8;
/// Parts are counted only if they have at least this many units on average.
const UNITS_A_PART: usize = 3;
/// The parts of a range in which the users are compared.
const LEANING_PARTS: u128 = 4;
/// If one worker makes at least this share of the accesses, the object is its alone.
pub const SINGLE: f64 = 0.97;

/// The ways in which threads divide an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionKind {
    Single,
    Block,
    BlockCyclic,
    Shared,
    Irregular,
    Unknown,
}

/// The workers seen at one position.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Position in the group's logical range, bytes.
    pub position: u64,
    /// Workers with their shares of the accesses seen here; the shares sum to 1.
    pub shares: Vec<(usize, f64)>,
    /// Workers with their number of events (traps) here.
    pub counts: Vec<(usize, u64)>,
    /// Accesses by all workers in one ns, estimated also beyond the hit limit; 0 if that is not known.
    pub rate: f64,
    /// The hit limit cut off the count of a worker.
    pub cut: bool,
    /// Units of one round were sampled at the same time.
    pub round: u64,
    /// The part of the time of this unit in which each worker had a CPU; empty if that is not known.
    pub running: Vec<(usize, f64)>,
}

impl Unit {
    fn share(&self, worker: usize) -> f64 {
        self.shares.iter().find(|(l, _)| *l == worker).map_or(0.0, |(_, share)| *share)
    }

    /// The number of passes of each of these workers. `pass`: the number of events in one pass.
    fn passes(&self, workers: &[usize], pass: u64) -> Vec<f64> {
        let of = |worker: usize| self.counts.iter().filter(|c| c.0 == worker).map(|c| c.1 as f64).sum::<f64>();
        workers.iter().map(|&worker| of(worker) / pass.max(1) as f64).collect()
    }

    /// The worker with the largest share here.
    #[must_use]
    pub fn main_worker(&self) -> usize {
        self.shares.iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map_or(0, |(worker, _)| *worker)
    }

    /// The probability that one event of each unit is by the same worker.
    fn agreement(&self, other: &Self) -> f64 {
        self.shares.iter().map(|&(worker, share)| share * other.share(worker)).sum()
    }
}

/// The owner of each part.
#[derive(Clone, Debug, PartialEq)]
enum Owners {
    Nobody,
    One(usize),
    /// (first position, worker), sorted by position.
    Blocks(Vec<(u64, usize)>),
    /// Bytes of a row, and the worker of each row by its index.
    Rows(u64, BTreeMap<u64, usize>),
    /// (position, worker), sorted by position, and a distance in bytes: the nearest entry within the distance is the owner.
    Nearest(Vec<(u64, usize)>, u64),
    /// Period in bytes, and (phase in [0, 1), worker), sorted by phase: the nearest entry is the owner.
    Periodic(f64, Vec<(f64, usize)>),
}

impl Owners {
    fn owner(&self, position: u64) -> Option<usize> {
        match self {
            Self::Nobody => None,
            Self::One(worker) => Some(*worker),
            Self::Blocks(list) => list[..list.partition_point(|b| b.0 <= position)].last().or(list.first()).map(|b| b.1),
            Self::Rows(stride, rows) => rows.get(&(position / (*stride).max(1))).copied(),
            Self::Nearest(list, reach) => neighbours::owner(list, *reach, position),
            Self::Periodic(period, list) => cyclic::owner(*period, list, position),
        }
    }
}

/// How the owners of blocks follow each other along the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By their numbers, or there are no blocks.
    Ascending,
    /// The last ones own the beginning.
    Descending,
    Mixed,
}

/// Of the pairs of blocks, this many more (as a fraction of all) must be in one order than in the other.
const ORDERED: f64 = 0.5;

/// A period with this kappa holds without exceptions but for some pages at borders. One that explains the pages of one thread only has 0.7 and more.
const SURE_PERIOD: f64 = 0.9;
/// A record nearer than this fraction (1 / `NEAR_PARTS`) of a part shows the owner of a place.
const NEAR_PARTS: f64 = 8.0;

/// A recognised partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    pub kind: PartitionKind,
    /// For irregular use: whether parts are known to be dealt out to one worker at a time. If false, each worker may also use the whole
    /// object.
    pub dealt_out: bool,
    /// For irregular use: the source shows that parts change hands (tasks, a dynamic schedule). Else they may also have fixed owners, and be so
    /// small that samples do not show them: pages dealt out in turn.
    pub changes: bool,
    /// Tasks use it: any thread may execute a task, whichever did in this run.
    pub of_tasks: bool,
    /// For irregular use: no worker has a part for itself, but some parts are used more by some workers.
    pub leans: bool,
    /// For irregular or unknown use: threads of several kinds use it (`kinds_of_threads.rs`).
    pub between_kinds: bool,
    /// For irregular use: loops divide it differently, and one of them in blocks.
    pub by_loops: bool,
    /// For unknown use: each worker uses the whole object, or parts are dealt out. Too few workers ran at once to tell.
    pub ran_apart: bool,
    /// For shared use: no source can tell whether each worker uses all of it, and it is only read.
    pub assumed: bool,
    /// For irregular use: each worker has parts of its own, but they are smaller than a page. The bytes after which the same worker has a part again.
    pub fine: Option<u64>,
    /// How well a period explains what is far apart: 1 if it does without an exception, 0 if chance does as well, and for rules without a period; times the
    /// part of the period for which samples show an owner.
    kappa: f64,
    owners: Owners,
}

impl Partition {
    fn new(kind: PartitionKind, owners: Owners) -> Self {
        Self {
            kind,
            dealt_out: false,
            changes: false,
            of_tasks: false,
            leans: false,
            between_kinds: false,
            by_loops: false,
            ran_apart: false,
            assumed: false,
            fine: None,
            kappa: 0.0,
            owners,
        }
    }

    /// An unrecognised partition.
    #[must_use]
    pub fn unknown() -> Self {
        Self::new(PartitionKind::Unknown, Owners::Nobody)
    }

    /// All workers use all of it.
    #[must_use]
    pub fn shared() -> Self {
        Self::new(PartitionKind::Shared, Owners::Nobody)
    }

    /// The same, which no source can tell from parts that are dealt out: it is only read.
    #[must_use]
    pub fn shared_or_dealt_out() -> Self {
        Self { assumed: true, ..Self::shared() }
    }

    /// The same use, if a schedule deals parts out as threads become free (`schedule(dynamic)`): then few samples show owners by chance, and who only
    /// reads need not read all of it. `units`: the samples that show it.
    #[must_use]
    pub fn of_dynamic_loop(self, units: usize) -> Self {
        match self.kind {
            PartitionKind::Shared if self.assumed => Self::new(PartitionKind::Irregular, Owners::Nobody),
            PartitionKind::BlockCyclic if units < CERTAIN_UNITS => Self { changes: true, ..Self::dealt_out_anew() },
            PartitionKind::Irregular => Self { changes: true, fine: None, ..self },
            _ => self,
        }
    }

    /// Parts are dealt out to one worker at a time, differently each time.
    #[must_use]
    pub fn dealt_out_anew() -> Self {
        Self { dealt_out: true, ..Self::new(PartitionKind::Irregular, Owners::Nobody) }
    }

    /// Tasks use it, which any thread may execute, whichever did in this run.
    #[must_use]
    pub fn of_tasks() -> Self {
        Self { of_tasks: true, changes: true, ..Self::dealt_out_anew() }
    }

    /// Of memory that several loops divide, each in its own way, whatever rule seems to hold for all of their accesses together.
    #[must_use]
    pub fn of_loops_apart(units: impl Iterator<Item = Unit>) -> Self {
        let units: Vec<Unit> = units.collect();
        let leans = leans(&units.iter().collect::<Vec<_>>());
        Self { leans, by_loops: true, dealt_out: true, ..Self::new(PartitionKind::Irregular, Owners::Nobody) }
    }

    /// The same use, if it is known that parts are dealt out.
    #[must_use]
    pub fn dealt_out_instead(&self) -> Self {
        Self { leans: self.leans, by_loops: self.by_loops, fine: self.fine, ..Self::dealt_out_anew() }
    }

    /// Whether threads of one kind cannot take the work of another. (A dynamic schedule says that any thread of the team takes it.)
    #[must_use]
    pub fn stays_with_kinds(&self) -> bool {
        self.between_kinds && !self.changes
    }

    /// The same partition of a range that is `to` bytes long instead of `from`.
    #[must_use]
    pub fn scaled(&self, from: u64, to: u64) -> Self {
        let factor = to as f64 / from.max(1) as f64;
        let at = |position: u64| (position as f64 * factor) as u64;
        let list = |list: &[(u64, usize)]| list.iter().map(|&(position, worker)| (at(position), worker)).collect();
        let owners = match &self.owners {
            Owners::Nobody => Owners::Nobody,
            Owners::One(worker) => Owners::One(*worker),
            Owners::Blocks(blocks) => Owners::Blocks(list(blocks)),
            Owners::Rows(stride, rows) => Owners::Rows(at(*stride).max(1), rows.clone()),
            Owners::Nearest(nearest, reach) => Owners::Nearest(list(nearest), at(*reach)),
            Owners::Periodic(period, phases) => Owners::Periodic(period * factor, phases.clone()),
        };
        let fine = self.fine.map(|period| at(period).max(1)).filter(|period| *period < cyclic::SHORTEST as u64);
        Self { owners, fine, ..self.clone() }
    }

    /// The worker that owns a position, if the partition follows a rule (a period, or one worker per row) that also holds between samples.
    #[must_use]
    pub fn owner_by_rule(&self, position: u64) -> Option<usize> {
        matches!(self.owners, Owners::Rows(..) | Owners::Periodic(..)).then(|| self.owner(position)).flatten()
    }

    /// Whether a period explains nearly all.
    #[must_use]
    pub fn is_sure_period(&self) -> bool {
        matches!(self.owners, Owners::Periodic(..)) && self.kappa >= SURE_PERIOD
    }

    /// The same partition; its period counts as explaining no more than the part of it that these units show.
    #[must_use]
    pub fn shown_by(self, units: impl Iterator<Item = (u64, usize)>) -> Self {
        let Owners::Periodic(period, _) = &self.owners else { return self };
        let shown = cyclic::shown_by(*period, units);
        Self { kappa: self.kappa.min(shown), ..self }
    }

    /// Whether a period explains nearly all, and its parts are so small that a record at this distance, bytes, says nothing of a place: samples at equal
    /// distances show long runs of one worker by chance.
    #[must_use]
    pub fn outreaches(&self, distance: u64) -> bool {
        let Owners::Periodic(period, phases) = &self.owners else { return false };
        let workers = phases.iter().map(|(_, worker)| worker).collect::<std::collections::BTreeSet<_>>().len();
        self.is_sure_period() && distance as f64 > period / workers.max(1) as f64 / NEAR_PARTS
    }

    /// How the owners of blocks follow each other, by all pairs (Kendall's tau): a few threads may have been numbered in another order than they were
    /// made.
    #[must_use]
    pub fn order(&self) -> Order {
        let Owners::Blocks(blocks) = &self.owners else { return Order::Ascending };
        if self.kind != PartitionKind::Block {
            return Order::Ascending;
        }
        let (mut rising, mut falling) = (0_u32, 0_u32);
        for (at, (_, first)) in blocks.iter().enumerate() {
            for (_, later) in &blocks[at + 1..] {
                rising += u32::from(first < later);
                falling += u32::from(first > later);
            }
        }
        let tau = (f64::from(rising) - f64::from(falling)) / f64::from(rising + falling).max(1.0);
        match tau {
            tau if tau < -ORDERED => Order::Descending,
            tau if tau > ORDERED || rising + falling == 0 => Order::Ascending,
            _ => Order::Mixed,
        }
    }

    /// The number of workers that own a block.
    #[must_use]
    pub fn block_owners(&self) -> Option<usize> {
        let Owners::Blocks(blocks) = &self.owners else { return None };
        Some(blocks.iter().map(|(_, worker)| worker).collect::<std::collections::BTreeSet<_>>().len())
    }

    /// The worker that owns a position; `None` if the partition is not stable.
    #[must_use]
    pub fn owner(&self, position: u64) -> Option<usize> {
        self.owners.owner(position)
    }
}

/// Input of [`classify`].
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub units: Vec<Unit>,
    /// Shares of all accesses (or touched pages), by worker.
    pub weights: BTreeMap<usize, f64>,
    /// Bytes of one row, and number of rows.
    pub stride: u64,
    pub rows: usize,
    /// CPUs that the program could run on. No more threads than these are seen in one short window.
    pub cpus: usize,
    pub sight: Sight,
}

/// Which of the workers that use an address one unit shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// All workers that accessed it in a stretch of time (watch windows).
    #[default]
    All,
    /// The only worker (first touches).
    Only,
    /// One of several workers (hinting faults).
    One,
}

/// Of `count` items (their exact number), as many as [`classify`] looks at: one of each n in a row, at random. If each n-th were taken, threads that the
/// scheduler's ticks sample in turn would be left out where n and their number have a common divisor.
pub fn thinned<T>(items: impl Iterator<Item = T>, count: usize) -> impl Iterator<Item = T> {
    let of_each = count.div_ceil(MAX_UNITS).max(1);
    let kept = move |run: usize| (mixed(run as u64) % of_each as u64) as usize;
    items.enumerate().filter(move |(at, _)| at % of_each == kept(at / of_each)).map(|(_, item)| item)
}

/// A number that looks random, for each number: the output function of SplitMix64 (Steele, Lea and Flood, 2014).
fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Recognises the partition. See the module's text for the rules.
#[must_use]
pub fn classify(sample: &Sample) -> Partition {
    let total: f64 = sample.weights.values().sum();
    let most = sample.weights.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
    if let Some((&worker, &weight)) = most
        && weight >= SINGLE * total
        && total > 0.0
    {
        return Partition::new(PartitionKind::Single, Owners::One(worker));
    }
    if sample.units.len() < MIN_UNITS {
        return Partition::unknown();
    }
    let mut units: Vec<&Unit> = thinned(sample.units.iter(), sample.units.len()).collect();
    units.sort_by_key(|u| u.position);
    let chance = Chance::of(&units);
    if let Some(blocks) = block::blocks(&units, &chance) {
        return match runs::runs(&units, &chance, &blocks) {
            Some(runs) => Partition::new(PartitionKind::BlockCyclic, Owners::Blocks(runs)),
            None => Partition::new(PartitionKind::Block, Owners::Blocks(blocks)),
        };
    }
    let sharing = match sample.sight {
        Sight::All => shared::how(&units, &chance, sample.cpus),
        Sight::Only => Sharing::known(Use::Dealt),
        Sight::One => Sharing::known(Use::Open),
    };
    if sharing.how == Use::InFull {
        return Partition::new(PartitionKind::Shared, Owners::Nobody);
    }
    let is_ambiguous = sharing.how == Use::RanApart;
    let found = if is_ambiguous { None } else { owners(&units, &chance, sample) };
    // Of threads that run one at a time, each sample shows the one that runs.
    let lasts = |owners: &Owners| match (sample.sight, sharing.ran_apart) {
        (_, true) => lasting::lasts(&units, &chance, owners, true) && !lasting::is_by_round(&units, &chance),
        (Sight::One, false) => lasting::lasts(&units, &chance, owners, false),
        _ => true,
    };
    let is_ambiguous = is_ambiguous || (sharing.ran_apart && found.as_ref().is_some_and(|(owners, _)| !lasts(owners)));
    if let Some((owners, kappa)) = found.filter(|(owners, _)| lasts(owners)) {
        return Partition { kappa, ..Partition::new(PartitionKind::BlockCyclic, owners) };
    }
    let fine = || cyclic::fine_period(&units, &chance).filter(|(period, list)| lasts(&Owners::Periodic(*period, list.clone())));
    if let Some((period, _)) = fine().filter(|_| !is_ambiguous) {
        return Partition { dealt_out: true, fine: Some(period as u64), ..Partition::new(PartitionKind::Irregular, Owners::Nobody) };
    }
    if (units.len() as f64) < 5.0 * chance.workers_unbiased(units.len()) {
        return Partition::unknown();
    }
    if is_ambiguous {
        return Partition { ran_apart: true, ..Partition::unknown() };
    }
    Partition { dealt_out: sharing.how == Use::Dealt, leans: leans(&units), ..Partition::new(PartitionKind::Irregular, Owners::Nobody) }
}

/// The blocks that each worker owns, if these units show some. The other rules are not tried.
#[must_use]
pub fn in_blocks(units: &[Unit]) -> Option<Partition> {
    let mut units: Vec<&Unit> = thinned(units.iter(), units.len()).collect();
    units.sort_by_key(|unit| unit.position);
    let chance = Chance::of(&units);
    if units.len() < MIN_UNITS || chance.most >= SINGLE {
        return None;
    }
    let blocks = block::blocks(&units, &chance).filter(|blocks| runs::runs(&units, &chance, blocks).is_none())?;
    Some(Partition::new(PartitionKind::Block, Owners::Blocks(blocks)))
}

/// Whether the worker depends on the place more than chance explains, by equal parts of the range.
fn leans(units: &[&Unit]) -> bool {
    let end = units.iter().map(|unit| unit.position).max().unwrap_or(0) + 1;
    let mut table = Contingency::default();
    for unit in units {
        let part = (u128::from(unit.position) * LEANING_PARTS / u128::from(end)) as usize;
        unit.shares.iter().for_each(|(worker, share)| table.add(*worker, part, *share));
    }
    table.is_dependent()
}

/// The owners of parts, if a rule shows them, and how well a period explains the units (0 of other rules).
fn owners(units: &[&Unit], chance: &Chance, sample: &Sample) -> Option<(Owners, f64)> {
    let rows = || neighbours::rows(units, chance, sample.stride, sample.rows).map(|rows| Owners::Rows(sample.stride, rows));
    let period = || cyclic::period(units, chance, sample.stride, sample.rows);
    let periodic = || {
        let (kappa, period, list) = period()?;
        let explained = kappa * cyclic::shown(period, &list);
        Some((Owners::Periodic(period, list), explained))
    };
    let nearest = || neighbours::chunks(units, chance).map(|(list, reach)| (Owners::Nearest(list, reach), 0.0));
    let runs = || runs::runs(units, chance, &[]).map(|runs| (Owners::Blocks(runs), 0.0));
    rows().map(|rows| (rows, 0.0)).or_else(periodic).or_else(runs).or_else(nearest)
}

/// How many times the workers take turns over the range: 1 for plain blocks, 2 for plain blocks in each of two arrays side by side, and so
/// on. None with too few units, or with more turns than several arrays would cause.
///
/// Turns are counted from the units, because a period that explains them may be one of several (aliases, `cyclic.rs`).
#[must_use]
pub fn turns(units: impl Iterator<Item = Unit>) -> Option<u64> {
    let mut seen: Vec<(u64, usize)> = units.map(|unit| (unit.position, unit.main_worker())).collect();
    seen.sort_unstable();
    // Assign a unit between two units of one worker to that worker, because borders and single stray accesses blur the parts.
    let mut parts: Vec<usize> = seen.windows(3).map(|three| if three[0].1 == three[2].1 { three[0].1 } else { three[1].1 }).collect();
    let workers = parts.iter().collect::<std::collections::BTreeSet<_>>().len();
    parts.dedup();
    let turns = (parts.len() as f64 / workers.max(1) as f64).round() as usize;
    (workers > 1 && seen.len() >= UNITS_A_PART * parts.len() && turns <= MOST_TURNS).then_some(turns as u64)
}

/// The agreement that chance would give.
struct Chance {
    /// Mean share of each worker over the units.
    shares: BTreeMap<usize, f64>,
    /// Agreement of two units at random: sum p^2.
    agreement: f64,
    /// Effective number of workers: 1 / sum p^2.
    workers: f64,
    /// Share of the most frequent worker.
    most: f64,
}

impl Chance {
    fn of(units: &[&Unit]) -> Self {
        let mut shares: BTreeMap<usize, f64> = BTreeMap::new();
        for unit in units {
            for &(worker, share) in &unit.shares {
                *shares.entry(worker).or_default() += share / units.len() as f64;
            }
        }
        let agreement: f64 = shares.values().map(|p| p * p).sum::<f64>().clamp(1e-12, 1.0);
        let most = shares.values().copied().fold(0.0, f64::max);
        Self { shares, agreement, workers: 1.0 / agreement, most }
    }

    /// The number of effective workers, without the bias of sum p^2 from counting only `n` units.
    fn workers_unbiased(&self, n: usize) -> f64 {
        let n = n.max(2) as f64;
        let agreement = (n * self.agreement - 1.0) / (n - 1.0);
        if agreement > 1.0 / n { 1.0 / agreement } else { n }
    }

    /// (agreement - chance) / (1 - chance).
    fn kappa(&self, agreement: f64) -> f64 {
        (agreement - self.agreement) / (1.0 - self.agreement).max(1e-9)
    }
}

#[cfg(test)]
mod tests;
