//! What the threads' counts of page faults say about first touches where the kernel reports no single faults (perf is forbidden).
//!
//! The kernel counts the minor faults of each thread, and firsttouch reads the counts from /proc. They bound what a thread can have touched
//! first: at most its faults x the page size. Two conclusions follow.
//!
//! - A thread with too few faults for the memory that it swept first did not touch it first ([`FaultCounts::allow`]): a former owner or the
//!   kernel had, or the first sweep was not sampled.
//! - If one thread has nearly all faults of its process, it touched everything, however small ([`FaultCounts::touches_of_the_only_toucher`]).
//!
//! Huge pages need few faults: 40 faults can place 80 MiB. The second conclusion is drawn only for objects whose pages are known to be base pages: the
//! kernel's answers (`pages`) say so, or it uses no huge pages. For the first one, pages count as base pages if the process has enough faults for
//! all memory that it used at one time; at worst an object is then not judged.

use super::BASE_PAGE;
use super::derived_touches::{LEAST_BYTES, RECORDS, records};
use firsttouch_model::rows::{FirstTouch, Id, Object, ObjectKind, Page, Profile, SampleState, SampledAccess, Thread};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// Counts within this part of the pages agree with them.
const AGREES: f64 = 0.9;
/// The other threads' faults may amount to this part of an object.
const OTHERS: f64 = 0.1;
/// Threads that lived for less may have ended between two readings of their counts, ns.
const READ_NS: u64 = 1_000_000_000;
/// So many answers of the kernel show that an object is on base pages, if none says otherwise.
const ANSWERS: usize = 4;
/// So many samples in one system call show that the kernel filled an object.
const KERNEL_SAMPLES: usize = 2;

/// The page faults of all threads.
pub struct FaultCounts<'a> {
    profile: &'a Profile,
    of_thread: HashMap<Id, u64>,
    /// By process: the bytes that a fault places, at most.
    page_bytes: HashMap<Id, u64>,
    /// Objects with sampled accesses.
    used: HashMap<Id, Vec<&'a Object>>,
}

impl<'a> FaultCounts<'a> {
    pub fn new(profile: &'a Profile) -> Self {
        let is_used: HashSet<Id> = profile.sampled_accesses.iter().map(|access| access.object).collect();
        let mut used: HashMap<Id, Vec<&Object>> = HashMap::new();
        for object in profile.objects.iter().filter(|object| is_used.contains(&object.id)) {
            used.entry(object.process).or_default().push(object);
        }
        let of_thread = profile.threads.iter().filter_map(|thread| Some((thread.id, thread.all_faults?))).collect();
        let machine = &profile.machine;
        let mut counts = Self { profile, of_thread, page_bytes: HashMap::new(), used };
        for process in &profile.processes {
            let all: u64 = counts.threads(process.id).filter_map(|thread| thread.all_faults).fold(0, u64::saturating_add);
            let is_base = machine.transparent_huge_pages == "never" || counts.are_enough(process.id, all);
            counts.page_bytes.insert(process.id, if is_base { BASE_PAGE } else { machine.huge_page_bytes.max(BASE_PAGE) });
        }
        counts
    }

