//! First touches, and which of them created the pages of an object.
//!
//! Touches are looked up by address, whichever object owned it at the time: memory that is freed and allocated again keeps the
//! pages that its former owner touched. With cover = sum of weight x page bytes:
//!
//! - touches after the object's birth are its own; so are older ones made inside the allocating call (calloc, realloc),
//!   or while another object of its group was alive there;
//! - if an object's own touches cover less than half of its resident bytes (of its size, if residency is unknown), though new ones would
//!   have been recorded, older ones are added, the latest first, until all is covered; they are marked as *recycled* (`recycled.rs`);
//! - of an object that the process inherited by fork, those of its parent before the fork are its own too (`inherited.rs`);
//! - `realloc` and `mremap` move pages: touches of the predecessors count at the same offset;
//! - faults that NUMA balancing caused, or that waited for a page being migrated, placed nothing (`faults.rs`); of several other
//!   faults on one page, the last one placed it (`repeated_faults.rs`).
//!
//! A record stands for as many faults as the sampling period at its time, and a fault on a huge page places the whole page. So
//! sums are in bytes: weight x page size.

use crate::faults::Faults;
use crate::groups::{Group, PYTHON};
use crate::held_touches::{Held, thin};
use crate::inherited::Inheritance;
use crate::lives::Lives;
use crate::owners::Owners;
use crate::repeated_faults::{History, keep_first, keep_first_of_processes};
use crate::residents::{Resident, Residents};
use crate::spans::Spans;
use crate::threads::Threads;
use crate::touch_index::{Found, TouchIndex, range};
use crate::touch_record::{BASE_PAGE, Placed, Touch};
use crate::work;
use firsttouch_model::rows::{Frame, Id, Object, ObjectKind, Profile};
use hashbrown::HashMap;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Of at least so many expected records, half do not fail to appear by chance.
const LEAST_SHOWN: f64 = 8.0;
/// So many records show that one thread touched all of an object, if they leave no gap: at both ends and between.
const LEAST_OF_ONE: usize = 8;
/// So many touches show of what size an object's pages are, where many objects have them.
const GUESSED_FROM: usize = 1024;
/// Where objects hold a part of their touches: so many times as many are looked at, of which some did not place a page.
const LOOKED_AT: usize = 4;

/// How an object's pages were created.
#[derive(Clone, Debug)]
pub struct ObjectTouches {
    pub address: u64,
    pub bytes: u64,
    pub page_bytes: u64,
    /// Sorted by offset, then time.
    pub placed: Vec<Placed>,
    /// Hinting faults: accesses that the kernel caught on pages already placed.
    pub hints: Vec<Placed>,
    /// Earlier generations of touches, if the memory was initialised several times.
    pub history: Option<History>,
    /// Set if most resident pages have no record: the kernel touched them. The inner value is the thread (index) on whose behalf, if one
    /// stands out.
    pub kernel: Option<Option<usize>>,
    /// The number of base pages that the kernel must have touched (resident less recorded).
    pub kernel_pages: f64,
    /// Records of touches were lost, and the remaining ones represent less than half of the resident pages.
    pub incomplete: bool,
    /// Nearly all of its pages are resident: between two records, there are touched pages.
    pub is_full: bool,
}

impl ObjectTouches {
    /// The middle of the part of the object that is in the base page of an offset: a fault says which page was touched, and not what its toucher has of it.
    #[must_use]
    pub fn page_centre(&self, offset: u64) -> u64 {
        let end = self.address.saturating_add(self.bytes);
        let page = self.address.saturating_add(offset) / BASE_PAGE * BASE_PAGE;
        let (from, to) = (page.max(self.address), page.saturating_add(BASE_PAGE).min(end));
        (from / 2 + to / 2).saturating_sub(self.address)
    }

    /// Whether nothing is known about which threads touched the object.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.placed.is_empty() && self.kernel.is_none()
    }

    /// Whether the kernel touched it for a known thread.
    #[must_use]
    pub fn is_by_kernel(&self) -> bool {
        matches!(self.kernel, Some(Some(_)))
    }

    /// The bytes of the pages with a record.
    #[must_use]
    pub fn recorded_bytes(&self) -> u64 {
        let page = |one: &Placed| (self.address.saturating_add(one.offset) / one.page_bytes.max(1), one.page_bytes);
        let pages: BTreeSet<(u64, u64)> = self.placed.iter().map(page).collect();
        pages.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }

    /// Whether the records show that one thread touched all of it.
    #[must_use]
    pub fn is_by_one_thread(&self) -> bool {
        is_by_one_thread(self.bytes, &self.placed)
    }
}

