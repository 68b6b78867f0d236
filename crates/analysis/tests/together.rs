//! Objects that are judged together: many vectors with few samples each, whose first touches and users are known.

use crate::samples::thread;
use crate::simulated::{FakeSources, MIB, Random, S, Who, target};
use firsttouch_analysis::{Analysis, Finding, PartitionKind, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::*;

const THREADS: usize = 4;
const PAGE: u64 = 4096;
const STEP: u64 = 16 * PAGE;

/// A vector: its size, who touches it first, who uses it, and its number of samples.
struct Vector {
    name: String,
    bytes: u64,
    touch: Who,
    user: Who,
    samples: usize,
}

fn vectors(prefix: &str, count: usize, touch: &Who, user: &Who, samples: usize) -> Vec<Vector> {
    let one = |index: usize| Vector {
        name: format!("{prefix}{index}"),
        bytes: 2 * MIB + 3 * index as u64 * PAGE,
        touch: touch.clone(),
        user: user.clone(),
        samples,
    };
    (0..count).map(one).collect()
}

fn site(id: Id) -> (Id, Site) {
    let line = u32::try_from(id).unwrap();
    let frame = Frame { address: 0x1000 * u64::from(line), file: Some("a.c".into()), line: Some(line), ..Frame::default() };
    (id, Site { id, process: 1, frames: vec![frame] })
}

fn profile(seed: u64, list: &[Vector]) -> Profile {
    let mut random = Random(seed);
    let mut profile = Profile {
        processes: vec![Process { id: 1, pid: 10, parent: None, exe: None, born_ns: 0, died_ns: None }],
        threads: (0..THREADS as Id).map(thread).collect(),
        sites: (1..=list.len() as Id + 1).map(site).collect(),
        evidence: ["sample", "touch"]
            .map(|source| Evidence { source: source.into(), available: true, samples: 1, detail: String::new() })
            .into(),
        ..Profile::default()
    };
    profile.meta.set("start_ns", "0");
    profile.meta.set("end_ns", &(10 * S).to_string());
    for (id, vector) in (1..).zip(list) {
        let address = 0x10_0000_0000 * id as u64;
        profile.objects.push(Object {
            id,
            process: 1,
            kind: ObjectKind::Heap,
            call: Some("malloc".into()),
            name: Some(vector.name.clone()),
            address,
            bytes: vector.bytes,
            born_ns: 0,
            died_ns: None,
            site: Some(id),
            thread: Some(0),
        });
        for offset in (0..vector.bytes).step_by(STEP as usize) {
            profile.first_touches.push(FirstTouch {
                id: profile.first_touches.len() as Id + 1,
                process: 1,
                time_ns: 1 + offset,
                thread: vector.touch.at(offset, vector.bytes, 0)[0] as Id,
                cpu: 0,
                address: address + offset,
                weight: 16.0,
                by_kernel: false,
                site: Some(list.len() as Id + 1),
                mapped_bytes: None,
                node: None,
            });
        }
        for _ in 0..vector.samples {
            let number = profile.samples.len() as Id + 1;
            let offset = random.below(vector.bytes / 8) * 8;
            let users = vector.user.at(offset, vector.bytes, number as u64);
            let thread = users[random.below(users.len() as u64) as usize] as Id;
            let (time_ns, cpu_ns) = (2 * S + number as u64 * 4_000_000, number as u64 * 4_000_000);
            profile.samples.push(TimerSample {
                id: number,
                thread,
                time_ns,
                cpu: 0,
                cpu_ns,
                weight: 1.0,
                site: Some(id),
                state: SampleState::Computing,
                around: None,
                unknown: 0,
                elsewhere: 0.0,
            });
            profile.sampled_accesses.push(SampledAccess {
                sample: number,
                object: id,
                address: address + offset,
                bytes: 8,
                words: 1.0,
                kind: AccessKind::Update,
                site: Some(id),
                stride: Some(8),
            });
        }
    }
    profile
}

fn judged(profile: &Profile) -> Analysis {
    analyse(profile, &target(2), &FakeSources(TouchCause::Loop))
}

/// The names of the objects that a finding is about.
fn names<'a>(analysis: &'a Analysis, finding: &Finding) -> Vec<&'a str> {
    let name = |id: i64| analysis.objects.iter().find(|object| object.id == id).unwrap().name.as_str();
    finding.objects().map(name).collect()
}

