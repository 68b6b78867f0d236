//! Machines with several nodes: hinting faults distinguished from first touches and used as evidence, and the findings that need real nodes,
//! each triggered by a constructed profile and absent in a similar one without the defect.

use crate::simulated::*;
use firsttouch_analysis::{Analysis, PartitionKind, Target, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::{FindingKind, FixKind};
use firsttouch_model::rows::*;

/// Threads 0 to 3 run on node 0, 4 to 7 on node 1. Thread t runs on CPU t.
pub fn node(thread: i64) -> i32 {
    i32::from(thread >= 4)
}

/// A profile as recorded on a machine with two nodes: 8 pinned threads, and all pages where first touch places them.
pub fn recorded(world: &World, seed: u64) -> Profile {
    let mut p = world.profile(seed);
    p.machine.node_cpus = [(0, (0..4).collect()), (1, (4..8).collect())].into();
    p.machine.numa_balancing = 1;
    p.evidence.push(Evidence { source: "agent".into(), available: true, samples: 1, detail: String::new() });
    for touch in &mut p.first_touches {
        touch.cpu = touch.thread as u32;
        touch.mapped_bytes = Some(0);
        touch.node = Some(node(touch.thread));
    }
    for row in &mut p.accesses {
        row.cpu = Some(row.thread as u32);
    }
    for thread in 0..8 {
        p.thread_cpus.insert((thread, thread as u32), Seen { samples: 100, looks: 100 });
    }
    for name in ["numa_pages_migrated", "numa_foreign", "numa_miss"] {
        p.counters.push(Counter { name: name.into(), node: (name != "numa_pages_migrated").then_some(0), at_start: 7, at_end: 7 });
    }
    p
}

pub fn host() -> Target {
    Target { name: "host".into(), virtual_machine: false, ..target(2) }
}

fn judged(profile: &Profile) -> Analysis {
    analyse(profile, &host(), &FakeSources(TouchCause::Loop))
}

fn ids(analysis: &Analysis) -> Vec<&str> {
    analysis.findings.iter().map(|f| f.kind.as_str()).collect()
}

fn block() -> World {
    World::new(8, vec![Thing::new("A", 64, Who::Block(0, 8), Who::Block(0, 8))])
}

fn serial() -> World {
    World::new(8, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 8))])
}

/// Faults on every `step`-th page of the first object from `start` on.
pub fn faults(p: &mut Profile, world: &World, step: u64, start: u64, who: &Who, change: impl Fn(&mut FirstTouch)) {
    let bytes = world.things[0].bytes;
    for page in (0..bytes / 4096).step_by(step as usize) {
        let thread = who.at(page * 4096, bytes, start)[0] as i64;
        let mut fault = FirstTouch {
            id: p.first_touches.len() as i64,
            process: 1,
            time_ns: start + page * 10_000,
            thread,
            cpu: thread as u32,
            address: world.address(0) + page * 4096 + 8,
            weight: step as f64,
            by_kernel: false,
            site: Some(2000),
            mapped_bytes: Some(4096),
            node: Some(node(thread)),
        };
        change(&mut fault);
        p.first_touches.push(fault);
    }
}

/// Adds the nodes of every 128th page of the first object, at each of the times.
fn answers(p: &mut Profile, world: &World, times: &[u64], node_at: impl Fn(u64, usize) -> i32) {
    for (i, &time_ns) in times.iter().enumerate() {
        for page in (0..world.things[0].bytes / 4096).step_by(128) {
            let address = world.address(0) + page * 4096;
            p.pages.push(Page { process: 1, object: Some(0), address, time_ns, node: node_at(page, i), page_bytes: 4096 });
        }
    }
}

