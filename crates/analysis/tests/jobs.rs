//! Jobs of several ranks, from merged profiles whose truth is known.

use crate::simulated::{Thing, Who, World, found, target};
use firsttouch_analysis::{Analysis, Distribution, RankLayout, Target};
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::metadata::{Metadata, Symbols};
use firsttouch_model::rows::{FirstIds, Host, Part, Process, Profile, RankPlace, Seen, SharedMemory};

fn serial(name: &str) -> (String, String) {
    (name.to_owned(), "serial-first-touch".to_owned())
}

fn judged(profile: &Profile, target: &Target) -> Analysis {
    firsttouch_analysis::analyse(profile, target, &crate::simulated::FakeSources(firsttouch_model::TouchCause::Loop))
}

fn nodes(analysis: &Analysis) -> Vec<u32> {
    analysis.threads.iter().map(|thread| thread.node).collect()
}

/// A job of ranks with two threads each. Each rank has an object of its own of the same name, first touched by the rank's first thread if `is_serial`,
/// and used in blocks by both. `bound`: the CPUs that each rank may use.
fn job(ranks: usize, is_serial: bool, bound: &[&str]) -> Profile {
    let touched = |rank: usize| if is_serial { Who::One(2 * rank) } else { Who::Block(2 * rank, 2) };
    let things = (0..ranks).map(|rank| Thing::new("A", 64, touched(rank), Who::Block(2 * rank, 2))).collect();
    // As many samples of each rank, however many there are.
    let world = World::new(2 * ranks, things);
    let mut job = World { seconds: world.seconds * (ranks as u64).div_ceil(4), ..world }.profile(3);
    let allocation = job.objects[0].site.map(|site| job.sites[&site].frames.clone()).unwrap_or_default();
    let sites: Vec<i64> = job.objects.iter().filter_map(|object| object.site).collect();
    sites.iter().for_each(|site| job.sites.get_mut(site).unwrap().frames.clone_from(&allocation));
    job.machine.node_cpus = [(0, (0..8).collect())].into();
    let machine = job.machine.clone();
    let process_of = |thread: i64| 1 + thread / 2;
    job.processes = (0..ranks as i64)
        .map(|rank| Process { id: 1 + rank, pid: 100 + rank as i32, parent: None, exe: None, born_ns: 0, died_ns: None })
        .collect();
    job.threads.iter_mut().for_each(|thread| thread.process = process_of(thread.id));
    job.first_touches.iter_mut().for_each(|touch| touch.process = process_of(touch.thread));
    job.objects.iter_mut().enumerate().for_each(|(rank, object)| object.process = 1 + rank as i64);
    job.hosts = vec![Host { id: 0, name: "ant".to_owned(), first_node: 0, nodes: 1, first_cpu: 0, cpus: 8 }];
    let part = |rank: usize| Part {
        id: rank as i64,
        host: 0,
        place: Some(RankPlace {
            rank: rank as u32,
            size: ranks as u32,
            local_rank: Some(rank as u32),
            local_size: Some(ranks as u32),
            launcher: "Open MPI".to_owned(),
            job: Some("1".to_owned()),
            bound_cpus: Some(bound.get(rank).copied().unwrap_or("0-7").to_owned()),
        }),
        source: format!("rank-{rank}.ftp"),
        first: FirstIds { process: 1 + rank as i64, thread: 2 * rank as i64, ..FirstIds::default() },
        meta: Metadata { exit_code: Some(0), symbols: Symbols::InFile, ..Metadata::default() },
        machine: machine.clone(),
        ..Part::default()
    };
    job.parts = (0..ranks).map(part).collect();
    job
}

fn cores(nodes: usize, cores_per_node: usize) -> Target {
    Target { cores_per_node, ..target(nodes) }
}

fn laid_out(nodes: usize, per_node: Option<usize>, distribution: Option<Distribution>) -> Target {
    Target { ranks: RankLayout { per_node, distribution, hosts: Vec::new() }, ..cores(nodes, 8) }
}

