//! First touches by calls that make the kernel touch all pages of a range: mmap with MAP_POPULATE, mlock, mlockall, madvise with
//! MADV_POPULATE_WRITE. The kernel reports no page faults for them, and places the pages where the calling thread runs.
//!
//! Of an object that is mapped so, all pages are touched at its birth: by mmap itself, or since mlockall (MCL_FUTURE) asked for it before. A later
//! call touches the pages that nobody had touched. These are known only if the touches before would have been recorded:
//! - faults were recorded from the object's birth on, and enough of its would have shown;
//! - the memory had no former owner, whose pages it may have kept;
//! - fewer records were lost than would explain the gap.

use crate::owners::Owners;
use crate::periods::Periods;
use crate::residents::Residents;
use crate::spans::{Span, Spans};
use crate::touch_record::BASE_PAGE;
use firsttouch_model::TouchCause;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{FirstTouch, Id, Object, ObjectKind, Population, Profile};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::cell::OnceCell;

/// Records of an object.
const RECORDS: u64 = 256;
/// Of at least so many expected records, half do not fail to appear by chance.
const LEAST_SHOWN: f64 = 8.0;

/// The touches by such calls.
#[derive(Default)]
pub struct Populated {
    /// With the calls that made them.
    pub touches: Vec<(FirstTouch, TouchCause)>,
    /// Memory of objects that a call touched, by process: from the call to the end of the object, ns.
    ranges: HashMap<Id, Spans<(u64, u64)>>,
}

impl Populated {
    /// Whether a call had touched the memory before the touch that other evidence suggests: then that was no first touch.
    #[must_use]
    pub fn precedes(&self, touch: &FirstTouch) -> bool {
        let at = (touch.address, touch.address.saturating_add(1));
        let is_then = |(_, (from, to)): (_, &(u64, u64))| (*from..=*to).contains(&touch.time_ns);
        self.ranges.get(&touch.process).is_some_and(|ranges| ranges.overlapping(at).any(is_then))
    }
}

#[must_use]
pub fn populated(profile: &Profile, residents: &Residents) -> Populated {
    let mut found = Populated::default();
    if profile.populations.is_empty() || profile.meta.is_attached() {
        return found;
    }
    let calls = Calls::of_processes(profile);
    let maker = Maker {
        profile,
        periods: Periods::new(profile),
        residents,
        records: Records::new(profile),
        moved: Moved::new(profile),
        owners: OnceCell::new(),
    };
    let is_placed_here = |object: &&Object| {
        let is_memory = matches!(object.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::Static | ObjectKind::Mapping);
        // Another process may have touched it before.
        let may_be_others = profile.processes.len() > 1 && profile.shared_memory.contains_key(&object.id);
        is_memory && !may_be_others
    };
    let objects: Vec<&Object> =
        profile.objects.iter().filter(is_placed_here).filter(|object| calls.contains_key(&object.process)).collect();
    let mut later = first_calls(&objects, &calls);
    for (index, object) in objects.into_iter().enumerate() {
        if let Some(call) = calls[&object.process].at_birth(object, &maker.moved) {
            maker.add(object, &call, &[(object.address, end(object))], &mut found);
        } else if let Some(call) = later[index].take() {
            maker.add(object, call, &maker.untouched(object, call), &mut found);
        }
    }
    found
}

/// For each object, the first call that reaches some of it while it lives and after its birth.
fn first_calls<'a>(objects: &[&Object], calls: &HashMap<Id, Calls<'a>>) -> Vec<Option<&'a Population>> {
    let mut first = vec![None; objects.len()];
    let mut by_birth: HashMap<Id, Vec<usize>> = HashMap::new();
    for (index, object) in objects.iter().enumerate() {
        by_birth.entry(object.process).or_default().push(index);
    }
    for (process, mut by_birth) in by_birth {
        by_birth.sort_by_key(|&index| objects[index].born_ns);
        let mut born = by_birth.into_iter().peekable();
        // Those that live, or lived until the last look at them, and that no call has reached.
        let mut unreached: Spans<usize> = Spans::default();
        for call in &calls[&process].by_time {
            while let Some(index) = born.next_if(|&index| objects[index].born_ns < call.time_ns) {
                unreached.insert((objects[index].address, end(objects[index])), index);
            }
            let range = (call.address, call.address.saturating_add(call.bytes));
            let reached: Vec<(Span, usize)> = unreached.overlapping(range).map(|(span, &index)| (span, index)).collect();
            for (span, index) in reached {
                unreached.remove(span);
                if objects[index].died_ns.is_none_or(|died| call.time_ns <= died) {
                    first[index] = Some(*call);
                }
            }
        }
    }
    first
}