/// A part of its object (1 / `END_PART`) that may lie before the first and behind the last record of the thread that touched all of it.
const END_PART: u64 = 8;

/// Whether the records show that one thread touched all of an object: it made all of them, and made no fewer faults between two of them
/// than there are pages. Of the pages before the first and behind the last, the faults say nothing, so these must be near its ends.
/// Huge pages are faulted in so rarely that few of them have a record.
fn is_by_one_thread(bytes: u64, placed: &[Placed]) -> bool {
    let (Some(first), Some(last)) = (placed.first(), placed.last()) else { return false };
    let is_own = |record: &Placed| record.touch.thread == first.touch.thread && !record.touch.by_kernel && !record.recycled;
    // The faults between two records are those that the later one stands for.
    let is_closed = |pair: &[Placed]| {
        let later = if pair[0].touch.time > pair[1].touch.time { &pair[0] } else { &pair[1] };
        let page = pair[0].page_bytes.max(pair[1].page_bytes).max(1);
        (pair[1].offset.saturating_sub(pair[0].offset) / page) as f64 <= later.touch.weight
    };
    placed.len() >= LEAST_OF_ONE
        && placed.iter().all(is_own)
        && first.offset <= bytes / END_PART
        && bytes.saturating_sub(last.offset) <= bytes / END_PART
        && placed.windows(2).all(is_closed)
}

/// As many faults on different base pages in the range of a huge page show that base pages were faulted in there, and no huge page.
const LEAST_ON_SMALL: usize = 3;

/// Corrects guessed sizes of pages: a huge page is faulted in once, so several faults in its range were on base pages (the ends of an object, which
/// do not fill a huge page). `placed`: sorted by offset.
pub(crate) fn correct_page_sizes(placed: &mut [Placed], address: u64) {
    let is_guess = |one: &Placed| one.page_bytes > BASE_PAGE && one.touch.mapped.is_none_or(|bytes| bytes < BASE_PAGE);
    let mut from = 0;
    while from < placed.len() {
        let page_bytes = placed[from].page_bytes.max(BASE_PAGE);
        let page = |one: &Placed, bytes: u64| address.saturating_add(one.offset) / bytes;
        let block = page(&placed[from], page_bytes);
        let to = from + placed[from..].partition_point(|one| page(one, page_bytes) <= block);
        let own = &mut placed[from..to.max(from + 1)];
        let different = 1 + own.windows(2).filter(|pair| page(&pair[0], BASE_PAGE) != page(&pair[1], BASE_PAGE)).count();
        if different >= LEAST_ON_SMALL {
            own.iter_mut().filter(|one| is_guess(one)).for_each(|one| one.page_bytes = BASE_PAGE);
        }
        from += own.len();
    }
}

/// Of an object with so many of its pages resident, all were touched.
const FULL: f64 = 0.95;

fn is_full(resident: &Resident) -> bool {
    resident.fraction.is_some_and(|fraction| fraction >= FULL)
}

/// The process, thread and time of an object's end.
pub(crate) type End = (Id, Option<Id>, u64);

/// Builds [`ObjectTouches`] for the members of groups.
pub struct TouchReader<'a> {
    pub profile: &'a Profile,
    pub threads: &'a Threads,
    pub index: &'a TouchIndex,
    pub residents: &'a Residents,
    pub faults: &'a Faults,
    /// Of the group that is read now, by its representative.
    pub(crate) lives: Option<(usize, Lives)>,
    /// Sites of touches inside the allocating call, by that call's site.
    inside: HashMap<Id, Rc<BTreeSet<Id>>>,
    pub(crate) inheritance: Inheritance<'a>,
    owners: OnceCell<Owners>,
    /// The objects of each process that ended.
    pub(crate) ended_objects: OnceCell<HashMap<Id, Spans<&'a Object>>>,
    /// Indices into `profile.objects`.
    pub(crate) ended: OnceCell<HashMap<End, usize>>,
    pub(crate) held: Option<Held>,
    /// The most touches that are looked at for the object that is read now.
    looked_at: usize,
}

