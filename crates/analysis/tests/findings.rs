//! One simulated program for each finding, and similar programs without a defect, which must have no finding.

use crate::simulated::*;
use firsttouch_analysis::{PartitionKind, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::{FirstTouch, Frame, Lost, Object, ObjectKind, Page, Profile};

fn both(world: &World, nodes: usize) -> Vec<(String, String)> {
    found(&judge(world, 5, nodes))
}

fn one(name: &str, finding: &str) -> Vec<(String, String)> {
    vec![(name.to_owned(), finding.to_owned())]
}

/// Check DGEMV: serial initialisation is found with its line and fix; parallel initialisation has no finding.
#[test]
fn serial_first_touch() {
    let world =
        World::new(8, vec![Thing::new("A", 256, Who::One(0), Who::Block(0, 8)), Thing::new("c", 32, Who::Block(0, 8), Who::Block(0, 8))]);
    for nodes in [2, 4, 8] {
        let analysis = judge(&world, 1, nodes);
        assert_eq!(found(&analysis), one("A", "serial-first-touch"), "{nodes} nodes");
        let (finding, object) = (&analysis.findings[0], &analysis.objects[0]);
        let exact = 1.0 - 1.0 / nodes as f64;
        assert!(finding.interval[0] <= exact && exact <= finding.interval[1]);
        assert_eq!((finding.severity.as_str(), finding.cause), ("high", Some(TouchCause::Loop)));
        assert!(finding.message.contains("thread 0 alone (loop, touch.c:20)"), "{}", finding.message);
        assert!(finding.message.contains("8 threads, each its own block"), "{}", finding.message);
        assert!(finding.fix.ends_with("; insert before touch.c:19:\n  #pragma omp parallel for schedule(static)"), "{}", finding.fix);
        assert_eq!(object.partition, PartitionKind::Block);
        assert_eq!(object.first_touch.partition, PartitionKind::Single);
        assert_eq!(object.first_touch.by_thread[0], 1.0);
        assert_eq!(object.used_at[0].line, Some(30));
        assert_eq!(object.map.users.len(), 32);
        assert!(object.map.homes.iter().all(|&h| h == 0));
    }
    let placed = World::new(8, vec![Thing::new("A", 256, Who::Block(0, 8), Who::Block(0, 8))]);
    for nodes in [2, 3, 4, 5, 8, 16, 64] {
        assert_eq!(both(&placed, nodes), [], "{nodes} nodes");
    }
}

/// Check that the map of an object whose parts hold pages of both nodes says so, wherever its few samples fell, and that parts of
/// one node have that node.
#[test]
fn maps_show_mixed_parts() {
    let map = |touch, users| {
        let world = World::new(4, vec![Thing::new("g", 32, touch, users)]);
        judge(&world, 2, 2).objects[0].map.clone()
    };
    let mixed = map(Who::Cyclic(0, 4, 4096), Who::Block(0, 4));
    assert!(mixed.homes.iter().filter(|&&home| home == -1).count() >= 30, "{mixed:?}");
    assert_eq!(mixed.users.iter().filter(|&&user| user >= 0).count(), 32, "{mixed:?}");
    let blocks = map(Who::Block(0, 4), Who::Block(0, 4));
    assert_eq!(blocks.homes, (0..32).map(|piece| i64::from(piece >= 16)).collect::<Vec<_>>());
}

/// Check that no directive is advised for a loop whose body the source does not show to its end.
#[test]
fn unknown_bodies_are_not_divided() {
    let thing = |name, touch| Thing::new(name, 64, touch, Who::Block(0, 4));
    let world = World::new(4, vec![thing("A", Who::Block(0, 4)), thing("B", Who::Block(0, 4)), thing("C", Who::One(0))]);
    let analysis = judge(&world, 3, 2);
    assert_eq!(found(&analysis), one("C", "serial-first-touch"));
    let fix = &analysis.findings[0].fix;
    assert!(
        fix.contains("if its rounds do not need each other") && analysis.findings[0].fix_edits.is_empty() && !fix.contains('\n'),
        "{fix}"
    );
}

/// Check each cause's own fix, in each language.
#[test]
fn causes_have_their_fix() {
    let world = World::new(4, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 4))]);
    for (cause, file, expected) in [
        (TouchCause::Calloc, "a.c", "malloc"),
        (TouchCause::Memset, "a.cpp", "memset runs in one thread"),
        (TouchCause::Memcpy, "a.c", "memcpy runs in one thread"),
        (TouchCause::StdVector, "a.cpp", "allocator that does not initialise"),
        (TouchCause::FortranAssignment, "a.f90", "an array assignment runs in one thread (a.f90:20): let all threads do it"),
        (TouchCause::Loop, "a.F90", "divide the code that initialises it (a.F90:20) like the loop that uses it"),
        (TouchCause::Numpy, "a.py", "threads = [Thread(target=work, args=[i])"),
        (TouchCause::Loop, "a.rs", "spare_capacity_mut()"),
        (TouchCause::StdFill, "a.cpp", "std::fill runs in one thread (a.cpp:20): let all threads do it"),
        (TouchCause::MakeUnique, "a.cpp", "std::make_unique clears A in one thread: leave it uninitialised"),
        (TouchCause::Loop, "a.unknown", "the code at a.unknown:20 writes it first"),
    ] {
        let mut profile = world.profile(3);
        profile.sites.values_mut().flat_map(|s| &mut s.frames).for_each(|f| f.file = Some(file.to_owned()));
        let analysis = analyse(&profile, &target(2), &FakeSources(cause));
        assert_eq!(found(&analysis), one("A", "serial-first-touch"), "{cause}");
        assert!(analysis.findings[0].fix.contains(expected), "{cause}: {}", analysis.findings[0].fix);
    }
}