/// Check that hinting faults do not change the first touches, at several sampling periods, even if each page has many of them.
#[test]
fn hints_are_no_first_touches() {
    for (period, step) in [(1, 1), (31, 7), (31, 251), (251, 1)] {
        let world = World { period, ..block() };
        let mut p = recorded(&world, 3);
        for scan in 1..6 {
            faults(&mut p, &world, step, scan * S, &Who::Cyclic(0, 8, 4096), |_| {});
        }
        let analysis = judged(&p);
        let object = &analysis.objects[0];
        assert!(analysis.findings.is_empty(), "1/{period}, 1/{step}: {:?}", analysis.findings);
        assert_eq!((object.first_touch.partition, object.partition), (PartitionKind::Block, PartitionKind::Block), "1/{period}, 1/{step}");
        assert_eq!(object.hints, (16384u64.div_ceil(step)) * 5);
        assert_eq!(object.evidence.as_str(), "watch");
        // On a machine without balancing these are writes to shared pages.
        p.machine.numa_balancing = 0;
        assert_eq!(judged(&p).objects[0].hints, 0);
    }
}

/// Check that without windows, hinting faults give the users of memory and the remote fraction, with interval and count.
#[test]
fn hints_are_evidence() {
    let world = serial();
    let mut p = recorded(&world, 3);
    p.windows.clear();
    p.accesses.clear();
    faults(&mut p, &world, 17, 2 * S, &Who::Block(0, 8), |_| {});
    let analysis = judged(&p);
    assert_eq!(ids(&analysis), ["serial-first-touch"]);
    let (object, finding) = (&analysis.objects[0], &analysis.findings[0]);
    assert_eq!((object.evidence.as_str(), object.hints, object.partition), ("hint", 964, PartitionKind::Block));
    assert!((object.remote_fraction.unwrap() - 0.5).abs() < 0.02);
    let [low, high] = analysis.remote_interval.unwrap();
    assert!(low < 0.5 && 0.5 < high && high - low < 0.12, "{low} {high}");
    assert_eq!((analysis.remote_evidence.as_ref().map(EvidenceSource::as_str), analysis.remote_samples), (Some("hint"), 964));
    assert!(object.used_by_thread.iter().all(|share| (share - 0.125).abs() < 0.02));
    assert_eq!(finding.figures["remote"].evidence.as_str(), "hint");
    assert!(finding.message.contains("964 hinting faults"), "{}", finding.message);
    // The same profile on a virtual machine with the same distribution of threads.
    let alike = analyse(&p, &target(2), &FakeSources(TouchCause::Loop));
    assert!((alike.remote_fraction.unwrap() - analysis.remote_fraction.unwrap()).abs() < 0.03);
}

/// Check that the interval covers the truth if sampling missed a part of some scans, and is narrow if all scans are sampled alike.
#[test]
fn intervals_know_scans() {
    let world = serial();
    let seen = |partly: bool| {
        let mut p = recorded(&world, 3);
        p.windows.clear();
        p.accesses.clear();
        for scan in 2..8 {
            // Of every third scan, only the part of the threads on node 1.
            let change =
                |fault: &mut FirstTouch| fault.weight = if partly && scan % 3 == 0 && fault.thread < 4 { 1e-9 } else { fault.weight };
            faults(&mut p, &world, 31, scan * S, &Who::Block(0, 8), change);
        }
        judged(&p).remote_interval.unwrap()
    };
    let ([low, high], [all_low, all_high]) = (seen(true), seen(false));
    assert!(low < 0.5 && 0.5 < high, "{low} {high}");
    assert!(all_low < 0.5 && 0.5 < all_high && all_high - all_low < 0.05, "{all_low} {all_high}");
}

/// Check that with few windows and many hints the result is based on hints, and that windows which contradict the hints take precedence.
#[test]
fn windows_and_hints() {
    let world = serial();
    let mut p = recorded(&world, 3);
    let few: Vec<i64> = p.windows.iter().map(|w| w.id).filter(|id| id % 10 == 0).collect();
    p.windows.retain(|w| few.contains(&w.id));
    p.accesses.retain(|a| few.contains(&a.window));
    let mut with = p.clone();
    faults(&mut with, &world, 17, 2 * S, &Who::Block(0, 8), |_| {});
    let analysis = judged(&with);
    assert!(analysis.objects[0].hit_windows >= 16, "{}", analysis.objects[0].hit_windows);
    assert_eq!((analysis.objects[0].evidence.as_str(), analysis.objects[0].access_share), ("hint", Some(1.0)));
    let mut against = p;
    faults(&mut against, &world, 17, 2 * S, &Who::One(0), |_| {});
    assert_eq!(judged(&against).objects[0].evidence.as_str(), "watch");
}