impl<'a> TouchReader<'a> {
    #[must_use]
    pub fn new(profile: &'a Profile, threads: &'a Threads, index: &'a TouchIndex, residents: &'a Residents, faults: &'a Faults) -> Self {
        Self {
            profile,
            threads,
            index,
            residents,
            faults,
            lives: None,
            inside: HashMap::new(),
            inheritance: Inheritance::new(profile),
            owners: OnceCell::new(),
            ended_objects: OnceCell::new(),
            ended: OnceCell::new(),
            held: Held::new(profile, index),
            looked_at: usize::MAX,
        }
    }

    /// Reads the touches of the member `object` (index into `profile.objects`) of `group`. Where objects overlap much, a part of them.
    pub fn read(&mut self, group: &Group, object: usize) -> ObjectTouches {
        let most = self.held.as_ref().map_or(usize::MAX, |held| held.most_of(object));
        self.looked_at = most.saturating_mul(LOOKED_AT);
        let mut own = self.read_all(group, object);
        if self.held.is_some() {
            own.history = own.history.filter(|_| own.placed.len() <= most);
            thin(&mut own.placed, most);
            thin(&mut own.hints, most);
        }
        own
    }

    fn read_all(&mut self, group: &Group, object: usize) -> ObjectTouches {
        let profile = self.profile;
        let this = &profile.objects[object];
        let resident = self.residents.of(this);
        let page_bytes = resident.page_bytes.unwrap_or_else(|| self.guess_page_bytes(this));
        let mut own = self.own_touches(this, page_bytes);
        correct_page_sizes(&mut own, this.address);
        let hints = self.faults.take_hints(this, &mut own);
        if group.shared.contains_key(&object) {
            keep_first_of_processes(&mut own, self.threads);
            keep_first(&mut own, this.address, this.bytes);
            own.sort_by_key(|p| (p.offset, p.touch.time));
            return self.shared(this, &resident, own, hints, page_bytes);
        }
        // With the agent, each allocation is an object of its own and needs no history.
        let history = (this.kind == ObjectKind::Mapping).then(|| History::new(&own, this.bytes)).flatten();
        self.faults.keep_placing(this, &mut own);
        self.add_inherited(this, &mut own, page_bytes);
        self.add_moved(this, &mut own, page_bytes);
        let page = page_bytes as f64;
        let wanted = resident.fraction.map_or(this.bytes as f64, |f| f * this.bytes as f64).max(page.min(this.bytes as f64));
        let mut covered: f64 = own.iter().map(Placed::covers).sum();
        // Members that came one after the other show together what one cannot: none of them would be without a record by chance.
        let alike = if own.is_empty() { group.members.len().div_ceil(group.rows.max(1)) } else { 1 };
        if covered < wanted / 2.0 && self.would_show(this, alike as f64 * wanted / page) {
            let mut older = self.older_touches(group, this, page_bytes);
            older.sort_by_key(|p| std::cmp::Reverse(p.touch.time));
            for mut placed in older {
                if covered >= wanted {
                    break;
                }
                placed.recycled = placed.recycled && !self.owned_by_group(group, &placed.touch);
                covered += placed.covers();
                own.push(placed);
            }
        }
        own.sort_by_key(|p| (p.offset, p.touch.time));
        own.shrink_to_fit();
        let mut result = ObjectTouches {
            address: this.address,
            bytes: this.bytes,
            page_bytes,
            placed: own,
            hints,
            history,
            kernel: None,
            kernel_pages: 0.0,
            incomplete: false,
            is_full: is_full(&resident),
        };
        self.note_losses(this, &resident, &mut result);
        self.derive_kernel(this, &resident, &mut result);
        result
    }

