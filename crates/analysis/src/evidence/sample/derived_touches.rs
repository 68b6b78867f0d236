//! First touches from sweeps: where the kernel reports no page faults (perf is forbidden), and for objects whose faults fell into a burst of
//! faults of which few were recorded.
//!
//! The first sweep over a part of an object touches its pages if it writes them, and if nothing can have touched them before without being
//! sampled. So an object counts only if
//! - it is so large that touching it takes several ticks ([`LEAST_BYTES`]), because shorter loops may fall between two samples;
//! - most of it lies between two samples in one entry of a loop that writes it, and no sweep had passed it before. Where the first sweeps
//!   read, something else had filled the memory: the kernel, for `read()`;
//! - where faults are recorded, fewer than [`ENOUGH`] records are of the object, or of its huge pages, and at the time of the sweep each record stood for so many
//!   faults that the object's would hardly have shown. If they would have shown, a former owner of the memory had touched the pages;
//! - where no faults are recorded, the threads' fault counts allow it (`fault_counts.rs`). They also show the first touches of processes in
//!   which one thread touched everything.
//!
//! Memory that a process inherited by fork needs less: a page that it writes is its own from then on. So each sweep that writes counts, apart
//! from places with recorded faults nearby.
//!
//! Each sweep becomes records at equal distances, which stand for the pages between them; of huge pages, each that one thread swept first has one.

use super::alone::touches_of_lone_threads;
use super::fault_counts::FaultCounts;
use super::rates::Rates;
use super::sweeps::{Sweep, sweeps};
use super::{BASE_PAGE, by_sample};
use crate::displaced::CLOSE;
use crate::inherited::Inheritance;
use crate::residents::Residents;
use crate::threads::Threads;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{FirstTouch, Id, Object, Profile};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// Touching this many bytes takes at least two ticks, as the kernel clears at most about 2 GB a second for a thread.
pub(super) const LEAST_BYTES: u64 = 16 << 20;
/// The first sweeps that write must cover this part of the object.
const LEAST_COVERED: f64 = 0.5;
/// Records of an object.
pub(super) const RECORDS: u64 = 256;
/// With so many recorded faults, an object needs no others.
const ENOUGH: usize = 8;
/// A sampling period holds this long before and after a record, ns.
const PERIOD_HOLDS_NS: u64 = 250_000_000;