/// Check where ranks sit: blocks of ranks, as the user says, and as the launcher bound them; and a block of nodes for a rank that fits no node.
#[test]
fn ranks_sit_where_a_launcher_puts_them() {
    let job4 = job(4, false, &[]);
    assert_eq!(nodes(&judged(&job4, &cores(2, 8))), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(nodes(&judged(&job4, &laid_out(2, None, Some(Distribution::Cyclic)))), [0, 0, 1, 1, 0, 0, 1, 1]);
    assert_eq!(nodes(&judged(&job4, &laid_out(4, Some(2), None))), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(nodes(&judged(&job4, &laid_out(4, Some(2), Some(Distribution::Cyclic)))), [0, 0, 1, 1, 0, 0, 1, 1]);
    let bound = job(4, false, &["4-5", "6-7", "0-1", "2-3"]);
    assert_eq!(nodes(&judged(&bound, &cores(2, 8))), [1, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(nodes(&judged(&bound, &laid_out(2, None, Some(Distribution::Block)))), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(nodes(&judged(&job(2, false, &[]), &cores(4, 1))), [0, 1, 2, 3], "two nodes for each rank");
    assert_eq!(nodes(&judged(&job(2, false, &[]), &cores(4, 2))), [0, 0, 2, 2], "its threads fit one node");
    let mut few = job(2, false, &["1", "0"]);
    few.parts.iter_mut().for_each(|part| part.machine.node_cpus = [(0, (0..2).collect())].into());
    assert_eq!(nodes(&judged(&few, &cores(4, 1))), [2, 3, 0, 1], "a CPU stands for two nodes");
    assert_eq!(nodes(&judged(&few, &cores(4, 2))), [2, 2, 0, 0], "its threads fit one node");
    let mut lost = job4.clone();
    lost.parts.remove(1);
    let of_lost: Vec<i64> = vec![2, 3];
    lost.threads.retain(|thread| !of_lost.contains(&thread.id));
    lost.processes.retain(|process| process.id != 2);
    let analysis = judged(&lost, &cores(2, 8));
    assert_eq!((nodes(&analysis), &analysis.missing_ranks), (vec![0, 0, 1, 1, 1, 1], &vec![1]), "a missing rank keeps its place");
}

/// Check that a rank's own profile is judged where the rank sits.
#[test]
fn one_rank_has_its_place() {
    let mut world = World::new(2, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 2))]).profile(3);
    let place = |rank| RankPlace { rank, size: 4, local_rank: Some(rank), local_size: Some(4), ..RankPlace::default() };
    world.meta.rank = Some(place(3));
    assert_eq!(nodes(&judged(&world, &cores(2, 8))), [1, 1]);
    world.meta.rank = Some(RankPlace { size: 1, local_size: Some(1), ..place(0) });
    assert_eq!(nodes(&judged(&world, &cores(2, 8))), [0, 1], "a job of one rank is a program");
}

/// Check that the same finding of all ranks is one, with the figures of all, and that objects are compared over ranks.
#[test]
fn findings_of_ranks_are_one() {
    let analysis = judged(&job(4, true, &[]), &cores(8, 1));
    assert_eq!(nodes(&analysis), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(found(&analysis), [serial("A")]);
    let finding = &analysis.findings[0];
    assert_eq!((&finding.ranks, finding.in_ranks.len()), (&vec![0, 1, 2, 3], 3));
    assert!(finding.message.starts_with("In rank "), "{}", finding.message);
    assert!((finding.remote_fraction - 0.5).abs() < 0.05 && (finding.remote_share - 0.5).abs() < 0.05, "{finding:?}");
    let width = |[low, high]: [f64; 2]| high - low;
    let of_ranks: Vec<f64> = analysis.ranks.iter().map(|rank| width(rank.remote_interval.unwrap())).collect();
    assert!(of_ranks.iter().all(|one| *one > 1.5 * width(finding.interval)), "four ranks tell more than one: {finding:?}, {of_ranks:?}");
    assert!(
        analysis
            .ranks
            .iter()
            .all(|rank| rank.findings == [FindingKind::SerialFirstTouch] && (rank.remote_fraction.unwrap() - 0.5).abs() < 0.1)
    );
    let [over] = analysis.across_ranks.as_slice() else { panic!("{:?}", analysis.across_ranks) };
    assert_eq!((over.name.as_str(), &over.ranks, over.judged), ("A", &vec![0, 1, 2, 3], 4));
    assert!((over.access_share.unwrap().median - 1.0).abs() < 0.01, "of the rank's accesses");
    assert_eq!(over.remote_fraction.unwrap().outlier, None);
}

/// Check that many ranks do not hide a defect: each object has a small part of all accesses.
#[test]
fn small_parts_of_a_job_matter() {
    let mut many = job(40, true, &[]);
    // One rank of forty is misplaced on this machine, and has 1.25 % of all accesses remote.
    many.parts.iter_mut().for_each(|part| part.place.as_mut().unwrap().bound_cpus = Some("0-1".to_owned()));
    many.parts[39].place.as_mut().unwrap().bound_cpus = Some("3-4".to_owned());
    let analysis = judged(&many, &cores(2, 8));
    assert_eq!(&nodes(&analysis)[76..], [0, 0, 0, 1]);
    let of_object = analysis.findings.iter().find(|finding| finding.kind == FindingKind::SerialFirstTouch).unwrap();
    assert_eq!((of_object.object_name.as_str(), &of_object.ranks), ("A", &vec![39]));
    assert_eq!(analysis.across_ranks[0].remote_fraction.unwrap().outlier, Some(39));
    let straddles = analysis.findings.iter().find(|finding| finding.kind == FindingKind::RankStraddlesNodes).unwrap();
    assert_eq!(straddles.ranks, [39]);
    assert!(straddles.message.contains("rank 39 on nodes 0 and 1"), "{}", straddles.message);
}

/// Check that ranks whose memory is on another node than their threads are named, with the cause and the launcher's option, and that ranks which
/// stay at home are not.
#[test]
fn memory_elsewhere_is_found() {
    let recorded = |moved: &[i64], bound: &[&str]| {
        let mut job = job(2, false, bound);
        job.machine.node_cpus = [(0, vec![0, 1, 2, 3]), (1, vec![4, 5, 6, 7])].into();
        job.hosts[0].nodes = 2;
        job.parts.iter_mut().for_each(|part| part.machine = job.machine.clone());
        for thread in 0..4 {
            let home = 4 * (thread as u32 / 2);
            let now = if moved.contains(&(1 + thread / 2)) { 4 - home } else { home };
            job.thread_cpus.insert((thread, now), Seen { samples: 9, looks: 90 });
            job.first_touches.iter_mut().filter(|touch| touch.thread == thread).for_each(|touch| {
                touch.cpu = home;
                touch.node = Some(home as i32 / 4);
            });
        }
        judged(&job, &Target { virtual_machine: false, ..cores(2, 4) })
    };
    let kinds = |analysis: &Analysis| analysis.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&recorded(&[], &["0-3", "4-7"])), []);
    assert_eq!(kinds(&recorded(&[], &[])), [], "unbound ranks that stay have no finding");
    let moved = recorded(&[2], &[]);
    let finding = moved.findings.iter().find(|finding| finding.kind == FindingKind::RankMemoryElsewhere).unwrap();
    assert_eq!(finding.ranks, [1]);
    assert!(finding.message.contains("Rank 1 runs on node 0, its memory is on node 1"), "{}", finding.message);
    assert!(finding.fix.contains("mpirun --map-by numa --bind-to numa"), "{}", finding.fix);
    let unbound = moved.findings.iter().find(|finding| finding.kind == FindingKind::RanksUnbound).unwrap();
    assert_eq!(unbound.ranks, [0, 1]);
    let crossed = recorded(&[1, 2], &["0-3", "4-7"]);
    assert!(!kinds(&crossed).contains(&FindingKind::RanksUnbound), "they are bound");
    assert_eq!(crossed.findings.iter().find(|finding| finding.kind == FindingKind::RankMemoryElsewhere).unwrap().ranks, [0, 1]);
}

/// Check that ranks in which the kernel was never asked where pages are stand against an all-clear on a machine with several nodes, and not on a
/// virtual one, where first touch is what counts.
#[test]
fn unasked_ranks_are_no_all_clear() {
    let mut job = job(2, false, &["0-3", "4-7"]);
    job.machine.node_cpus = [(0, vec![0, 1, 2, 3]), (1, vec![4, 5, 6, 7])].into();
    job.hosts[0].nodes = 2;
    job.parts.iter_mut().for_each(|part| part.machine = job.machine.clone());
    for thread in 0..4 {
        job.thread_cpus.insert((thread, 4 * (thread as u32 / 2)), Seen { samples: 9, looks: 90 });
    }
    let real = Target { virtual_machine: false, ..cores(2, 4) };
    let verdict =
        |job: &Profile, target: &Target| judged(job, target).doubts().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    assert!(verdict(&job, &real).starts_with("the kernel was not asked where pages are"), "{}", verdict(&job, &real));
    job.first_touches.iter_mut().filter(|touch| touch.process == 1).for_each(|touch| touch.node = Some(0));
    assert!(verdict(&job, &real).starts_with("in rank 1 of 2, the kernel was not asked where pages are"), "{}", verdict(&job, &real));
    assert_eq!(verdict(&job, &cores(2, 8)), "");
    job.first_touches.iter_mut().filter(|touch| touch.process == 2).for_each(|touch| touch.node = Some(1));
    assert_eq!(verdict(&job, &real), "");
}

/// Check that hosts have nodes of their own, and that no memory of one is remote for want of a place on the other.
#[test]
fn hosts_are_kept_apart() {
    let mut job = job(4, true, &[]);
    job.hosts.push(Host { id: 1, name: "bee".to_owned(), first_node: 1, nodes: 1, first_cpu: 8, cpus: 8 });
    for (rank, part) in job.parts.iter_mut().enumerate() {
        part.host = rank as i64 / 2;
        let place = part.place.as_mut().unwrap();
        (place.local_rank, place.local_size) = (Some(rank as u32 % 2), Some(2));
    }
    let two_hosts = Target { nodes: 4, ranks: RankLayout { hosts: vec![(0, 2), (2, 2)], ..RankLayout::default() }, ..cores(2, 8) };
    let analysis = judged(&job, &two_hosts);
    assert_eq!(nodes(&analysis), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!((found(&analysis), analysis.matrix.len()), (vec![], 4));
    assert_eq!([0, 1, 2, 3].map(|node| analysis.node_name(node)), ["ant:0", "ant:1", "bee:0", "bee:1"]);
    assert_eq!(analysis.ranks.iter().map(|rank| rank.host).collect::<Vec<_>>(), [0, 0, 1, 1]);
}

/// Check that memory that ranks share is a finding of its own, with the ranks that share it.
#[test]
fn shared_segments_are_named() {
    for (users, advice) in [(Who::Block(0, 4), "alloc_shared_noncontig=true"), (Who::All(0, 4), "spread its pages over the nodes")] {
        let analysis = judged(&shared_window(users), &cores(2, 8));
        let [finding] = analysis.findings.as_slice() else { panic!("{:?}", analysis.findings) };
        assert_eq!((finding.kind, &finding.ranks), (FindingKind::SharedSegment, &vec![0, 1, 2, 3]));
        assert!(finding.message.starts_with("4 ranks share this memory. ") && finding.fix.contains(advice), "{finding:?}");
    }
}

/// A job of four ranks with a window that the first one fills.
fn shared_window(users: Who) -> Profile {
    let mut job = World::new(4, vec![Thing::new("window", 64, Who::One(0), users)]).profile(3);
    let ranks = self::job(4, false, &[]);
    (job.hosts, job.parts, job.machine) = (ranks.hosts, ranks.parts, ranks.machine);
    job.processes = ranks.processes;
    for (rank, part) in job.parts.iter_mut().enumerate() {
        part.first.thread = rank as i64;
    }
    job.threads.iter_mut().for_each(|thread| thread.process = 1 + thread.id);
    job.first_touches.iter_mut().for_each(|touch| touch.process = 1 + touch.thread);
    let window = job.objects[0].clone();
    job.objects = (0..4).map(|rank| firsttouch_model::rows::Object { id: window.id + rank, process: 1 + rank, ..window.clone() }).collect();
    job.shared_memory =
        job.objects.iter().map(|object| (object.id, SharedMemory { memory: "00:01 7".to_owned(), offset: 0, present: None })).collect();
    job
}

/// Check that a profile merged from programs that are no ranks is judged, and that its parts are listed.
#[test]
fn programs_without_ranks_can_be_merged() {
    let mut job = job(2, true, &[]);
    job.parts.iter_mut().for_each(|part| part.place = None);
    let analysis = judged(&job, &cores(2, 8));
    assert_eq!(analysis.ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(), [None, None]);
    assert!(analysis.missing_ranks.is_empty());
}
