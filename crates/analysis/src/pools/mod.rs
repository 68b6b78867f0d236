//! Pools: blocks that are too small to be recorded one by one (`--min-size`), as one object for each place in the code that allocates them.
//!
//! The agent records a sample of the small blocks. `stretches.rs` finds the memory between sampled blocks of one site. All stretches of a
//! site become one object with an address range of its own, in which they lie side by side in the order of their addresses, and the accesses
//! and first touches in them get addresses in that range. So the rest of the analysis sees one array.
//!
//! Two stacks are the same site if the program's code allocates on the same line: threads and recursive calls reach that line on many ways.
//! Pools of less than [`LEAST_BYTES`] are put together, because they fit in a cache one by one.

mod one_block;
mod stretches;

use crate::Sources;
use crate::names::chain;
use crate::pool::Pool;
use crate::source_code::CodeLocations;
use firsttouch_model::rows::{FirstTouch, Id, NO_OBJECT, Object, ObjectKind, Profile, SampledAccess, SmallBlock};
use hashbrown::{HashMap, HashSet};
use one_block::Extent;
use std::collections::BTreeMap;
use stretches::{Block, Owners, Stretch, stretches};

const LEAST_BYTES: u64 = 1 << 20;
/// A pool of less than this part of another one that shares a site with it belongs to that one.
const SPLINTER: f64 = 0.1;
/// The address range of the first pool: no program has memory there.
const FIRST_ADDRESS: u64 = 1 << 60;
/// Distance from one pool's range to the next.
const RANGE: u64 = 1 << 48;
/// What a profile may contain of addresses, sizes of blocks, and pools, so that their ranges do not overlap.
const MOST_ADDRESS: u64 = 1 << 48;
const MOST_BYTES: u64 = 1 << 32;
const MOST_POOLS: usize = 4096;
/// Bytes of an allocator's header of a block.
const HEADER: f64 = 8.0;

/// A profile in which pools are objects.
#[derive(Debug)]
pub struct Pooled {
    pub profile: Profile,
    /// By object id.
    pub pools: HashMap<Id, Pool>,
    memory: Memory,
    /// By pool: the sampled blocks in its memory, with their sizes and whether the pool's lines allocated them.
    sampled: HashMap<Id, BTreeMap<u64, (u64, bool)>>,
    /// The highest id of an object.
    last_object: Id,
}

/// An instruction and a pool.
type Use = (Option<u64>, Id);

impl Pooled {
    /// `None` if no small block was sampled.
    #[must_use]
    pub fn new(profile: &Profile, sources: &dyn Sources) -> Option<Self> {
        if profile.small_blocks.is_empty() {
            return None;
        }
        let last_object = profile.objects.iter().map(|object| object.id).max().unwrap_or(0);
        let mut pooled =
            Self { profile: profile.clone(), pools: HashMap::new(), memory: Memory::default(), sampled: HashMap::new(), last_object };
        let places = Places::new(profile, sources);
        for (process, rows) in Rows::by_process(profile) {
            pooled.add_process(process, &rows, &places);
        }
        pooled.translate_accesses();
        pooled.copy_touches();
        Some(pooled)
    }

    /// Whether an address, as recorded, is in a pool.
    #[must_use]
    pub fn holds(&self, process: Id, address: u64) -> bool {
        self.memory.at(process, address).is_some()
    }