/// The first touches that the samples show and that were not recorded. `goes_to_any_thread`: as of [`Rates::new`].
#[must_use]
pub fn derived_touches(
    profile: &Profile,
    threads: &Threads,
    residents: &Residents,
    goes_to_any_thread: &dyn Fn(Id) -> bool,
) -> Vec<FirstTouch> {
    if profile.samples.is_empty() || profile.meta.is_attached() {
        return Vec::new();
    }
    let is_refused = profile.evidence_of(&EvidenceSource::Touch).is_some_and(|evidence| !evidence.available);
    let recorded = Recorded::new(profile);
    let inheritance = Inheritance::new(profile);
    let is_copy = |object: &Object| !is_refused && inheritance.is_copy(object);
    let pages = PageSizes::new(profile, residents);
    let has_few = |object: &&Object| {
        object.bytes >= LEAST_BYTES
            && (recorded.of(object).count() < ENOUGH || is_copy(object) || recorded.of_huge_pages(object, pages.of(object)) < ENOUGH)
    };
    let open: HashMap<Id, &Object> = profile.objects.iter().filter(has_few).map(|object| (object.id, object)).collect();
    if open.is_empty() && !is_refused {
        return Vec::new();
    }
    let accesses = by_sample(profile);
    let rates = Rates::new(profile, &accesses, threads, goes_to_any_thread);
    let mut by_object: BTreeMap<Id, Vec<Sweep>> = BTreeMap::new();
    for sweep in sweeps(profile, &accesses, &rates).first {
        by_object.entry(sweep.object).or_default().push(sweep);
    }
    let mut by_thread: BTreeMap<Id, u64> = BTreeMap::new();
    let mut swept_first: Vec<(&Object, Vec<&Sweep>, &[Sweep])> = Vec::new();
    let mut copied: Vec<(&Object, Sweep)> = Vec::new();
    for (id, swept) in &by_object {
        let Some(&object) = open.get(id) else { continue };
        if is_copy(object) {
            let writing = swept.iter().filter(|sweep| sweep.is_certain && sweep.writes);
            copied.extend(until_the_end(object, writing.cloned().collect()).into_iter().map(|sweep| (object, sweep)));
            continue;
        }
        let faults = (object.bytes / pages.of(object)) as f64;
        let counts = |sweep: &&Sweep| {
            let is_hidden = || faults / recorded.period_at(object.process, sweep.time_ns) < ENOUGH as f64;
            sweep.is_certain && if is_refused { sweep.writes } else { sweep.fills && is_hidden() }
        };
        let firsts: Vec<&Sweep> = swept.iter().filter(counts).collect();
        firsts.iter().for_each(|sweep| *by_thread.entry(sweep.thread).or_default() += sweep.end - sweep.start);
        swept_first.push((object, firsts, swept));
    }
    let counts = is_refused.then(|| FaultCounts::new(profile));
    let mut touches = Vec::new();
    for (object, sweep) in copied {
        let near = (CLOSE * recorded.period_at(object.process, sweep.time_ns) * BASE_PAGE as f64) as u64;
        let written = touches_of(&sweep, object.process, (object.bytes / RECORDS).max(BASE_PAGE));
        touches.extend(written.filter(|touch| !recorded.is_near(object, touch.address, near)));
    }
    let mut known: HashSet<Id> = HashSet::new();
    for (object, mut firsts, all) in swept_first {
        firsts.retain(|sweep| counts.as_ref().is_none_or(|counts| counts.allow(object.process, sweep.thread, by_thread[&sweep.thread])));
        // Its pages were touched by those who used the former object, and no record shows by whom.
        if counts.as_ref().is_some_and(|counts| counts.former_owner(object).is_some()) {
            continue;
        }
        let covered: u64 = firsts.iter().map(|sweep| sweep.end - sweep.start).sum();
        if (covered as f64) < LEAST_COVERED * object.bytes as f64 {
            continue;
        }
        known.insert(object.id);
        match residents.of(object).page_bytes.filter(|bytes| *bytes > BASE_PAGE) {
            Some(page_bytes) => touches.extend(touches_of_huge_pages(object, &firsts, all, page_bytes)),
            None => {
                let step = (object.bytes / RECORDS).max(BASE_PAGE);
                firsts.into_iter().for_each(|sweep| touches.extend(touches_of(sweep, object.process, step)));
            }
        }
    }
    let unknown = open.into_iter().filter(|(id, object)| !known.contains(id) && !is_copy(object)).collect();
    for (object, by_lone_thread) in touches_of_lone_threads(profile, &accesses, &unknown, |object| pages.of(object), residents, !is_refused)
    {
        known.insert(object);
        touches.extend(by_lone_thread);
    }
    if let Some(counts) = counts {
        touches.extend(
            counts.touches_of_the_only_toucher(&accesses, |object| known.contains(&object.id) || recorded.of(object).next().is_some()),
        );
    }
    let last = profile.first_touches.iter().map(|touch| touch.id).max().unwrap_or(0);
    for (touch, id) in touches.iter_mut().zip(last.saturating_add(1)..) {
        touch.id = id;
    }
    touches
}

/// The sizes of objects' pages.
struct PageSizes<'a> {
    residents: &'a Residents,
    /// Where the kernel did not say.
    otherwise: u64,
}

impl<'a> PageSizes<'a> {
    fn new(profile: &Profile, residents: &'a Residents) -> Self {
        let machine = &profile.machine;
        let otherwise = if machine.transparent_huge_pages == "always" { machine.huge_page_bytes.max(BASE_PAGE) } else { BASE_PAGE };
        Self { residents, otherwise }
    }

    fn of(&self, object: &Object) -> u64 {
        self.residents.of(object).page_bytes.unwrap_or(self.otherwise).max(BASE_PAGE)
    }
}

/// The recorded first touches of each process, by address and by time.
struct Recorded {
    by_address: HashMap<Id, Vec<(u64, u64)>>,
    by_time: HashMap<Id, Vec<(u64, f64)>>,
}

