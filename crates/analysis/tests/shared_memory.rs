//! Memory that several processes map is one object, used by all of them.

use crate::samples::{computing, thread};
use crate::simulated::{FakeSources, MIB, Random, S, Who, target};
use firsttouch_analysis::{Analysis, PartitionKind, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::*;

const BYTES: u64 = 64 * MIB;
const PAGE: u64 = 4096;
/// Faults that a record stands for.
const PERIOD: u64 = 16;
const SAMPLES: u64 = 400;

/// A parent maps memory and forks children. Processes, threads and objects have the same numbers.
#[derive(Clone)]
struct Family {
    children: usize,
    /// Which process touches each page first (0: the parent), and which child (from 1 on) uses it.
    touch: Who,
    user: Who,
    /// Each child has mapped the memory elsewhere.
    is_moved: bool,
    is_shared: bool,
    /// Accesses are seen by watchpoints, not by samples.
    is_watched: bool,
    /// Of a hundred samples.
    writes: u64,
}

impl Family {
    fn new(children: usize, touch: Who, user: Who) -> Self {
        Self { children, touch, user, is_moved: false, is_shared: true, is_watched: false, writes: 0 }
    }

    fn address(&self, process: usize) -> u64 {
        0x10_0000_0000 * if self.is_moved { 1 + process as u64 } else { 1 }
    }

    fn first_touch(&self, process: usize, offset: u64, time_ns: u64) -> FirstTouch {
        FirstTouch {
            id: 0,
            process: process as Id,
            time_ns,
            thread: process as Id,
            cpu: 0,
            address: self.address(process) + offset,
            weight: PERIOD as f64,
            by_kernel: false,
            site: Some(100),
            mapped_bytes: Some(0),
            node: None,
        }
    }

    fn profile(&self, seed: u64) -> Profile {
        let mut random = Random(seed);
        let processes = 0..=self.children;
        let row = |id: usize| Process {
            id: id as Id,
            pid: 10 + id as i32,
            parent: (id > 0).then_some(0),
            exe: None,
            born_ns: id as u64,
            died_ns: None,
        };
        let of_process = |id: usize| Thread { process: id as Id, born_ns: id as u64, ..thread(id as Id) };
        let frame = |line: u32| Frame { address: 0x1000 * u64::from(line), file: Some("a.c".into()), line: Some(line), ..Frame::default() };
        let site = |id: Id| (id, Site { id, process: 0, frames: vec![frame(id as u32)] });
        let mut profile = Profile {
            processes: processes.clone().map(row).collect(),
            threads: processes.clone().map(of_process).collect(),
            sites: [99, 100, 101].map(site).into(),
            evidence: ["sample", "touch", "watch"]
                .map(|source| Evidence { source: source.into(), available: true, samples: 1, detail: String::new() })
                .into(),
            ..Profile::default()
        };
        profile.meta.set("start_ns", "0");
        profile.meta.set("end_ns", &(10 * S).to_string());
        for process in processes.clone() {
            profile.objects.push(Object {
                id: process as Id + 1,
                process: process as Id,
                kind: ObjectKind::Anonymous,
                call: Some("mmap".into()),
                name: Some("buffers".into()),
                address: self.address(process),
                bytes: BYTES,
                born_ns: if process == 0 { 0 } else { S },
                died_ns: None,
                site: Some(99),
                thread: Some(0),
            });
            if self.is_shared {
                profile.shared_memory.insert(process as Id + 1, SharedMemory { memory: "00:01 7".into(), offset: 0, present: None });
            }
        }
        for offset in (0..BYTES).step_by((PERIOD * PAGE) as usize) {
            profile.first_touches.push(self.first_touch(self.touch.at(offset, BYTES, 0)[0], offset, S / 2 + offset));
        }
        // Each user takes a fault on each page too, and finds the page there.
        for offset in (0..BYTES).step_by((PERIOD * PAGE) as usize) {
            for user in self.user.at(offset, BYTES, 0) {
                profile.first_touches.push(self.first_touch(user, offset + 5 * PAGE, S + 7 + offset));
            }
        }
        for number in 1..=SAMPLES {
            let offset = random.below(BYTES / 8) * 8;
            let users = self.user.at(offset, BYTES, number);
            let user = users[random.below(users.len() as u64) as usize];
            if self.is_watched {
                self.add_window(&mut profile, number, (random.below(self.children as u64) as usize + 1, offset), &users);
            } else {
                let writes = random.below(100) < self.writes;
                self.add_sample(&mut profile, number, (user, offset), writes);
            }
        }
        profile
    }

    fn add_sample(&self, profile: &mut Profile, number: u64, (user, offset): (usize, u64), writes: bool) {
        let id = number as Id;
        profile.samples.push(computing(id, user as Id, 2 * S + number * 4_000_000, number * 4_000_000, 101));
        profile.sampled_accesses.push(SampledAccess {
            sample: id,
            object: user as Id + 1,
            address: self.address(user) + offset,
            bytes: 8,
            words: 1.0,
            kind: if writes { AccessKind::Write } else { AccessKind::Read },
            site: Some(101),
            stride: Some(8),
        });
    }

    /// A window on the mapping of one process sees the accesses of that process only.
    fn add_window(&self, profile: &mut Profile, number: u64, (process, offset): (usize, u64), users: &[usize]) {
        let id = number as Id;
        let start_ns = 2 * S + number * 10_000_000;
        profile.windows.push(Window {
            id,
            round: number,
            object: process as Id + 1,
            address: self.address(process) + offset,
            start_ns,
            held_ns: 10_000_000,
            round_ns: 10_000_000,
            inclusion: 1.0 / self.children as f64,
        });
        if users.contains(&process) {
            profile.accesses.push(Access {
                window: id,
                thread: process as Id,
                site: Some(101),
                hits: 4,
                estimate: 4.0,
                watched_ns: 10_000_000,
                cut: false,
                cpu: Some(0),
                cpu_ns: None,
            });
        }
    }

    fn judged(&self, seed: u64, nodes: usize) -> Analysis {
        analyse(&self.profile(seed), &target(nodes), &FakeSources(TouchCause::Loop))
    }
}

/// Check that memory that a parent fills and two children use in halves is one object with a serial first touch, at equal and at different
/// addresses, by both sources of evidence.
#[test]
fn halves_of_what_a_parent_filled() {
    for (is_moved, is_watched) in [(false, false), (true, false), (false, true), (true, true)] {
        let family = Family { is_moved, is_watched, ..Family::new(2, Who::One(0), Who::Block(1, 2)) };
        for seed in 0..10 {
            let analysis = family.judged(seed, 3);
            let [object] = analysis.objects.as_slice() else { panic!("{:?}", analysis.objects) };
            assert!(object.judged, "{:?}", object.reason);
            assert_eq!((object.partition, object.first_touch.partition), (PartitionKind::Block, PartitionKind::Single));
            assert!(object.first_touch.by_thread[0] > 0.98, "{:?}", object.first_touch.by_thread);
            let [finding] = analysis.findings.as_slice() else { panic!("{:?}", analysis.findings) };
            assert_eq!((finding.kind, finding.object), (FindingKind::SerialFirstTouch, Some(1)));
            assert!(finding.message.contains("shared by 3 processes"), "{}", finding.message);
            assert!(
                finding.fix.starts_with("let each process be the first to write the part of buffers that it uses (a.c:101); "),
                "{}",
                finding.fix
            );
            // Each of the two children is on a node of its own. Samples show that the parent waits for them: it is with the first.
            let expected = if is_watched { 1.0 } else { 0.5 };
            assert!((analysis.remote_fraction.unwrap() - expected).abs() < 0.12, "{:?}", analysis.remote_fraction);
            let [_, a, b] = object.used_by_thread.to_vec()[..] else { panic!("{:?}", object.used_by_thread) };
            assert!((a - 0.5).abs() < 0.12 && (a + b - 1.0).abs() < 1e-6, "{a} {b}");
        }
    }
}

/// Check that memory of which each process touched the part that it uses is well placed.
#[test]
fn parts_that_each_process_touched() {
    for children in [2, 4] {
        let family = Family { is_moved: true, ..Family::new(children, Who::Block(1, children), Who::Block(1, children)) };
        let analysis = family.judged(1, 2);
        assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
        assert!(analysis.objects[0].judged && analysis.objects[0].partition == PartitionKind::Block);
        assert!(analysis.remote_fraction.unwrap() < 0.03, "{:?}", analysis.remote_fraction);
    }
}

/// Check that memory that all processes read is one that several nodes read, though each sample shows one process.
#[test]
fn memory_that_all_processes_read() {
    for is_watched in [false, true] {
        let family = Family { is_watched, ..Family::new(4, Who::One(0), Who::All(1, 4)) };
        let analysis = family.judged(3, 2);
        let kinds: Vec<FindingKind> = analysis.findings.iter().map(|finding| finding.kind).collect();
        let expected = if is_watched { FindingKind::NoStablePartition } else { FindingKind::SharedRead };
        assert_eq!(kinds, [expected], "{:?}", analysis.findings);
    }
}

/// Check that memory which processes read and write at random has the same finding whatever the share of its writes near a tenth, and that a copy
/// of shared memory is advised only if nobody writes it.
#[test]
fn shared_buffers_of_a_server() {
    for (writes, expected) in [
        (0, FindingKind::SharedRead),
        (6, FindingKind::NoStablePartition),
        (10, FindingKind::NoStablePartition),
        (14, FindingKind::NoStablePartition),
    ] {
        for seed in 0..10 {
            let analysis = Family { writes, ..Family::new(4, Who::One(0), Who::All(1, 4)) }.judged(seed, 2);
            let [finding] = analysis.findings.as_slice() else { panic!("{:?}", analysis.findings) };
            assert_eq!(finding.kind, expected, "{writes} % of the samples write");
            let is_written = expected == FindingKind::NoStablePartition;
            assert_eq!(finding.fix.contains("no copy can replace it"), is_written, "{}", finding.fix);
            assert!(finding.fix.contains("--interleave=all") && finding.fix.contains("the call that maps buffers"), "{}", finding.fix);
        }
    }
}

/// Check that memory of malloc which children inherited and only read may be copied, and that no mapping is spoken of.
#[test]
fn inherited_memory_that_all_read() {
    let family = Family { is_shared: false, ..Family::new(4, Who::One(0), Who::All(1, 4)) };
    let mut profile = family.profile(3);
    profile.first_touches.retain(|touch| touch.process == 0);
    for object in &mut profile.objects {
        (object.kind, object.call) = (ObjectKind::Heap, Some("malloc".into()));
        object.born_ns = profile.processes[object.process as usize].born_ns;
    }
    for process in &mut profile.processes[1..] {
        process.born_ns = S;
    }
    profile.objects.iter_mut().skip(1).for_each(|object| object.born_ns = S);
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    let [finding] = analysis.findings.as_slice() else { panic!("{:?}", analysis.findings) };
    assert_eq!(finding.kind, FindingKind::SharedRead);
    assert!(
        finding.fix.contains("inherited buffers by fork") && finding.fix.contains("the call that allocates buffers"),
        "{}",
        finding.fix
    );
    assert!(!finding.fix.contains("no copy") && !finding.message.contains("all of it"), "{finding:?}");
}

/// Check that copies of memory which children inherited and then wrote in huge pages are their own: few page faults make many bytes.
#[test]
fn inherited_memory_that_children_write_in_huge_pages() {
    const HUGE: u64 = 2 << 20;
    let objects_of = |page_bytes: u64| {
        let mut profile = Family { is_shared: false, ..Family::new(4, Who::One(0), Who::All(1, 4)) }.profile(3);
        profile.first_touches.retain(|touch| touch.process == 0);
        for process in &mut profile.processes[1..] {
            process.born_ns = S;
        }
        profile.objects.iter_mut().for_each(|object| (object.kind, object.call) = (ObjectKind::Heap, Some("malloc".into())));
        profile.objects.iter_mut().skip(1).for_each(|object| object.born_ns = S);
        for (number, object) in profile.objects.clone().iter().enumerate().skip(1) {
            let quarter = object.bytes / 4;
            for at in (0..quarter).step_by(HUGE as usize) {
                let address = object.address + (number as u64 - 1) * quarter + at;
                let touch = profile.first_touches[0].clone();
                profile.first_touches.push(FirstTouch {
                    process: object.process,
                    thread: profile.threads.iter().find(|thread| thread.process == object.process).unwrap().id,
                    time_ns: S + 1 + at,
                    address,
                    weight: 1.0,
                    ..touch
                });
                profile.pages.push(Page { process: object.process, object: Some(object.id), address, time_ns: 2 * S, node: 0, page_bytes });
            }
        }
        analyse(&profile, &target(2), &FakeSources(TouchCause::Loop)).objects.len()
    };
    assert!(objects_of(HUGE) > objects_of(4096), "{} and {}", objects_of(HUGE), objects_of(4096));
}

/// Check that shared memory without a name has an address at which a process maps it.
#[test]
fn addresses_of_processes_are_shown() {
    let mut profile = Family { is_moved: true, ..Family::new(2, Who::One(0), Who::Block(1, 2)) }.profile(1);
    for object in &mut profile.objects {
        (object.kind, object.name, object.call, object.site) = (ObjectKind::Mapping, None, None, None);
    }
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert_eq!(analysis.objects[0].name, "mapping at 0x1000000000");
}

/// Check that private mappings stay apart, even those that were inherited at the same address.
#[test]
fn private_mappings_stay_apart() {
    let family = Family { is_shared: false, ..Family::new(2, Who::One(0), Who::Block(1, 2)) };
    let analysis = family.judged(1, 2);
    assert_eq!(analysis.objects.len(), 3);
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
}

/// Check that faults after an attachment to processes that share older memory are not taken for first touches.
#[test]
fn older_memory_of_attached_processes() {
    let mut profile = Family::new(2, Who::One(0), Who::Block(1, 2)).profile(1);
    profile.first_touches.retain(|touch| touch.process != 0);
    profile.meta.set("mode", "attach");
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
    let reason = analysis.objects[0].reason.clone().unwrap().to_string();
    assert!(reason.contains("attached after"), "{reason}");
}