    fn add_process(&mut self, process: Id, rows: &Rows<'_>, places: &Places) {
        let sampled = rows.surviving();
        let block = |b: &&SmallBlock| Block { address: b.address, bytes: b.bytes, weight: weight(b), site: places.of(b) };
        let blocks: Vec<Block> = sampled.values().map(block).collect();
        let mut list = stretches(&blocks, &rows.holes(&sampled));
        let owners = settle(&mut list);
        let last = self.last_object;
        let mut pools: BTreeMap<Owners, (Id, u64)> = BTreeMap::new();
        let free = usize::try_from(Id::MAX - last).unwrap_or(usize::MAX);
        for owner in owners.into_iter().take(MOST_POOLS.saturating_sub(self.pools.len()).min(free)) {
            let id = last + 1 + pools.len() as Id;
            pools.insert(owner, (id, FIRST_ADDRESS + RANGE * self.pools.len() as u64 + RANGE * pools.len() as u64));
        }
        let mut of_pool: HashMap<Id, Vec<&SmallBlock>> = HashMap::new();
        let mut memory = Vec::new();
        for stretch in list {
            let Some((id, next)) = pools.get_mut(&stretch.owners) else { continue };
            memory.push(Piece { start: stretch.start, end: stretch.end, object: *id, address: *next });
            *next += stretch.end - stretch.start;
            of_pool.entry(*id).or_default().extend(sampled.range(stretch.start..stretch.end).map(|(_, block)| *block));
        }
        let mut objects = Vec::with_capacity(pools.len());
        for (owners, (id, end)) in pools {
            let address = end & !(RANGE - 1);
            let own = of_pool.remove(&id).unwrap_or_default();
            let pool = pool(&owners, &own, places, end - address);
            let main = pool.sites.first().cloned();
            objects.push(Object {
                id,
                process,
                kind: ObjectKind::Pool,
                call: main.as_ref().map(|(_, call)| call.clone()),
                name: pool.sites.is_empty().then(|| format!("small blocks of {} allocating lines", pool.places)),
                address,
                bytes: end - address,
                born_ns: rows.born_ns,
                died_ns: None,
                site: main.and_then(|(site, _)| site),
                thread: own.first().map(|block| block.thread),
            });
            let is_own = |block: &SmallBlock| owners.is_empty() || owners.contains(&places.of(block));
            self.sampled.insert(id, own.iter().map(|block| (block.address, (block.bytes, is_own(block)))).collect());
            self.pools.insert(id, pool);
            self.last_object = id.max(self.last_object);
        }
        self.profile.objects.extend(objects);
        self.memory.by_process.insert(process, memory);
    }

    /// Accesses in pools get the pool's object and address; the others are accesses to memory of no recorded object.
    fn translate_accesses(&mut self) {
        let process_of: HashMap<Id, Id> = self.profile.threads.iter().map(|thread| (thread.id, thread.process)).collect();
        let thread_of: HashMap<Id, (usize, Id)> =
            self.profile.samples.iter().enumerate().map(|(at, sample)| (sample.id, (at, sample.thread))).collect();
        let address_of: HashMap<Id, u64> =
            self.profile.sites.iter().filter_map(|(&id, site)| Some((id, site.frames.first()?.address))).collect();
        let instruction = |access: &SampledAccess| access.site.and_then(|site| address_of.get(&site).copied());
        let place = |memory: &Memory, access: &SampledAccess| {
            let &(at, thread) = thread_of.get(&access.sample)?;
            Some((at, process_of.get(&thread).and_then(|process| memory.at(*process, access.address))))
        };
        let of_others = self.blocks_of_others(|memory, access| {
            let (object, _) = place(memory, access)?.1?;
            Some((instruction(access), object))
        });
        let Self { profile, memory, .. } = self;
        let samples = &mut profile.samples;
        profile.sampled_accesses.retain_mut(|access| {
            if access.object != NO_OBJECT {
                return true;
            }
            let Some((at, found)) = place(memory, access) else { return false };
            let found = found.filter(|(object, _)| !of_others.contains(&(instruction(access), *object)));
            match found {
                Some((object, address)) => (access.object, access.address) = (object, address),
                // What each round reads at one place is a constant, or in a cache.
                None if access.stride == Some(0) => {}
                None => samples[at].elsewhere += access.words,
            }
            found.is_some()
        });
    }

    /// The uses of pools that are accesses to one block, maybe of another line. `place`: the use that an access is.
    fn blocks_of_others(&self, place: impl Fn(&Memory, &SampledAccess) -> Option<Use>) -> HashSet<Use> {
        let mut extents: HashMap<Use, Extent> = HashMap::new();
        for access in self.profile.sampled_accesses.iter().filter(|access| access.object == NO_OBJECT) {
            if let Some(used) = place(&self.memory, access) {
                Extent::add(&mut extents, used, access.address);
            }
        }
        let bytes: HashMap<Id, u64> = self.profile.objects.iter().map(|object| (object.id, object.bytes)).collect();
        let is_other = |(&(instruction, object), extent): (&Use, &Extent)| {
            instruction.is_some() && self.sampled.get(&object).is_some_and(|sampled| extent.is_block_of_others(bytes[&object], sampled))
        };
        extents.iter().filter(|entry| is_other(*entry)).map(|(used, _)| *used).collect()
    }

