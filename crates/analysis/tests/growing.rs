//! Memory that grows step by step, and that threads divide anew at each step: a mesh that is refined.

use crate::samples::{A, TICK, computing, judged_of, object, read_of, thread};
use crate::simulated::{MIB, Random, S};
use firsttouch_analysis::PartitionKind;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::*;

const THREADS: u64 = 4;
const STEPS: u64 = 8;
const STEP_NS: u64 = S;

/// The first thread fills each step's array, and each thread then uses its part of it; each is half as large again as the last.
fn mesh(seed: u64) -> Profile {
    let mut random = Random(seed);
    let site = |id: Id, line: u32| {
        let frame = Frame { address: 0x1000 * u64::from(line), file: Some("a.c".into()), line: Some(line), ..Frame::default() };
        (id, Site { id, process: 1, frames: vec![frame] })
    };
    let mut profile = Profile {
        processes: vec![Process { id: 1, pid: 10, parent: None, exe: None, born_ns: 0, died_ns: None }],
        threads: (0..THREADS as Id).map(thread).collect(),
        sites: [site(1, 1), site(11, 11), site(20, 20)].into(),
        evidence: vec![Evidence { source: "sample".into(), available: true, samples: 1, detail: String::new() }],
        ..Profile::default()
    };
    profile.meta.set("start_ns", "0");
    profile.meta.set("end_ns", &((1 + STEPS) * STEP_NS).to_string());
    for step in 0..STEPS {
        let (bytes, from) = ((4 * MIB * 3u64.pow(step as u32) / 2u64.pow(step as u32)) & !4095, (1 + step) * STEP_NS);
        let (id, base) = (1 + step as Id, A + (step << 32));
        let own = Object { bytes, born_ns: from, died_ns: Some(from + STEP_NS - 1), site: Some(1), ..object(id, "mesh", base) };
        profile.objects.push(own);
        profile.first_touches.extend((0..bytes / 65536).map(|page| FirstTouch {
            id: Id::try_from(step * 10_000 + page).unwrap() + 1,
            process: 1,
            time_ns: from + 1 + page,
            thread: 0,
            cpu: 0,
            address: base + page * 65536,
            weight: 16.0,
            by_kernel: false,
            site: Some(20),
            mapped_bytes: None,
            node: None,
        }));
        for tick in 5..STEP_NS / TICK - 1 {
            for thread in 0..THREADS {
                let sample = Id::try_from(profile.samples.len()).unwrap() + 1;
                let at = base + thread * (bytes / THREADS) + random.below(bytes / THREADS / 8) * 8;
                let time = from + tick * TICK;
                profile.samples.push(computing(sample, thread as Id, time + thread, time - S, 11));
                profile.sampled_accesses.push(read_of(sample, id, at, 11));
            }
        }
    }
    profile
}

/// Check that memory which grows by realloc while one thread fills it gets no advice to divide that loop, which does not go through all of it.
#[test]
fn realloc_is_no_loop_to_divide() {
    let mut profile = mesh(0);
    profile.objects.iter_mut().for_each(|object| object.call = Some("realloc".into()));
    let judged = judged_of(&profile);
    let finding = judged.findings.first().expect("a finding");
    assert_eq!(finding.kind, FindingKind::SerialFirstTouch);
    assert!(finding.fix.contains("allocate its final size at once") && finding.fix.contains("(a.c:11)"), "{}", finding.fix);
    assert!(!finding.fix.contains("in parallel, divided like"), "{}", finding.fix);
}

/// Check that each thread's part of all steps is one part. (The samples of the threads follow each other in turn, and are so many that only some are looked at.)
#[test]
fn each_step_is_divided_alike() {
    for seed in 0..2 {
        let judged = judged_of(&mesh(seed));
        let finding = judged.findings.first().expect("a finding");
        let view = judged.objects.iter().find(|object| Some(object.id) == finding.object).expect("its object");
        assert_eq!((finding.kind, view.partition), (FindingKind::SerialFirstTouch, PartitionKind::Block), "{finding:?}");
    }
}