    fn threads(&self, process: Id) -> impl Iterator<Item = &'a Thread> {
        self.profile.threads.iter().filter(move |thread| thread.process == process)
    }

    /// Whether these are enough faults for all used objects that were alive at one time, in base pages.
    fn are_enough(&self, process: Id, faults: u64) -> bool {
        faults as f64 * BASE_PAGE as f64 >= AGREES * most_alive(self.used.get(&process).map_or(&[], Vec::as_slice)) as f64
    }

    /// Whether a thread has enough faults to have touched so many bytes first. Without its count, it may have.
    pub fn allow(&self, process: Id, thread: Id, bytes: u64) -> bool {
        let page = self.page_bytes.get(&process).copied().unwrap_or(BASE_PAGE);
        self.of_thread.get(&thread).is_none_or(|&faults| faults as f64 * page as f64 >= AGREES * bytes as f64)
    }

    /// First touches of objects in processes in which one thread made nearly all of them. `accesses`: those of each sample, in the order of
    /// the samples; `is_known`: whether the first touches of an object are known already.
    pub fn touches_of_the_only_toucher(&self, accesses: &[&[SampledAccess]], is_known: impl Fn(&Object) -> bool) -> Vec<FirstTouch> {
        let mut touches = Vec::new();
        for process in self.profile.processes.iter().filter(|process| process.parent.is_none()) {
            let Some((toucher, others)) = self.only_toucher(process.id) else { continue };
            let mut sites: BTreeMap<(Option<Id>, Id), Vec<&Object>> = BTreeMap::new();
            for object in self.used.get(&process.id).map_or(&[][..], Vec::as_slice) {
                let has_first_touch =
                    matches!(object.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::Static | ObjectKind::Pool);
                if has_first_touch {
                    // Objects of no site are judged one by one.
                    let key = (object.site, if object.site.is_some() { 0 } else { object.id });
                    sites.entry(key).or_default().push(object);
                }
            }
            for objects in sites.into_values().filter(|objects| !objects.iter().any(|object| is_known(object))) {
                let bytes = extent(&objects);
                if self.are_on_base_pages(&objects) && others.saturating_mul(BASE_PAGE) as f64 <= OTHERS * bytes as f64 {
                    touches.extend(self.of_site(&objects, bytes, toucher, accesses, &is_known));
                }
            }
        }
        touches
    }

    /// Whether the kernel says that these objects are on base pages.
    fn are_on_base_pages(&self, objects: &[&Object]) -> bool {
        let ids: HashSet<Id> = objects.iter().map(|object| object.id).collect();
        let answers =
            self.profile.pages.iter().filter(|page| page.object.is_some_and(|object| ids.contains(&object)) && page.page_bytes > 0);
        let (base, huge): (Vec<&Page>, Vec<&Page>) = answers.partition(|page| page.page_bytes <= BASE_PAGE);
        self.profile.machine.transparent_huge_pages == "never" || (base.len() >= ANSWERS && huge.is_empty())
    }

    /// The thread that made nearly all page faults of a process, and the number of those that others made. `None` if a thread may have made
    /// more than is known.
    fn only_toucher(&self, process: Id) -> Option<(&'a Thread, u64)> {
        let threads: Vec<&Thread> = self.threads(process).collect();
        let toucher = *threads.iter().max_by_key(|thread| thread.all_faults)?;
        let is_read = |thread: &&Thread| {
            let life = thread.died_ns.map_or(u64::MAX, |died| died.saturating_sub(thread.born_ns));
            thread.all_faults.is_some() && life >= READ_NS
        };
        let others = threads.iter().copied().filter(|thread| thread.id != toucher.id);
        if !others.clone().all(|thread| is_read(&thread)) || !self.are_enough(process, toucher.all_faults?) {
            return None;
        }
        Some((toucher, others.filter_map(|thread| thread.all_faults).fold(0, u64::saturating_add)))
    }

    /// The first touches of the objects of one site, all by one thread. Empty if nothing shows how the thread filled them.
    fn of_site(
        &self,
        objects: &[&Object],
        bytes: u64,
        toucher: &Thread,
        accesses: &[&[SampledAccess]],
        is_known: &dyn Fn(&Object) -> bool,
    ) -> Vec<FirstTouch> {
        let ids: HashSet<Id> = objects.iter().map(|object| object.id).collect();
        let samples = || self.profile.samples.iter().zip(accesses);
        let on_them = |own: &&[SampledAccess]| own.iter().any(|access| ids.contains(&access.object));
        // Objects that nobody else uses are where they are used.
        let Some(shared_ns) =
            samples().filter(|(sample, own)| sample.thread != toucher.id && on_them(own)).map(|(sample, _)| sample.time_ns).min()
        else {
            return Vec::new();
        };
        let born_ns = objects.iter().map(|object| object.born_ns).min().unwrap_or(0);
        let before = || samples().filter(|(sample, _)| sample.thread == toucher.id && (born_ns..shared_ns).contains(&sample.time_ns));
        // Code that other threads run too is the use, which the toucher began before them.
        let others = samples().filter(|(sample, _)| sample.thread != toucher.id).flat_map(|(_, own)| *own);
        let used_by: HashSet<Option<u64>> =
            others.filter(|access| ids.contains(&access.object)).map(|access| self.code(access.site)).collect();
        let mut writers: BTreeMap<Option<Id>, usize> = BTreeMap::new();
        let mut written_ns = 0;
        for (sample, own) in before() {
            let writes = own.iter().filter(|access| access.kind.writes() && ids.contains(&access.object));
            for access in writes.filter(|access| !used_by.contains(&self.code(access.site))) {
                *writers.entry(access.site).or_default() += 1;
                written_ns = sample.time_ns;
            }
        }
        let mut calls: BTreeMap<Option<Id>, usize> = BTreeMap::new();
        let in_kernel = before().filter(|(sample, _)| sample.state == SampleState::InKernel);
        in_kernel.for_each(|(sample, _)| *calls.entry(sample.site).or_default() += 1);
        let in_one_call = calls.values().copied().max().unwrap_or(0);
        let is_written_by_others = samples()
            .filter(|(sample, _)| sample.thread != toucher.id)
            .flat_map(|(_, own)| *own)
            .any(|access| ids.contains(&access.object) && access.kind.writes());
        let is_filled_by_kernel = !is_written_by_others
            && writers.is_empty()
            && bytes >= LEAST_BYTES
            && in_one_call >= KERNEL_SAMPLES
            && 2 * in_one_call > before().count();
        let site = most_frequent(if is_filled_by_kernel { &calls } else { &writers });
        let is_seen = is_filled_by_kernel || !writers.is_empty();
        let step = (bytes / RECORDS).max(BASE_PAGE);
        let mut touches = Vec::new();
        for object in objects {
            let mut touch = FirstTouch {
                id: 0,
                process: object.process,
                time_ns: written_ns.max(object.born_ns),
                thread: toucher.id,
                cpu: 0,
                address: object.address,
                weight: 1.0,
                by_kernel: is_filled_by_kernel,
                site,
                mapped_bytes: None,
                node: None,
            };
            match self.former_owner(object) {
                Some(former) if is_known(former) => continue,
                Some(former) => {
                    let mut writers: BTreeMap<Option<Id>, usize> = BTreeMap::new();
                    let own = samples().filter(|(sample, _)| sample.thread == toucher.id).flat_map(|(_, own)| *own);
                    let writes = own.filter(|access| access.object == former.id && access.kind.writes());
                    writes.for_each(|access| *writers.entry(access.site).or_default() += 1);
                    let time_ns = former.died_ns.unwrap_or(former.born_ns).saturating_sub(1);
                    touch = FirstTouch { time_ns, site: most_frequent(&writers), by_kernel: false, ..touch };
                }
                None if !is_seen => continue,
                None => {}
            }
            touches.extend(records((object.address, end(object)), &touch, step));
        }
        touches
    }

    /// The address of the code that made an access.
    fn code(&self, site: Option<Id>) -> Option<u64> {
        Some(self.profile.sites.get(&site?)?.frames.first()?.address)
    }

    /// The object of another site that had most of this one's memory before. The C library maps large blocks anew: they begin 16 bytes into a
    /// page.
    pub fn former_owner(&self, object: &Object) -> Option<&'a Object> {
        if object.kind != ObjectKind::Heap || object.address % BASE_PAGE == 16 {
            return None;
        }
        let had_most = |other: &&Object| {
            let (start, end) = (other.address.max(object.address), end(other).min(end(object)));
            let is_former = other.process == object.process && other.site != object.site;
            is_former && other.died_ns.is_some_and(|died| died <= object.born_ns) && end.saturating_sub(start) > object.bytes / 2
        };
        self.profile.objects.iter().filter(had_most).max_by_key(|other| other.died_ns)
    }
}

