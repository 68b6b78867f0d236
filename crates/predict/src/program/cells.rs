//! The traffic in cells: bytes by object, worker and everything that a placement can depend on. The samples are read once. After that, the
//! cost of a run depends on the number of cells, not of samples.

use crate::random::SplitMix;
use firsttouch_model::contingency::Contingency;
use firsttouch_model::traffic::{Division, ObjectTraffic, Parts, Traffic, TrafficSample, Work};
use hashbrown::{HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};

/// With fewer samples per thread, a thread without samples may still use the object.
const ENOUGH: usize = 5;
/// With fewer rounds, resample single samples, because the spread of so few rounds is unreliable.
const LEAST_ROUNDS: usize = 20;
/// More rounds are drawn together in this many groups. Rounds are assigned to groups at random, so that groups spread as rounds do.
const MOST_UNITS: usize = 1000;

const BASE_PAGE: f64 = 4096.0;
/// Parts of more pages than this have hardly any that they share with others.
const WHOLE_PAGES: f64 = 32.0;
/// A page is looked at part by part, up to so many.
const MOST_PARTS: usize = 4096;
/// Of a phase.
const ROUNDING: f64 = 1e-9;

/// Accesses of one worker that every placement treats alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    pub worker: usize,
    /// The node of the pages, as the program placed them.
    pub home: usize,
    /// The node of the worker that owns the part.
    pub owner: usize,
    /// The node of the worker whose block it lies in if all users get equal blocks.
    pub block: usize,
    /// Whether one thread works alone.
    pub serial: bool,
}

/// The cells of one object.
#[derive(Clone, Debug)]
pub struct ObjectCells {
    pub division: Division,
    /// Where accesses lie depends on the threads that make them, although no part has an owner: the work stays with its threads.
    pub is_tied: bool,
    /// Where the threads that it is tied to may have equal blocks of it, as each uses its own part.
    pub has_blocks: bool,
    /// Bytes alive at the same time; 0 without samples.
    pub bytes: f64,
    /// Index of the first cell, and of the one after the last.
    pub range: std::ops::Range<usize>,
    /// The fraction of the samples by node: of the pages, and of the owners.
    pub by_home: Vec<(usize, f64)>,
    pub by_owner: Vec<(usize, f64)>,
    /// The workers that get equal parts if a change of the source gives each the same part every time; empty if the work stays with its threads.
    /// Which of them had time for how much of it in the recorded run says nothing about that.
    pub takers: Vec<usize>,
    /// Workers whose shares count as equal, of those with samples in the team.
    even: Vec<usize>,
    /// Whether threads without samples may use it too.
    has_few_samples: bool,
}

/// The cells of all objects, and how the samples contribute to them.
pub struct Cells {
    pub cells: Vec<Cell>,
    pub objects: Vec<ObjectCells>,
    /// The index of each object, by id.
    by_id: HashMap<i64, usize>,
    /// By unit that is drawn as a whole: its bytes by cell.
    units: Vec<Vec<(u32, f64)>>,
    /// The node of each worker.
    nodes: Vec<u32>,
    /// The workers of the team that use any object, and their number by node.
    pub members: Vec<usize>,
    team: BTreeMap<u32, usize>,
}

/// An object whose parts are dealt out in turn, and so small that pages hold several: a page is on one node, whoever owns the rest of it.
struct Pages<'a> {
    parts: &'a Parts,
    period: f64,
    bytes: f64,
    /// The node of each worker.
    nodes: &'a [u32],
}

impl<'a> Pages<'a> {
    /// `None` if pages hold a part each, or it is not known what they hold.
    fn new(object: &'a ObjectTraffic, nodes: &'a [u32]) -> Option<Self> {
        let parts = object.parts.as_ref().filter(|_| object.rows <= 1)?;
        let period = parts.period_bytes.filter(|period| *period >= 1.0)?;
        let starts = std::iter::once(0.0).chain(parts.ends.iter().copied());
        let shortest = starts.zip(&parts.ends).map(|(start, end)| (end - start) * period).fold(f64::INFINITY, f64::min);
        (shortest < WHOLE_PAGES * BASE_PAGE).then_some(Self { parts, period, bytes: object.bytes as f64, nodes })
    }

