//! Threads that follow each other, one at a time: on which node each of them runs is chance.

use crate::samples::{A, FAST, SLOW, TICK, computing, judged_of, object, read_of, run, thread};
use crate::simulated::{FakeSources, MIB, Random, S, target};
use firsttouch_analysis::{NotJudgedReason, Target, analyse};
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::*;
use firsttouch_model::{Pin, TouchCause};

const WORKERS: u64 = 40;

/// A run in which one thread at a time uses what the first thread filled: `threads` of them, one after the other.
fn in_turn(threads: u64) -> Profile {
    let mut profile = run(3, [FAST, SLOW], 4).profile;
    let kept: Vec<Id> = profile.samples.iter().filter(|sample| sample.thread == 1).map(|sample| sample.id).collect();
    profile.samples.retain(|sample| sample.thread == 1);
    profile.sampled_accesses.retain(|access| kept.binary_search(&access.sample).is_ok());
    profile.threads.truncate(1);
    let [first, last] = [0, profile.samples.len() - 1].map(|at| profile.samples[at].time_ns);
    let life = (last - first) / threads + 1;
    let of = |time_ns: u64| (time_ns - first) / life;
    profile.threads.extend((0..threads).map(|number| {
        let born_ns = first + number * life;
        Thread { parent: Some(0), born_ns, died_ns: Some(born_ns + life - 1), cpu_ns: Some(life), ..thread(1 + number as Id) }
    }));
    for sample in &mut profile.samples {
        let number = of(sample.time_ns);
        (sample.thread, sample.cpu_ns) = (1 + number as Id, sample.time_ns - first - number * life);
    }
    profile
}

/// Check that memory of one thread that short ones use in turn is not judged, and that memory which one other thread uses is: that thread stays.
#[test]
fn memory_used_in_turn_is_not_judged() {
    let profile = in_turn(WORKERS);
    let many = judged_of(&profile);
    assert!(many.findings.is_empty(), "{:?}", many.findings);
    assert_eq!(many.remote_interval, Some([0.0, 1.0]));
    for object in &many.objects {
        assert_eq!(object.reason, Some(NotJudgedReason::InTurn { threads: WORKERS as usize }));
    }
    let one = judged_of(&in_turn(1));
    assert!(one.objects.iter().all(|object| object.judged) && one.findings.len() == 2, "{:?}", one.findings);
    // The user says where threads run: all on one node.
    let placed = analyse(&profile, &Target { pin: Pin::Compact, cores_per_node: 2, ..target(2) }, &FakeSources(TouchCause::Loop));
    assert!(placed.objects.iter().all(|object| object.judged) && placed.remote_fraction == Some(0.0), "{:?}", placed.remote_fraction);
}

/// A run of 480 threads, four at a time: each reads the quarter that belongs to its place of what the first thread filled.
/// `ticks`: the samples of each thread, by its place.
fn rounds(ticks: [u64; 4]) -> Profile {
    const ROUNDS: u64 = 120;
    const PLACES: u64 = 4;
    const BYTES: u64 = 64 * MIB;
    const ROUND_NS: u64 = 12 * TICK;
    let frame = |line: u32| Frame { address: 0x1000 * u64::from(line), file: Some("a.c".into()), line: Some(line), ..Frame::default() };
    let site = |id: Id, line: u32| (id, Site { id, process: 1, frames: vec![frame(line)] });
    let mut random = Random(1);
    let mut profile = Profile {
        processes: vec![Process { id: 1, pid: 10, parent: None, exe: None, born_ns: 0, died_ns: None }],
        threads: vec![thread(0)],
        sites: [site(1, 1), site(11, 11), site(20, 20)].into(),
        objects: vec![Object { bytes: BYTES, site: Some(1), ..object(1, "a", A) }],
        evidence: vec![Evidence { source: "sample".into(), available: true, samples: 1, detail: String::new() }],
        ..Profile::default()
    };
    profile.meta.set("start_ns", "0");
    profile.meta.set("end_ns", &(S + ROUNDS * ROUND_NS).to_string());
    profile.first_touches.extend((0..BYTES / 65536).map(|page| FirstTouch {
        id: Id::try_from(page).unwrap() + 1,
        process: 1,
        time_ns: 1 + page,
        thread: 0,
        cpu: 0,
        address: A + page * 65536,
        weight: 16.0,
        by_kernel: false,
        site: Some(20),
        mapped_bytes: None,
        node: None,
    }));
    for round in 0..ROUNDS {
        let from = S + round * ROUND_NS;
        for place in 0..PLACES {
            let id = Id::try_from(1 + round * PLACES + place).unwrap();
            let own = Thread {
                born_ns: from + place,
                died_ns: Some(from + 11 * TICK),
                cpu_ns: Some((1 + ticks[place as usize]) * TICK),
                ..thread(id)
            };
            profile.threads.push(own);
            for tick in 1..=ticks[place as usize] {
                let sample = Id::try_from(profile.samples.len()).unwrap() + 1;
                let at = A + place * (BYTES / PLACES) + random.below(BYTES / PLACES / 8) * 8;
                profile.samples.push(computing(sample, id, from + tick * TICK + place, tick * TICK, 11));
                profile.sampled_accesses.push(read_of(sample, 1, at, 11));
            }
        }
    }
    profile
}

/// Check that the parts of threads that are made anew in each round are known, although each of them makes a small part of all accesses: a plan
/// puts each part on its node.
#[test]
fn threads_of_rounds_have_parts() {
    let judged = judged_of(&rounds([10; 4]));
    let traffic = &judged.traffic.objects[0];
    let parts = traffic.parts.as_ref().expect("parts");
    assert_eq!((parts.ends.as_slice(), parts.workers.len(), parts.period_bytes), (&[0.25, 0.5, 0.75, 1.0][..], 4, None));
    assert_eq!(judged.findings[0].kind, FindingKind::SerialFirstTouch);
    assert_eq!(traffic.even.len(), 4, "equal parts");
    // Each thread has few samples, and the places have many.
    let uneven = judged_of(&rounds([6, 6, 10, 10]));
    assert!(uneven.traffic.objects[0].even.is_empty(), "{:?}", uneven.traffic.objects[0].even);
}
