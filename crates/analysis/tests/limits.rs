//! Profiles with little or no evidence, other machines, and hostile profiles: the analysis admits what it cannot know, and never panics.

use crate::simulated::*;
use firsttouch_analysis::{Analysis, Target, analyse};
use firsttouch_model::rows::*;
use firsttouch_model::{NodeId, Pin, TouchCause};
use firsttouch_report::{Recommendations, ReportJson};

fn reason(analysis: &Analysis, name: &str) -> String {
    analysis.not_judged.iter().find(|n| n.name == name).map(|n| n.reason.to_string()).unwrap_or_default()
}

fn notes(analysis: &Analysis) -> Vec<String> {
    analysis.notes.iter().map(ToString::to_string).collect()
}

fn sound(analysis: &Analysis, nodes: usize) {
    let sum: f64 = analysis.matrix.iter().flatten().sum();
    assert!((sum - 1.0).abs() < 1e-6 || sum == 0.0, "matrix sums to {sum}");
    assert_eq!(analysis.matrix.len(), nodes.max(1));
    let shares: Vec<f64> = analysis.objects.iter().filter_map(|o| o.access_share).collect();
    let all: f64 = shares.iter().sum();
    assert!(shares.is_empty() || (all - 1.0).abs() < 1e-6 || all == 0.0, "shares sum to {all}");
    assert!(analysis.objects.windows(2).all(|w| w[0].access_share.unwrap_or(0.0) >= w[1].access_share.unwrap_or(0.0)));
    for object in &analysis.objects {
        let used: f64 = object.used_by_thread.iter().sum();
        let touched: f64 = object.first_touch.by_thread.iter().sum();
        assert!((used - 1.0).abs() < 1e-6 || used.abs() < 1e-9, "used {used}");
        assert!((touched - 1.0).abs() < 1e-6 || touched.abs() < 1e-9, "touched {touched}");
        assert_eq!(object.judged, object.reason.is_none());
        assert_eq!((object.used_by_thread.len(), object.first_touch.by_thread.len()), (analysis.threads.len(), analysis.threads.len()));
        for interval in
            object.used_by_thread_interval.iter().chain(object.access_share_interval.iter()).chain(object.remote_interval.iter())
        {
            assert!(0.0 <= interval[0] && interval[0] <= interval[1] && interval[1] <= 1.0, "{interval:?}");
        }
    }
    let none = Recommendations::default();
    let text = serde_json::to_string(&ReportJson::new(analysis, None, &none)).unwrap();
    assert_eq!(serde_json::from_str::<Analysis>(&text).unwrap().objects.len(), analysis.objects.len());
}

/// Check that an empty profile gives an empty answer.
#[test]
fn empty_profile() {
    let analysis = analyse(&Profile::default(), &target(2), &FakeSources(TouchCause::Loop));
    sound(&analysis, 2);
    assert!(analysis.objects.is_empty() && analysis.remote_fraction.is_none());
}

/// Check the JSON keys that other programs rely on.
#[test]
fn json_keys() {
    let world = World::new(4, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 4))]);
    let none = Recommendations::default();
    let json = serde_json::to_value(ReportJson::new(&judge(&world, 1, 2), None, &none)).unwrap();
    assert_eq!(json["schema"], "firsttouch.report/1");
    assert_eq!(json["command"], serde_json::json!(["./sim", "1"]));
    assert_eq!((&json["exit_code"], &json["wall_s"], &json["prediction"]), (&0.into(), &10.0.into(), &serde_json::Value::Null));
    assert_eq!(json["machine"], serde_json::json!({"name": "virtual:2", "nodes": 2, "virtual": true}));
    assert_eq!(json["threads"][3]["node"], 1);
    assert_eq!(json["matrix"].as_array().unwrap().len(), 2);
    assert_eq!(json["objects"][0]["partition"], "block");
    for key in [
        "id",
        "name",
        "bytes",
        "kind",
        "allocated_at",
        "access_share",
        "remote_fraction",
        "first_touch",
        "used_by_thread",
        "used_at",
        "map",
    ] {
        assert!(!json["objects"][0][key].is_null(), "{key}");
    }
    for key in ["id", "object", "severity", "message", "fix", "predicted_gain"] {
        assert!(json["findings"][0].get(key).is_some(), "{key}");
    }
    for key in ["source", "available", "samples", "lost", "detail"] {
        assert!(json["evidence"][0].get(key).is_some(), "{key}");
    }
}

