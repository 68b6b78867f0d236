//! Several allocations of one line, some of which a single thread initialised.

use crate::simulated::*;
use firsttouch_analysis::{Analysis, analyse};
use firsttouch_model::TouchCause;

/// Arrays of one line that are touched thus and used in blocks, each touched at a line of its own.
fn analysed(touches: &[Who]) -> Analysis {
    let array = |touch: &Who| Thing { site: 100, ..Thing::new("f[k]", 16, touch.clone(), Who::Block(0, 4)) };
    let mut profile = World::new(4, touches.iter().map(array).collect()).profile(5);
    for (site, touch) in (1000..).zip(touches) {
        profile.sites.get_mut(&site).unwrap().frames[0].line = Some(if matches!(touch, Who::One(_)) { 7 } else { 9 });
    }
    analyse(&profile, &target(2), &FakeSources(TouchCause::Loop))
}

/// Check that the finding names the allocations that one thread touched, and the fix their line, not that of the others.
#[test]
fn some_allocations_are_initialised_by_one_thread() {
    let (one, all) = (Who::One(0), Who::Block(0, 4));
    let some = [one.clone(), all.clone(), all.clone(), one.clone(), all.clone(), all.clone()];
    let analysis = analysed(&some);
    assert_eq!(found(&analysis), [("f[k]".to_owned(), "serial-first-touch".to_owned())]);
    let (finding, touch) = (&analysis.findings[0], &analysis.objects[0].first_touch);
    assert_eq!((touch.serial_allocations, touch.of_misplaced_part), (Some(2), true));
    assert!(finding.message.starts_with("Of f[k] (6 allocations, 96 MiB), 2 were first touched by thread 0 alone"), "{}", finding.message);
    assert!(finding.message.contains("touch.c:7") && finding.fix.contains("touch.c:7"), "{finding:?}");
    assert!(!finding.message.contains("touch.c:9") && !finding.fix.contains("touch.c:9"), "{finding:?}");

    // Several threads touched some each, all were touched alike, or those that one thread touched are not what lies wrong.
    for touches in [
        vec![one.clone(), Who::One(3), all.clone(), all.clone()],
        vec![one.clone(); 4],
        vec![Who::Block(0, 2), Who::Block(0, 2), Who::Block(0, 2), one],
    ] {
        let analysis = analysed(&touches);
        assert!(analysis.objects.iter().all(|object| object.first_touch.serial_allocations.is_none()), "{touches:?}");
    }
}
