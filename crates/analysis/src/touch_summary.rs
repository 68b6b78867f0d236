//! The summary of a group's first touches: by which threads, from which code, in which partition.

use crate::displaced::{Found, displaced};
use crate::groups::Group;
use crate::home_guesses::{AROUND, HomeRecord, MISSING, are_runs, guess_error, missing_error};
use crate::homes::{Home, home};
use crate::partition::{Partition, Sample, Sight, Unit, classify, thinned};
use crate::threads::Threads;
use crate::touch_record::{BASE_PAGE, Placed};
use crate::touches::ObjectTouches;
use firsttouch_model::rows::Id;
use firsttouch_model::{Estimate, TouchCause};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Records that are effectively fewer do not identify the threads that touched an object.
const EFFECTIVE_RECORDS: f64 = 4.0;
/// Records that stand for less than this part of what most pages have are no evidence that a period holds far from them.
const LIGHT: f64 = 0.25;
/// A record stands for at most this part (1 / `MOST_PART`) of its object.
const MOST_PART: u64 = 8;
/// Records that stand for less of the touched memory say nothing about the rest.
const LEAST_COVER: f64 = 0.25;
/// Of allocations in turn, those without a record are left out of what records must cover if at least one of so many has some.
const MOST_BARE: usize = 4;

/// A recorded first touch of a group.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The logical position in the group.
    pub position: u64,
    pub worker: usize,
    pub thread: usize,
    pub site: Option<Id>,
    /// The number of pages that it stands for.
    pub pages: f64,
}

/// The first touches of a group. Pages are base pages; a fault on a huge page touches all base pages in it.
#[derive(Clone, Debug)]
pub struct TouchSummary {
    /// The number of touched pages by thread index.
    pub by_thread: BTreeMap<usize, f64>,
    pub by_worker: BTreeMap<usize, f64>,
    /// The number of touched pages by worker and the node that it ran on then.
    pub by_place: BTreeMap<(usize, u32), f64>,
    /// The number of all touched pages, including those touched by an unknown thread.
    pub pages: f64,
    pub records: usize,
    /// The number of faults or sweeps that the records come from.
    pub samples: u64,
    /// As fractions of `pages`.
    pub by_kernel: f64,
    pub recycled: f64,
    /// The kernel touched most of the pages, and the thread on whose behalf is unknown.
    pub kernel_unknown: bool,
    /// The call that made the kernel touch most of the pages, if one did.
    pub populated: Option<TouchCause>,
    /// The most frequent size of the group's pages, bytes.
    pub page_bytes: u64,
    /// Most pages have no record because records were lost.
    pub incomplete: bool,
    /// Whether there are enough records to judge the group.
    pub enough: bool,
    /// If the records are a sample of the touches: the positions that they speak for, from the first to the last one and a way beyond.
    pub shown: Option<Range<u64>>,
    /// Whether one worker made all records, at least one for two pages: enough if it does not use the group, so that the users are not known to have
    /// touched anything.
    pub is_of_one: bool,
    /// The fraction of the touched memory that was placed on another node than its toucher's ([`displaced`]); only on the recorded machine.
    pub displaced: Option<Estimate>,
    /// The number of touched pages by site.
    pub sites: BTreeMap<Option<Id>, f64>,
    pub partition: Partition,
    /// (address, time) of the first recorded touch under a former owner.
    pub former: Option<(u64, u64)>,
    /// The fraction of pages for which the nearest record names a thread on another node than their own first toucher.
    pub home_error: f64,
    /// The same if a page as far as half from a record is guessed as badly as one twice as far: threads have several parts each.
    pub error_in_parts: f64,
    /// The same where records are missing for a while.
    pub missing_error: f64,
    pub placed: Vec<Record>,
    /// The threads and places above are those of the misplaced part only (`misplaced_part.rs`).
    pub of_misplaced_part: bool,
    /// If that part is the allocations of the group that one thread touched: how many.
    pub serial_rows: Option<usize>,
}