/// Check that vectors with too few samples each get one verdict, that vectors with other users or other first touches are not mixed with them, and
/// that figures and words name all of them.
#[test]
fn vectors_of_one_pattern_are_judged_together() {
    let (all, one, blocks) = (Who::Block(0, THREADS), Who::One(0), Who::Block(0, THREADS));
    let (mut found, mut complete, mut inside, mut verdicts, mut wrong, runs) = (0, 0, 0, 0, 0, 100);
    for seed in 0..runs {
        let mut list = vectors("serial", 10, &one, &all, 8);
        list.extend(vectors("own", 6, &one, &one, 8));
        list.extend(vectors("right", 6, &blocks, &all, 8));
        list.extend(vectors("few", 3, &one, &all, 2));
        let analysis = judged(&profile(seed, &list));
        for finding in &analysis.findings {
            let names = names(&analysis, finding);
            assert!(names.iter().all(|name| name.starts_with("serial")), "{seed}: {names:?}");
            assert_eq!((finding.kind, names.len() > 1), (FindingKind::SerialFirstTouch, true));
            inside += usize::from(finding.interval[0] < 0.5 && 0.5 < finding.interval[1]);
            complete += usize::from(names.len() >= 8);
            assert!(finding.message.starts_with("Each of serial"), "{}", finding.message);
        }
        found += usize::from(analysis.findings.len() == 1);
        for object in analysis.objects.iter().filter(|object| object.judged) {
            let remote = !object.name.starts_with("own") && !object.name.starts_with("right");
            let in_finding = analysis.findings.iter().any(|finding| finding.objects().any(|id| id == object.id));
            let partition = if object.name.starts_with("own") { PartitionKind::Single } else { PartitionKind::Block };
            wrong += usize::from(remote != in_finding || object.partition != partition);
            verdicts += 1;
            assert!(!object.together.is_empty() && !object.together.contains(&object.id));
        }
        assert!(analysis.objects.iter().all(|object| !object.name.starts_with("few") || !object.judged));
    }
    // Chance may show eight samples of one thread only.
    assert!(wrong * 500 <= verdicts && verdicts > 1500, "{wrong} of {verdicts} verdicts are wrong");
    assert!(found >= 95 && complete >= 90 && inside >= 90, "found {found}, complete {complete}, interval right {inside} of {runs}");
}

/// Check that vectors which are each misplaced for certain, and too small for a finding, are one finding, without those that are well placed.
#[test]
fn many_small_vectors_are_one_finding() {
    let (all, one, blocks) = (Who::Block(0, THREADS), Who::One(0), Who::Block(0, THREADS));
    for seed in 0..10 {
        let mut list = vectors("serial", 20, &one, &all, 80);
        list.extend(vectors("right", 20, &blocks, &all, 80));
        let analysis = judged(&profile(seed, &list));
        let [finding] = analysis.findings.as_slice() else { panic!("{seed}: {:?}", analysis.findings) };
        let names = names(&analysis, finding);
        assert_eq!(finding.kind, FindingKind::SerialFirstTouch);
        assert!(names.iter().all(|name| name.starts_with("serial")) && names.len() >= 18, "{seed}: {names:?}");
        assert!((0.22..0.28).contains(&finding.remote_share), "{seed}: {}", finding.remote_share);
    }
}

/// Check that objects with large findings keep their own, beside one finding on the small ones of the same pattern.
#[test]
fn large_findings_stay_apart() {
    let (all, one) = (Who::Block(0, THREADS), Who::One(0));
    for seed in 0..10 {
        let mut list = vectors("large", 2, &one, &all, 900);
        list.extend(vectors("small", 6, &one, &all, 60));
        let analysis = judged(&profile(seed, &list));
        let mut found: Vec<Vec<&str>> = analysis.findings.iter().map(|finding| names(&analysis, finding)).collect();
        found.sort_by_key(Vec::len);
        let [a, b, small] = found.as_slice() else { panic!("{seed}: {found:?}") };
        assert!(a.len() == 1 && b.len() == 1 && small.iter().all(|name| name.starts_with("small")), "{seed}: {found:?}");
    }
}

/// Check that vectors whose parts have no owner are judged together, and that those of one thread are not among them.
#[test]
fn vectors_without_owners() {
    for seed in 0..20 {
        let mut list = vectors("dealt", 8, &Who::One(0), &Who::Dynamic(0, THREADS, PAGE), 12);
        list.extend(vectors("own", 4, &Who::One(0), &Who::One(0), 12));
        let analysis = judged(&profile(seed, &list));
        let [finding] = analysis.findings.as_slice() else { panic!("{seed}: {:?}", analysis.findings) };
        assert_eq!(finding.kind, FindingKind::NoStablePartition);
        assert!(names(&analysis, finding).iter().all(|name| name.starts_with("dealt")));
    }
}

/// Check that vectors with different borders of use, and those with different borders of first touch, are not judged as one.
#[test]
fn different_borders_are_kept_apart() {
    for seed in 0..20 {
        let even = Who::Block(0, THREADS);
        let uneven = Who::Borders(vec![0.7, 0.8, 0.9]);
        let mut list = vectors("even", 8, &even, &even, 12);
        list.extend(vectors("uneven", 8, &uneven, &uneven, 12));
        let analysis = judged(&profile(seed, &list));
        assert!(analysis.findings.is_empty(), "{seed}: {:?}", analysis.findings);
        for object in analysis.objects.iter().filter(|object| object.judged) {
            let of_own_kind = |id: &i64| {
                let other = analysis.objects.iter().find(|other| other.id == *id).unwrap();
                other.name.starts_with("even") == object.name.starts_with("even")
            };
            assert!(object.together.iter().all(of_own_kind));
            assert!(object.remote_interval.unwrap()[0] < 0.1, "{seed} {}: {:?}", object.name, object.remote_interval);
        }
    }
}