/// Check parallel first touch in another partition; slightly different borders are not a defect.
#[test]
fn mismatched_partition() {
    for touch in [Who::Cyclic(0, 8, 65_536), Who::Block(0, 4), Who::Dynamic(0, 8, 65_536)] {
        let world = World::new(8, vec![Thing::new("A", 128, touch.clone(), Who::Block(0, 8))]);
        assert_eq!(both(&world, 4), one("A", "mismatched-partition"), "{touch:?}");
    }
    let world = World::new(8, vec![Thing::new("A", 128, Who::Block(0, 8), Who::Cyclic(0, 8, 65_536))]);
    assert_eq!(both(&world, 2), one("A", "mismatched-partition"));
    let near = Who::Borders((1..8).map(|i| f64::from(i) / 8.0 + 0.004).collect());
    assert_eq!(both(&World::new(8, vec![Thing::new("A", 128, near, Who::Block(0, 8))]), 8), []);
    // A triangular loop, initialised by the same loop.
    let triangle = Who::Borders((1..8).map(|i| (f64::from(i) / 8.0).sqrt()).collect());
    assert_eq!(both(&World::new(8, vec![Thing::new("A", 128, triangle.clone(), triangle.clone())]), 8), []);
    assert_eq!(both(&World::new(8, vec![Thing::new("A", 128, Who::Block(0, 8), triangle)]), 8), one("A", "mismatched-partition"));
    let cyclic = Who::Cyclic(0, 8, 65_536);
    assert_eq!(both(&World::new(8, vec![Thing::new("A", 128, cyclic.clone(), cyclic)]), 4), []);
}