/// Check that missing evidence is named with the reason in the profile, and that nothing is invented.
#[test]
fn missing_evidence() {
    let world = World::new(8, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 8))]);
    let mut touch_only = world.profile(1);
    touch_only.windows.clear();
    touch_only.accesses.clear();
    touch_only.evidence[1] = Evidence { source: "watch".into(), available: false, samples: 0, detail: "no debug registers".into() };
    let analysis = analyse(&touch_only, &target(2), &FakeSources(TouchCause::Loop));
    sound(&analysis, 2);
    assert!(
        reason(&analysis, "A").contains("no debug registers") && analysis.findings.is_empty() && analysis.objects[0].access_share.is_none()
    );
    assert_eq!(analysis.objects[0].first_touch.by_thread[0], 1.0);
    let mut watch_only = world.profile(1);
    watch_only.first_touches.clear();
    watch_only.evidence[0] = Evidence { source: "touch".into(), available: false, samples: 0, detail: "perf_event_paranoid is 3".into() };
    let analysis = analyse(&watch_only, &target(2), &FakeSources(TouchCause::Loop));
    sound(&analysis, 2);
    assert!(
        reason(&analysis, "A").contains("perf_event_paranoid is 3") && analysis.remote_fraction.is_none() && analysis.findings.is_empty()
    );
    watch_only.meta.set("mode", "attach");
    assert!(reason(&analyse(&watch_only, &target(2), &FakeSources(TouchCause::Loop)), "A").contains("attached after"));
}

/// Check that few hits, no hits and small objects are not judged, with the reason.
#[test]
fn too_little_to_judge() {
    let mut rare = Thing::new("rare", 64, Who::One(0), Who::Block(0, 8));
    rare.sweep = 5 * S;
    let mut never = Thing::new("never", 64, Who::One(0), Who::Block(0, 8));
    never.from = u64::MAX;
    let things =
        vec![Thing::new("A", 64, Who::Block(0, 8), Who::Block(0, 8)), rare, never, Thing::new("small", 1, Who::One(0), Who::All(0, 8))];
    let analysis = judge(&World::new(8, things), 3, 2);
    sound(&analysis, 2);
    assert!(reason(&analysis, "rare").contains("too few samples"), "{:?}", analysis.not_judged);
    assert!(reason(&analysis, "never").contains("no access was seen in"));
    assert!(reason(&analysis, "small").contains("fits in a core's cache"));
    assert!(analysis.findings.is_empty());
}

/// Check that an object whose first touches fell into a burst of page faults, of which few were recorded, is not judged for that reason.
#[test]
fn touches_in_a_burst() {
    let things = vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 8)), Thing::new("b", 16, Who::One(0), Who::Block(0, 8))];
    let world = World { period: 2_008, ..World::new(8, things) };
    let analysis = judge(&world, 3, 2);
    sound(&analysis, 2);
    let reason = reason(&analysis, "b");
    assert!(reason.contains("too few of its first touches were recorded (2)") && reason.contains("one in 2008"), "{reason}");
    assert_eq!(analysis.not_judged.len(), 1, "{:?}", analysis.not_judged);
}

/// Check windows on memory that is not yet touched: initialising writes do not count as use.
#[test]
fn initialising_is_not_use() {
    let mut thing = Thing::new("A", 64, Who::One(0), Who::Block(0, 8));
    (thing.touch_ns, thing.from) = (5 * S, 5 * S);
    let world = World::new(8, vec![thing]);
    let mut profile = world.profile(1);
    // A page at fraction f is touched at 5 s x f.
    let touched_ns = |w: &Window| (w.address - world.address(0)) as f64 / (64 * MIB) as f64 * 5e9;
    let untouched: Vec<i64> = profile.windows.iter().filter(|w| (w.start_ns as f64) < touched_ns(w)).map(|w| w.id).collect();
    for &window in &untouched {
        let row = Access { window, thread: 0, site: None, hits: 50, estimate: 50.0, watched_ns: MS, cut: false, cpu: None, cpu_ns: None };
        profile.accesses.push(row);
    }
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert!(notes(&analysis).iter().any(|n| n.contains("being initialised")), "{:?}", analysis.notes);
    assert!((analysis.objects[0].used_by_thread[0] - 0.125).abs() < 0.12, "{:?}", analysis.objects[0].used_by_thread);
}