    /// The touches of memory that processes share. Former owners of its addresses have nothing to do with it, and what the kernel touched for
    /// one process looks like a first touch by the next one.
    fn shared(&self, object: &Object, resident: &Resident, placed: Vec<Placed>, hints: Vec<Placed>, page_bytes: u64) -> ObjectTouches {
        let (address, bytes) = (object.address, object.bytes);
        let (history, kernel, kernel_pages, incomplete) = (None, None, 0.0, false);
        let mut result = ObjectTouches {
            address,
            bytes,
            page_bytes,
            placed,
            hints,
            history,
            kernel,
            kernel_pages,
            incomplete,
            is_full: is_full(resident),
        };
        self.note_losses(object, resident, &mut result);
        result
    }

    /// Whether faults on so many pages would have been recorded during the object's life. If so, pages without a record have an older one;
    /// if not, they may have been touched anew, and older records say nothing about them.
    fn would_show(&self, object: &Object, pages: f64) -> bool {
        let period = self.index.longest_period(object);
        period <= 1.0 || pages / period >= LEAST_SHOWN
    }

    /// A touch as part of an object; pages of unknown size get `page_bytes`.
    pub(crate) fn placed(&self, object: &Object, touch: Touch, page_bytes: u64) -> Placed {
        let there = touch.mapped.filter(|&bytes| bytes >= BASE_PAGE);
        let near = || self.residents.page_bytes_near(object, touch.address, self.profile.machine.huge_page_bytes);
        let page_bytes = there.or_else(near).unwrap_or(page_bytes);
        Placed { offset: touch.address - object.address, touch, recycled: false, page_bytes }
    }

    /// The touches of an object, or of one that had its pages before, in a stretch of time; a part of them if it overlaps many others.
    pub(crate) fn touches_of(&self, object: &Object, bytes: u64, times: (u64, u64)) -> Vec<Touch> {
        weighted(self.index.during(object.process, object.address, bytes, times, self.looked_at))
    }

    /// The touches before an object's birth; a part of them if many objects have had its addresses.
    pub(crate) fn touches_before(&self, object: &Object) -> Vec<Touch> {
        let Some(last) = object.born_ns.checked_sub(1) else { return Vec::new() };
        let most = self.held.as_ref().map_or(usize::MAX, Held::older).min(self.looked_at);
        weighted(self.index.during(object.process, object.address, object.bytes, (0, last), most))
    }

    /// The touches during an object's life, and those made inside the call that allocated it; sorted by offset, then time.
    pub(crate) fn own_touches(&mut self, object: &Object, page_bytes: u64) -> Vec<Placed> {
        let died = object.died_ns.unwrap_or(u64::MAX).max(object.born_ns);
        let mut touches = self.touches_of(object, object.bytes, (object.born_ns, died));
        let inside = self.inside_allocating_call(object);
        if !inside.is_empty() {
            touches.extend(inside);
            touches.sort_by_key(|t| (t.address, t.time));
        }
        touches.into_iter().map(|touch| self.placed(object, touch, page_bytes)).collect()
    }

    /// The touches before an object's birth that were made inside the call that allocated it (calloc, realloc): their stacks contain that
    /// call.
    fn inside_allocating_call(&mut self, object: &Object) -> Vec<Touch> {
        let sites = self.sites_inside(object.site);
        let Some(touches) = self.index.by_process.get(&object.process).filter(|_| !sites.is_empty()) else { return Vec::new() };
        let range = range(&touches.list, object.address, object.bytes);
        let of_site = |site: &Id| {
            let list = touches.by_site.get(site).map_or(&[][..], Vec::as_slice);
            let low = list.partition_point(|&i| (i as usize) < range.start);
            &list[low..list.partition_point(|&i| (i as usize) < range.end).max(low)]
        };
        let found =
            sites.iter().flat_map(|site| weighted(Found::part(of_site(site).iter().map(|&i| &touches.list[i as usize]), self.looked_at)));
        found.filter(|touch| touch.time < object.born_ns && is_of_thread(self.threads, object, touch)).collect()
    }