/// Check that the lines which a finding names are those of the object that it names, and not of another one that is judged together with it.
#[test]
fn lines_are_those_of_the_named_object() {
    let mut profile = profile(1, &vectors("serial", 6, &Who::One(0), &Who::Block(0, THREADS), 8));
    for touch in &mut profile.first_touches {
        touch.site = Some(1000 + (touch.address / 0x10_0000_0000) as Id);
    }
    profile.sites.extend((1001..=1006).map(site));
    let analysis = judged(&profile);
    let [finding] = analysis.findings.as_slice() else { panic!("{:?}", analysis.findings) };
    let own = format!("a.c:{}", 1000 + finding.object.unwrap());
    assert!(finding.message.contains(&format!("(loop, {own})")), "{}", finding.message);
    let others: Vec<Id> = (1001..=1006).filter(|line| finding.fix.contains(&format!("a.c:{line}"))).collect();
    assert_eq!(others, [1000 + finding.object.unwrap()], "{}", finding.fix);
}

/// Check that an object which one thread touched, and whose interval reaches from well placed to misplaced, is a candidate.
#[test]
fn uncertain_objects_are_candidates() {
    let mut uncertain = 0;
    for seed in 0..40 {
        let user = Who::Borders(vec![0.86, 0.86, 0.86]);
        let analysis = judged(&profile(seed, &vectors("mostly", 1, &Who::One(0), &user, 20)));
        let object = &analysis.objects[0];
        let is_wide = object.remote_interval.is_some_and(|[low, high]| low <= 0.05 && high - low > 0.3);
        if object.judged && is_wide {
            uncertain += 1;
            assert!(analysis.findings.is_empty(), "{seed}: {:?}", analysis.findings);
            let is_named = |note: &firsttouch_analysis::Note| note.to_string().starts_with("1 object (mostly0; ");
            assert!(analysis.notes.iter().any(is_named), "{seed}: {:?}", analysis.notes);
        } else if object.judged {
            assert!(!analysis.notes.iter().any(|note| note.to_string().contains("candidates")), "{seed}: {:?}", object.remote_interval);
        }
    }
    assert!(uncertain > 0);
}

/// Check that a mapped file is not judged, and does not count in the remote share, although faults on it were recorded: first touches do not place
/// the pages of the page cache.
#[test]
fn mapped_files_are_not_judged() {
    let (all, blocks) = (Who::Block(0, THREADS), Who::Block(0, THREADS));
    let mut list = vectors("file", 1, &Who::One(0), &all, 400);
    list.extend(vectors("out", 1, &blocks, &all, 400));
    let mut profile = profile(4, &list);
    profile.objects[0].kind = ObjectKind::File;
    let analysis = judged(&profile);
    let file = analysis.objects.iter().find(|object| object.name == "file0").expect("the file");
    assert!(!file.judged && file.reason.as_ref().is_some_and(|reason| reason.to_string().contains("mapped file")), "{:?}", file.reason);
    assert!(analysis.findings.is_empty() && analysis.remote_fraction.is_some_and(|remote| remote < 0.05), "{:?}", analysis.remote_fraction);
    let coverage = analysis.coverage.expect("coverage");
    assert!((0.4..0.6).contains(&coverage.not_judged), "{coverage:?}");
}

/// Check that a source which disagrees widens the interval of the program and of the object, so that it covers both.
#[test]
fn disagreeing_sources_widen_the_interval() {
    let mut profile = profile(5, &vectors("serial", 1, &Who::One(0), &Who::Block(0, THREADS), 900));
    let of_samples = judged(&profile);
    profile.evidence.push(Evidence { source: "watch".into(), available: true, samples: 1, detail: String::new() });
    // Windows in which thread 0, at whose node all pages are, makes all accesses.
    for round in 0..200_u64 {
        let (id, held_ns, round_ns) = (round as Id, 10_000_000, 20_000_000);
        let address = profile.objects[0].address + round * 8192 % profile.objects[0].bytes;
        let start_ns = 3 * S + round * round_ns;
        profile.windows.push(Window { id, round, object: 1, address, start_ns, held_ns, round_ns, inclusion: 1.0 });
        let (thread, site, watched_ns) = (0, Some(1), held_ns);
        profile.accesses.push(Access { window: id, thread, site, hits: 5, estimate: 5.0, watched_ns, cut: false, cpu: None, cpu_ns: None });
    }
    let both = judged(&profile);
    let ([low, high], [own_low, own_high]) = (both.remote_interval.expect("an interval"), of_samples.remote_interval.expect("an interval"));
    assert!(
        low < 0.05 && own_low > 0.4 && high >= own_high - 0.05,
        "{:?} {:?} {:?}",
        both.remote_interval,
        of_samples.remote_interval,
        both.cross_checks
    );
    let of_object = both.objects[0].remote_interval.expect("an interval");
    assert!(of_object[0] < 0.05, "{of_object:?}");
}
