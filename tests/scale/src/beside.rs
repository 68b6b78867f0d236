//! What a run may have besides the threads and objects that use memory, as much of it as asked for: parts of an analysis that look at all of it for each
//! of them would take its square.

use crate::scenery::{allocation, touching};
use crate::{PAGE, START, Size, USED_FROM};
use firsttouch_model::rows::{FirstTouch, Id, Object, ObjectKind, Process, Profile, Thread};

/// Objects that overlap 510 others begin a page after each other, and are so long.
const OVERLAPPING_PAGES: u64 = 256;
/// Where they are.
const OVERLAPPING: u64 = 0x6000_0000_0000;

/// The parts. They have no accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Threads, each made by the one before it, which then ends.
    Chain,
    /// The same, but all live until the end.
    LivingChain,
    /// Processes in a tree, with a thread each.
    Processes,
    /// The same with an object each.
    ProcessesWithObjects,
    /// Objects, each of which overlaps 510 others.
    Overlapping,
    /// The same, each page of which is touched once.
    OverlappingTouched,
    /// Objects that all have the same addresses, with as many pages, each of which is touched once.
    Nested,
}

impl Beside {
    pub const ALL: [(&str, Self); 7] = [
        ("chain", Self::Chain),
        ("living-chain", Self::LivingChain),
        ("processes", Self::Processes),
        ("processes-with-objects", Self::ProcessesWithObjects),
        ("overlapping", Self::Overlapping),
        ("overlapping-touched", Self::OverlappingTouched),
        ("nested", Self::Nested),
    ];

    /// Adds so many of them to a profile that [`crate::profile`] made.
    pub fn add(self, profile: &mut Profile, size: &Size, count: usize) {
        match self {
            Self::Chain | Self::LivingChain => chain(profile, count, self == Self::LivingChain),
            Self::Processes | Self::ProcessesWithObjects => processes(profile, count, self == Self::ProcessesWithObjects),
            Self::Overlapping => overlapping(profile, count, 1, OVERLAPPING_PAGES),
            Self::OverlappingTouched => {
                overlapping(profile, count, 1, OVERLAPPING_PAGES);
                touched(profile, size, count);
            }
            Self::Nested => {
                overlapping(profile, count, 0, count as u64);
                touched(profile, size, count);
            }
        }
    }
}

fn thread(id: Id, process: Id, parent: Id, born_ns: u64, died_ns: Option<u64>) -> Thread {
    Thread {
        id,
        process,
        tid: 1000 + id as i32,
        parent: Some(parent),
        name: Some("helper".into()),
        born_ns,
        died_ns,
        cpu_ns: Some(0),
        ..Thread::default()
    }
}

fn chain(profile: &mut Profile, count: usize, lives: bool) {
    let first = profile.threads.len() as Id;
    let made = (0..count as u64).map(|number| {
        let (id, born_ns) = (first + number as Id, START + 1000 * (number + 1));
        thread(id, 0, if number == 0 { 0 } else { id - 1 }, born_ns, (!lives).then_some(born_ns + 2000))
    });
    profile.threads.extend(made);
}

fn processes(profile: &mut Profile, count: usize, with_objects: bool) {
    let first = profile.threads.len() as Id;
    for number in 1..=count as Id {
        let born_ns = START + 1000 * number.unsigned_abs();
        profile.processes.push(Process {
            id: number,
            pid: 2000 + number as i32,
            parent: Some(number / 2),
            exe: Some("/opt/scale/helper".into()),
            born_ns,
            died_ns: None,
        });
        let parent = if number == 1 { 0 } else { first + number / 2 - 1 };
        profile.threads.push(thread(first + number - 1, number, parent, born_ns, None));
        if with_objects {
            let id = profile.objects.len() as Id + 1;
            profile.objects.push(Object { process: number, thread: Some(first + number - 1), ..object(id, OVERLAPPING, 1 << 20, born_ns) });
        }
    }
}

fn object(id: Id, address: u64, bytes: u64, born_ns: u64) -> Object {
    Object {
        id,
        process: 0,
        kind: ObjectKind::Heap,
        call: Some("malloc".into()),
        name: None,
        address,
        bytes,
        born_ns,
        died_ns: None,
        site: Some(allocation(0)),
        thread: Some(0),
    }
}

/// Objects of so many pages, each of which begins some pages behind the one before it.
fn overlapping(profile: &mut Profile, count: usize, step: u64, pages: u64) {
    let first = profile.objects.len() as Id + 1;
    let made =
        (0..count as u64).map(|number| object(first + number as Id, OVERLAPPING + number * step * PAGE, pages * PAGE, START + number));
    profile.objects.extend(made);
}

/// A first touch of each page of theirs.
fn touched(profile: &mut Profile, size: &Size, count: usize) {
    let first = profile.first_touches.len() as Id + 1;
    profile.first_touches.extend((0..count as u64).map(|number| FirstTouch {
        id: first + number as Id,
        process: 0,
        time_ns: USED_FROM - 1000 + number % 500,
        thread: 0,
        cpu: 0,
        address: OVERLAPPING + number * PAGE,
        weight: 1.0,
        by_kernel: false,
        site: Some(touching(size, 0)),
        mapped_bytes: Some(0),
        node: None,
    }));
}