/// How much of the touched memory the records stand for, of objects that are known to be touched as a whole. Their huge pages are faulted in
/// so rarely that none may have a record; then the records of their small pages, at the ends, say nothing about the rest.
#[derive(Clone, Copy, Debug, Default)]
struct Cover {
    touched: f64,
    recorded: f64,
}

impl Cover {
    fn add(&mut self, own: &ObjectTouches) {
        if own.is_full {
            self.touched += own.bytes as f64;
            self.recorded += own.placed.iter().map(Placed::covers).sum::<f64>() + own.kernel_pages * BASE_PAGE as f64;
        }
    }

    /// Eight records of equal pages stand for less than this part by chance in fewer than 1 of 40 cases.
    fn is_enough(self) -> bool {
        self.recorded >= LEAST_COVER * self.touched
    }
}

impl TouchSummary {
    /// Summarises the members whose touches were read.
    #[must_use]
    pub fn new(group: &Group, touches: &HashMap<usize, ObjectTouches>, threads: &Threads) -> Self {
        let mut s = Self {
            by_thread: BTreeMap::new(),
            by_worker: BTreeMap::new(),
            by_place: BTreeMap::new(),
            pages: 0.0,
            records: 0,
            samples: 0,
            by_kernel: 0.0,
            recycled: 0.0,
            kernel_unknown: false,
            populated: None,
            page_bytes: 4096,
            incomplete: false,
            enough: false,
            shown: None,
            is_of_one: false,
            displaced: None,
            sites: BTreeMap::new(),
            partition: Partition::unknown(),
            former: None,
            home_error: 0.0,
            error_in_parts: 0.0,
            missing_error: 0.0,
            placed: Vec::new(),
            of_misplaced_part: false,
            serial_rows: None,
        };
        let mut found = Vec::new();
        let (mut all_bytes, mut all_pages, mut recorded_bytes) = (0u64, 0u64, 0u64);
        let mut enough_by_kernel = false;
        let mut is_by_one_thread = false;
        let (mut kernel, mut recycled, mut unknown) = (0.0, 0.0, 0.0);
        let mut by_call: HashMap<TouchCause, f64> = HashMap::new();
        let mut moments = BTreeSet::new();
        let mut homes = Vec::new();
        let mut cover = Cover::default();
        // Of allocations in turn, those of a storm of page faults may have no record, and those before and after show whose they are, if they are many.
        let recorded = group.members.iter().filter(|object| touches.get(*object).is_some_and(|own| !own.is_bare())).count();
        let bare_are_left_out = group.members.len() > group.rows && recorded * MOST_BARE >= group.members.len();
        for &object in &group.members {
            let Some(own) = touches.get(&object) else { continue };
            s.page_bytes = s.page_bytes.max(own.page_bytes);
            all_bytes = all_bytes.saturating_add(own.bytes);
            all_pages = all_pages.saturating_add(own.bytes.div_ceil(own.page_bytes.max(1)));
            recorded_bytes = recorded_bytes.saturating_add(own.recorded_bytes());
            enough_by_kernel |= own.is_by_kernel();
            is_by_one_thread |= group.members.len() == 1 && own.is_by_one_thread();
            s.incomplete |= own.incomplete;
            if !own.is_bare() || !bare_are_left_out {
                cover.add(own);
            }
            // One record says little, for however many faults it stands.
            let most = (own.bytes / BASE_PAGE / MOST_PART).max(1) as f64;
            for placed in &own.placed {
                let touch = &placed.touch;
                let pages = placed.pages().min(most);
                let worker = threads.list[touch.thread].worker;
                *s.by_thread.entry(touch.thread).or_default() += pages;
                *s.by_worker.entry(worker).or_default() += pages;
                *s.sites.entry(touch.site).or_default() += pages;
                s.pages += pages;
                s.records += 1;
                moments.insert((touch.time, touch.thread));
                kernel += if touch.by_kernel { pages } else { 0.0 };
                if let Some(call) = touch.populated {
                    *by_call.entry(call).or_default() += pages;
                }
                if placed.recycled {
                    recycled += pages;
                    s.former.get_or_insert((touch.address, touch.time));
                }
                let position = group.position(object, own.page_centre(placed.offset));
                if threads.real && touch.found == Some(true) && !placed.recycled {
                    let covers = pages * BASE_PAGE as f64;
                    found.push(Found { position, covers, all_touched: own.is_full, is_displaced: touch.node != touch.cpu_node });
                }
                *s.by_place.entry((worker, touch.cpu_node)).or_default() += pages;
                s.placed.push(Record { position, worker, thread: touch.thread, site: touch.site, pages });
                let own_pages = placed.page_bytes as f64 / BASE_PAGE as f64;
                homes.push(HomeRecord { position, node: threads.list[touch.thread].node, worker, pages, own_pages, by_rule: None });
            }
            if let Some(thread) = own.kernel {
                kernel += own.kernel_pages;
                s.pages += own.kernel_pages;
                match thread {
                    Some(thread) => {
                        *s.by_thread.entry(thread).or_default() += own.kernel_pages;
                        *s.by_worker.entry(threads.list[thread].worker).or_default() += own.kernel_pages;
                    }
                    None => unknown += own.kernel_pages,
                }
            }
        }
        s.placed.shrink_to_fit();
        s.displaced = displaced(found);
        if s.pages > 0.0 {
            s.by_kernel = kernel / s.pages;
            s.recycled = recycled / s.pages;
            s.kernel_unknown = unknown > s.pages / 2.0;
            s.populated = by_call.into_iter().find(|(_, pages)| *pages > s.pages / 2.0).map(|(call, _)| call);
        }
        // Of huge pages, records in one part of the range (small pages at its end) say nothing of the others.
        let part = |record: &Record| record.position / (group.extent() / MOST_PART).max(1);
        let is_in_one_part = s.page_bytes > BASE_PAGE && s.placed.windows(2).all(|pair| part(&pair[0]) == part(&pair[1]));
        let is_spread = s.effective_records() >= EFFECTIVE_RECORDS && !is_in_one_part;
        let is_known = enough_by_kernel || is_by_one_thread || (s.records > 0 && recorded_bytes >= all_bytes.div_ceil(2));
        s.enough = !s.incomplete && (is_known || (s.records >= 8 && is_spread && cover.is_enough()));
        s.shown = if is_known { None } else { s.shown() };
        s.is_of_one = !s.incomplete && s.records > 0 && s.records as u64 >= all_pages.div_ceil(2) && s.by_worker.len() == 1;
        s.samples = moments.len() as u64;
        s.partition = s.classified(group);
        homes.sort_unstable_by_key(|record| record.position);
        s.guess_by_rule(&mut homes);
        s.home_error = guess_error(&homes, s.page_bytes, true);
        s.error_in_parts = guess_error(&homes, s.page_bytes, false);
        s.missing_error = missing_error(&homes);
        s
    }