fn end(object: &Object) -> u64 {
    object.address.saturating_add(object.bytes)
}

/// The calls of a process.
struct Calls<'a> {
    by_time: Vec<&'a Population>,
    /// Those that say what happens to memory that is mapped later (mlockall, munlockall), by time.
    of_future: Vec<(&'a Population, bool)>,
}

impl<'a> Calls<'a> {
    fn of_processes(profile: &'a Profile) -> HashMap<Id, Self> {
        let mut calls: HashMap<Id, Self> = HashMap::new();
        for call in &profile.populations {
            calls.entry(call.process).or_insert_with(|| Self { by_time: Vec::new(), of_future: Vec::new() }).by_time.push(call);
        }
        for calls in calls.values_mut() {
            calls.by_time.sort_by_key(|call| call.time_ns);
            calls.of_future = calls.by_time.iter().filter_map(|call| Some((*call, call.future?))).collect();
        }
        calls
    }

    /// The call that touched all of an object as it was mapped.
    fn at_birth(&self, object: &Object, moved: &Moved<'_>) -> Option<Cow<'a, Population>> {
        let until = self.by_time.partition_point(|call| call.time_ns < object.born_ns);
        let mut own = self.by_time[until..].iter().take_while(|call| call.time_ns == object.born_ns);
        if let Some(call) = own.find(|call| call.call == "mmap" && call.address == object.address) {
            return Some(Cow::Borrowed(call));
        }
        let until = self.of_future.partition_point(|(call, _)| call.time_ns < object.born_ns);
        let asked = self.of_future[..until].last();
        let (call, _) = asked.filter(|(_, future)| *future && matches!(object.kind, ObjectKind::Heap | ObjectKind::Anonymous))?;
        let thread = object.thread?;
        // A realloc or mremap may have moved pages along: whoever touched these must be the same thread, by the same rule.
        let mut part = object;
        while is_moved(part) {
            let former = moved.former(part)?;
            let is_same = former.thread == Some(thread) && former.born_ns >= call.time_ns && former.kind == object.kind;
            part = Some(former).filter(|_| is_same)?;
        }
        Some(Cow::Owned(Population { thread, time_ns: object.born_ns, site: object.site, ..(*call).clone() }))
    }
}

/// Objects that another one may have become, by process and the time of their end.
struct Moved<'a>(HashMap<(Id, u64), Vec<&'a Object>>);

impl<'a> Moved<'a> {
    fn new(profile: &'a Profile) -> Self {
        let mut by_end: HashMap<(Id, u64), Vec<&Object>> = HashMap::new();
        if profile.objects.iter().any(is_moved) {
            for object in &profile.objects {
                object.died_ns.into_iter().for_each(|died| by_end.entry((object.process, died)).or_default().push(object));
            }
        }
        Self(by_end)
    }

    /// The object that a call turned into this one: the call ends it at the time at which the new one is born. `None` if several objects
    /// ended then, or none, as when a block below the threshold grew.
    fn former(&self, object: &Object) -> Option<&'a Object> {
        let ended = self.0.get(&(object.process, object.born_ns))?;
        // An object that ended as it was born would be its own former one.
        let [former] = ended[..] else { return None };
        (former.id != object.id && former.born_ns < object.born_ns).then_some(former)
    }
}

fn is_moved(object: &Object) -> bool {
    matches!(object.call.as_deref(), Some("realloc" | "mremap"))
}

struct Maker<'a> {
    profile: &'a Profile,
    periods: Periods,
    residents: &'a Residents,
    records: Records<'a>,
    moved: Moved<'a>,
    owners: OnceCell<Owners>,
}