/// Check targets on which nothing can be remote: a note says so, and there is no finding.
#[test]
fn nothing_to_find() {
    let world = World::new(8, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 8))]);
    let analysis = judge(&world, 1, 1);
    assert!(analysis.findings.is_empty() && analysis.matrix == [[1.0]] && notes(&analysis).iter().any(|n| n.contains("one node")));
    let packed = Target { pin: Pin::Nodes(vec![NodeId(1)]), ..target(2) };
    let analysis = analyse(&world.profile(1), &packed, &FakeSources(TouchCause::Loop));
    assert!(analysis.findings.is_empty() && notes(&analysis).iter().any(|n| n.contains("All threads run on one node")));
    let single = World::new(1, vec![Thing::new("A", 64, Who::One(0), Who::One(0))]);
    let analysis = judge(&single, 1, 2);
    assert!(analysis.findings.is_empty() && analysis.notes.is_empty(), "{:?}", analysis.notes);
    let mut waiting = single.profile(1);
    waiting.meta.set("children_left", "3");
    let analysis = analyse(&waiting, &target(2), &FakeSources(TouchCause::Loop));
    assert!(notes(&analysis)[0].contains("started 3 processes") && notes(&analysis)[0].contains("--follow"), "{:?}", analysis.notes);
}

/// Check that processes of one thread each get no advice on pinning, and that the recorded machine gets no --pin.
#[test]
fn threads_on_one_node() {
    let world = World::new(2, vec![Thing::new("A", 64, Who::One(0), Who::One(0))]);
    let mut two = world.profile(1);
    two.processes.push(Process { id: 2, parent: Some(1), ..two.processes[0].clone() });
    two.threads[1].process = 2;
    let analysis = analyse(&two, &target(2), &FakeSources(TouchCause::Loop));
    assert!(notes(&analysis).iter().all(|n| !n.contains("--pin")), "{:?}", analysis.notes);
    let real = Target { name: "host".into(), virtual_machine: false, pin: Pin::Compact, ..target(2) };
    let analysis = analyse(&world.profile(1), &real, &FakeSources(TouchCause::Loop));
    assert!(notes(&analysis).iter().any(|n| n.contains("one node of host") && n.contains("--machine virtual:2")), "{:?}", analysis.notes);
}

/// Check that much memory without a recorded object is reported, with advice, and that little is not.
#[test]
fn memory_without_objects() {
    let world = World::new(4, vec![Thing::new("A", 64, Who::Block(0, 4), Who::Block(0, 4))]);
    let of_job = |pages: u64, min_size: &str, agent: bool, parts: usize| {
        let mut profile = world.profile(1);
        profile.parts = vec![Part::default(); parts];
        profile.meta.set("min_size", min_size);
        profile.evidence.push(Evidence { source: "agent".into(), available: agent, samples: 1, detail: String::new() });
        for page in (0..pages).step_by(31) {
            let (id, address) = (1_000_000 + page as i64, 0x5000_0000_0000 + page * 4096);
            let touch = FirstTouch { id, address, weight: 31.0, ..profile.first_touches[0].clone() };
            profile.first_touches.push(touch);
        }
        analyse(&profile, &target(2), &FakeSources(TouchCause::Loop))
    };
    let with = |pages: u64, min_size: &str, agent: bool| of_job(pages, min_size, agent, 0);
    let much = with(64 * 256, "65536", true);
    assert!((much.unrecorded.unwrap() - 0.5).abs() < 0.01 && much.findings.is_empty());
    assert!(notes(&much)[0].starts_with("50 % of the touched memory (64."), "{:?}", much.notes);
    assert!(
        notes(&much)[0].contains("below --min-size (64 KiB)") && notes(&much)[0].ends_with("profile it with --min-size 4K to see them")
    );
    assert!(!notes(&with(64 * 256, "4096", true))[0].contains("4K"));
    assert!(!notes(&with(64 * 256, "65536", false))[0].contains("--min-size"));
    assert!(of_job(64 * 256, "65536", true, 4).unrecorded.is_some(), "16 MiB of each rank");
    for little in [with(8 * 256, "65536", true), with(0, "65536", true), of_job(64 * 256, "65536", true, 5)] {
        assert!(little.unrecorded.is_none() && little.notes.is_empty(), "{:?}", little.notes);
    }
}