/// Check that writes which place memory that was only read before are distinguished from hinting faults.
#[test]
fn writes_after_reads_place() {
    let world = World { period: 31, ..World::new(8, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 8))]) };
    let mut p = recorded(&world, 3);
    p.first_touches.iter_mut().for_each(|t| t.node = Some(-14));
    faults(&mut p, &world, 31, S, &Who::Block(0, 8), |_| {});
    for scan in 3..6 {
        faults(&mut p, &world, 31, scan * S, &Who::Cyclic(0, 8, 4096), |_| {});
    }
    let object = &judged(&p).objects[0];
    assert_eq!(object.first_touch.partition, PartitionKind::Block);
    assert!(object.first_touch.by_thread[0] < 0.16, "{:?}", object.first_touch.by_thread);
    assert!(object.hints.abs_diff(529 * 3) <= 80, "{}", object.hints);
}

/// Check that faults on pages in migration do not count as first touches if the agent recorded the memory's life, but do if the memory
/// was released, and if a swapped page came back.
#[test]
fn pages_on_their_way() {
    let world = World { period: 31, ..block() };
    let mut p = recorded(&world, 3);
    faults(&mut p, &world, 31, 5 * S, &Who::Cyclic(0, 8, 4096), |fault| fault.mapped_bytes = Some(0));
    let partition = |p: &Profile| judged(p).objects[0].first_touch.partition;
    assert_eq!(partition(&p), PartitionKind::Block);
    // The same on one node.
    let one = |p: &Profile| analyse(p, &target(2), &FakeSources(TouchCause::Loop)).objects[0].first_touch.partition;
    p.machine.node_cpus = [(0, (0..8).collect())].into();
    assert_eq!(one(&p), PartitionKind::Block);
    let mut given_back = p.clone();
    let (address, bytes) = (world.address(0), world.things[0].bytes);
    given_back.releases.push(Release { process: 1, time_ns: 4 * S, address, bytes });
    assert_ne!(one(&given_back), PartitionKind::Block);
    let mut swapped = p.clone();
    swapped.meta.set("swapped_bytes", "4096");
    assert_ne!(one(&swapped), PartitionKind::Block);
    let mut unknown = p;
    unknown.lost.push(Lost { source: "agent".into(), reason: "ring".into(), count: 1 });
    assert_ne!(one(&unknown), PartitionKind::Block);
}

/// Check that on a kernel that does not mark hinting faults, later faults are dropped only if balancing is on.
#[test]
fn older_kernels() {
    let world = World { period: 31, ..block() };
    let mut p = recorded(&world, 3);
    for scan in 2..5 {
        faults(&mut p, &world, 31, scan * S, &Who::Cyclic(0, 8, 4096), |_| {});
    }
    p.first_touches.iter_mut().for_each(|t| t.mapped_bytes = None);
    let object = &judged(&p).objects[0];
    assert_eq!((object.first_touch.partition, object.hints), (PartitionKind::Block, 0));
    p.machine.numa_balancing = 0;
    assert_ne!(judged(&p).objects[0].first_touch.partition, PartitionKind::Block);
}

