//! First touches of threads that are alone in their process: nobody else can have made them.
//!
//! Workers that a program forks, and ranks of MPI, often have one thread. Their arrays on huge pages need a few faults, which may all fall into a burst of
//! which one in 31 is recorded. An object counts if no other thread of its process had been born when samples had shown all parts of it in use, half of them
//! written (memory that is only read has no pages of its own yet), and if the process did not inherit it. Parts between the samples may have been touched by
//! threads that were born later, so there must be none of those if faults are not recorded, and the object must not have untouched pages.

use super::BASE_PAGE;
use super::derived_touches::{RECORDS, is_whole, records};
use crate::partition::MIN_UNITS;
use crate::residents::Residents;
use firsttouch_model::rows::{FirstTouch, Id, Object, ObjectKind, Profile, SampledAccess, Thread, TimerSample};
use hashbrown::HashMap;

/// The samples must lie in all of these parts of an object but one, and write in half of them.
const PARTS: u64 = 8;
/// At least this part of the pages that the kernel was asked about must be there.
const TOUCHED: f64 = 0.9;

/// What samples show of an object while its process had one thread.
struct Seen<'a> {
    first: &'a TimerSample,
    site: Option<Id>,
    last: Id,
    samples: usize,
    /// By part of the object: whether a sample lies in it, and whether one writes there.
    used: [bool; PARTS as usize],
    written: [bool; PARTS as usize],
}

impl Seen<'_> {
    fn is_enough(&self) -> bool {
        let count = |parts: &[bool]| parts.iter().filter(|is_there| **is_there).count();
        self.samples >= MIN_UNITS && count(&self.used) + 1 >= self.used.len() && 2 * count(&self.written) >= self.written.len()
    }
}