    /// How many records of equal weight say as much as these (Kish's effective sample size). A record near others stands for what is nearest to it, and not
    /// for all that its weight says: many in one place say no more of the rest than one.
    fn effective_records(&self) -> f64 {
        let mut list: Vec<(u64, f64)> = self.placed.iter().map(|record| (record.position / BASE_PAGE, record.pages)).collect();
        list.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (mut sum, mut squares) = (0.0, 0.0);
        for (i, &(page, pages)) in list.iter().enumerate() {
            let half =
                |other: Option<&(u64, f64)>| other.map_or(pages / 2.0, |other| (page.abs_diff(other.0) as f64 / 2.0).min(pages / 2.0));
            let own = half(i.checked_sub(1).and_then(|i| list.get(i))) + half(list.get(i + 1));
            sum += own;
            squares += own * own;
        }
        if squares > 0.0 { sum * sum / squares } else { 0.0 }
    }

    /// Notes what the rule of the touches says of each record whose neighbours are by other threads, as for pages without a record (`sample_home.rs`).
    fn guess_by_rule(&self, homes: &mut [HomeRecord]) {
        let nodes: HashMap<usize, u32> = homes.iter().map(|record| (record.worker, record.node)).collect();
        let by_rule = |i: usize| {
            let around = &homes[i.saturating_sub(AROUND)..(i + AROUND).min(homes.len())];
            let beside = [i.checked_sub(1).and_then(|below| homes.get(below)), homes.get(i + 1)].into_iter().flatten();
            let distance = beside.map(|other| other.position.abs_diff(homes[i].position)).min().unwrap_or(0);
            let is_by_period = distance >= self.page_bytes && self.partition.outreaches(distance / 2);
            let owner = self
                .partition
                .owner_by_rule(homes[i].position)
                .filter(|_| is_by_period || (self.partition.is_sure_period() && !are_runs(around, |record| record.worker)))?;
            nodes.get(&owner).copied()
        };
        let found: Vec<Option<u32>> = (0..homes.len()).map(by_rule).collect();
        homes.iter_mut().zip(found).for_each(|(record, by_rule)| record.by_rule = by_rule);
    }