/// Check that the actual nodes of pages are used, that moves are counted, and that there is no finding after the pages of the serial matrix
/// moved to their users.
#[test]
fn pages_that_moved() {
    let world = serial();
    let still = {
        let mut p = recorded(&world, 3);
        answers(&mut p, &world, &[S, 5 * S, 9 * S], |_, _| 0);
        judged(&p)
    };
    assert_eq!(ids(&still), ["serial-first-touch"]);
    let resident = still.objects[0].resident.as_ref().unwrap();
    assert_eq!((resident.pages, resident.nodes_last.as_slice(), resident.moved.as_ref().unwrap().value), (128, &[1.0, 0.0][..], 0.0));
    let mut p = recorded(&world, 3);
    answers(&mut p, &world, &[S / 4, S, 9 * S], |page, time| i32::from(time > 0 && page >= 8192));
    let moved = judged(&p);
    assert!(moved.findings.is_empty() && moved.remote_fraction.unwrap() < 0.1, "{:?}", moved.remote_fraction);
    let resident = moved.objects[0].resident.as_ref().unwrap();
    assert_eq!((resident.nodes_first[0], resident.nodes_last[0], resident.moved.as_ref().unwrap().value), (1.0, 0.5, 0.5));
    assert_eq!(resident.returned.as_ref().unwrap().value, 0.0);
    assert!(analyse(&p, &target(2), &FakeSources(TouchCause::Loop)).objects[0].resident.is_none());
}

/// Check that a few answers do not count for distant pages whose first touches are known.
#[test]
fn few_answers_reach_not_far() {
    let world = block();
    let mut p = recorded(&world, 3);
    for page in [1000, 5000] {
        let address = world.address(0) + page * 4096;
        p.pages.push(Page { process: 1, object: Some(0), address, time_ns: S, node: 0, page_bytes: 4096 });
    }
    let analysis = judged(&p);
    assert!(analysis.findings.is_empty() && analysis.remote_fraction.unwrap() < 0.01, "{:?}", analysis.remote_fraction);
}

/// Sets the nodes of the first object's pages, at their first touch and now.
fn place(p: &mut Profile, world: &World, node_of: impl Fn(u64) -> i32) {
    let base = world.address(0);
    let inside = |address: u64| address >= base && address - base < world.things[0].bytes;
    for touch in p.first_touches.iter_mut().filter(|t| inside(t.address)) {
        touch.node = Some(node_of((touch.address - base) / 4096));
    }
    answers(p, world, &[S, 9 * S], |page, _| node_of(page));
    let windows: Vec<Page> = p
        .windows
        .iter()
        .filter(|w| inside(w.address))
        .map(|w| Page {
            process: 1,
            object: Some(0),
            address: w.address,
            time_ns: w.start_ns,
            node: node_of((w.address - base) / 4096),
            page_bytes: 4096,
        })
        .collect();
    p.pages.extend(windows);
}

fn policy(p: &mut Profile, words: &str) {
    p.policies.insert(0, Policy { policy: words.into(), time_ns: S });
}

/// Check that an interleaved or bound object which its users touched first is a policy mismatch; that a policy which places memory like
/// first touch is not; that interleaving an object which all threads use is not a defect; and that under an interleaving policy a
/// serial first touch, which places nothing, is named as what remains.
#[test]
fn policy_mismatch() {
    let spread = |world: &World, words: &str| {
        let mut p = recorded(world, 3);
        place(&mut p, world, |page| (page % 2) as i32);
        policy(&mut p, words);
        judged(&p)
    };
    let found = spread(&block(), "interleave:0-1");
    assert_eq!(ids(&found), ["policy-mismatch"]);
    let finding = &found.findings[0];
    assert!(finding.message.contains("has the memory policy interleave:0-1") && finding.message.contains("by first touch it would be 0 %"));
    assert!(finding.figures["remote_by_first_touch"].interval[1] < 0.05);
    assert_eq!((finding.object, found.objects[0].policy.as_deref()), (Some(0), Some("interleave:0-1")));

    let mut bound = recorded(&block(), 3);
    place(&mut bound, &block(), |_| 0);
    policy(&mut bound, "bind:0");
    assert_eq!(ids(&judged(&bound)), ["policy-mismatch"]);
    assert!(analyse(&bound, &target(2), &FakeSources(TouchCause::Loop)).findings.is_empty(), "a virtual machine has no policy");

    let mut local = recorded(&block(), 3);
    place(&mut local, &block(), |page| i32::from(page >= 8192));
    policy(&mut local, "prefer:0");
    assert!(judged(&local).findings.is_empty());

    for user in [Who::All(0, 8), Who::Dynamic(0, 8, 64 * 1024)] {
        let world = World::new(8, vec![Thing::new("A", 64, Who::Block(0, 8), user)]);
        assert!(spread(&world, "interleave:0-1").findings.is_empty());
        assert_eq!(spread(&world, "default").findings.len(), 1);
    }
    let serial = spread(&serial(), "interleave:0-1");
    assert_eq!(ids(&serial), ["policy-mismatch"]);
    let message = &serial.findings[0].message;
    assert!(message.contains("policy interleave:0-1, which spreads its pages over the nodes"), "{message}");
    assert!(message.contains("By first touch alone it would not be better: it was first touched by thread 0"), "{message}");
    assert_eq!(serial.findings[0].fix_kind, FixKind::DivideFirstTouch);
    assert!(serial.findings[0].fix.starts_with("take the policy interleave:0-1 away"), "{}", serial.findings[0].fix);
}