/// Check dynamic schedules and shared reading, with serial and with parallel first touch.
#[test]
fn no_stable_partition_and_shared_read() {
    for touch in [Who::One(0), Who::Block(0, 8)] {
        let world = World::new(8, vec![Thing::new("A", 128, touch.clone(), Who::Dynamic(0, 8, 65_536))]);
        let analysis = judge(&world, 5, 2);
        assert_eq!(found(&analysis), one("A", "no-stable-partition"));
        assert!(analysis.findings[0].message.contains("It was first touched by"));
        let world = World::new(8, vec![Thing::new("T", 8, touch, Who::All(0, 8))]);
        let analysis = judge(&world, 5, 2);
        assert_eq!(found(&analysis), one("T", "shared-read"));
        assert!(analysis.findings[0].fix.contains("one copy of T a node"));
    }
    // Small enough for a core's cache.
    assert_eq!(both(&World::new(8, vec![Thing::new("T", 1, Who::One(0), Who::All(0, 8))]), 2), []);
    // All users on one node.
    assert_eq!(both(&World::new(8, vec![Thing::new("T", 8, Who::One(0), Who::All(0, 4))]), 2), []);
}

/// Check I/O into fresh memory: recorded as the kernel's, recognised by the cause, or derived from resident pages without records.
#[test]
fn io_first_touch() {
    let mut thing = Thing::new("A", 64, Who::One(0), Who::Block(0, 8));
    thing.by_kernel = true;
    assert_eq!(both(&World::new(8, vec![thing.clone()]), 2), one("A", "io-first-touch"));
    thing.by_kernel = false;
    let world = World::new(8, vec![thing.clone()]);
    assert_eq!(found(&analyse(&world.profile(1), &target(2), &FakeSources(TouchCause::Io))), one("A", "io-first-touch"));
    thing.touch = None;
    let world = World::new(8, vec![thing]);
    let mut profile = world.profile(1);
    add_pages(&mut profile, world.address(0), 64 * MIB, 4096);
    // If faults in the kernel were recorded, pages without a record were not touched by the kernel.
    assert!(
        !analyse(&profile, &target(2), &FakeSources(TouchCause::Loop)).objects[0].reason.as_ref().unwrap().to_string().contains("kernel")
    );
    profile.evidence[0].detail = "faults in system calls are not seen at this privilege".into();
    let silent = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert!(silent.findings.is_empty() && silent.objects[0].reason.as_ref().unwrap().to_string().contains("kernel touched"));
    for thread in &mut profile.threads {
        (thread.user_faults, thread.all_faults) = (Some(10), Some(if thread.id == 3 { 16_500 } else { 12 }));
    }
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert_eq!(found(&analysis), one("A", "io-first-touch"));
    assert!(analysis.findings[0].message.contains("thread 3"), "{}", analysis.findings[0].message);
    assert_eq!(analysis.objects[0].first_touch.by_thread[3], 1.0);
    // Records were lost: first enough to explain the missing ones, then too few.
    profile.lost.push(Lost { source: "touch".into(), reason: "ring full".into(), count: 9000 });
    let lost = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert!(
        lost.findings.is_empty() && lost.objects[0].reason.as_ref().unwrap().to_string().contains("were lost"),
        "{:?}",
        lost.objects[0].reason
    );
    profile.lost[0].count = 100;
    assert_eq!(found(&analyse(&profile, &target(2), &FakeSources(TouchCause::Loop))), one("A", "io-first-touch"));
}

