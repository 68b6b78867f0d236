//! Pools in many processes: what each of them costs must not depend on the number of the others.

use crate::samples::{computing, read_of, thread};
use crate::simulated::{FakeSources, MS, Random, S, target};
use firsttouch_analysis::{Analysis, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::*;
use std::time::Instant;

const BLOCK: u64 = 2048;
const HEAP: u64 = 0x5555_0000_0000;
/// Sampled blocks of a process, and the distance from one to the next.
const BLOCKS: u64 = 128;
const MEAN: u64 = 32 << 10;
/// Samples of a process.
const SAMPLES: u64 = 100;
const TOUCHES: u64 = 64;
/// Sites: of the blocks, and of their use.
const MADE: Id = 1;
const USED: Id = 2;

/// Each process has two threads; the first allocates and fills small blocks, both use them.
fn profile(processes: u64) -> Profile {
    let mut random = Random(7);
    let site = |(id, line): (Id, u32)| {
        let frame = Frame { address: 0x1000 * u64::from(line), file: Some("a.c".into()), line: Some(line), ..Frame::default() };
        (id, Site { id, process: 1, frames: vec![frame] })
    };
    let mut profile = Profile {
        sites: [(MADE, 1), (USED, 2)].map(site).into(),
        evidence: vec![Evidence { source: "sample".into(), available: true, samples: 1, detail: String::new() }],
        ..Profile::default()
    };
    profile.meta.set("start_ns", "0");
    profile.meta.set("end_ns", &(10 * S).to_string());
    for number in 0..processes {
        let process = number as Id + 1;
        let first = 2 * number as Id;
        profile.processes.push(Process { id: process, pid: 10 + number as i32, parent: None, exe: None, born_ns: 0, died_ns: None });
        profile.threads.extend([first, first + 1].map(|id| Thread { process, parent: None, ..thread(id) }));
        profile.small_blocks.extend((0..BLOCKS).map(|block| SmallBlock {
            process,
            thread: first,
            site: Some(MADE),
            call: "malloc".into(),
            address: HEAP + block * MEAN,
            bytes: BLOCK,
            weight: MEAN as f64,
            time_ns: 1 + block,
        }));
        for touch in 0..TOUCHES {
            profile.first_touches.push(FirstTouch {
                id: profile.first_touches.len() as Id + 1,
                process,
                time_ns: 2 + touch,
                thread: first,
                cpu: 0,
                address: HEAP + touch * (BLOCKS * MEAN / TOUCHES),
                weight: 16.0,
                by_kernel: false,
                site: Some(MADE),
                mapped_bytes: None,
                node: None,
            });
        }
        for sample in 0..SAMPLES {
            let id = profile.samples.len() as Id + 1;
            let offset = random.below(BLOCKS * MEAN / 8) * 8;
            let thread = first + Id::from(offset >= BLOCKS * MEAN / 2);
            profile.samples.push(computing(id, thread, S + sample * MS, sample * MS, USED));
            profile.sampled_accesses.push(read_of(id, NO_OBJECT, HEAP + offset, USED));
        }
    }
    profile
}

fn analysed(processes: u64) -> Analysis {
    analyse(&profile(processes), &target(2), &FakeSources(TouchCause::Loop))
}

/// Check that each process's blocks are one object with its own users, however many other processes there are.
#[test]
fn pools_of_many_processes() {
    let analysis = analysed(200);
    assert_eq!((analysis.objects.len(), analysis.threads.len()), (200, 400));
    for object in &analysis.objects {
        assert!(object.kind == ObjectKind::Pool && object.judged, "{object:?}");
        let users: Vec<usize> = (0..400).filter(|&thread| object.used_by_thread[thread] > 0.0).collect();
        assert!(users.len() == 2 && users.iter().all(|&thread| analysis.threads[thread].process == object.process), "{users:?}");
    }
    assert!(analysis.findings.is_empty(), "the threads of a process stay together: {:?}", analysis.findings);
}

/// Measures the time of an analysis. Run by hand:
/// `cargo test --release -p firsttouch-analysis -- --ignored --nocapture time_by_processes`.
#[test]
#[ignore = "a measurement"]
fn time_by_processes() {
    for processes in [100, 200, 400] {
        let start = Instant::now();
        let analysis = analysed(processes);
        println!(
            "{processes}: {:.0} ms, {} objects, {} findings",
            start.elapsed().as_secs_f64() * 1e3,
            analysis.objects.len(),
            analysis.findings.len()
        );
    }
}