/// Check that an interleaved object has its pages on all nodes of a virtual machine, whoever touched it, and that the report doubts itself where a
/// policy says nothing about these nodes.
#[test]
fn policies_on_a_virtual_machine() {
    let judged = |world: &World, words: &str, nodes: usize| {
        let mut p = recorded(world, 1);
        policy(&mut p, words);
        analyse(&p, &target(nodes), &FakeSources(TouchCause::Loop))
    };
    for nodes in [2, 4] {
        let found = judged(&block(), "interleave:0", nodes);
        assert_eq!(ids(&found), ["policy-mismatch"]);
        assert_eq!(found.objects[0].policy.as_deref(), Some("interleave:0"));
        let remote = found.remote_fraction.expect("evidence");
        assert!((remote - (1.0 - 1.0 / nodes as f64)).abs() < 0.05, "{nodes} nodes: {remote}");
        assert_eq!(ids(&judged(&serial(), "interleave:0", nodes)), ["policy-mismatch"]);
        let shared = World::new(8, vec![Thing::new("A", 64, Who::One(0), Who::All(0, 8))]);
        assert!(judged(&shared, "interleave:0", nodes).findings.is_empty() && !judged(&shared, "default", nodes).findings.is_empty());
    }
    let bound = judged(&block(), "bind:0", 2);
    assert!(bound.findings.is_empty() && bound.objects[0].policy.is_none());
    assert!(
        bound.notes.iter().any(|note| note.to_string().contains("sets the memory policy bind:0, which says nothing")),
        "{:?}",
        bound.notes
    );
}

/// Check that a mask of CPUs which all threads share is named where a virtual machine knows nothing of it; not if it is the whole machine, if
/// threads are bound to a CPU each, or on the machine itself.
#[test]
fn a_mask_of_cpus_is_named() {
    let noted = |mask: &dyn Fn(usize) -> &'static str, target: &Target| {
        let mut p = recorded(&block(), 1);
        p.machine.node_cpus = [(0, (0..8).collect())].into();
        p.threads.iter_mut().enumerate().for_each(|(i, thread)| thread.allowed_cpus = Some(mask(i).to_owned()));
        let found = analyse(&p, target, &FakeSources(TouchCause::Loop));
        let note = found.notes.iter().map(ToString::to_string).find(|note| note.contains("may run on"));
        note.map(|note| note.split(" only").next().unwrap_or_default().to_owned())
    };
    let machine = target(2);
    for (mask, note) in [("0", Some("The threads may run on CPU 0")), ("0-2,4", Some("The threads may run on CPUs 0-2,4"))] {
        assert_eq!(noted(&|_| mask, &machine).as_deref(), note);
    }
    for mask in ["0-7", "0-63", "", "x", "3-1", "0-4294967295"] {
        assert_eq!(noted(&|_| mask, &machine), None, "{mask}");
    }
    assert_eq!(noted(&|i| ["0", "1", "2", "3", "4", "5", "6", "7"][i % 8], &machine), None);
    assert_eq!(noted(&|_| "0", &Target { virtual_machine: false, ..machine.clone() }), None);
}