/// Check reading before writing: the reads of one thread map the zero page and place nothing, at any sampling period. The same
/// faults in the other order are a serial first touch.
#[test]
fn zero_page() {
    for (period, nodes) in [(1, 2), (31, 2), (31, 4), (251, 2)] {
        let mut thing = Thing::new("A", 128, Who::Block(0, 8), Who::Block(0, 8));
        thing.from = 400 * MS;
        let mut world = World::new(8, vec![thing]);
        world.period = period;
        let (mut profile, other) = (world.profile(5), world.profile(6));
        for touch in &mut profile.first_touches {
            touch.time_ns += 150 * MS;
        }
        let reads = other.first_touches.into_iter().map(|t| FirstTouch { thread: 0, id: t.id + 1_000_000, site: Some(100), ..t });
        profile.first_touches.extend(reads);
        let analysis = analyse(&profile, &target(nodes), &FakeSources(TouchCause::Loop));
        assert_eq!(found(&analysis), [], "1 of {period}: {:?}", analysis.objects[0].remote_fraction);
        assert!(analysis.remote_fraction.unwrap() < 0.05 && analysis.objects[0].first_touch.by_thread[0] < 0.16);
        assert_eq!(analysis.objects[0].first_touch.partition, PartitionKind::Block);
        for touch in &mut profile.first_touches {
            touch.time_ns += if touch.thread == 0 && touch.id >= 1_000_000 { 150 * MS } else { 0 };
            touch.time_ns -= if touch.id < 1_000_000 { 150 * MS } else { 0 };
        }
        assert_eq!(
            found(&analyse(&profile, &target(nodes), &FakeSources(TouchCause::Loop))),
            one("A", "serial-first-touch"),
            "1 of {period}"
        );
    }
}

/// Check that memory which each of several threads grows for itself by realloc, at the same time, is of the thread that touched it before the last
/// move, and not of the one whose memory was at the new address earlier.
#[test]
fn each_thread_grows_its_own() {
    let things = (0..4).map(|t| {
        let mut thing = Thing::new("p", 16, Who::One(t), Who::One(t));
        (thing.call, thing.site, thing.born) = ("realloc", 7, 50 * MS);
        thing
    });
    let mut profile = World::new(4, things.collect()).profile(3);
    let (threads, objects) = (profile.threads.clone(), profile.objects.clone());
    for (at, object) in objects.iter().enumerate() {
        let half = object.bytes / 2;
        let moved_from = 0x1000_0000_0000 + ((at as u64) << 34);
        let is_lower = |address: u64| address.checked_sub(object.address).is_some_and(|offset| offset < half);
        let mut stale = Vec::new();
        for touch in profile.first_touches.iter_mut().filter(|touch| is_lower(touch.address)) {
            stale.push(FirstTouch { time_ns: 2 * MS, thread: threads[0].id, ..touch.clone() });
            touch.address = touch.address - object.address + moved_from;
            touch.time_ns = 20 * MS;
        }
        profile.first_touches.extend(stale);
        let last = profile.objects.iter_mut().find(|one| one.id == object.id).unwrap();
        last.thread = Some(threads[at].id);
        let before = Object {
            id: 1000 + at as i64,
            address: moved_from,
            bytes: half,
            born_ns: 10 * MS,
            died_ns: Some(object.born_ns),
            thread: Some(threads[at].id),
            ..object.clone()
        };
        profile.objects.push(before);
    }
    profile.first_touches.sort_by_key(|touch| touch.time_ns);
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert_eq!(found(&analysis), vec![]);
    let p = &analysis.objects[0];
    assert!(
        p.judged && p.remote_interval.is_some_and(|[_, high]| high < 0.05),
        "{:?} {:?} {:?}",
        p.reason,
        p.remote_fraction,
        p.remote_interval
    );
}

/// Check a serial loop over memory from calloc and realloc: the call is the cause, and the message distinguishes it from the loop.
#[test]
fn loops_after_calls() {
    for (call, text) in [("calloc", "calloc gave zero pages that nobody had touched; the code at touch.c:20"), ("realloc", "realloc gave")]
    {
        let mut thing = Thing::new("A", 64, Who::One(0), Who::Block(0, 4));
        thing.call = call;
        let analysis = judge(&World::new(4, vec![thing.clone()]), 3, 2);
        assert_eq!(found(&analysis), one("A", "serial-first-touch"));
        assert_eq!(analysis.findings[0].cause.map(TouchCause::as_str), Some(call));
        assert!(analysis.findings[0].message.contains(text), "{}", analysis.findings[0].message);
        assert!(
            analysis.findings[0].fix.contains("insert before touch.c:19:\n  #pragma omp parallel for schedule(static)"),
            "{}",
            analysis.findings[0].fix
        );
        thing.touch = Some(Who::Block(0, 4));
        let analysis = judge(&World::new(4, vec![thing]), 3, 2);
        assert_eq!((found(&analysis), analysis.objects[0].first_touch.cause), (vec![], Some(TouchCause::Loop)));
    }
    // calloc itself clears the memory, so the message must not mention a loop.
    let mut thing = Thing::new("A", 64, Who::One(0), Who::Block(0, 4));
    thing.call = "calloc";
    let mut profile = World::new(4, vec![thing]).profile(3);
    profile.first_touches.iter_mut().for_each(|t| t.site = Some(100));
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Calloc));
    assert!(!analysis.findings[0].message.contains("nobody had touched"), "{}", analysis.findings[0].message);
    assert!(analysis.findings[0].fix.contains("calloc clears A"), "{}", analysis.findings[0].fix);
}

