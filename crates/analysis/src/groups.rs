//! Groups: objects that are one to the programmer.
//!
//! - **Same site:** objects of one process, or of processes that follow each other in one place ([`Turns`]), made by the same call from the same
//!   place with the same size. Objects that are alive at the same time (the rows of a matrix) lie side by side in one logical address range, in
//!   order of birth: position = slot x stride + offset, with the slots of [`crate::slots`]. Objects with successive lifetimes share a slot.
//! - **Growth:** objects of different sizes from one site that replace each other (vector growth, realloc, a mesh that is refined). Two of them may be
//!   alive at the same time only while one is copied into the next (at most half of the younger one's life). The largest represents the group; of
//!   several largest, the last. Their ranges are scaled to the largest one if its threads divide each step anew: a thread then has the same part of all,
//!   as in a plan. Else (a vector that keeps its elements where they are) they lie over each other byte by byte. The samples decide ([`divided_anew`]).
//! - Anything else (symbols, mappings, pools of small blocks, objects without a site): each object is a group of its own.

use crate::pool::Pool;
use crate::shared_memory::Sharing;
use crate::slots::{Lifetime, slots_by_maker};
use crate::turns::Turns;
use firsttouch_model::rows::{Frame, Id, Object, ObjectKind, Profile};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Objects that are reported as one.
#[derive(Clone, Debug)]
pub struct Group {
    /// Indices into `profile.objects`, in order of birth.
    pub members: Vec<usize>,
    /// The slot of each member.
    slots: Vec<usize>,
    /// The largest number of members alive at the same time.
    pub rows: usize,
    /// Bytes from one slot to the next.
    pub stride: u64,
    /// The groups that are judged together as this one; empty for a group of the profile.
    parts: Vec<Group>,
    /// The member that stands for the group (index into `profile.objects`).
    pub representative: usize,
    /// Whether the members replaced one another while growing.
    pub growth: bool,
    /// Then, if the members are scaled to the largest, the size of each.
    sizes: Vec<u64>,
    /// If the group is a pool of small blocks: what is known of them.
    pub pool: Option<Pool>,
    /// The members in memory that processes can share, by object index.
    pub shared: BTreeMap<usize, Sharing>,
    place: HashMap<usize, usize>,
}

impl Group {
    fn new(profile: &Profile, mut members: Vec<usize>, growth: bool, is_scaled: bool) -> Self {
        let object = |i: usize| &profile.objects[i];
        members.sort_by_key(|&i| (object(i).born_ns, object(i).id, i));
        let lifetimes: Vec<Lifetime> =
            members.iter().map(|&i| Lifetime { born: object(i).born_ns, released: object(i).died_ns.unwrap_or(u64::MAX) }).collect();
        let makers: Vec<Option<Id>> = members.iter().map(|&i| object(i).thread).collect();
        let (slots, rows) = if growth { (vec![0; members.len()], 1) } else { slots_by_maker(&lifetimes, &makers) };
        let stride = members.iter().map(|&i| object(i).bytes).max().unwrap_or(0);
        let representative = if growth {
            members.iter().copied().max_by_key(|&i| (object(i).bytes, object(i).born_ns)).unwrap_or(0)
        } else {
            members.first().copied().unwrap_or(0)
        };
        let place = members.iter().enumerate().map(|(place, &i)| (i, place)).collect();
        let sizes = if is_scaled { members.iter().map(|&i| object(i).bytes).collect() } else { Vec::new() };
        Self {
            members,
            slots,
            rows: rows.max(1),
            stride,
            parts: Vec::new(),
            representative,
            growth,
            sizes,
            pool: None,
            shared: BTreeMap::new(),
            place,
        }
    }

    /// Several groups as one: their logical ranges are scaled to the largest of them, and lie over each other.
    #[must_use]
    pub fn together(parts: &[&Self]) -> Self {
        let members: Vec<usize> = parts.iter().flat_map(|part| part.members.iter().copied()).collect();
        let place = parts.iter().enumerate().flat_map(|(at, part)| part.members.iter().map(move |&object| (object, at))).collect();
        Self {
            slots: Vec::new(),
            rows: 1,
            stride: parts.iter().map(|part| part.extent()).max().unwrap_or(0),
            representative: parts.first().map_or(0, |part| part.representative),
            growth: false,
            sizes: Vec::new(),
            pool: None,
            shared: parts.iter().flat_map(|part| part.shared.clone()).collect(),
            parts: parts.iter().map(|&part| part.clone()).collect(),
            members,
            place,
        }
    }