/// Check that pages that did not fit on their toucher's node are reported with the counter, and that there is no finding if they fit.
#[test]
fn node_full() {
    let mut p = recorded(&block(), 3);
    place(&mut p, &block(), |_| 1);
    p.counters.iter_mut().filter(|c| c.name == "numa_foreign").for_each(|c| c.at_end += 8192);
    let found = judged(&p);
    assert_eq!(ids(&found), ["node-full"]);
    let finding = &found.findings[0];
    assert!(finding.message.contains("node 0 had no room for 8,192 pages"), "{}", finding.message);
    assert!((finding.figures["displaced"].value - 0.5).abs() < 0.01 && finding.figures["displaced"].samples > 1000);
    // Three quarters of the faults of threads 4 to 7, whose node has room, were missed: their memory counts all the same.
    let mut missed = p.clone();
    missed.first_touches.retain(|touch| touch.thread < 4 || (touch.address - block().address(0)) / 4096 / 512 % 4 == 1);
    let finding = &judged(&missed).findings[0];
    assert_eq!(finding.kind, FindingKind::NodeFull);
    let displaced = &finding.figures["displaced"];
    assert!((displaced.value - 0.5).abs() < 0.06 && displaced.interval[0] < 0.5 && displaced.interval[1] > 0.5, "{displaced:?}");
    let mut room = recorded(&block(), 3);
    place(&mut room, &block(), |page| i32::from(page >= 8192));
    assert!(judged(&room).findings.is_empty());
}

/// Check that hot memory on a node without CPUs is reported, regardless of what placed it there, and that cold memory is not.
#[test]
fn slow_tier() {
    let on_slow = |world: &World, bytes: u64| {
        let mut p = recorded(world, 3);
        p.machine.node_cpus.insert(2, Vec::new());
        place(&mut p, world, |page| if page * 4096 < bytes { 2 } else { i32::from(page >= 8192) });
        policy(&mut p, "bind:2");
        analyse(&p, &Target { nodes: 3, slow_nodes: vec![2], ..host() }, &FakeSources(TouchCause::Loop))
    };
    let found = on_slow(&block(), 64 * MIB);
    assert_eq!(ids(&found), ["slow-tier"]);
    assert!((found.findings[0].figures["slow"].value - 1.0).abs() < 1e-9);
    assert!(found.findings[0].fix.contains("--membind=0,1"), "{}", found.findings[0].fix);
    let mut cold = block();
    cold.things[0].until = 300 * MS;
    cold.things.push(Thing::new("B", 64, Who::Block(0, 8), Who::Block(0, 8)));
    assert!(on_slow(&block(), MIB).findings.is_empty() && on_slow(&cold, 64 * MIB).findings.is_empty());
}