    /// The node whose workers own most of the page at this position: where it is at best, if all of them touch their parts.
    fn node_of(&self, position: f64) -> Option<usize> {
        let page = (position * self.bytes / BASE_PAGE).floor() * BASE_PAGE;
        let mut owned: BTreeMap<u32, f64> = BTreeMap::new();
        let mut at = page;
        // Rounding may leave a part without length.
        for _ in 0..MOST_PARTS {
            let round = (at / self.period).floor() * self.period;
            let phase = (at - round) / self.period;
            let part = self.parts.ends.partition_point(|end| *end <= phase + ROUNDING).min(self.parts.workers.len().checked_sub(1)?);
            let end = f64::min(round + self.parts.ends.get(part)? * self.period, page + BASE_PAGE);
            *owned.entry(*self.nodes.get(*self.parts.workers.get(part)?)?).or_default() += (end - at).max(0.0);
            at = f64::max(end, at + 1.0);
            if at >= page + BASE_PAGE {
                break;
            }
        }
        owned.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(node, _)| node as usize)
    }
}

impl Cells {
    pub fn new(traffic: &Traffic) -> Self {
        let samples = traffic.objects.iter().flat_map(ObjectTraffic::of_team);
        let mut works = vec![false; traffic.workers.len()];
        samples.flat_map(|sample| &sample.bytes).for_each(|(worker, _)| works[*worker] = true);
        // A few samples of a worker that did next to nothing make it no member of a team.
        let is_busy: Vec<bool> = traffic.workers.iter().zip(&works).map(|(worker, works)| *works && !worker.idle).collect();
        if is_busy.contains(&true) {
            works = is_busy;
        }
        let mut team = BTreeMap::new();
        for (worker, _) in traffic.workers.iter().zip(&works).filter(|(_, works)| **works) {
            *team.entry(worker.node).or_insert(0) += 1;
        }
        let mut this = Self {
            cells: Vec::new(),
            objects: Vec::new(),
            by_id: HashMap::new(),
            units: Vec::new(),
            nodes: traffic.workers.iter().map(|worker| worker.node).collect(),
            members: (0..works.len()).filter(|worker| works[*worker]).collect(),
            team,
        };
        let mut units = Units::new(traffic);
        for object in &traffic.objects {
            this.add(object, &mut units);
        }
        for unit in &mut this.units {
            unit.sort_unstable_by_key(|(cell, _)| *cell);
            unit.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 += next.1;
                }
                same
            });
        }
        this
    }

    fn add(&mut self, object: &ObjectTraffic, units: &mut Units) {
        let start = self.cells.len();
        let blocks = self.blocks(object);
        let is_tied = object.division == Division::DealtOut
            && match object.work {
                Work::OfAnyThread => false,
                Work::OfItsThread => true,
                Work::AsSeen => object.has_fine_parts || self.is_tied(object, &blocks),
            };
        let has_blocks = is_tied && object.work != Work::OfItsThread;
        let mut known: HashMap<Cell, u32> = HashMap::new();
        let (mut homes, mut owners) = (BTreeMap::new(), BTreeMap::new());
        let each = 1.0 / object.samples.len().max(1) as f64;
        let pages = Pages::new(object, &self.nodes);
        for sample in &object.samples {
            let page = || pages.as_ref()?.node_of(sample.position);
            let (home, owner) = (sample.home as usize, page().unwrap_or_else(|| self.owner(sample)));
            let block = if has_blocks { block(&blocks, sample) } else { owner };
            *homes.entry(home).or_insert(0.0) += each;
            *owners.entry(owner).or_insert(0.0) += each;
            let unit = units.of(sample);
            if self.units.len() <= unit {
                self.units.resize(unit + 1, Vec::new());
            }
            for &(worker, bytes) in &sample.bytes {
                let cell = Cell { worker, home, owner, block, serial: sample.serial };
                let index = *known.entry(cell).or_insert_with(|| {
                    self.cells.push(cell);
                    (self.cells.len() - 1) as u32
                });
                self.units[unit].push((index, bytes));
            }
        }
        let sampled: HashSet<usize> = self.cells[start..].iter().filter(|cell| !cell.serial).map(|cell| cell.worker).collect();
        let has_few_samples = object.samples.len() < ENOUGH * self.members.len();
        let takes = |worker: &usize| object.division == Division::DealtOut && !is_tied && (has_few_samples || sampled.contains(worker));
        self.by_id.insert(object.id, self.objects.len());
        self.objects.push(ObjectCells {
            division: object.division,
            is_tied,
            has_blocks,
            bytes: if object.samples.is_empty() { 0.0 } else { object.bytes as f64 },
            range: start..self.cells.len(),
            by_home: homes.into_iter().collect(),
            by_owner: owners.into_iter().collect(),
            takers: self.members.iter().copied().filter(takes).collect(),
            even: object.even.iter().copied().filter(|worker| sampled.contains(worker)).collect(),
            has_few_samples,
        });
    }

    /// The node of each user's block, if all users get equal blocks.
    fn blocks(&self, object: &ObjectTraffic) -> Vec<usize> {
        let users: BTreeSet<usize> = object.samples.iter().flat_map(|sample| &sample.bytes).map(|(worker, _)| *worker).collect();
        users.iter().filter_map(|worker| self.nodes.get(*worker)).map(|node| *node as usize).collect()
    }

    /// Whether threads of different nodes use different parts of an object more often than chance explains, by the nodes of its pages or by equal
    /// blocks: loops over rows and over columns in turn, say. Work that is dealt out anew each time shows no such difference.
    fn is_tied(&self, object: &ObjectTraffic, blocks: &[usize]) -> bool {
        let depends = |place: &dyn Fn(&TrafficSample) -> usize| {
            let (mut table, mut counted) = (Contingency::default(), HashSet::new());
            // The accesses of one look at a thread are near each other: at one place, they count once.
            for sample in object.of_team().filter(|sample| counted.insert((sample.round, place(sample)))) {
                let volume = sample.volume().max(f64::MIN_POSITIVE);
                let users = sample.bytes.iter().filter_map(|(worker, bytes)| Some((*self.nodes.get(*worker)?, bytes / volume)));
                users.for_each(|(node, share)| table.add(node as usize, place(sample), share));
            }
            table.is_dependent()
        };
        depends(&|sample| sample.home as usize) || depends(&|sample| block(blocks, sample))
    }

    /// The node of the worker that owns the sample's part; of its main user, if it has no owner.
    fn owner(&self, sample: &TrafficSample) -> usize {
        let most = || sample.bytes.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(worker, _)| *worker);
        let node = sample.owner.or_else(most).and_then(|worker| self.nodes.get(worker));
        node.map_or(sample.home as usize, |node| *node as usize)
    }

    /// The index of the object with this id, if it has traffic.
    pub fn index(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Workers that use an object.
    pub fn users(&self, object: usize) -> BTreeSet<usize> {
        self.cells[self.objects[object].range.clone()].iter().map(|cell| cell.worker).collect()
    }

    /// The bytes of each cell, as sampled.
    pub fn bytes(&self) -> Vec<f64> {
        self.weighted(|| 1.0)
    }

    /// The bytes of each cell in a resampled program: Efron's bootstrap with Poisson weights.
    pub fn drawn(&self, random: &mut SplitMix) -> Vec<f64> {
        self.weighted(|| random.poisson())
    }

    /// Workers whose shares of an object do not differ significantly get equal shares, because the noise of few samples would otherwise
    /// delay one of them.
    fn weighted(&self, mut weight: impl FnMut() -> f64) -> Vec<f64> {
        let mut bytes = vec![0.0; self.cells.len()];
        for unit in &self.units {
            let weight = weight();
            if weight > 0.0 {
                unit.iter().for_each(|(cell, own)| bytes[*cell as usize] += weight * own);
            }
        }
        let (mut sums, mut factors) = (vec![0.0; self.nodes.len()], vec![1.0; self.nodes.len()]);
        for object in self.objects.iter().filter(|object| !object.even.is_empty()) {
            self.equalise(object, &mut bytes, &mut sums, &mut factors);
        }
        bytes
    }

    /// `sums`: zeros, by worker; `factors`: ones. They are the same again afterwards: setting them up anew for each object would take as long as
    /// there are threads. Shares are equalised only within the team.
    fn equalise(&self, object: &ObjectCells, bytes: &mut [f64], sums: &mut [f64], factors: &mut [f64]) {
        let of_team = || object.range.clone().filter(|index| !self.cells[*index].serial);
        of_team().for_each(|index| sums[self.cells[index].worker] += bytes[index]);
        let users = || object.even.iter().copied().filter(|worker| sums[*worker] > 0.0);
        let all: f64 = users().map(|worker| sums[worker]).sum();
        let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
        users().for_each(|worker| *seen.entry(self.nodes[worker]).or_default() += 1);
        let count: usize = seen.values().sum();
        // Count all threads of a node, not only those with samples.
        let counts_unseen = object.has_few_samples && seen.keys().eq(self.team.keys());
        for worker in users() {
            let node = self.nodes[worker];
            let share = match (self.team.get(&node), seen.get(&node)) {
                (Some(team), Some(seen)) if counts_unseen => *team as f64 / self.members.len() as f64 / *seen as f64,
                _ => 1.0 / count as f64,
            };
            factors[worker] = all * share / sums[worker];
        }
        for index in of_team() {
            let worker = self.cells[index].worker;
            bytes[index] *= factors[worker];
            sums[worker] = 0.0;
        }
        object.even.iter().for_each(|worker| factors[*worker] = 1.0);
    }
}