    /// From the first record to the last one, and as far beyond as records may be apart.
    fn shown(&self) -> Option<Range<u64>> {
        let positions = || self.placed.iter().map(|record| record.position);
        let beyond = MISSING * self.placed.iter().map(|record| record.pages).fold(1.0, f64::max) * BASE_PAGE as f64;
        Some(positions().min()?.saturating_sub(beyond as u64)..positions().max()?.saturating_add(beyond as u64))
    }

    fn classified(&self, group: &Group) -> Partition {
        let unit = |&Record { position, worker, .. }: &Record| Unit {
            position,
            shares: vec![(worker, 1.0)],
            counts: vec![(worker, 1)],
            rate: 0.0,
            cut: false,
            round: 0,
            running: Vec::new(),
        };
        let partition = classify(&Sample {
            units: thinned(self.placed.iter(), self.placed.len()).map(unit).collect(),
            weights: self.by_worker.clone(),
            stride: group.stride,
            rows: group.rows,
            cpus: 1,
            sight: Sight::Only,
        });
        let least = LIGHT * self.usual_weight();
        let usual = self.placed.iter().filter(|record| record.pages >= least);
        partition.shown_by(usual.map(|record| (record.position, record.worker)))
    }

    /// What the record of most pages stands for: the median, weighted by pages. Where page faults are many, one in 31 is recorded, and all others before
    /// and after: a stretch with a record of each page shows all phases of any period, and says nothing of the memory elsewhere.
    fn usual_weight(&self) -> f64 {
        let mut weights: Vec<f64> = self.placed.iter().map(|record| record.pages).collect();
        weights.sort_by(f64::total_cmp);
        let (half, mut below) = (weights.iter().sum::<f64>() / 2.0, 0.0);
        let middle = weights.iter().find(|pages| {
            below += **pages;
            below >= half
        });
        middle.copied().unwrap_or(0.0)
    }

    /// Who touched a part of the records, and where in the code.
    #[must_use]
    pub fn of_part(&self, records: impl Iterator<Item = Record>) -> Self {
        let mut part = Self { by_thread: BTreeMap::new(), by_worker: BTreeMap::new(), sites: BTreeMap::new(), pages: 0.0, ..self.clone() };
        for record in records {
            *part.by_thread.entry(record.thread).or_default() += record.pages;
            *part.by_worker.entry(record.worker).or_default() += record.pages;
            *part.sites.entry(record.site).or_default() += record.pages;
            part.pages += record.pages;
        }
        part
    }

    /// The worker that touched the most pages, and its share of all touched pages.
    #[must_use]
    pub fn main_worker(&self) -> Option<(usize, f64)> {
        largest(&self.by_worker).map(|(worker, pages)| (worker, pages / self.pages.max(f64::MIN_POSITIVE)))
    }

    /// The thread that touched the most pages.
    #[must_use]
    pub fn main_thread(&self) -> Option<usize> {
        largest(&self.by_thread).map(|(thread, _)| thread)
    }

    /// The site that touched the most pages.
    #[must_use]
    pub fn main_site(&self) -> Option<Id> {
        self.sites.iter().max_by(|a, b| a.1.total_cmp(b.1)).and_then(|(site, _)| *site)
    }