/// By object, the first touches of those where one thread was alone. `open`: by id. `page_bytes`: the size of an object's pages. `has_faults`: whether page
/// faults were recorded.
pub(super) fn touches_of_lone_threads(
    profile: &Profile,
    accesses: &[&[SampledAccess]],
    open: &HashMap<Id, &Object>,
    page_bytes: impl Fn(&Object) -> u64,
    residents: &Residents,
    has_faults: bool,
) -> Vec<(Id, Vec<FirstTouch>)> {
    let lone = lone_threads(profile);
    let born: HashMap<Id, u64> = profile.processes.iter().map(|process| (process.id, process.born_ns)).collect();
    let counts = |object: &Object| {
        matches!(object.kind, ObjectKind::Heap | ObjectKind::Anonymous)
            && !profile.shared_memory.contains_key(&object.id)
            && born.get(&object.process).is_some_and(|born| *born < object.born_ns)
            && (has_faults || lone.get(&object.process).is_some_and(|(_, until)| *until == u64::MAX))
            && residents.of(object).fraction.is_none_or(|fraction| fraction >= TOUCHED)
    };
    // By object, so that each is asked about once.
    let open: HashMap<Id, &Object> = open.iter().filter(|(_, object)| counts(object)).map(|(id, object)| (*id, *object)).collect();
    let mut seen: HashMap<Id, Seen<'_>> = HashMap::new();
    for (sample, own) in profile.samples.iter().zip(accesses) {
        for access in *own {
            let Some(&object) = open.get(&access.object) else { continue };
            let is_alone = lone.get(&object.process).is_some_and(|&(thread, until)| thread == sample.thread && sample.time_ns < until);
            let Some(offset) = access.address.checked_sub(object.address).filter(|offset| is_alone && *offset < object.bytes) else {
                continue;
            };
            let none = [false; PARTS as usize];
            let new = || Seen { first: sample, site: None, last: sample.id, samples: 0, used: none, written: none };
            let own = seen.entry(object.id).or_insert_with(new);
            if own.samples == 0 || own.last != sample.id {
                (own.last, own.samples) = (sample.id, own.samples + 1);
            }
            let part = (u128::from(offset) * u128::from(PARTS) / u128::from(object.bytes.max(1))) as usize;
            own.used[part] = true;
            if access.kind.writes() {
                own.written[part] = true;
                own.site = own.site.or(access.site);
            }
        }
    }
    let mut found: Vec<(&Object, Seen<'_>)> = seen.into_iter().filter_map(|(id, seen)| Some((*open.get(&id)?, seen))).collect();
    found.sort_unstable_by_key(|(object, _)| object.id);
    let mut touches = Vec::new();
    for (object, seen) in found {
        if !seen.is_enough() {
            continue;
        }
        let touch = FirstTouch {
            id: 0,
            process: object.process,
            time_ns: seen.first.time_ns,
            thread: seen.first.thread,
            cpu: seen.first.cpu,
            address: object.address,
            weight: 1.0,
            by_kernel: false,
            site: seen.site,
            mapped_bytes: None,
            node: None,
        };
        let (start, end, page) = (object.address, object.address.saturating_add(object.bytes), page_bytes(object));
        let own: Vec<FirstTouch> = if page > BASE_PAGE {
            let step = ((end - start) / page / RECORDS).max(1);
            let whole = (start.div_ceil(page)..end / page).filter(|number| is_whole(object, *number, page));
            let of_page = |number: u64| FirstTouch { address: number * page, weight: step as f64, ..touch.clone() };
            whole.step_by(step as usize).map(of_page).collect()
        } else {
            records((start, end), &touch, (object.bytes / RECORDS).max(BASE_PAGE)).collect()
        };
        if !own.is_empty() {
            touches.push((object.id, own));
        }
    }
    touches
}

/// By process: its first thread, and the time at which another one was born.
fn lone_threads(profile: &Profile) -> HashMap<Id, (Id, u64)> {
    let mut threads: HashMap<Id, (&Thread, u64)> = HashMap::new();
    for thread in &profile.threads {
        let (first, until) = threads.entry(thread.process).or_insert((thread, u64::MAX));
        if first.id != thread.id {
            let later = if (thread.born_ns, thread.id) < (first.born_ns, first.id) { std::mem::replace(first, thread) } else { thread };
            *until = later.born_ns.min(*until);
        }
    }
    threads.into_iter().map(|(process, (thread, until))| (process, (thread.id, until))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{AccessKind, Process, SampleState};

    const MIB: u64 = 1 << 20;

    fn thread(id: Id, born_ns: u64) -> Thread {
        Thread { id, process: 1, tid: 1, born_ns, ..Thread::default() }
    }

    /// The first touches of an object of 16 MiB on huge pages, born at 10, of which a thread is seen to use so many sixteenths, one each ns from 20 on; the
    /// second thread is born at `second_ns`, and the process at `process_ns`. `written`: so many of the sixteenths are written.
    fn touches(sixteenths: u64, second_ns: u64, process_ns: u64, written: u64, has_faults: bool) -> Vec<(u64, Id)> {
        let object = Object {
            id: 1,
            process: 1,
            kind: ObjectKind::Heap,
            call: None,
            name: None,
            address: 64 * MIB + 16,
            bytes: 16 * MIB,
            born_ns: 10,
            died_ns: None,
            site: None,
            thread: None,
        };
        let mut profile =
            Profile { threads: vec![thread(2, second_ns), thread(1, process_ns)], objects: vec![object], ..Profile::default() };
        profile.processes.push(Process { id: 1, pid: 1, parent: Some(0), exe: None, born_ns: process_ns, died_ns: None });
        let sample = |at: u64| TimerSample {
            id: at as Id,
            thread: 1,
            time_ns: 20 + at,
            cpu: 0,
            cpu_ns: at,
            weight: 1.0,
            site: None,
            state: SampleState::Computing,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        };
        let access = |at: u64| SampledAccess {
            sample: at as Id,
            object: 1,
            address: 64 * MIB + 16 + at * MIB,
            bytes: 8,
            words: 1.0,
            kind: if at % sixteenths < written { AccessKind::Write } else { AccessKind::Read },
            site: None,
            stride: None,
        };
        let samples = 0..16;
        profile.samples = samples.clone().map(sample).collect();
        profile.sampled_accesses = samples.map(|at| access(at % sixteenths)).collect();
        let accesses: Vec<&[SampledAccess]> = profile.sampled_accesses.chunks(1).collect();
        let open = HashMap::from([(1, &profile.objects[0])]);
        let found = touches_of_lone_threads(&profile, &accesses, &open, |_| 2 * MIB, &Residents::new(&profile), has_faults);
        found.into_iter().flat_map(|(_, touches)| touches).map(|touch| (touch.address / MIB, touch.thread)).collect()
    }

    /// Check that a thread which used all of an object alone touched its whole pages, and that nothing is said of one that it used in part, that another
    /// thread may have touched, or that its process inherited.
    #[test]
    fn lone_threads_touch_what_they_use() {
        let all: Vec<(u64, Id)> = (33..40).map(|page| (2 * page, 1)).collect();
        assert_eq!(touches(16, u64::MAX, 5, 16, true), all);
        assert_eq!(touches(16, 36, 5, 16, true), all, "the other thread came later");
        assert_eq!(touches(16, 36, 5, 16, false), [], "it may have touched what lies between the samples, and no fault would show it");
        assert_eq!(touches(16, u64::MAX, 5, 16, false), all);
        assert_eq!(touches(16, 30, 5, 16, true), [], "some of it may be the other thread's");
        assert_eq!(touches(16, 7, 5, 16, true), [], "the other thread was there");
        assert_eq!(touches(8, u64::MAX, 5, 16, true), [], "one half");
        assert_eq!(touches(16, u64::MAX, 5, 4, true), [], "most of it is only read");
        assert_eq!(touches(16, u64::MAX, 15, 16, true), [], "inherited");
    }
}