impl Maker<'_> {
    /// Adds records at equal distances that stand for the pages of `ranges`.
    fn add(&self, object: &Object, call: &Population, ranges: &[(u64, u64)], found: &mut Populated) {
        let Some(cause) = TouchCause::of_population(&call.call) else { return };
        let huge = self.profile.machine.huge_page_bytes;
        for &(start, end) in ranges {
            let times = (call.time_ns, object.died_ns.unwrap_or(u64::MAX));
            found.ranges.entry(object.process).or_default().insert((start, end), times);
            let count = (RECORDS * (end - start) / object.bytes.max(1)).clamp(1, (end - start).div_ceil(BASE_PAGE).max(1));
            let step = (end - start) / count;
            for address in (0..count).map(|i| start + step * i + step / 2) {
                let page = self.residents.page_bytes_near(object, address, huge).unwrap_or(BASE_PAGE);
                let touch = FirstTouch {
                    id: 0,
                    process: object.process,
                    time_ns: call.time_ns,
                    thread: call.thread,
                    cpu: u32::MAX,
                    address,
                    weight: (end - start) as f64 / count as f64 / page as f64,
                    by_kernel: false,
                    site: call.site,
                    mapped_bytes: None,
                    node: None,
                };
                found.touches.push((touch, cause));
            }
        }
    }

    /// The parts of an object that a call reaches, and that nobody had touched before.
    fn untouched(&self, object: &Object, call: &Population) -> Vec<(u64, u64)> {
        let (from, to) = (object.address.max(call.address), end(object).min(call.address.saturating_add(call.bytes)));
        let is_recorded = self.profile.evidence_of(&EvidenceSource::Touch).is_some_and(|touch| touch.available);
        if from >= to || !is_recorded || self.had_owner(object) {
            return Vec::new();
        }
        let before = self.records.between(object, call.time_ns);
        let period = before.iter().map(|touch| touch.weight).fold(self.period(object, call.time_ns), f64::max);
        let page_bytes = self.residents.of(object).page_bytes.unwrap_or(BASE_PAGE).max(BASE_PAGE);
        if period > 1.0 && object.bytes as f64 / page_bytes as f64 / period < LEAST_SHOWN {
            return Vec::new();
        }
        let gaps = gaps((from, to), &before, period as u64 * page_bytes);
        let missing: u64 = gaps.iter().map(|(start, end)| end - start).sum();
        let lost: u64 = self.profile.lost.iter().filter(|lost| lost.source == "touch").map(|lost| lost.count).sum();
        let may_be_lost = lost as f64 * period * page_bytes as f64 >= missing as f64 / 2.0;
        if lost > 0 && may_be_lost { Vec::new() } else { gaps }
    }

    /// The longest sampling period from an object's birth to a time.
    fn period(&self, object: &Object, until: u64) -> f64 {
        self.periods.longest(object.process, object.born_ns, until).map_or(1.0, |faults| (faults as f64).max(1.0))
    }

    fn had_owner(&self, object: &Object) -> bool {
        object.kind == ObjectKind::Heap && self.owners.get_or_init(|| Owners::new(self.profile)).was_there_before(object)
    }
}

/// What is left of a range without the pages around records. Each stands for those within `reach` of it, on both sides.
fn gaps((from, to): (u64, u64), records: &[&FirstTouch], reach: u64) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    let mut at = from;
    for touch in records {
        let (start, end) = (touch.address.saturating_sub(reach) & !(BASE_PAGE - 1), touch.address.saturating_add(reach));
        if start > at {
            left.push((at, start.min(to)));
        }
        at = at.max(end);
        if at >= to {
            return left;
        }
    }
    left.push((at, to));
    left
}

/// The recorded touches of each process, by address.
struct Records<'a>(HashMap<Id, Vec<&'a FirstTouch>>);

impl<'a> Records<'a> {
    fn new(profile: &'a Profile) -> Self {
        let mut by_process: HashMap<Id, Vec<&FirstTouch>> = HashMap::new();
        for touch in profile.first_touches.iter().filter(|touch| touch.weight.is_finite()) {
            by_process.entry(touch.process).or_default().push(touch);
        }
        by_process.values_mut().for_each(|list| list.sort_by_key(|touch| touch.address));
        Self(by_process)
    }

    /// Of an object, from its birth to a time, by address.
    fn between(&self, object: &Object, until: u64) -> Vec<&'a FirstTouch> {
        let Some(list) = self.0.get(&object.process) else { return Vec::new() };
        let own = list[list.partition_point(|touch| touch.address < object.address)..].iter();
        let own = own.take_while(|touch| touch.address < end(object));
        own.copied().filter(|touch| object.born_ns <= touch.time_ns && touch.time_ns < until).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;
    use crate::work;
    use firsttouch_model::rows::Evidence;

    const S: u64 = 1_000_000_000;
    const BYTES: u64 = 64 << 20;

    fn object(kind: ObjectKind) -> Object {
        let (call, name) = (Some("malloc".to_owned()), None);
        let (address, bytes, site, thread) = (BYTES, BYTES, Some(5), Some(2));
        Object { id: 1, process: 1, kind, call, name, address, bytes, born_ns: S, died_ns: None, site, thread }
    }

