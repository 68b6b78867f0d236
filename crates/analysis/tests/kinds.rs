//! Threads with different code: producers that fill buffers and consumers that read them.

use crate::samples::{A, BYTES, TICK, computing, judged_of, object, read_of, thread};
use crate::simulated::{Random, S};
use firsttouch_analysis::Analysis;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::*;
use firsttouch_model::traffic::Work;

const BUFFER: u64 = 256 << 10;
const FILL: Id = 11;
const READ: Id = 12;
/// Thread 0 waits. Threads 1 and 3 fill buffers, 2 and 4 read them: whichever is free.
const THREADS: Id = 5;
const SECONDS: u64 = 6;

fn site(id: Id, function: &str) -> (Id, Site) {
    let frame = Frame {
        address: 0x1000 * id as u64,
        function: Some(function.into()),
        file: Some("a.c".into()),
        line: Some(id as u32),
        ..Frame::default()
    };
    (id, Site { id, process: 1, frames: vec![frame] })
}

/// Buffers that one of two threads fills and one of two others reads, each time others of both; by functions of these names.
fn pipeline(seed: u64, [fills, reads]: [&str; 2]) -> Profile {
    let mut random = Random(seed);
    let mut profile = Profile {
        processes: vec![Process { id: 1, pid: 10, parent: None, exe: None, born_ns: 0, died_ns: None }],
        threads: (0..THREADS).map(thread).collect(),
        objects: vec![object(1, "buffers", A)],
        sites: [site(1, "main"), site(FILL, fills), site(READ, reads), site(20, fills)].into(),
        evidence: vec![Evidence { source: "sample".into(), available: true, samples: 1, detail: String::new() }],
        ..Profile::default()
    };
    profile.meta.set("start_ns", "0");
    profile.meta.set("end_ns", &((1 + SECONDS) * S).to_string());
    let first_filler: Vec<Id> = (0..BYTES / BUFFER).map(|_| if random.below(2) == 0 { 1 } else { 3 }).collect();
    profile.first_touches.extend((0..BYTES / 4096).map(|page| FirstTouch {
        id: Id::try_from(page).unwrap() + 1,
        process: 1,
        time_ns: 1 + page,
        thread: first_filler[(page * 4096 / BUFFER) as usize],
        cpu: 0,
        address: A + page * 4096,
        weight: 1.0,
        by_kernel: false,
        site: Some(20),
        mapped_bytes: None,
        node: None,
    }));
    for tick in 0..SECONDS * S / TICK {
        for thread in 1..THREADS {
            let (id, at) = (Id::try_from(profile.samples.len()).unwrap() + 1, A + random.below(BYTES / 8) * 8);
            let is_filler = thread % 2 == 1;
            let site = if is_filler { FILL } else { READ };
            profile.samples.push(computing(id, thread, S + tick * TICK + thread as u64, tick * TICK, site));
            let kind = if is_filler { AccessKind::Write } else { AccessKind::Read };
            profile.sampled_accesses.push(SampledAccess { kind, ..read_of(id, 1, at, site) });
        }
    }
    profile
}

fn work(analysis: &Analysis) -> Work {
    analysis.traffic.objects[0].work
}

/// Check that the advice for buffers between threads with different code keeps those together that hand them over, and that their work stays with them in the
/// traffic that `predict` and `plan` rest on. With one function for all of them, nothing tells the threads apart.
#[test]
fn work_stays_with_its_kind_of_thread() {
    for seed in 0..2 {
        let different = judged_of(&pipeline(seed, ["produce", "consume"]));
        let finding = different.findings.iter().find(|finding| finding.kind == FindingKind::NoStablePartition).expect("a finding");
        assert!(finding.fix.starts_with("threads with different code use buffers."), "{}", finding.fix);
        assert_eq!(work(&different), Work::OfItsThread);
        let same = judged_of(&pipeline(seed, ["step", "step"]));
        let finding = same.findings.iter().find(|finding| finding.kind == FindingKind::NoStablePartition).expect("a finding");
        assert!(!finding.fix.contains("different code"), "{}", finding.fix);
        assert_eq!(work(&same), Work::AsSeen);
    }
}
