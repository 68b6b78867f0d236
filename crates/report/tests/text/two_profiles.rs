//! Two profiles compared.

use super::{PLAIN, matrix_a, serial};
use firsttouch_analysis::diff::{MatchedBy, diff};
use firsttouch_analysis::{Analysis, Assessed, Coverage, NotJudgedReason, ObjectView};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_report::diff_text;

fn compared(before: &Analysis, after: &Analysis) -> (Vec<Option<MatchedBy>>, String) {
    let assessed = |analysis| Assessed { analysis, prediction: None };
    let diff = diff(assessed(before), assessed(after));
    (diff.objects.iter().map(|object| object.matched_by).collect(), diff_text(&diff, "a.ftp", "b.ftp", PLAIN))
}

/// Check that the object of a finding is found in the other profile where its call path, and with it its name, has changed; that objects which may
/// be either are matched by size or not at all; and that an object which may be there is not said to be not judged.
#[test]
fn another_call_path() {
    let before = serial();
    let moved = |id, name: &str, bytes| {
        let mut object = ObjectView { id, name: name.into(), total_bytes: bytes, remote_fraction: Some(0.0), ..matrix_a() };
        object.remote_interval = Some([0.0, 0.02]);
        object.allocated_at.as_mut().unwrap().line = Some(77);
        object
    };
    let after = |objects| Analysis { objects, findings: Vec::new(), ..serial() };
    let own = before.objects[0].total_bytes;
    let (matched, shown) = compared(&before, &after(vec![moved(1, "A (of g, dgemv.c:90)", 5)]));
    assert_eq!(matched, [Some(MatchedBy::Variable)]);
    assert!(shown.contains("Findings gone") && !shown.contains("judges no"), "{shown}");
    let line = before.objects[0].allocated_at.as_ref().and_then(|place| place.line).unwrap();
    assert!(shown.contains(&format!(":77 (before: {line})")), "{shown}");
    let (matched, _) = compared(&before, &after(vec![moved(1, "A (dgemv.c:90)", 5), moved(2, "A (dgemv.c:91)", own)]));
    assert_eq!(matched.iter().flatten().collect::<Vec<_>>(), [&MatchedBy::Variable]);
    let (matched, shown) = compared(&before, &after(vec![moved(1, "A (dgemv.c:90)", 5), moved(2, "A (dgemv.c:91)", 6)]));
    assert_eq!(matched, [None, None, None]);
    let sentence = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(sentence.contains("one of 2 of this name in the other profile, which is not known"), "{shown}");
    let (_, shown) = compared(&before, &after(Vec::new()));
    let sentence = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(sentence.contains("the other profile judges no object of this name or place"), "{shown}");
}

/// Check that a profile that holds a part of its run is named, whichever it is.
#[test]
fn parts_of_runs_are_named() {
    let (whole, cut) = (serial(), Analysis { unfinished: true, ..serial() });
    let full_disk = Analysis { write_failure: Some(("the disk is full".into(), 3)), ..serial() };
    let shown = |before: &Analysis, after: &Analysis| compared(before, after).1.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!shown(&whole, &whole).contains("not whole"));
    assert!(shown(&cut, &whole).contains("The first profile is not whole: 'firsttouch report' says why."));
    assert!(shown(&whole, &full_disk).contains("The second profile is not whole"));
}

/// Check that no difference is significant where one of the two judged hardly any of its memory.
#[test]
fn what_was_not_judged_is_not_compared() {
    let before = Analysis { remote_fraction: Some(0.5), remote_interval: Some([0.45, 0.55]), ..serial() };
    let (remote_fraction, remote_interval) = (Some(0.0), Some([0.0, 0.02]));
    let object = ObjectView { judged: false, reason: Some(NotJudgedReason::NotSampled), remote_fraction, remote_interval, ..matrix_a() };
    let mut after = Analysis { remote_fraction, remote_interval, findings: Vec::new(), objects: vec![object], ..serial() };
    let judged = Coverage { judged: 1.0, cached: 0.0, not_judged: 0.0, elsewhere: None, evidence: EvidenceSource::Sample };
    after.coverage = Some(judged.clone());
    let words = |after: &Analysis| compared(&before, after).1.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&after).contains("the difference is significant") && !words(&after).contains("NOT JUDGED"), "{}", words(&after));
    after.coverage = Some(Coverage { judged: 0.0, not_judged: 1.0, ..judged });
    assert!(words(&after).contains("The second profile is NOT JUDGED") && !words(&after).contains("is significant"), "{}", words(&after));
    assert!(!words(&after).contains(", significant"), "{}", words(&after));
}

/// Check that objects with next to none of the accesses are counted, and not listed.
#[test]
fn objects_that_do_not_matter_are_counted() {
    let small = |id| {
        let name = format!("small{id}");
        ObjectView {
            id,
            name,
            total_bytes: id as u64,
            access_share: Some(0.002),
            remote_fraction: None,
            remote_interval: None,
            ..matrix_a()
        }
    };
    let mut before = serial();
    before.objects.extend((10..15).map(small));
    let (matched, shown) = compared(&before, &serial());
    assert_eq!(matched.len(), before.objects.len());
    assert!(shown.contains("and 5 objects with fewer accesses") && !shown.contains("small12"), "{shown}");
    // Without shares, nothing says that an object does not matter.
    before.objects.iter_mut().for_each(|object| object.access_share = None);
    let (_, shown) = compared(&before, &serial());
    assert!(shown.contains("small12"), "{shown}");
}