    /// First touches in pools count there too. The recorded ones stay: a larger object may own the address later.
    fn copy_touches(&mut self) {
        let last = self.profile.first_touches.iter().map(|touch| touch.id).max().unwrap_or(0);
        let found = self.profile.first_touches.iter().filter_map(|touch| {
            let (_, address) = self.memory.at(touch.process, touch.address)?;
            Some((touch, address))
        });
        let copies: Vec<FirstTouch> = found
            .enumerate()
            .map(|(at, (touch, address))| FirstTouch { id: last.saturating_add(1 + at as Id), address, ..touch.clone() })
            .collect();
        self.profile.first_touches.extend(copies);
    }
}

/// Memory of a pool, and its address in the pool's range.
#[derive(Debug)]
struct Piece {
    start: u64,
    end: u64,
    object: Id,
    address: u64,
}

#[derive(Debug, Default)]
struct Memory {
    /// Sorted by start.
    by_process: HashMap<Id, Vec<Piece>>,
}

impl Memory {
    /// The pool at an address, and the address in its range.
    fn at(&self, process: Id, address: u64) -> Option<(Id, u64)> {
        let list = self.by_process.get(&process)?;
        let piece = list[..list.partition_point(|piece| piece.start <= address)].last()?;
        (address < piece.end).then(|| (piece.object, piece.address + (address - piece.start)))
    }
}

/// The places in the code that allocate small blocks.
struct Places {
    of_site: HashMap<(Option<Id>, String), usize>,
}

impl Places {
    fn new(profile: &Profile, sources: &dyn Sources) -> Self {
        let locations = CodeLocations { profile, sources };
        let (mut of_site, mut numbers) = (HashMap::new(), HashMap::new());
        for block in &profile.small_blocks {
            of_site.entry((block.site, block.call.clone())).or_insert_with(|| {
                let calls = chain(block.site, Some(&block.call), &locations);
                let place = calls.last().map(|call| match call.line() {
                    Some((file, line)) => (Some(file.to_owned()), u64::from(line)),
                    None => (call.frame.module.clone(), call.frame.offset.unwrap_or(call.frame.address)),
                });
                let next = numbers.len();
                *numbers.entry(place).or_insert(next)
            });
        }
        Self { of_site }
    }

    fn of(&self, block: &SmallBlock) -> usize {
        self.of_site.get(&(block.site, block.call.clone())).copied().unwrap_or(usize::MAX)
    }
}

fn weight(block: &SmallBlock) -> f64 {
    if block.weight.is_finite() { block.weight.clamp(1.0, 1e12) } else { 1.0 }
}

/// No program has other addresses, or larger blocks below `--min-size`.
fn is_possible(block: &SmallBlock) -> bool {
    block.address < MOST_ADDRESS && block.bytes < MOST_BYTES
}

/// The rows of one process.
#[derive(Default)]
struct Rows<'a> {
    blocks: Vec<&'a SmallBlock>,
    objects: Vec<&'a Object>,
    born_ns: u64,
    /// The end of the profile.
    end_ns: u64,
}

impl<'a> Rows<'a> {
    /// Those of each process with small blocks.
    fn by_process(profile: &'a Profile) -> BTreeMap<Id, Self> {
        let mut list: BTreeMap<Id, Self> = BTreeMap::new();
        let end_ns = profile.meta.end_ns.unwrap_or(u64::MAX);
        for block in &profile.small_blocks {
            list.entry(block.process).or_insert_with(|| Self { end_ns, ..Self::default() }).blocks.push(block);
        }
        for object in &profile.objects {
            list.entry(object.process).and_modify(|rows| rows.objects.push(object));
        }
        // The first of several rows of one process counts.
        for process in profile.processes.iter().rev() {
            list.entry(process.id).and_modify(|rows| rows.born_ns = process.born_ns);
        }
        list
    }