/// Check that records of different periods, and faults on huge and on base pages, count by the bytes they placed.
#[test]
fn records_weigh_what_they_placed() {
    // Thread 1 touches a quarter with every fault sampled, thread 0 the rest in a burst with one of 31 faults sampled.
    let world = World::new(8, vec![Thing::new("A", 128, Who::One(0), Who::Block(0, 8))]);
    let mut profile = world.profile(1);
    let page = |t: &FirstTouch| (t.address - world.address(0)) / 4096;
    profile.first_touches.retain(|t| page(t) < 8192 || page(t) % 31 == 0);
    for touch in &mut profile.first_touches {
        (touch.thread, touch.weight) = if page(touch) < 8192 { (1, 1.0) } else { (0, 31.0) };
    }
    let by = &analyse(&profile, &target(2), &FakeSources(TouchCause::Loop)).objects[0].first_touch.by_thread;
    assert!((by[1] - 0.25).abs() < 0.01 && (by[0] - 0.75).abs() < 0.01, "{by:?}");
    // Thread 1 touches its first half in huge pages.
    let mut profile = world.profile(1);
    profile.first_touches.retain(|t| page(t) >= 16_384 || page(t) % 512 == 0);
    for touch in &mut profile.first_touches {
        touch.thread = i64::from(page(touch) < 16_384);
    }
    for i in 0..128 {
        let size = if i < 64 { 2 * MIB } else { 4096 };
        let address = world.address(0) + i * MIB;
        profile.pages.push(Page { process: 1, object: Some(0), address, time_ns: 9 * S, node: 0, page_bytes: size });
    }
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    let by = &analysis.objects[0].first_touch.by_thread;
    assert!((by[1] - 0.5).abs() < 0.02, "{by:?}");
    assert_eq!(analysis.objects[0].first_touch.recycled, 0.0);
}

/// Check names and places of objects: a static array's declaration, a heap object without a variable, Python's lines.
#[test]
fn names_and_places() {
    let world = World::new(4, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 4)), Thing::new("B", 64, Who::One(0), Who::Block(0, 4))]);
    let mut profile = world.profile(1);
    profile.objects[0].kind = ObjectKind::Static;
    (profile.objects[0].call, profile.objects[1].name) = (None, None);
    let declared = Frame { address: world.address(0), file: Some("/src/grid.c".into()), line: Some(7), ..Frame::default() };
    profile.sites.get_mut(&100).unwrap().frames = vec![declared];
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    let object = |id| analysis.objects.iter().find(|o| o.id == id).unwrap();
    let place = object(0).allocated_at.as_ref().unwrap();
    assert_eq!(
        (object(0).name.as_str(), place.file.as_deref(), place.line, place.function.as_deref()),
        ("A", Some("/src/grid.c"), Some(7), None)
    );
    assert_eq!(object(1).name, "heap object of main (alloc.c:111)");
    // Two lines of Python that call the same native code are two sites.
    for (site, line) in [(100, 3), (101, 9)] {
        let native = Frame { address: 1, function: Some("PyArray_New".into()), ..Frame::default() };
        let python = Frame { module: Some("python".into()), file: Some("m.py".into()), line: Some(line), ..Frame::default() };
        profile.sites.get_mut(&site).unwrap().frames = vec![native, python];
    }
    profile.objects[0] = Object { kind: ObjectKind::Heap, call: Some("malloc".into()), name: None, ..profile.objects[0].clone() };
    assert_eq!(analyse(&profile, &target(2), &FakeSources(TouchCause::Numpy)).objects.len(), 2);
}

