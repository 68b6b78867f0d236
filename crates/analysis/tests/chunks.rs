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