/// Check a real machine: the nodes of pages are the kernel's answers, and the nodes of threads are the observed ones.
#[test]
fn real_machine() {
    let world = World::new(8, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 8))]);
    let mut profile = world.profile(1);
    profile.machine.node_cpus = [(0, (0..4).collect()), (1, (4..8).collect())].into();
    for thread in 0..8u32 {
        profile.thread_cpus.insert((i64::from(thread), thread), Seen { samples: 100, looks: 0 });
    }
    let real = Target { name: "host".into(), virtual_machine: false, ..target(2) };
    let analysis = analyse(&profile, &real, &FakeSources(TouchCause::Loop));
    assert_eq!(found(&analysis).len(), 1);
    assert!(analysis.findings[0].message.contains("are remote on host"));
    for i in 0..256u64 {
        let address = world.address(0) + i * (64 * MIB / 256);
        profile.pages.push(Page { process: 1, object: Some(0), address, time_ns: S, node: i32::from(i >= 128), page_bytes: 4096 });
    }
    let analysis = analyse(&profile, &real, &FakeSources(TouchCause::Loop));
    assert!(analysis.findings.is_empty() && analysis.remote_fraction.unwrap() < 0.05, "{:?}", analysis.remote_fraction);
}

/// Check random profiles full of contradictions: no panic, and all figures stay in their valid ranges.
#[test]
fn hostile_profiles() {
    for seed in 0..300u64 {
        let mut r = Random(seed);
        let profile = hostile(&mut r);
        let nodes = [0, 1, 2, 7, 64][r.below(5) as usize];
        let pin =
            [Pin::Spread, Pin::Compact, Pin::Nodes(vec![]), Pin::Nodes(vec![NodeId(u32::MAX), NodeId(0)])][r.below(4) as usize].clone();
        let target = Target {
            virtual_machine: r.below(2) == 0,
            cores_per_node: r.below(3) as usize,
            cpu_nodes: vec![],
            pin,
            private_cache_bytes: r.below(2) * MIB,
            slow_nodes: vec![u32::MAX, 1],
            ..target(nodes)
        };
        sound(
            &analyse(&profile, &target, &FakeSources([TouchCause::Loop, TouchCause::Io, TouchCause::Unknown][r.below(3) as usize])),
            nodes,
        );
    }
}

fn odd(r: &mut Random) -> u64 {
    let near = 0x1000 + r.below(64) * 4096;
    [0, 1, 8, 4095, 4096, MIB, 64 * MIB, near, near, r.bits(), u64::MAX, u64::MAX - 7, S, 2 * S][r.below(14) as usize]
}

fn odd_float(r: &mut Random) -> f64 {
    [0.0, 1.0, 0.5, 7.0, 1e300, 1e-300, -1.0, f64::NAN, f64::INFINITY, r.unit() * 100.0, 1.0, 2.0][r.below(12) as usize]
}

fn id(r: &mut Random) -> i64 {
    if r.below(10) == 0 { [-1, i64::MAX, 999, i64::MIN][r.below(4) as usize] } else { r.below(6) as i64 }
}