fn add_pages(profile: &mut Profile, address: u64, bytes: u64, page_bytes: u64) {
    for i in 0..64 {
        profile.pages.push(Page { process: 1, object: Some(0), address: address + i * (bytes / 64), time_ns: 9 * S, node: 0, page_bytes });
    }
}

/// Check huge pages that hold several threads' chunks; base pages and large blocks have no finding.
#[test]
fn huge_page_sharing() {
    let chunks = Who::Cyclic(0, 8, 256 << 10);
    let mut thing = Thing::new("A", 128, chunks.clone(), chunks);
    assert_eq!(both(&World::new(8, vec![thing.clone()]), 2), []);
    thing.page = 2 * MIB;
    let analysis = judge(&World::new(8, vec![thing]), 5, 2);
    assert_eq!(found(&analysis), one("A", "huge-page-sharing"), "{:?}", analysis.objects[0]);
    assert_eq!(analysis.objects[0].page_bytes, 2 * MIB);
    let mut blocks = Thing::new("A", 128, Who::Block(0, 8), Who::Block(0, 8));
    blocks.page = 2 * MIB;
    assert_eq!(both(&World::new(8, vec![blocks.clone()]), 8), []);
    blocks.touch = Some(Who::One(0));
    assert_eq!(both(&World::new(8, vec![blocks]), 8), one("A", "serial-first-touch"));
}

/// Check that a worker that is nearly always the first to touch a huge page is distinguished from a worker that initialises everything: the
/// former first touches the page at its own part, the latter at the position of its sweep. Parts begin exactly at the touched addresses.
#[test]
fn one_winner_of_huge_pages() {
    let chunks = Who::Cyclic(0, 4, 512 << 10);
    let mut thing = Thing::new("A", 128, chunks.clone(), chunks);
    thing.page = 2 * MIB;
    let world = World::new(4, vec![thing]);
    for (workers, expected) in [([3, 3], "huge-page-sharing"), ([2, 1], "huge-page-sharing"), ([0, 0], "serial-first-touch")] {
        for seed in 0..8 {
            let mut profile = world.profile(seed);
            for (i, touch) in profile.first_touches.iter_mut().enumerate() {
                let worker = if i == 5 { 1 } else { workers[usize::from(i >= 16)] };
                touch.address = world.address(0) + i as u64 * 2 * MIB + worker * (512 << 10);
                touch.thread = worker as i64;
            }
            let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
            assert_eq!(found(&analysis), one("A", expected), "{workers:?} {seed} {:?}", analysis.objects[0]);
        }
    }
}

/// Check memory that keeps the placement of a freed object, and a range that was unmapped and touched again.
#[test]
fn recycled_memory() {
    let mut former = Thing::new("old", 64, Who::One(0), Who::One(0));
    (former.died, former.until) = (Some(S), S);
    let mut heir = Thing::new("new", 64, Who::Block(0, 8), Who::Block(0, 8));
    (heir.born, heir.from, heir.touch) = (S + MS, S + MS, None);
    let mut world = World::new(8, vec![former.clone(), heir.clone()]);
    world.things[0].address = Some(0x7000_0000_0000);
    world.things[1].address = Some(0x7000_0000_0000);
    let analysis = judge(&world, 5, 2);
    assert_eq!(found(&analysis), one("new", "recycled-memory"), "{:?}", analysis.objects);
    assert!(analysis.findings[0].message.contains("by old, since freed"), "{}", analysis.findings[0].message);
    world.things[1].touch = Some(Who::Block(0, 8));
    world.things[1].from = S + 200 * MS;
    assert_eq!(both(&world, 2), []);
    // With the same users as the freed object, recycled memory is well placed.
    (world.things[0].touch, world.things[0].user) = (Some(Who::Block(0, 8)), Who::Block(0, 8));
    world.things[1].touch = None;
    world.things[1].from = S + MS;
    assert_eq!(both(&world, 2), []);
}