impl Recorded {
    fn new(profile: &Profile) -> Self {
        let mut recorded = Self { by_address: HashMap::new(), by_time: HashMap::new() };
        for touch in profile.first_touches.iter().filter(|touch| touch.weight.is_finite()) {
            recorded.by_address.entry(touch.process).or_default().push((touch.address, touch.time_ns));
            recorded.by_time.entry(touch.process).or_default().push((touch.time_ns, touch.weight));
        }
        recorded.by_address.values_mut().for_each(|list| list.sort_unstable());
        recorded.by_time.values_mut().for_each(|list| list.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))));
        recorded
    }

    /// The touches of an object during its life, at most [`ENOUGH`].
    fn of(&self, object: &Object) -> impl Iterator<Item = &(u64, u64)> {
        let list = self.by_address.get(&object.process).map_or(&[][..], Vec::as_slice);
        let end = object.address.saturating_add(object.bytes);
        let life = object.born_ns..=object.died_ns.unwrap_or(u64::MAX);
        let own = list[list.partition_point(|touch| touch.0 < object.address)..].iter().take_while(move |touch| touch.0 < end);
        own.filter(move |touch| life.contains(&touch.1)).take(ENOUGH)
    }

    /// The touches of huge pages within an object, at most [`ENOUGH`]; as many if its pages are small. Its ends, outside of huge pages, have base
    /// pages, whose records say nothing of the others.
    fn of_huge_pages(&self, object: &Object, page_bytes: u64) -> usize {
        if page_bytes <= BASE_PAGE {
            return ENOUGH;
        }
        let list = self.by_address.get(&object.process).map_or(&[][..], Vec::as_slice);
        let life = object.born_ns..=object.died_ns.unwrap_or(u64::MAX);
        let own = list[list.partition_point(|touch| touch.0 < object.address)..].iter();
        let own = own.take_while(|touch| touch.0 < object.address.saturating_add(object.bytes)).filter(|touch| life.contains(&touch.1));
        own.filter(|touch| is_whole(object, touch.0 / page_bytes, page_bytes)).take(ENOUGH).count()
    }

    /// Whether a touch during the object's life is recorded within this distance.
    fn is_near(&self, object: &Object, address: u64, near: u64) -> bool {
        let list = self.by_address.get(&object.process).map_or(&[][..], Vec::as_slice);
        let life = object.born_ns..=object.died_ns.unwrap_or(u64::MAX);
        let from = list.partition_point(|touch| touch.0 < address.saturating_sub(near));
        list[from..].iter().take_while(|touch| touch.0 <= address.saturating_add(near)).any(|touch| life.contains(&touch.1))
    }

    /// How many faults a record stood for at this time; 1 if no fault was recorded around it.
    fn period_at(&self, process: Id, time: u64) -> f64 {
        let list = self.by_time.get(&process).map_or(&[][..], Vec::as_slice);
        let (from, to) = (time.saturating_sub(PERIOD_HOLDS_NS), time.saturating_add(PERIOD_HOLDS_NS));
        let around = list[list.partition_point(|touch| touch.0 < from)..].iter().take_while(|touch| touch.0 <= to);
        around.map(|touch| touch.1).fold(1.0, f64::max)
    }
}

/// A loop that moves on goes on until some time before the next tick: half a tick's way, on average. `sweeps`: by time, on one object.
fn until_the_end(object: &Object, mut sweeps: Vec<Sweep>) -> Vec<Sweep> {
    for at in 1..sweeps.len() {
        let (before, sweep) = (sweeps[at - 1].clone(), &sweeps[at]);
        let is_last = sweeps.get(at + 1).is_none_or(|next| next.start != sweep.end && next.end != sweep.start);
        let way = (sweep.end - sweep.start) / 2;
        let goes_on = is_last && sweep.thread == before.thread;
        let sweep = &mut sweeps[at];
        if goes_on && before.end == sweep.start {
            sweep.end = (sweep.end + way).min(object.address.saturating_add(object.bytes));
        } else if goes_on && before.start == sweep.end {
            sweep.start = sweep.start.saturating_sub(way).max(object.address);
        }
    }
    sweeps
}

/// Whether a page, by its number, lies within an object.
pub(super) fn is_whole(object: &Object, page: u64, page_bytes: u64) -> bool {
    page * page_bytes >= object.address && (page + 1) * page_bytes <= object.address.saturating_add(object.bytes)
}

/// A record for each huge page that the first sweeps pass. One fault places all of it, so pages that several threads swept first, by any of the
/// object's sweeps, have none: which of them came first, samples do not show.
fn touches_of_huge_pages(object: &Object, firsts: &[&Sweep], all: &[Sweep], page_bytes: u64) -> Vec<FirstTouch> {
    let mut by_page: BTreeMap<u64, &Sweep> = BTreeMap::new();
    for sweep in firsts.iter().filter(|sweep| sweep.start < sweep.end) {
        (sweep.start / page_bytes..=(sweep.end - 1) / page_bytes).for_each(|page| {
            by_page.entry(page).or_insert(sweep);
        });
    }
    let is_alone = |page: u64, first: &Sweep| {
        let here = |sweep: &&Sweep| sweep.start < (page + 1) * page_bytes && page * page_bytes < sweep.end;
        all.iter().filter(here).all(|sweep| sweep.thread == first.thread)
    };
    let known = by_page.into_iter().filter(|(page, first)| is_whole(object, *page, page_bytes) && is_alone(*page, first));
    let touch = |(page, first): (u64, &Sweep)| FirstTouch { address: page * page_bytes, weight: 1.0, ..touch_of(first, object.process) };
    known.map(touch).collect()
}