    /// The sampled blocks by address, without those that were released since: another block or object lies there.
    fn surviving(&self) -> BTreeMap<u64, &'a SmallBlock> {
        let mut own: Vec<&SmallBlock> = self.blocks.iter().copied().filter(|block| is_possible(block)).collect();
        own.sort_by_key(|block| block.time_ns);
        let mut list: BTreeMap<u64, &SmallBlock> = BTreeMap::new();
        for block in own {
            let end = block.address.saturating_add(block.bytes.max(1));
            if let Some((&before, older)) = list.range(..block.address).next_back()
                && before.saturating_add(older.bytes) > block.address
            {
                list.remove(&before);
            }
            let inside: Vec<u64> = list.range(block.address..end).map(|(&address, _)| address).collect();
            inside.iter().for_each(|address| _ = list.remove(address));
            list.insert(block.address, block);
        }
        for object in &self.objects {
            let range = object.address..object.address.saturating_add(object.bytes);
            let gone: Vec<u64> =
                list.range(range).filter(|(_, block)| block.time_ns < object.born_ns).map(|(&address, _)| address).collect();
            gone.iter().for_each(|address| _ = list.remove(address));
        }
        list
    }

    /// The ranges of recorded objects, joined. Objects that lived for a short time in memory that is now of small blocks are left out.
    fn holes(&self, blocks: &BTreeMap<u64, &SmallBlock>) -> Vec<(u64, u64)> {
        let lasts = |object: &&&Object| {
            let life = object.died_ns.unwrap_or(self.end_ns).saturating_sub(object.born_ns);
            life >= self.end_ns.saturating_sub(object.born_ns) / 2
        };
        let own = self.objects.iter().filter(|object| object.bytes > 0).filter(lasts);
        let ranges = own.map(|object| (object.address, object.address.saturating_add(object.bytes)));
        let mut ranges: Vec<(u64, u64)> = ranges.filter(|&(start, end)| blocks.range(start..end).next().is_none()).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (start, end) in ranges {
            match joined.last_mut() {
                Some(last) if last.1 >= start => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        joined
    }
}

/// Puts small pools together: those that share a site with a much larger one go there, the others go to a pool without a site. Returns
/// the owners of all pools that are left, the largest first.
fn settle(list: &mut [Stretch]) -> Vec<Owners> {
    let mut sizes: BTreeMap<Owners, u64> = BTreeMap::new();
    for stretch in list.iter() {
        *sizes.entry(stretch.owners.clone()).or_default() += stretch.end - stretch.start;
    }
    let mut order: Vec<(u64, Owners)> = sizes.into_iter().map(|(owners, bytes)| (bytes, owners)).collect();
    order.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut moved: HashMap<Owners, Owners> = HashMap::new();
    let mut kept: Vec<(u64, Owners)> = Vec::new();
    for (bytes, owners) in order {
        let larger =
            kept.iter().find(|(more, others)| (bytes as f64) < SPLINTER * *more as f64 && owners.iter().any(|site| others.contains(site)));
        match larger {
            Some((_, others)) => _ = moved.insert(owners, others.clone()),
            None if bytes < LEAST_BYTES => _ = moved.insert(owners, Owners::new()),
            None => kept.push((bytes, owners)),
        }
    }
    for stretch in list.iter_mut() {
        if let Some(others) = moved.get(&stretch.owners) {
            stretch.owners.clone_from(others);
        }
    }
    let rest: u64 = list.iter().filter(|stretch| stretch.owners.is_empty()).map(|stretch| stretch.end - stretch.start).sum();
    let mut owners: Vec<Owners> = kept.into_iter().map(|(_, owners)| owners).filter(|owners| !owners.is_empty()).collect();
    owners.extend((rest >= LEAST_BYTES).then(Owners::new));
    owners
}

fn pool(owners: &Owners, blocks: &[&SmallBlock], places: &Places, bytes: u64) -> Pool {
    let mut of_place: BTreeMap<usize, BTreeMap<(Option<Id>, &str), f64>> = BTreeMap::new();
    for block in blocks {
        *of_place.entry(places.of(block)).or_default().entry((block.site, &block.call)).or_default() += weight(block);
    }
    let heaviest = |stacks: &BTreeMap<(Option<Id>, &str), f64>| {
        let all: f64 = stacks.values().sum();
        let most = stacks.iter().max_by(|a, b| a.1.total_cmp(b.1));
        most.map(|(&(site, call), _)| (all, (site, call.to_owned())))
    };
    let owned = of_place.iter().filter(|(place, _)| owners.contains(place));
    let mut sites: Vec<(f64, (Option<Id>, String))> = owned.filter_map(|(_, stacks)| heaviest(stacks)).collect();
    sites.sort_by(|a, b| b.0.total_cmp(&a.0));
    let allocated: f64 = blocks.iter().map(|block| weight(block)).sum();
    let number: f64 = blocks.iter().map(|block| weight(block) / block.bytes.max(1) as f64).sum();
    let block_bytes = allocated / number.max(f64::MIN_POSITIVE);
    Pool {
        sites: sites.into_iter().map(|(_, site)| site).collect(),
        places: of_place.len(),
        block_bytes: block_bytes.round() as u64,
        blocks: number.min(bytes as f64 / (block_bytes + HEADER)).round() as u64,
    }
}