/// Check sparse sampling of page faults: defects are still found, well-placed blocks have no finding.
#[test]
fn sampled_page_faults() {
    for period in [16, 64, 256] {
        let mut world = World::new(8, vec![Thing::new("A", 256, Who::One(0), Who::Block(0, 8))]);
        world.period = period;
        assert_eq!(both(&world, 4), one("A", "serial-first-touch"), "1 of {period}");
        world.things[0].touch = Some(Who::Block(0, 8));
        for nodes in [2, 8, 64] {
            assert_eq!(both(&world, nodes), [], "1 of {period}, {nodes} nodes");
        }
        world.things[0].touch = Some(Who::Block(0, 4));
        assert_eq!(both(&world, 4), one("A", "mismatched-partition"), "1 of {period}");
    }
}

/// Check rows allocated one by one: one object, one partition.
#[test]
fn rows_are_one_object() {
    let rows = |touch: fn(usize) -> usize| {
        (0..64).map(move |i| {
            let mut row = Thing::new("row", 1, Who::One(touch(i)), Who::One(i / 8));
            (row.born, row.site, row.reps) = (i as u64, 77, 4);
            row
        })
    };
    let analysis = judge(&World::new(8, rows(|_| 0).collect()), 5, 2);
    assert_eq!(found(&analysis), one("row", "serial-first-touch"));
    assert_eq!(
        (analysis.objects[0].count, analysis.objects[0].total_bytes, analysis.objects[0].partition),
        (64, 64 * MIB, PartitionKind::Block)
    );
    assert_eq!(both(&World::new(8, rows(|i| i / 8).collect()), 2), []);
}

/// Check a program that creates a new team for every loop: the threads of all teams share one set of slots.
#[test]
fn short_lived_teams() {
    let mut world = World::new(1, vec![]);
    world.seconds = 10;
    let mut thing = Thing::new("A", 128, Who::One(0), Who::Block(1, 4));
    thing.reps = 2;
    world.things = vec![thing];
    for team in 0..50u64 {
        for _ in 0..4 {
            world.threads.push((team * 200 * MS + 1, Some(team * 200 * MS + 199 * MS)));
        }
    }
    let mut profile = world.profile(1);
    for row in &mut profile.accesses {
        let window = &profile.windows[row.window as usize];
        row.thread += (window.start_ns / (200 * MS)) as i64 * 4;
    }
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert_eq!(analysis.threads.iter().map(|t| t.slot).max(), Some(4));
    assert_eq!(analysis.objects[0].partition, PartitionKind::Block);
    assert_eq!(found(&analysis), one("A", "serial-first-touch"));
}

/// Check use by one thread: first touch by the same thread has no finding, by another one it has. The object's share of the accesses
/// matters.
#[test]
fn single_user() {
    let own = Thing::new("A", 64, Who::One(7), Who::One(7));
    assert_eq!(both(&World::new(8, vec![own.clone()]), 2), []);
    let foreign = Thing::new("B", 64, Who::One(0), Who::One(7));
    assert_eq!(both(&World::new(8, vec![own.clone(), foreign.clone()]), 2), one("B", "serial-first-touch"));
    // Below 2 % of the accesses.
    let mut busy = own;
    busy.reps = 100;
    assert_eq!(both(&World::new(8, vec![busy, foreign]), 2), []);
}