    /// The number of processes that share it; 1 if one process has it alone.
    #[must_use]
    pub fn processes(&self) -> usize {
        let all: BTreeSet<Id> = self.shared.values().flat_map(|sharing| sharing.processes.iter().copied()).collect();
        all.len().max(1)
    }

    /// What part of it was present before the program mapped it, of [`firsttouch_model::rows::SharedMemory::ALL_PRESENT`], if it is shared memory.
    #[must_use]
    pub fn filled_before(&self) -> Option<u32> {
        self.shared.values().filter_map(|sharing| sharing.filled_before).max()
    }

    /// The number of groups that are judged together as this one; 0 for a group of the profile.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of the memory alive at the same time; for a group of the profile, of the logical address range.
    #[must_use]
    pub fn extent(&self) -> u64 {
        if self.parts.is_empty() {
            return self.stride.saturating_mul(self.rows as u64);
        }
        self.parts.iter().map(Self::extent).fold(0, u64::saturating_add)
    }

    /// The slot of the member with this object index.
    #[must_use]
    pub fn slot(&self, object: usize) -> usize {
        self.place.get(&object).and_then(|&place| self.slots.get(place)).copied().unwrap_or(0)
    }

    /// Position in the logical range of `offset` into the member with this object index.
    #[must_use]
    pub fn position(&self, object: usize, offset: u64) -> u64 {
        if let Some(part) = self.place.get(&object).and_then(|&at| self.parts.get(at)) {
            return scaled(part.position(object, offset), part.extent(), self.stride);
        }
        let offset = self.size_while_growing(object).map_or(offset, |size| scaled(offset, size, self.stride));
        (self.slot(object) as u64).saturating_mul(self.stride).saturating_add(offset)
    }

    /// The offset of a position in the row of the member with this object index; `None` if the position lies in another row, or if the group is several
    /// that are judged together.
    #[must_use]
    pub fn offset(&self, object: usize, position: u64) -> Option<u64> {
        let (row, offset) = (position / self.stride.max(1), position % self.stride.max(1));
        let offset = self.size_while_growing(object).map_or(offset, |size| scaled(offset, self.stride, size));
        (self.parts.is_empty() && self.slot(object) as u64 == row).then_some(offset)
    }

    fn size_while_growing(&self, object: usize) -> Option<u64> {
        self.sizes.get(*self.place.get(&object)?).copied()
    }
}