fn hostile(r: &mut Random) -> Profile {
    let mut p = Profile::default();
    for key in ["command", "exit_code", "start_ns", "end_ns", "watch_start_ns", "mode", "notes"] {
        if r.below(3) > 0 {
            p.meta.set(key, &[odd(r).to_string(), "[1".into(), String::new(), "attach".into()][r.below(4) as usize]);
        }
    }
    p.machine.huge_page_bytes = odd(r);
    p.machine.page_bytes = odd(r);
    p.machine.transparent_huge_pages = ["always", "never", ""][r.below(3) as usize].into();
    p.machine.node_cpus.insert(odd(r) as u32, vec![0, 1]);
    p.machine.numa_balancing = r.below(2);
    for name in ["numa_pages_migrated", "numa_foreign", "memory_free_bytes", "memory_total_bytes"] {
        let node = [None, Some(0), Some(u32::MAX)][r.below(3) as usize];
        p.counters.push(Counter { name: name.into(), node, at_start: odd(r), at_end: odd(r) });
    }
    for policy in ["interleave:0-1", "default", ""] {
        p.policies.insert(id(r), Policy { policy: policy.into(), time_ns: odd(r) });
    }
    p.evidence.push(Evidence { source: "agent".into(), available: r.below(2) == 0, samples: 1, detail: String::new() });
    p.evidence.push(Evidence { source: "touch".into(), available: r.below(2) == 0, samples: odd(r), detail: String::new() });
    for i in 0..r.below(8) {
        p.threads.push(Thread {
            id: id(r),
            process: r.below(2) as i64,
            tid: 1,
            parent: None,
            name: None,
            born_ns: odd(r),
            died_ns: (i % 2 == 0).then(|| odd(r)),
            cpu_ns: None,
            omp_number: None,
            user_faults: Some(odd(r)),
            all_faults: Some(odd(r)),
            allowed_cpus: Some("0-3".into()),
            node_moves: odd(r),
        });
        p.thread_cpus.insert((id(r), r.below(3) as u32), Seen { samples: odd(r), looks: odd(r) });
    }
    for _ in 0..r.below(5) {
        let site = id(r);
        let frames = (0..r.below(4))
            .map(|_| Frame { address: odd(r), line: Some(odd(r) as u32), file: Some("x.c".into()), ..Frame::default() })
            .collect();
        p.sites.insert(site, Site { id: site, process: id(r), frames });
    }
    let calls = [None, Some("realloc".to_owned()), Some("calloc".to_owned())];
    for _ in 0..r.below(12) {
        p.objects.push(Object {
            id: id(r),
            process: r.below(2) as i64,
            kind: [ObjectKind::Heap, ObjectKind::Static, ObjectKind::Anonymous][r.below(3) as usize],
            call: calls[r.below(3) as usize].clone(),
            name: None,
            address: odd(r),
            bytes: odd(r),
            born_ns: odd(r),
            died_ns: (r.below(2) == 0).then(|| odd(r)),
            site: Some(id(r)),
            thread: Some(id(r)),
        });
        p.folded_objects.push(FoldedObjects { site: id(r), call: "realloc".into(), bytes: odd(r), count: odd(r), word_ns: odd_float(r) });
    }
    for i in 0..r.below(100) as i64 {
        let (time_ns, address, weight) = (odd(r), odd(r), odd_float(r));
        let by_kernel = r.below(2) == 0;
        p.first_touches.push(FirstTouch {
            id: i,
            process: r.below(2) as i64,
            time_ns,
            thread: id(r),
            cpu: 0,
            address,
            weight,
            by_kernel,
            site: Some(id(r)),
            mapped_bytes: [None, Some(odd(r)), Some(0)][r.below(3) as usize],
            node: [None, Some(-14), Some(0), Some(1), Some(i32::MAX)][r.below(5) as usize],
        });
        p.releases.push(Release { process: r.below(2) as i64, time_ns: odd(r), address: odd(r), bytes: odd(r) });
        p.pages.push(Page {
            process: r.below(2) as i64,
            object: Some(id(r)),
            address: odd(r),
            time_ns: odd(r),
            node: r.below(5) as i32 - 2,
            page_bytes: odd(r),
        });
    }
    for i in 0..r.below(300) as i64 {
        let (object, address) = match p.objects.get(r.below(12) as usize) {
            Some(o) if r.below(4) > 0 => (o.id, o.address.saturating_add(r.below(o.bytes.max(1)))),
            _ => (id(r), odd(r)),
        };
        let (round, inclusion) = (r.below(40), if r.below(4) == 0 { odd_float(r) } else { 0.5 });
        let (start_ns, held_ns, round_ns) = (odd(r), if r.below(5) == 0 { odd(r) } else { MS }, if r.below(5) == 0 { odd(r) } else { MS });
        p.windows.push(Window { id: i, round, object, address, start_ns, held_ns, round_ns, inclusion });
        for _ in 0..r.below(3) {
            let estimate = if r.below(4) == 0 { odd_float(r) } else { 3.0 };
            p.accesses.push(Access {
                window: i,
                thread: id(r),
                site: Some(id(r)),
                hits: odd(r),
                estimate,
                watched_ns: 1,
                cut: false,
                cpu: Some(odd(r) as u32),
                cpu_ns: (r.below(2) == 0).then(|| odd(r)),
            });
        }
    }
    p
}

/// Check that a process that is its own parent, and forks of forks of forks, all of which inherited the same memory, end the search for who touched it first.
#[test]
fn forks_without_end() {
    let world = World::new(2, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 2))]);
    let mut own = world.profile(1);
    let object = own.objects.iter().position(|object| object.bytes >= 64 * MIB).expect("A");
    let born = own.objects[object].born_ns;
    let process = own.objects[object].process;
    own.processes[0] = Process { parent: Some(process), born_ns: born, ..own.processes[0].clone() };
    sound(&analyse(&own, &target(2), &FakeSources(TouchCause::Loop)), 2);
    let mut chain = world.profile(1);
    let (first, copied) = (chain.processes[0].clone(), chain.objects[object].clone());
    for fork in 1..=20_000 {
        let (id, born_ns) = (1000 + fork, copied.born_ns + fork as u64);
        let parent = if fork == 1 { process } else { id - 1 };
        chain.processes.push(Process { id, parent: Some(parent), born_ns, ..first.clone() });
        chain.objects.push(Object { id: 100_000 + fork, process: id, born_ns, ..copied.clone() });
    }
    sound(&analyse(&chain, &target(2), &FakeSources(TouchCause::Loop)), 2);
}