fn touches_of(sweep: &Sweep, process: Id, step: u64) -> impl Iterator<Item = FirstTouch> {
    records((sweep.start, sweep.end), &touch_of(sweep, process), step)
}

fn touch_of(sweep: &Sweep, process: Id) -> FirstTouch {
    FirstTouch {
        id: 0,
        process,
        time_ns: sweep.time_ns,
        thread: sweep.thread,
        cpu: sweep.cpu,
        address: sweep.start,
        weight: 1.0,
        by_kernel: false,
        site: sweep.site,
        mapped_bytes: None,
        node: None,
    }
}

/// Records like `touch` at equal distances, at most `step`, which stand for the pages of a range.
pub(super) fn records((start, end): (u64, u64), touch: &FirstTouch, step: u64) -> impl Iterator<Item = FirstTouch> + use<> {
    let length = end - start;
    let count = length.div_ceil(step).max(1);
    let touch = touch.clone();
    (0..count).map(move |i| FirstTouch {
        address: start + length / count * i + length / count / 2,
        weight: length as f64 / count as f64 / BASE_PAGE as f64,
        ..touch.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::ObjectKind;

    fn object() -> Object {
        Object {
            id: 1,
            process: 1,
            kind: ObjectKind::Anonymous,
            call: None,
            name: None,
            address: 1000,
            bytes: 1000,
            born_ns: 0,
            died_ns: None,
            site: None,
            thread: None,
        }
    }

    fn sweep(thread: Id, time_ns: u64, start: u64, end: u64) -> Sweep {
        Sweep { object: 1, thread, cpu: 0, time_ns, site: None, start, end, writes: true, fills: true, is_certain: true }
    }

    /// Check an object of three huge pages and base pages at its ends: each page that one thread swept first has a record, and one in which the parts of two
    /// threads meet, or where another thread may have come first, has none.
    #[test]
    fn huge_pages_have_one_toucher() {
        let object = Object { address: 50, bytes: 500, ..object() };
        let sweep = |thread, start, end, is_certain| Sweep { is_certain, ..sweep(thread, 1, start, end) };
        let all = [
            sweep(1, 50, 210, true),
            sweep(2, 210, 330, true),
            sweep(3, 330, 410, true),
            sweep(4, 400, 410, false),
            sweep(3, 410, 550, true),
        ];
        let firsts: Vec<&Sweep> = all.iter().filter(|sweep| sweep.is_certain).collect();
        let of = |all: &[Sweep]| -> Vec<(u64, Id)> {
            touches_of_huge_pages(&object, &firsts, all, 100).iter().map(|touch| (touch.address, touch.thread)).collect()
        };
        assert_eq!(of(&all), [(100, 1)], "200 and 300 are shared, 400 may be of thread 4");
        assert_eq!(of(&all[..3]), [(100, 1), (400, 3)]);
    }

    /// Check that the last sweep of a thread is longer by half, in the direction in which it moves and within the object, and that single sweeps and
    /// those of other threads stay as they are.
    #[test]
    fn the_last_sweep_goes_on() {
        let object = object();
        let ends = |sweeps: Vec<Sweep>| -> Vec<(u64, u64)> {
            until_the_end(&object, sweeps).iter().map(|sweep| (sweep.start, sweep.end)).collect()
        };
        let up = vec![sweep(1, 1, 1000, 1200), sweep(1, 2, 1200, 1400)];
        assert_eq!(ends(up), [(1000, 1200), (1200, 1500)]);
        assert_eq!(ends(vec![sweep(1, 1, 1500, 1700), sweep(1, 2, 1700, 1950)]), [(1500, 1700), (1700, 2000)]);
        assert_eq!(ends(vec![sweep(1, 1, 1400, 1600), sweep(1, 2, 1200, 1400)]), [(1400, 1600), (1100, 1400)]);
        assert_eq!(ends(vec![sweep(1, 1, 1400, 1600)]), [(1400, 1600)]);
        assert_eq!(ends(vec![sweep(1, 1, 1000, 1200), sweep(2, 2, 1200, 1400)]), [(1000, 1200), (1200, 1400)]);
    }
}