/// Check that memory which its users touched first, but on other nodes, is reported as unpinned threads, with the object if one dominates
/// and without an object if threads keep moving; and that moves which make nothing remote have no finding.
#[test]
fn unpinned_threads() {
    // Threads 2 to 5 have moved to the other node since they touched their parts.
    let mut p = recorded(&block(), 3);
    for touch in &mut p.first_touches {
        touch.cpu = [0, 1, 4, 5, 2, 3, 6, 7][touch.thread as usize];
        touch.node = Some(i32::from(touch.cpu >= 4));
    }
    let found = judged(&p);
    assert_eq!(ids(&found), ["unpinned-threads"]);
    let finding = &found.findings[0];
    assert!(finding.object == Some(0) && finding.fix.contains("pin the threads"), "{}", finding.fix);
    assert!((finding.remote_fraction - 0.5).abs() < 0.1 && finding.figures["touched_by_its_user"].value > 0.95);
    assert!(finding.message.contains("threads have moved since, memory has not"), "{}", finding.message);
    // If they were never seen on another node than when they touched it, they have not moved.
    let mut stayed = p.clone();
    stayed.thread_cpus.clear();
    for thread in 0..8 {
        let cpu = [0, 1, 4, 5, 2, 3, 6, 7][thread as usize];
        stayed.thread_cpus.insert((thread, cpu), Seen { samples: 100, looks: 100 });
    }
    assert!(!ids(&judged(&stayed)).contains(&"unpinned-threads"), "{:?}", judged(&stayed).findings);
    // If the memory followed some of the threads, there is no other finding.
    answers(&mut p, &block(), &[S, 9 * S], |page, time| {
        [0, 0, 1, 1, 0, 0, 1, 1][page as usize / 2048] ^ i32::from(time > 0 && page % 512 == 0)
    });
    let followed = judged(&p);
    assert_eq!(ids(&followed), ["unpinned-threads"]);
    let message = &followed.findings[0].message;
    assert!(!message.contains("memory has not") && message.contains("of its pages were moved to another node"), "{message}");

    let floating = |moves: u64, away: bool| {
        let mut p = recorded(&block(), 3);
        for thread in 0..8 {
            let other = (thread as u32 + 4) % 8;
            p.thread_cpus.insert((thread, thread as u32), Seen { samples: 70, looks: 70 });
            p.thread_cpus.insert((thread, other), Seen { samples: 30, looks: 30 });
            p.threads[thread as usize].node_moves = moves;
            p.threads[thread as usize].allowed_cpus = Some("0-7".into());
        }
        // Part of the accesses come from the other node. Too little is known about the use for a finding on an object.
        if away {
            p.accesses.iter_mut().filter(|a| a.window % 10 < 3).for_each(|a| a.cpu = a.cpu.map(|cpu| (cpu + 4) % 8));
        }
        p.first_touches.retain(|t| t.id % 3000 == 0);
        judged(&p)
    };
    let found = floating(20, true);
    assert_eq!(ids(&found), ["unpinned-threads"]);
    let finding = &found.findings[0];
    assert!(finding.object.is_none() && finding.object_name == "threads");
    assert!((finding.figures["off_node"].value - 0.3).abs() < 0.01 && finding.figures["off_node"].samples == 800);
    assert!(finding.message.contains("8 of 8 threads") && finding.message.contains("CPUs 0-7"), "{}", finding.message);
    assert!(floating(20, false).findings.is_empty(), "nothing remote");
    assert!(floating(0, true).findings.iter().all(|f| f.object.is_some()), "no thread moved");
    assert!(judged(&recorded(&block(), 3)).findings.is_empty());
}

/// Check that pages which return to nodes that they had left are reported with the counter, and that pages which move once are not.
#[test]
fn balancing_churn() {
    let times: Vec<u64> = (1..9).map(|i| i * S).collect();
    let swinging = |back: bool, counted: u64| {
        let mut p = recorded(&block(), 3);
        answers(&mut p, &block(), &times, |page, time| {
            let own = i32::from(page >= 8192);
            if page % 512 == 0 && if back { time % 2 == 1 } else { time == 0 } { 1 - own } else { own }
        });
        p.counters.iter_mut().filter(|c| c.name == "numa_pages_migrated").for_each(|c| c.at_end += counted);
        judged(&p)
    };
    let found = swinging(true, 30_000);
    let churn = found.findings.iter().find(|f| f.kind == FindingKind::BalancingChurn).unwrap();
    assert!(churn.object.is_none() && churn.object_name == "pages");
    assert!((churn.figures["returned"].value - 0.25).abs() < 1e-9 && churn.message.contains("30000 pages"), "{}", churn.message);
    assert!(churn.fix.contains("firsttouch balancing measure"));
    assert!(swinging(false, 30_000).findings.iter().all(|f| f.kind != FindingKind::BalancingChurn));
    assert!(swinging(true, 0).findings.iter().all(|f| f.kind != FindingKind::BalancingChurn), "the balancing moved nothing");
}
