//! Chunks that are dealt out in turn (`schedule(static, chunk)`), where the kernel records one first touch in 31.

use crate::simulated::*;
use firsttouch_analysis::analyse;
use firsttouch_model::TouchCause;

/// Check that chunks which each thread touches first and uses are well placed: records at equal distances may show long runs of one thread where chunks
/// of several lie between, and pages at the end of a chunk are not the next thread's.
#[test]
fn records_at_equal_distances() {
    for chunk in [32 << 10, 128 << 10] {
        let chunks = || Who::Cyclic(0, 4, chunk);
        let mut profile = World::new(4, vec![Thing::new("a", 64, chunks(), chunks())]).profile(3);
        profile.first_touches.sort_by_key(|touch| touch.address);
        // All of the first pages were recorded, before the storm.
        let dense = profile.first_touches.len() / 20;
        let mut number = 0..;
        profile.first_touches.retain(|_| number.next().is_some_and(|at| at < dense || at % 31 == 0));
        profile.first_touches.iter_mut().skip(dense).for_each(|touch| touch.weight = 31.0);
        let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
        let (value, [low, high]) =
            (analysis.objects[0].remote_fraction.expect("a figure"), analysis.objects[0].remote_interval.expect("a figure"));
        assert!(low < 0.005 && value < 0.02 && high < 0.2, "{chunk}: {value} [{low}, {high}]");
        assert_eq!(analysis.findings.len(), 0, "{chunk}");
    }
}

/// Check that three arrays in one mapping, one initialised by one thread and two in blocks, are not taken for pages in turn: a stretch with a record of
/// each page shows all phases of the distance between the other records.
#[test]
fn a_dense_stretch_shows_no_period() {
    /// Pages of a block, and of the stretch at the start of the third array.
    const BLOCK: usize = 2048;
    const DENSE: usize = 1026;
    /// Each thread counts its own faults: where the first record of its block is. (Of a run of tests/programs/first_hour/static_arrays.c.)
    const FIRST: [usize; 9] = [26, 1, 3, 5, 20, 26, 28, 30, 20];
    let blocks = || Who::Block(0, 4);
    let used = Who::Arrays(vec![blocks(), blocks(), blocks()]);
    for shift in 0..4 {
        let touched = Who::Arrays(vec![blocks(), blocks(), Who::One(0)]);
        let mut profile = World::new(4, vec![Thing::new("a", 96, touched, used.clone())]).profile(3);
        profile.first_touches.sort_by_key(|touch| touch.address);
        let mut page = 0..;
        profile.first_touches.retain_mut(|touch| {
            let page = page.next().unwrap_or(0);
            let block = (page / BLOCK).min(8);
            let is_dense = (8 * BLOCK..8 * BLOCK + DENSE).contains(&page);
            touch.weight = if is_dense { 1.0 } else { 31.0 };
            is_dense || page % 31 == (FIRST[block] + shift * (block / 4)) % 31
        });
        let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
        let a = &analysis.objects[0];
        let (value, [low, high]) = (a.remote_fraction.expect("a figure"), a.remote_interval.expect("a figure"));
        assert!((low..=high).contains(&(1.0 / 6.0)) && (value - 1.0 / 6.0).abs() < 0.05, "{shift}: {value} [{low}, {high}]");
        assert_eq!(analysis.findings.len(), 1, "{shift}: a third of the memory is misplaced");
    }
}