    /// The sites of touches whose stacks contain the call at `allocation`, sorted.
    pub(crate) fn sites_inside(&mut self, allocation: Option<Id>) -> Rc<BTreeSet<Id>> {
        let Some(allocation) = allocation else { return Rc::default() };
        if let Some(known) = self.inside.get(&allocation) {
            return Rc::clone(known);
        }
        // Python's frames have no addresses, and stacks of touches may lack them.
        let native = |frames: &[Frame]| frames.iter().filter(|f| f.module.as_deref() != Some(PYTHON)).map(|f| f.address).collect();
        let frames = |id: &Id| self.profile.sites.get(id).map(|site| native(&site.frames));
        let allocated: Vec<u64> = frames(&allocation).unwrap_or_default();
        let inside = |site: &&Id| {
            frames(site).is_some_and(|stack: Vec<u64>| stack.len() > allocated.len() && stack.ends_with(&allocated))
                && !allocated.is_empty()
        };
        let touched = self.index.by_process.values().flat_map(|touches| touches.by_site.keys());
        let found: Rc<BTreeSet<Id>> = Rc::new(touched.filter(inside).copied().collect());
        self.inside.insert(allocation, Rc::clone(&found));
        found
    }

    /// Sets `incomplete` if the records represent less than half of the resident pages, and at least half of the missing ones could be
    /// among the lost records. Losses come in bursts, so the remaining records may all be from one thread's part.
    fn note_losses(&self, object: &Object, resident: &crate::residents::Resident, result: &mut ObjectTouches) {
        let lost: f64 = self.profile.lost.iter().filter(|l| l.source == "touch").map(|l| l.count as f64).sum();
        if let Some(fraction) = resident.fraction.filter(|_| lost > 0.0) {
            let present = fraction * object.bytes as f64;
            let recorded: f64 = result.placed.iter().map(Placed::covers).sum();
            let could_be_lost = lost * self.index.longest_period(object) * result.page_bytes as f64;
            result.incomplete = recorded < present / 2.0 && could_be_lost >= (present - recorded) / 2.0;
        }
    }

    /// Decides whether the kernel touched the pages: most resident pages have no record, though enough of them would have been sampled.
    ///
    /// With N resident pages and sampling period p (the longest in the object's life), N / p records are expected had the
    /// program touched them. Rule: launched under the profiler, touch evidence available but not for faults in the kernel
    /// (its detail says so), recorded pages < N / 2 also if the records that were lost are added, and N / p >= 8 (or p = 1
    /// and N >= 2). The thread is the one with at least 80 % of all faults taken in the kernel and at least half as many as
    /// are missing.
    fn derive_kernel(&self, object: &Object, resident: &crate::residents::Resident, result: &mut ObjectTouches) {
        let Some(fraction) = resident.fraction else { return };
        let evidence = self.profile.evidence.iter().find(|e| e.source == "touch");
        let attached = self.profile.meta.is_attached();
        // An empty detail means that faults in the kernel were recorded: then missing records have another reason.
        if attached || evidence.is_some_and(|e| !e.available || e.detail.is_empty()) {
            return;
        }
        let huge = self.profile.machine.huge_page_bytes;
        let may_be_huge = resident.page_bytes.is_none() && huge > BASE_PAGE && self.profile.machine.transparent_huge_pages == "always";
        let unit = if may_be_huge && object.bytes >= huge.saturating_mul(2) { huge } else { result.page_bytes.max(1) };
        let pages = fraction * object.bytes as f64 / unit as f64;
        let period = self.index.longest_period(object);
        let recorded = result.placed.iter().map(|p| p.touch.weight * p.page_bytes.max(unit) as f64 / unit as f64).sum::<f64>();
        let lost = self.profile.lost.iter().filter(|l| l.source == "touch").map(|l| l.count as f64 * period).sum::<f64>();
        let would_show = |period: f64| pages / period >= LEAST_SHOWN || (period <= 1.0 && pages >= 2.0);
        if recorded + lost >= pages / 2.0 || !would_show(period) {
            return;
        }
        // A former owner may have touched them when few faults were recorded.
        if self.had_owner(object) && !would_show(self.index.longest_period_until(object)) {
            return;
        }
        let missing = pages - recorded;
        let threads = self.threads.beside(object.process).filter(|(_, t)| t.process == object.process);
        let excess: Vec<(usize, f64)> = threads.map(|(i, t)| (i, t.kernel_faults.unwrap_or(0) as f64)).collect();
        let total: f64 = excess.iter().map(|(_, faults)| faults).sum();
        let most = excess.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        let thread = match most {
            _ if excess.len() == 1 => most.map(|(thread, _)| thread),
            Some((thread, faults)) if faults >= 0.8 * total && faults >= 0.5 * missing => Some(thread),
            _ => None,
        };
        result.kernel = Some(thread);
        result.kernel_pages = missing * unit as f64 / BASE_PAGE as f64;
    }

