//! How memory and the number of allocations grow when a profile is judged: four times as much of anything takes about four times as much.
//! Loops that allocate nothing are counted in unit tests (crates/analysis/src/work.rs).
#![allow(clippy::unwrap_used)]

use firsttouch_model::rows::Profile;
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest};
use firsttouch_profile::merge::merge_to;
use firsttouch_report::{Context, Style, text};
use firsttouch_scale::{Beside, By, Size, profile, write};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, which counts what all threads ask it for.
struct Counting;

/// What is counted is that of one test.
static ALONE: Mutex<()> = Mutex::new(());
static CALLS: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator does the work, with the arguments as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.dealloc(place, layout) }
    }
}

/// What a judgement took.
#[derive(Clone, Copy, Debug)]
struct Cost {
    allocations: usize,
    /// The most memory held at a time, with the profile, bytes.
    bytes: usize,
}

/// Judges a profile as `firsttouch report` does. Choosing placements reads the catalogue of machines, which is no part of the allocations.
fn judge(size: &Size, beside: Option<(Beside, usize)>) -> Cost {
    let before = HELD.load(Ordering::Relaxed);
    let mut profile: Profile = profile(size);
    if let Some((beside, count)) = beside {
        beside.add(&mut profile, size, count);
    }
    CALLS.store(0, Ordering::Relaxed);
    MOST.store(HELD.load(Ordering::Relaxed), Ordering::Relaxed);
    let analysed = AnalysedProfile::new(profile, &AnalysisRequest::default()).unwrap();
    let analysis = CALLS.load(Ordering::Relaxed);
    let recommendations = analysed.recommendations().unwrap();
    CALLS.store(analysis, Ordering::Relaxed);
    let context = Context {
        profile: "large.ftp".into(),
        options: Vec::new(),
        recorded_nodes: 1,
        heading: true,
        more: true,
        verbose: true,
        prefix: "",
    };
    let shown = text(&analysed.analysis, None, &recommendations, &context, Style { width: 120, colour: false });
    assert!(!shown.is_empty());
    Cost { allocations: CALLS.load(Ordering::Relaxed), bytes: MOST.load(Ordering::Relaxed) - before }
}

/// Check each kind of rows by itself. One test, because all threads of the process count together.
#[test]
fn costs_grow_with_profiles() {
    let _alone = ALONE.lock().unwrap();
    let size = |rows, threads, objects, by| Size { rows, threads, objects, by };
    let small = size(1500, 4, 5, By::Sample);
    let beside = |what: Beside, count: usize| (format!("{what:?}"), [(small, Some((what, count))), (small, Some((what, 4 * count)))]);
    let of_sizes = |name: &str, few: Size, many: Size| (name.to_owned(), [(few, None), (many, None)]);
    let cases = [
        of_sizes("rows of samples", size(6000, 4, 5, By::Sample), size(24_000, 4, 5, By::Sample)),
        of_sizes("rows of windows", size(6000, 4, 5, By::Watch), size(24_000, 4, 5, By::Watch)),
        of_sizes("rows and objects", size(6000, 4, 50, By::Sample), size(24_000, 4, 200, By::Sample)),
        of_sizes("rows and threads", size(3000, 16, 5, By::Sample), size(12_000, 64, 5, By::Sample)),
        beside(Beside::Chain, 1000),
        beside(Beside::LivingChain, 1000),
        beside(Beside::Processes, 300),
        beside(Beside::ProcessesWithObjects, 300),
        beside(Beside::Overlapping, 1000),
        beside(Beside::Nested, 500),
    ];
    for (name, [few, many]) in cases {
        let [few, many] = [few, many].map(|(size, beside)| judge(&size, beside));
        println!("{name}: {few:?}, {many:?}");
        for (what, few, many) in [("allocations", few.allocations, many.allocations), ("bytes", few.bytes, many.bytes)] {
            assert!(many <= 5 * few, "{name}: {few} {what}, and {many} for four times as much");
        }
    }
}

/// Check that merging takes no more memory the more ranks there are: they are read one after the other.
#[test]
fn merging_holds_few_ranks_at_a_time() {
    let _alone = ALONE.lock().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |rank: usize| folder.path().join(format!("rank-{rank}.ftp"));
    for rank in 0..16 {
        let mut one = profile(&Size { rows: 20_000, threads: 4, objects: 20, by: By::Sample });
        one.processes[0].pid = 1000 + i32::try_from(rank).unwrap();
        write(&one, &file(rank)).unwrap();
    }
    let most = |ranks: usize| {
        let files: Vec<_> = (0..ranks).map(file).collect();
        let before = HELD.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let merged = merge_to(&files, &folder.path().join(format!("merged-{ranks}.ftp"))).unwrap();
        assert_eq!(merged.parts.len(), ranks);
        MOST.load(Ordering::Relaxed) - before
    };
    let (few, many) = (most(4), most(16));
    // The rows that wait for the writer vary; four times as many ranks at once would take four times as much.
    assert!(many < 2 * few, "{few} bytes for 4 ranks, {many} for 16");
}