/// Check vector growth: one object, the last one.
#[test]
fn growth_is_one_object() {
    let things = (0..6u32).map(|k| {
        let mut thing = Thing::new("v", 2 << k, Who::One(0), Who::One(0));
        (thing.site, thing.born, thing.touch_ns) = (77, u64::from(k) * 20 * MS, 10 * MS);
        thing.died = (k < 5).then(|| u64::from(k + 1) * 20 * MS + 2 * MS);
        (thing.from, thing.until) = (thing.born + 10 * MS, thing.died.unwrap_or(u64::MAX));
        if k == 5 {
            (thing.user, thing.from) = (Who::Block(0, 8), 300 * MS);
        }
        thing
    });
    let analysis = judge(&World::new(8, things.collect()), 5, 2);
    assert_eq!(found(&analysis), one("v", "serial-first-touch"));
    assert_eq!((analysis.objects.len(), analysis.objects[0].count, analysis.objects[0].bytes), (1, 6, 64 * MIB));
}

/// Check that for a mapping whose halves are each used in plain blocks, the message says that it may hold two arrays, without advice on
/// chunks, and that an allocation, or many alternations, are chunks.
#[test]
fn mappings_may_hold_several_arrays() {
    let with = |kind: ObjectKind, chunk: u64| {
        let world = World::new(4, vec![Thing::new("A", 64, Who::One(0), Who::Cyclic(0, 4, chunk * MIB))]);
        let mut profile = world.profile(1);
        profile.objects[0].kind = kind;
        let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
        assert_eq!((found(&analysis)[0].1.as_str(), analysis.objects[0].partition), ("serial-first-touch", PartitionKind::BlockCyclic));
        assert!(!analysis.findings[0].fix.contains("CHUNK"), "the chunk is not known");
        analysis.notes.iter().any(|n| n.to_string().starts_with("A may hold 2 arrays"))
    };
    assert!(with(ObjectKind::Mapping, 8) && !with(ObjectKind::Heap, 8) && !with(ObjectKind::Mapping, 1));
}

/// Check that the array which one thread initialised determines the finding on a mapping of several arrays (a static program), with its own line.
#[test]
fn arrays_of_a_mapping_have_their_own_first_touch() {
    let block = |count| Who::Block(0, count);
    let used = Who::Arrays(vec![block(4); 3]);
    for (first, finding) in [(Who::One(0), "serial-first-touch"), (Who::Block(0, 2), "mismatched-partition")] {
        let touched = Who::Arrays(vec![first.clone(), block(4), block(4)]);
        for kind in [ObjectKind::Mapping, ObjectKind::Heap] {
            let mut profile = World::new(4, vec![Thing::new("m", 96, touched.clone(), used.clone())]).profile(7);
            profile.objects[0].kind = kind;
            // The serial loop is on a line of its own, and a minor one.
            let (start, site) = (profile.objects[0].address, 5000);
            let other = profile.sites.values().find(|s| s.frames[0].file.as_deref() == Some("touch.c")).expect("a site").clone();
            let mut serial = other.clone();
            serial.frames[0].line = Some(7);
            profile.sites.insert(site, serial);
            profile.first_touches.iter_mut().filter(|touch| touch.address < start + 32 * MIB).for_each(|touch| touch.site = Some(site));
            let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
            let expected = if kind == ObjectKind::Mapping { finding } else { "mismatched-partition" };
            assert_eq!(found(&analysis), one("m", expected), "{kind:?} {first:?}");
            let touch = &analysis.objects[0].first_touch;
            let is_part = expected == "serial-first-touch";
            assert_eq!((touch.of_misplaced_part, touch.at[0].line == Some(7)), (is_part, is_part), "{kind:?} {first:?}: {touch:?}");
            if is_part {
                assert!(analysis.findings[0].message.contains("(its misplaced part) thread 0 alone"), "{}", analysis.findings[0].message);
            }
        }
    }
}
