//! Small blocks of which only a sample was recorded, simulated: matrices of rows, in the heap and in the arenas of threads.

use crate::samples::thread;
use crate::simulated::{MS, Random, S, target};
use firsttouch_analysis::{Analysis, PartitionKind, Sources, Target, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::*;

const THREADS: usize = 4;
const ROWS: u64 = 16_000;
const ROW: u64 = 2048;
/// From one row to the next: allocators put a header before each.
const STEP: u64 = ROW + 16;
const HEAP: u64 = 0x5555_0000_0000;
const ARENAS: u64 = 0x7fff_0000_0000;
const MEAN: u64 = 32 << 10;

/// `a[i] = malloc(n);` and `b[i] = malloc(n);` on lines 1 and 2.
struct TwoLines;

/// The site of all accesses.
const USE: Id = 99;

impl Sources for TwoLines {
    fn line(&self, _: &str, line: u32) -> Option<String> {
        Some(match line {
            1 => "a[i] = malloc(n);".to_owned(),
            2 => "b[i] = malloc(n);".to_owned(),
            _ => return None,
        })
    }
    fn cause(&self, _: &[Frame], _: Option<&str>) -> TouchCause {
        TouchCause::Unknown
    }
    fn user_frame(&self, frames: &[Frame]) -> Option<usize> {
        (!frames.is_empty()).then_some(0)
    }
    fn variable(&self, _: &str, line: u32, _: &str, _: usize) -> Option<String> {
        Some(if line == 1 { "a[i]" } else { "b[i]" }.to_owned()).filter(|_| line <= 2)
    }
}

/// Where the rows of matrices lie, and who allocated them.
struct Layout {
    /// Matrices allocated in turn.
    matrices: u64,
    /// Each thread allocates its own rows.
    is_parallel: bool,
}

impl Layout {
    fn owner(row: u64) -> usize {
        usize::try_from(row * THREADS as u64 / ROWS).unwrap()
    }

    /// Address and allocating thread of a row.
    fn row(&self, matrix: u64, row: u64) -> (u64, usize) {
        let thread = if self.is_parallel { Self::owner(row) } else { 0 };
        let base = if thread == 0 { HEAP } else { ARENAS + (thread as u64) * (64 << 20) };
        let index = if self.is_parallel { row % (ROWS / THREADS as u64) } else { row };
        (base + (index * self.matrices + matrix) * STEP, thread)
    }
}

/// The stack of a site: a leaf on a line, and an outer frame that only this stack has.
fn site(id: Id, line: u32) -> (Id, Site) {
    let frame = |line: u32, address: u64| Frame { address, file: Some("a.c".into()), line: Some(line), ..Frame::default() };
    (id, Site { id, process: 1, frames: vec![frame(line, 0x1000 * u64::from(line)), frame(100, 0x10_0000 + id as u64)] })
}

fn profile(seed: u64, layout: &Layout) -> Profile {
    let mut random = Random(seed);
    let mut profile = Profile {
        processes: vec![Process { id: 1, pid: 10, parent: None, exe: None, born_ns: 0, died_ns: None }],
        threads: (0..THREADS as Id).map(thread).collect(),
        sites: (0..THREADS as Id)
            .flat_map(|t| (1..=6).map(move |line| site(10 * Id::from(line) + t, line)))
            .chain([site(USE, 90)])
            .collect(),
        evidence: vec![Evidence { source: "sample".into(), available: true, samples: 1, detail: String::new() }],
        ..Profile::default()
    };
    profile.meta.set("start_ns", "0");
    profile.meta.set("end_ns", &(10 * S).to_string());
    let mut left = [0.0; THREADS];
    for row in 0..ROWS {
        for matrix in 0..layout.matrices {
            let (address, thread) = layout.row(matrix, row);
            left[thread] -= ROW as f64;
            if left[thread] < 0.0 {
                left[thread] = -random.unit().ln() * MEAN as f64;
                profile.small_blocks.push(SmallBlock {
                    process: 1,
                    thread: thread as Id,
                    site: Some(10 * (1 + matrix as Id) + thread as Id),
                    call: "malloc".into(),
                    address,
                    bytes: ROW,
                    weight: MEAN as f64,
                    time_ns: 1 + row,
                });
            }
            if row % 8 == 0 {
                profile.first_touches.push(FirstTouch {
                    id: profile.first_touches.len() as Id + 1,
                    process: 1,
                    time_ns: 2 + row,
                    thread: thread as Id,
                    cpu: 0,
                    address,
                    weight: 4.0,
                    by_kernel: false,
                    site: Some(10 * (1 + matrix as Id) + thread as Id),
                    mapped_bytes: None,
                    node: None,
                });
            }
        }
    }
    for number in 0..4000u64 {
        let id = number as Id + 1;
        let row = random.below(ROWS);
        let thread = Layout::owner(row);
        profile.samples.push(TimerSample {
            id,
            thread: thread as Id,
            time_ns: S + number * MS,
            cpu: 0,
            cpu_ns: number * MS,
            weight: 1.0,
            site: Some(USE),
            state: SampleState::Computing,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        });
        profile.sampled_accesses.extend((0..layout.matrices).map(|matrix| SampledAccess {
            sample: id,
            object: NO_OBJECT,
            address: layout.row(matrix, row).0 + 8 * random.below(ROW / 8),
            bytes: 8,
            words: 1.0,
            kind: AccessKind::Read,
            site: Some(USE),
            stride: Some(8),
        }));
        // Memory that holds no small blocks.
        profile.sampled_accesses.push(SampledAccess {
            sample: id,
            object: NO_OBJECT,
            address: HEAP - (1 << 30),
            bytes: 8,
            words: 1.0,
            kind: AccessKind::Read,
            site: Some(USE),
            stride: None,
        });
    }
    profile
}

fn analysed(layout: &Layout) -> Analysis {
    analyse(&profile(7, layout), &target(2), &TwoLines)
}

/// Check that rows which the main thread allocated one by one are one object with its owner's remote fraction, and that the number and size
/// of the rows are estimated.
#[test]
fn rows_of_one_matrix() {
    let analysis = analysed(&Layout { matrices: 1, is_parallel: false });
    let [pool] = analysis.objects.as_slice() else { panic!("{:?}", analysis.objects) };
    assert_eq!((pool.kind, pool.bytes, pool.partition), (ObjectKind::Pool, ROW, PartitionKind::Block));
    assert!(pool.total_bytes.abs_diff(ROWS * STEP) < 1 << 20, "{}", pool.total_bytes);
    assert!(pool.count.abs_diff(16_000) < 2_000, "{}", pool.count);
    let [finding] = analysis.findings.as_slice() else { panic!("{:?}", analysis.findings) };
    assert_eq!(finding.kind, FindingKind::SerialFirstTouch);
    assert!((finding.remote_fraction - 0.5).abs() < 0.05, "{finding:?}");
    assert!(finding.fix.contains("let each thread allocate and initialise"), "{}", finding.fix);
    let coverage = analysis.coverage.unwrap();
    assert!((coverage.elsewhere.unwrap() - 0.5).abs() < 0.01, "{coverage:?}");
    assert_eq!(analysis.unrecorded, None);
}

/// Check that rows which their users allocated, each in an arena of its own and by a stack of its own, are one well-placed object.
#[test]
fn rows_of_each_thread() {
    let analysis = analysed(&Layout { matrices: 1, is_parallel: true });
    let [pool] = analysis.objects.as_slice() else { panic!("{:?}", analysis.objects) };
    assert!(pool.judged && pool.remote_fraction.unwrap() < 0.02, "{pool:?}");
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
}

/// Check that rows of two matrices that were allocated in turn are one object of both.
#[test]
fn rows_of_two_matrices_in_turn() {
    let analysis = analysed(&Layout { matrices: 2, is_parallel: false });
    let names: Vec<&str> = analysis.findings.iter().map(|finding| finding.object_name.as_str()).collect();
    assert_eq!(names, ["a[i] and b[i]"]);
    assert!((analysis.findings[0].remote_fraction - 0.5).abs() < 0.05);
}

/// Check that rows which five lines allocate in turn are not judged: samples do not show which line's blocks are used.
#[test]
fn rows_of_many_matrices_in_turn() {
    let analysis = analysed(&Layout { matrices: 5, is_parallel: false });
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
    let reasons: Vec<String> = analysis.objects.iter().filter_map(|object| object.reason.as_ref().map(ToString::to_string)).collect();
    assert_eq!(reasons, ["5 lines allocate its blocks in turn, so samples do not show which line's blocks are used"]);
}

/// Check that one small array that all threads read, among the blocks of a whole program, is not taken for a use of all blocks: it stays in caches.
#[test]
fn one_block_of_a_pool_in_use() {
    let layout = Layout { matrices: 1, is_parallel: false };
    let mut profile = profile(7, &layout);
    let in_pool = profile.sampled_accesses.iter_mut().filter(|access| access.address >= HEAP);
    for (number, access) in in_pool.enumerate() {
        let row = if number % 50 == 0 { number as u64 * 3 % ROWS } else { 100 + number as u64 % 60 };
        access.address = layout.row(0, row).0;
    }
    let analysis = analyse(&profile, &Target { private_cache_bytes: 512 << 10, ..target(2) }, &TwoLines);
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
    let reasons: Vec<String> = analysis.objects.iter().filter_map(|object| object.reason.as_ref().map(ToString::to_string)).collect();
    let [reason] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert!(
        reason.starts_with("nearly all of its accesses go to ") && reason.ends_with("which fit in a core's cache (512 KiB)"),
        "{reason}"
    );
}

/// Check that an array of 16 KiB in the place of 8 rows, which all threads read and no sampled block covers, is not taken for a part of the rows.
#[test]
fn an_array_among_the_rows() {
    const READ: Id = 98;
    let layout = Layout { matrices: 1, is_parallel: true };
    let mut profile = profile(7, &layout);
    profile.sites.extend([site(READ, 80)]);
    let start = layout.row(0, 1000).0;
    profile.small_blocks.retain(|block| !(start..start + 8 * STEP).contains(&block.address));
    let read = |sample: &TimerSample| SampledAccess {
        sample: sample.id,
        object: NO_OBJECT,
        address: start + 8 * (sample.id as u64 * 7919 % 2048),
        bytes: 8,
        words: 1.0,
        kind: AccessKind::Read,
        site: Some(READ),
        stride: Some(8),
    };
    let reads: Vec<SampledAccess> = profile.samples.iter().map(read).collect();
    profile.sampled_accesses.extend(reads);
    let analysis = analyse(&profile, &target(2), &TwoLines);
    let [pool] = analysis.objects.as_slice() else { panic!("{:?}", analysis.objects) };
    assert!(pool.judged && pool.remote_fraction.unwrap() < 0.02, "{pool:?}");
    let coverage = analysis.coverage.unwrap();
    assert!((coverage.elsewhere.unwrap() - 2.0 / 3.0).abs() < 0.01, "{coverage:?}");
}

/// Check that blocks of a memory that recorded objects took over are not counted, and that malformed rows do no harm.
#[test]
fn blocks_that_are_gone() {
    let mut profile = profile(7, &Layout { matrices: 1, is_parallel: false });
    for block in &mut profile.small_blocks {
        block.weight = [f64::NAN, f64::INFINITY, -1.0, 0.0][(block.address / STEP % 4) as usize];
    }
    profile.small_blocks[3].address = u64::MAX;
    profile.small_blocks[4].bytes = u64::MAX;
    profile.small_blocks[5].process = 99;
    let _ = analyse(&profile, &target(2), &TwoLines);
    profile.objects.push(Object {
        id: 5,
        process: 1,
        kind: ObjectKind::Heap,
        call: Some("malloc".into()),
        name: None,
        address: HEAP,
        bytes: ROWS * STEP,
        born_ns: S / 2,
        died_ns: None,
        site: None,
        thread: Some(0),
    });
    let analysis = analyse(&profile, &target(2), &TwoLines);
    assert!(analysis.objects.iter().all(|object| object.kind != ObjectKind::Pool), "{:?}", analysis.objects);
}