    fn call(call: &str, time_ns: u64, (address, bytes): (u64, u64), future: Option<bool>) -> Population {
        Population { process: 1, thread: 1, time_ns, call: call.to_owned(), address, bytes, future, site: Some(7) }
    }

    /// `touched`: where thread 3 touched the object before, one fault in 16.
    fn run(kind: ObjectKind, populations: Vec<Population>, touched: (u64, u64)) -> Vec<(FirstTouch, TouchCause)> {
        let touch = |address| FirstTouch {
            id: 0,
            process: 1,
            time_ns: S + 1,
            thread: 3,
            cpu: 0,
            address,
            weight: 16.0,
            by_kernel: false,
            site: None,
            mapped_bytes: Some(0),
            node: None,
        };
        let evidence = Evidence { source: "touch".to_owned(), available: true, detail: String::new(), samples: 0 };
        let profile = Profile {
            objects: vec![object(kind)],
            populations,
            first_touches: (touched.0..touched.1).step_by(16 * 4096).map(touch).collect(),
            evidence: vec![evidence],
            ..Profile::default()
        };
        populated(&profile, &Residents::new(&profile)).touches
    }

    fn bytes(touches: &[(FirstTouch, TouchCause)]) -> u64 {
        touches.iter().map(|(touch, _)| (touch.weight * 4096.0) as u64).sum()
    }

    /// Check that MAP_POPULATE, and mlockall before, make the mapping thread touch all of an object, and munlockall ends that.
    #[test]
    fn touched_as_it_is_mapped() {
        let nothing = (0, 0);
        let mapped = run(ObjectKind::Anonymous, vec![call("mmap", S, (BYTES, BYTES), None)], nothing);
        assert_eq!(bytes(&mapped), BYTES);
        assert!(mapped.iter().all(|(touch, cause)| touch.thread == 1 && touch.site == Some(7) && *cause == TouchCause::MapPopulate));
        let lock = |time, future| call("mlockall", time, nothing, Some(future));
        let locked = run(ObjectKind::Heap, vec![lock(5, true)], nothing);
        assert_eq!(bytes(&locked), BYTES);
        assert!(locked.iter().all(|(touch, cause)| touch.thread == 2 && touch.site == Some(5) && *cause == TouchCause::Mlockall));
        assert_eq!(run(ObjectKind::Heap, vec![lock(5, true), lock(6, false)], nothing), []);
        assert_eq!(run(ObjectKind::Heap, vec![lock(2 * S, true)], nothing), [], "it was mapped before");
        assert_eq!(run(ObjectKind::Heap, vec![Population { process: 2, ..lock(5, true) }], nothing), [], "another process");
    }

    /// Check that a later call touches what nobody had touched, and only that.
    #[test]
    fn touched_later() {
        let lock = |range| run(ObjectKind::Heap, vec![call("mlock", 2 * S, range, None)], (0, 0));
        assert_eq!(bytes(&lock((BYTES, BYTES))), BYTES);
        assert_eq!(bytes(&lock((BYTES, BYTES / 4))), BYTES / 4);
        assert_eq!(lock((4 * BYTES, BYTES)), []);
        let all = call("mlockall", 2 * S, (0, u64::MAX), Some(false));
        assert_eq!(bytes(&run(ObjectKind::Static, vec![all.clone()], (0, 0))), BYTES);
        assert_eq!(run(ObjectKind::Static, vec![all.clone()], (BYTES, 2 * BYTES)), [], "threads had touched all of it");
        let rest = run(ObjectKind::Heap, vec![all], (BYTES, BYTES * 3 / 2));
        let (left, error) = (bytes(&rest), 16 * 4096);
        assert!(left.abs_diff(BYTES / 2) <= error && rest.iter().all(|(touch, _)| touch.address > BYTES * 3 / 2), "{left}");
    }