fn most_frequent(sites: &BTreeMap<Option<Id>, usize>) -> Option<Id> {
    sites.iter().rev().max_by_key(|(_, count)| **count).and_then(|(site, _)| *site)
}

fn end(object: &Object) -> u64 {
    object.address.saturating_add(object.bytes)
}

/// Bytes of the addresses of objects, each counted once.
fn extent(objects: &[&Object]) -> u64 {
    let mut ranges: Vec<(u64, u64)> = objects.iter().map(|object| (object.address, end(object))).collect();
    ranges.sort_unstable();
    let mut last = 0;
    ranges.into_iter().fold(0, |sum: u64, (start, end)| {
        let new = end.saturating_sub(start.max(last));
        last = last.max(end);
        sum.saturating_add(new)
    })
}

/// Bytes of the objects that were alive at one time, at most.
fn most_alive(objects: &[&Object]) -> u64 {
    let births = objects.iter().map(|object| (object.born_ns, true, object.bytes));
    let deaths = objects.iter().filter_map(|object| Some((object.died_ns?, false, object.bytes)));
    let mut events: Vec<(u64, bool, u64)> = births.chain(deaths).collect();
    events.sort_unstable();
    let (mut now, mut most) = (0u64, 0);
    for (_, is_birth, bytes) in events {
        now = if is_birth { now.saturating_add(bytes) } else { now.saturating_sub(bytes) };
        most = now.max(most);
    }
    most
}