    /// Shares of the touched pages by thread index; all zero if unknown.
    #[must_use]
    pub fn shares(&self, threads: usize) -> Vec<f64> {
        let known: f64 = self.by_thread.values().sum();
        let mut shares = vec![0.0; threads];
        for (&thread, pages) in &self.by_thread {
            if known > 0.0 {
                shares[thread] = pages / known;
            }
        }
        shares
    }
}

fn largest(map: &BTreeMap<usize, f64>) -> Option<(usize, f64)> {
    map.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0))).map(|(&key, &value)| (key, value))
}

/// The node of a position at the end of the run, from first touches alone.
#[must_use]
pub fn final_node(group: &Group, touches: &HashMap<usize, ObjectTouches>, threads: &Threads, position: u64) -> Option<u32> {
    final_home(group, touches, threads, position).map(|(_, node)| node)
}

/// The first toucher (thread index, if known) and the node of a position at the end of the run, from first touches alone.
#[must_use]
pub fn final_home(
    group: &Group,
    touches: &HashMap<usize, ObjectTouches>,
    threads: &Threads,
    position: u64,
) -> Option<(Option<usize>, u32)> {
    let mut known = group.members.iter().rev().copied().filter(|object| touches.contains_key(object));
    let (object, offset) = known.find_map(|object| Some((object, group.offset(object, position)?)))?;
    match home(touches.get(&object)?, |t| threads.list[t].node, offset, u64::MAX) {
        Home::Known { thread, node, .. } => Some((thread, node)),
        Home::Untouched | Home::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::groups;
    use crate::threads::Thread;
    use crate::touch_record::Touch;
    use crate::touches::correct_page_sizes;
    use crate::turns::Turns;
    use firsttouch_model::rows::{Frame, Object, ObjectKind, Profile, Site};

    /// Check that records of the small pages at one end of huge pages are no evidence for all, that records of a sample of all pages are, and that
    /// nothing is asked of memory that may be untouched.
    #[test]
    fn records_of_one_end() {
        let huge = 2 << 20;
        let touch = |address| Touch {
            time: 1,
            thread: 0,
            node: 0,
            cpu_node: 0,
            address,
            weight: 31.0,
            by_kernel: false,
            site: None,
            mapped: None,
            found: None,
            populated: None,
        };
        let own = |page_bytes: u64, is_full: bool| ObjectTouches {
            address: 0,
            bytes: 30 * huge,
            page_bytes: huge,
            placed: (0..8).map(|at| Placed { offset: at * 31 * 4096, touch: touch(0), recycled: false, page_bytes }).collect(),
            hints: Vec::new(),
            history: None,
            kernel: None,
            kernel_pages: 0.0,
            incomplete: false,
            is_full,
        };
        let is_enough = |own: ObjectTouches| {
            let mut cover = Cover::default();
            cover.add(&own);
            cover.is_enough()
        };
        assert!(!is_enough(own(4096, true)));
        assert!(is_enough(own(huge, true)) && is_enough(own(4096, false)));
    }

    /// Check that records of the small pages at one end, however many, are not taken for records of the huge pages before.
    #[test]
    fn records_on_small_pages_are_none_of_huge_pages() {
        let huge = 2 << 20;
        let touch = |address| Touch {
            time: address,
            thread: 1,
            node: 0,
            cpu_node: 0,
            address,
            weight: 31.0,
            by_kernel: false,
            site: None,
            mapped: Some(0),
            found: None,
            populated: None,
        };
        let is_enough = |offsets: &[u64], page: u64, is_full: bool| {
            let placed = |&offset: &u64| Placed { offset, touch: touch(offset), recycled: false, page_bytes: page };
            let mut placed: Vec<Placed> = offsets.iter().map(placed).collect();
            correct_page_sizes(&mut placed, 0);
            let own = ObjectTouches {
                address: 0,
                bytes: 30 * huge + (1 << 20),
                page_bytes: huge,
                placed,
                hints: Vec::new(),
                history: None,
                kernel: None,
                kernel_pages: 0.0,
                incomplete: false,
                is_full,
            };
            let site = Site { id: 1, process: 0, frames: vec![Frame { address: 7, ..Frame::default() }] };
            let object = Object {
                id: 1,
                process: 0,
                kind: ObjectKind::Heap,
                call: None,
                name: None,
                address: 0,
                bytes: own.bytes,
                born_ns: 0,
                died_ns: None,
                site: Some(1),
                thread: None,
            };
            let profile = Profile { objects: vec![object], sites: [(1, site)].into(), ..Profile::default() };
            let all = groups(&profile, None, &Turns::default());
            let mut threads = one_thread();
            threads.list.push(threads.list[0].clone());
            let summary = TouchSummary::new(&all[0], &[(0, own)].into(), &threads);
            assert!(summary.is_of_one);
            summary.enough
        };
        let tail: Vec<u64> = (0..16).map(|at| 30 * huge + at * 15 * 4096).collect();
        let spread: Vec<u64> = (0..16).map(|at| at * 2 * huge).collect();
        assert!(!is_enough(&tail, huge, true) && !is_enough(&tail, huge, false), "16 records of the last MiB");
        assert!(is_enough(&spread, huge, true), "each second huge page");
    }

    /// Check that of 16 allocations in turn those without a record are left out if four have some, but not if three have; and never of allocations that
    /// live at one time. Records stand for half of an allocation.
    #[test]
    fn a_quarter_has_records() {
        const PAGES: u64 = 64;
        let is_enough = |recorded: usize, in_turn: bool| {
            let object = |number: u64| Object {
                id: number as Id + 1,
                process: 0,
                kind: ObjectKind::Heap,
                call: None,
                name: None,
                address: 0x10_0000 * number,
                bytes: PAGES * BASE_PAGE,
                born_ns: 10 * number,
                died_ns: in_turn.then_some(10 * number + 9),
                site: Some(1),
                thread: None,
            };
            let site = Site { id: 1, process: 0, frames: vec![Frame { address: 7, ..Frame::default() }] };
            let profile = Profile { objects: (0..16).map(object).collect(), sites: [(1, site)].into(), ..Profile::default() };
            let all = groups(&profile, None, &Turns::default());
            let [group] = &all[..] else { panic!("{all:?}") };
            let own = |object: usize| {
                let record = |at: u64| {
                    let offset = at * PAGES / 4 * BASE_PAGE;
                    let touch = Touch {
                        time: 10 * object as u64 + at,
                        thread: 0,
                        node: 0,
                        cpu_node: 0,
                        address: offset,
                        weight: PAGES as f64 / 8.0,
                        by_kernel: false,
                        site: None,
                        mapped: None,
                        found: None,
                        populated: None,
                    };
                    Placed { offset, touch, recycled: false, page_bytes: BASE_PAGE }
                };
                ObjectTouches {
                    address: 0,
                    bytes: PAGES * BASE_PAGE,
                    page_bytes: BASE_PAGE,
                    placed: (0..4).filter(|_| object < recorded).map(record).collect(),
                    hints: Vec::new(),
                    history: None,
                    kernel: None,
                    kernel_pages: 0.0,
                    incomplete: false,
                    is_full: true,
                }
            };
            let touches: HashMap<usize, ObjectTouches> = (0..16).map(|object| (object, own(object))).collect();
            TouchSummary::new(group, &touches, &one_thread()).enough
        };
        assert!(is_enough(4, true), "a quarter");
        assert!(!is_enough(3, true), "fewer");
        assert!(!is_enough(4, false), "all at one time");
        assert!(is_enough(8, false), "records of half of it all");
    }

    fn one_thread() -> Threads {
        let mut threads = Threads::default();
        threads.list.push(Thread {
            id: 0,
            process: 0,
            name: None,
            omp_number: None,
            turn: 0,
            team: 0,
            slot: 0,
            worker: 0,
            node: 0,
            idle: false,
            kernel_faults: None,
        });
        threads
    }
}