    /// Check that a block which grows after mlockall (MCL_FUTURE) is touched by its thread, and that nothing is said if another thread, or
    /// nobody known, has allocated the block before.
    #[test]
    fn blocks_that_grow() {
        let former =
            |thread, born_ns, died_ns| Object { thread: Some(thread), born_ns, died_ns: Some(died_ns), ..object(ObjectKind::Heap) };
        let grown = Object { id: 2, call: Some("realloc".to_owned()), born_ns: 2 * S, ..object(ObjectKind::Heap) };
        let touched = |formers: &[Object]| {
            let objects = formers.iter().cloned().chain([grown.clone()]).collect();
            let populations = vec![call("mlockall", S / 2, (0, 0), Some(true))];
            let profile = Profile { objects, populations, ..Profile::default() };
            let found = populated(&profile, &Residents::new(&profile));
            found.touches.iter().filter(|(touch, _)| touch.time_ns == 2 * S).map(|(touch, _)| touch.thread).max()
        };
        assert_eq!(touched(&[former(2, S, 2 * S)]), Some(2));
        assert_eq!(touched(&[former(3, S, 2 * S)]), None, "another thread");
        assert_eq!(touched(&[former(2, S / 4, 2 * S)]), None, "it was there before mlockall");
        assert_eq!(touched(&[former(2, S, 3 * S / 2)]), None, "it ended before");
        assert_eq!(touched(&[]), None);
    }

    /// Check which touches that other evidence suggests come too late to be the first.
    #[test]
    fn later_touches_are_no_first_ones() {
        let mapped = Object { died_ns: Some(3 * S), ..object(ObjectKind::Anonymous) };
        let populations = vec![call("mmap", S, (BYTES, BYTES), None)];
        let profile = Profile { objects: vec![mapped], populations, ..Profile::default() };
        let found = populated(&profile, &Residents::new(&profile));
        let touch = |process, address, time_ns| FirstTouch { process, address, time_ns, ..found.touches[0].0.clone() };
        let touches = [touch(1, BYTES, 2 * S), touch(1, 2 * BYTES, 2 * S), touch(1, BYTES, 4 * S), touch(2, BYTES, 2 * S)];
        assert_eq!(touches.map(|touch| found.precedes(&touch)), [true, false, false, false]);
    }

    /// Check that the first call that reaches an object is that which a look at all calls finds.
    #[test]
    fn first_calls_are_those_of_all_calls() {
        let mut draws = Draws::new(1);
        let mut below = |end: u64| draws.below(end);
        let objects: Vec<Object> = (0..300)
            .map(|_| {
                let (born_ns, lived) = (below(100), below(60));
                let died_ns = (lived < 40).then_some(born_ns + lived);
                Object { process: below(2) as Id, address: below(500), bytes: below(40), born_ns, died_ns, ..object(ObjectKind::Heap) }
            })
            .collect();
        let populations: Vec<Population> =
            (0..90).map(|_| Population { process: below(2) as Id, ..call("mlock", below(120), (below(500), below(60)), None) }).collect();
        let profile = Profile { objects: objects.clone(), populations, ..Profile::default() };
        let calls = Calls::of_processes(&profile);
        let objects: Vec<&Object> = objects.iter().collect();
        for (object, found) in objects.iter().zip(first_calls(&objects, &calls)) {
            let reaches = |call: &&&Population| {
                let reaches = call.address < end(object) && object.address < call.address.saturating_add(call.bytes);
                reaches && object.born_ns < call.time_ns && object.died_ns.is_none_or(|died| call.time_ns <= died)
            };
            let first = calls[&object.process].by_time.iter().find(reaches);
            assert_eq!(found.map(|call| call.time_ns), first.map(|call| call.time_ns), "{object:?}");
        }
    }

    /// Check that the steps grow with the objects and calls: memory that is allocated and locked again and again, and many objects that live
    /// at the same time.
    #[test]
    fn steps_grow_with_objects_and_calls() {
        let steps_of = |is_reused: bool, count: usize| {
            let numbers = || 0..count as u64;
            let place = |number| if is_reused { 0 } else { number * 8192 };
            let born = |number| 1 + 10 * number;
            let objects = numbers().map(|number| Object {
                address: place(number),
                bytes: 4096,
                born_ns: born(number),
                died_ns: is_reused.then(|| born(number) + 5),
                ..object(ObjectKind::Heap)
            });
            let late = if is_reused { 0 } else { 10 * count as u64 };
            let populations = numbers().map(|number| call("mlock", late + born(number) + 2, (place(number), 4096), None)).collect();
            let profile = Profile { objects: objects.collect(), populations, ..Profile::default() };
            work::steps(|| {
                let calls = Calls::of_processes(&profile);
                let objects: Vec<&Object> = profile.objects.iter().collect();
                assert!(first_calls(&objects, &calls).iter().all(Option::is_some));
            })
        };
        work::assert_growth("reused memory", work::LINEAR, |count| steps_of(true, count), 500);
        work::assert_growth("objects beside each other", work::LINEAR, |count| steps_of(false, count), 500);
    }
}