/// The node of the block that a sample lies in; its home without blocks.
fn block(blocks: &[usize], sample: &TrafficSample) -> usize {
    let index = (sample.position * blocks.len() as f64) as usize;
    blocks.get(index.min(blocks.len().saturating_sub(1))).copied().unwrap_or(sample.home as usize)
}

/// The units of the bootstrap: rounds, because the samples of one round see the same phase of the program.
struct Units {
    /// The unit of each round; `None` if each sample is a unit.
    of_round: Option<HashMap<u64, usize>>,
    /// The number of samples, and of those seen so far.
    samples: usize,
    seen: usize,
    groups: SplitMix,
}

impl Units {
    fn new(traffic: &Traffic) -> Self {
        let mut groups = SplitMix::new();
        let samples = || traffic.objects.iter().flat_map(|object| &object.samples);
        let mut rounds: HashMap<u64, usize> = HashMap::new();
        for sample in samples() {
            let next = rounds.len();
            rounds.entry(sample.round).or_insert(next);
        }
        let count = rounds.len();
        let of_round = (count >= LEAST_ROUNDS).then(|| {
            let groups: Vec<usize> = (0..count).map(|index| group(index, count, &mut groups)).collect();
            rounds.into_iter().map(|(round, index)| (round, groups[index])).collect()
        });
        Self { of_round, samples: samples().count(), seen: 0, groups }
    }

    fn of(&mut self, sample: &TrafficSample) -> usize {
        match &self.of_round {
            Some(units) => units.get(&sample.round).copied().unwrap_or(0),
            None => {
                self.seen += 1;
                group(self.seen - 1, self.samples, &mut self.groups)
            }
        }
    }
}

fn group(index: usize, count: usize, random: &mut SplitMix) -> usize {
    if count <= MOST_UNITS { index } else { random.below(MOST_UNITS) }
}