/// A position in a range of `from` bytes as one in a range of `to` bytes.
#[must_use]
pub fn scaled(position: u64, from: u64, to: u64) -> u64 {
    let product = u128::from(position) * u128::from(to) / u128::from(from.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Two stacks with equal keys are the same place in the code, also in different processes: module and offset of each native frame,
/// file, line and instruction of each interpreted one.
pub type SiteKey = Vec<(Option<String>, u64)>;

/// The module name of frames of interpreted Python code.
pub const PYTHON: &str = "python";

/// The first process of the place, kind, index of the site key, call, name.
type PlaceKey = (Id, ObjectKind, usize, Option<String>, Option<String>);

/// The key of a stack.
#[must_use]
pub fn site_key(frames: &[Frame]) -> SiteKey {
    let frames = frames.iter().filter(|f| !f.inlined);
    frames
        .map(|f| match (&f.module, f.offset) {
            (Some(module), _) if module == PYTHON => (f.file.clone(), u64::from(f.line.unwrap_or(0)) | f.address << 32),
            (Some(module), Some(offset)) => (Some(module.clone()), offset),
            _ => (None, f.address),
        })
        .collect()
}

/// Groups all objects; every object is in exactly one group.
#[must_use]
pub fn groups(profile: &Profile, pools: Option<&HashMap<Id, Pool>>, turns: &Turns) -> Vec<Group> {
    let mut keys: HashMap<SiteKey, usize> = HashMap::new();
    let mut key_of_site: HashMap<Id, usize> = HashMap::new();
    for (id, site) in profile.sites.iter().filter(|(_, site)| !site.frames.is_empty()) {
        let next = keys.len();
        key_of_site.insert(*id, *keys.entry(site_key(&site.frames)).or_insert(next));
    }
    let mut alone = Vec::new();
    let mut by_place: BTreeMap<PlaceKey, Vec<usize>> = BTreeMap::new();
    for (i, object) in profile.objects.iter().enumerate() {
        let site = object.site.and_then(|site| key_of_site.get(&site));
        match (object.kind, site) {
            (ObjectKind::Heap | ObjectKind::Anonymous, Some(&site)) => {
                let process = turns.first(object.process);
                by_place.entry((process, object.kind, site, object.call.clone(), object.name.clone())).or_default().push(i);
            }
            _ => alone.push(vec![i]),
        }
    }
    let mut result: Vec<Group> = alone.into_iter().map(|members| Group::new(profile, members, false, false)).collect();
    let growing: Vec<bool> = by_place.values().map(|members| grows(profile, members)).collect();
    let anew = divided_anew(profile, by_place.values().zip(&growing).filter(|(_, grows)| **grows).map(|(members, _)| &members[..]));
    for (members, grows) in by_place.into_values().zip(growing) {
        if grows {
            let is_scaled = members.first().is_some_and(|first| anew.contains(first));
            result.push(Group::new(profile, members, true, is_scaled));
            continue;
        }
        let mut by_size: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for i in members {
            by_size.entry(profile.objects[i].bytes).or_default().push(i);
        }
        result.extend(by_size.into_values().map(|members| Group::new(profile, members, false, false)));
    }
    if let Some(pools) = pools {
        result.iter_mut().for_each(|group| group.pool = pools.get(&profile.objects[group.representative].id).cloned());
    }
    result
}

/// The pieces in which the owners of growing memory are compared, and by how much more of the accesses must be their piece's main user's if the steps are
/// scaled, for that to be no chance; and the samples that are needed.
const PIECES: usize = 32;
const CLEARER: f64 = 0.05;
const SHOW_OWNERS: f64 = 100.0;

/// How much of the accesses to each piece each thread makes.
type Uses = BTreeMap<(usize, Id), f64>;

/// Of lists of growing objects, the first object of each whose threads divide each step anew, as sampled accesses show it: at the same part of each step, rather
/// than at the same byte, is the same thread. (Watched accesses are not asked.)
fn divided_anew<'g>(profile: &Profile, growing: impl Iterator<Item = &'g [usize]>) -> BTreeSet<usize> {
    let mut list_of: HashMap<Id, (usize, &Object, u64)> = HashMap::new();
    for members in growing {
        let largest = members.iter().map(|&i| profile.objects[i].bytes).max().unwrap_or(0);
        list_of.extend(members.iter().map(|&i| (profile.objects[i].id, (members[0], &profile.objects[i], largest))));
    }
    if list_of.is_empty() {
        return BTreeSet::new();
    }
    let thread_of: HashMap<Id, Id> = profile.samples.iter().map(|sample| (sample.id, sample.thread)).collect();
    let mut uses: BTreeMap<usize, [Uses; 2]> = BTreeMap::new();
    for access in &profile.sampled_accesses {
        let (Some(&(list, object, largest)), Some(&thread)) = (list_of.get(&access.object), thread_of.get(&access.sample)) else {
            continue;
        };
        let Some(offset) = access.address.checked_sub(object.address).filter(|offset| *offset < object.bytes) else { continue };
        let piece = |of: u64| scaled(offset, of, PIECES as u64) as usize;
        for (uses, piece) in uses.entry(list).or_default().iter_mut().zip([piece(object.bytes), piece(largest)]) {
            *uses.entry((piece, thread)).or_default() += 1.0;
        }
    }
    let main_users = |uses: &Uses| {
        let mut most = [0.0_f64; PIECES];
        uses.iter().for_each(|((piece, _), count)| most[*piece] = most[*piece].max(*count));
        most.iter().sum::<f64>()
    };
    let is_anew = |[scaled, by_byte]: &[Uses; 2]| {
        let all: f64 = scaled.values().sum();
        all >= SHOW_OWNERS && main_users(scaled) - main_users(by_byte) > CLEARER * all
    };
    uses.into_iter().filter(|(_, uses)| is_anew(uses)).map(|(list, _)| list).collect()
}

/// Whether members of different sizes replaced one another.
fn grows(profile: &Profile, members: &[usize]) -> bool {
    let mut list: Vec<&Object> = members.iter().map(|&i| &profile.objects[i]).collect();
    list.sort_by_key(|o| (o.born_ns, o.id));
    if list.iter().all(|o| o.bytes == list[0].bytes) {
        return false;
    }
    let died = |o: &Object| o.died_ns.unwrap_or(u64::MAX);
    let copied = list.windows(2).all(|pair| {
        let overlap = died(pair[0]).saturating_sub(pair[1].born_ns);
        let life = died(pair[1]).saturating_sub(pair[1].born_ns);
        overlap <= life / 2
    });
    copied && list.windows(3).all(|three| died(three[0]) <= three[2].born_ns)
}