    /// Whether another object had some of its addresses before.
    fn had_owner(&self, object: &Object) -> bool {
        self.owners.get_or_init(|| Owners::new(self.profile)).was_there_before(object)
    }

    /// Page size in bytes if the kernel did not report it: huge if no two records lie in one huge page, and the records represent at least
    /// half of the object if pages are huge, but less than a quarter of it if they are base pages.
    fn guess_page_bytes(&self, object: &Object) -> u64 {
        let machine = &self.profile.machine;
        let base = if machine.page_bytes == 0 { BASE_PAGE } else { machine.page_bytes };
        let huge = machine.huge_page_bytes;
        if huge <= base || object.bytes < huge || machine.transparent_huge_pages == "never" {
            return base;
        }
        let during = |times| self.index.first_during(object.process, object.address, object.bytes, times, GUESSED_FROM);
        let mut found = during((object.born_ns, u64::MAX));
        if found.touches.is_empty() {
            found = during((0, u64::MAX));
        }
        let (mut weight, mut last) = (0.0, None);
        for touch in found.touches {
            let page = touch.address / huge;
            if last.replace(page) == Some(page) {
                return base;
            }
            weight += touch.weight * found.each;
        }
        let bytes = object.bytes as f64;
        if weight * base as f64 * 4.0 < bytes && weight * huge as f64 * 2.0 >= bytes { huge } else { base }
    }
}

/// Touches that stand for as many as they do.
fn weighted(found: Found<'_>) -> Vec<Touch> {
    let of_all = |touch: &Touch| {
        work::step();
        Touch { weight: touch.weight * found.each, ..touch.clone() }
    };
    found.touches.into_iter().map(of_all).collect()
}

/// Whether a touch was made by the thread that allocated the object.
pub(crate) fn is_of_thread(threads: &Threads, object: &Object, touch: &Touch) -> bool {
    object.thread.and_then(|id| threads.index(id)) == Some(touch.thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: u64 = 2 << 20;

    /// A record of one in 31 faults.
    fn record(time: u64, offset: u64, page_bytes: u64, thread: usize) -> Placed {
        let (address, weight) = (offset, 31.0);
        let (node, cpu_node, by_kernel, site, mapped) = (0, 0, false, None, Some(0));
        let touch = Touch { time, thread, node, cpu_node, address, weight, by_kernel, site, mapped, found: None, populated: None };
        Placed { offset, touch, recycled: false, page_bytes }
    }

    /// Check that 10 records for 61 MiB of huge pages show that one thread touched all of it, but not if one of them is another thread's, if a
    /// part is without records, or if more pages than faults lie between two.
    #[test]
    fn huge_pages_of_one_thread() {
        let bytes = 64_000_000;
        // As recorded: base pages at both ends, and two huge pages.
        let tail = |thread: usize| (0..7).map(move |i| record(4 + i, 63_067_776 + i * 31 * BASE_PAGE, BASE_PAGE, thread));
        let head = [record(1, 20_480, BASE_PAGE, 0), record(2, 31_543_296, HUGE, 0), record(3, 63_000_000, HUGE, 0)];
        let all = |thread| head.iter().cloned().chain(tail(thread)).collect::<Vec<_>>();
        assert!(is_by_one_thread(bytes, &all(0)));
        assert!(!is_by_one_thread(bytes, &all(1)));
        assert!(!is_by_one_thread(bytes, &all(0)[2..]), "the first half has no record");
        assert!(!is_by_one_thread(bytes, &all(0)[..4]), "few records");
        let mut without_middle = all(0);
        without_middle.remove(1);
        assert!(is_by_one_thread(bytes, &without_middle), "31 faults between, of 30 pages");
        let larger = |record: &Placed| Placed { offset: record.offset * 4, ..record.clone() };
        assert!(!is_by_one_thread(bytes * 4, &without_middle.iter().map(larger).collect::<Vec<_>>()), "31 faults between, of 120 pages");
    }
}
