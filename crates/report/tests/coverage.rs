//! Which part of the accesses a report's verdicts cover.

use crate::text::{PLAIN, context, serial, text, well_placed};
use firsttouch_analysis::{Analysis, Coverage, NotJudged, NotJudgedReason, ObjectView};

/// Check that the report says which part of the accesses its verdicts cover, and that a small part gives no all-clear.
#[test]
fn coverage_is_said() {
    let covering_of = |judged: f64, analysis: Analysis| {
        let coverage = Coverage { judged, cached: 0.03, not_judged: 0.96 - judged, elsewhere: Some(0.01), evidence: "sample".into() };
        text(&Analysis { coverage: Some(coverage), ..analysis }, &context(), PLAIN).replace('\n', " ")
    };
    let covering = |judged| covering_of(judged, well_placed());
    let most = covering(0.95);
    assert!(most.contains("No finding: 1.2 % of accesses would be remote [0.3, 2.1], and no judged object is misplaced."), "{most}");
    let sentence = "The judged objects receive 95 % of the accesses seen, objects that fit in a core's cache 3.0 %, objects not judged 1.0 %, \
                    memory of no recorded object 1.0 %.";
    assert!(most.contains(sentence), "{most}");
    let little = covering(0.4);
    assert!(little.contains("NOT JUDGED: the judged objects receive 40 % of the accesses seen. As far as seen, 1.2 %"), "{little}");
    let unknown =
        "49 % of accesses would be remote [47, 52] as far as known: 36 % of the accesses seen are to objects that were not judged";
    let partly = covering_of(0.6, serial());
    assert!(partly.contains(unknown), "{partly}");
    assert!(!covering_of(0.9, serial()).contains("as far as known"));
}

/// Check that a program whose remote accesses go to an object that was not judged is not called well placed, and that one is whose judged objects
/// explain them.
#[test]
fn remote_accesses_to_unjudged_objects_are_no_all_clear() {
    let remote = |judged: bool| {
        let mut analysis = well_placed();
        (analysis.remote_fraction, analysis.remote_interval) = (Some(0.29), Some([0.26, 0.32]));
        (analysis.objects[0].judged, analysis.objects[0].access_share) = (judged, Some(0.39));
        (analysis.objects[0].remote_fraction, analysis.objects[0].policy) = (Some(0.75), Some("interleave:0-1".to_owned()));
        let (cached, elsewhere) = (0.0, Some(0.01));
        analysis.coverage = Some(Coverage { judged: 0.6, cached, not_judged: 0.39, elsewhere, evidence: "sample".into() });
        text(&analysis, &context(), PLAIN).replace('\n', " ")
    };
    let open = remote(false);
    assert!(
        open.contains("NOT JUDGED: [26, 32] % of the accesses would be remote, most of them to objects that were not judged"),
        "{open}"
    );
    assert!(!open.contains("No finding"), "{open}");
    let explained = remote(true);
    assert!(explained.contains("No finding: 29 % of accesses would be remote"), "{explained}");
}

/// Check that an object with a substantial share of the accesses that was not judged is named by itself, also one of a library; that an all-clear
/// says which part is judged; and that the verdict is no all-clear if the object alone may make much remote.
#[test]
fn heavy_objects_that_are_not_judged() {
    let with = |share: f64, remote_interval: Option<[f64; 2]>| {
        let mut analysis = well_placed();
        let reason = NotJudgedReason::TouchesSparse { records: 0, period: 31, pages: 16, page_bytes: 2 << 20 };
        analysis.not_judged.push(NotJudged {
            id: 99,
            name: "buffer of libblas.so".to_owned(),
            bytes: 32 << 20,
            count: 1,
            reason: reason.clone(),
        });
        analysis.objects.push(ObjectView {
            id: 99,
            name: "buffer of libblas.so".to_owned(),
            library: Some("libblas.so".to_owned()),
            total_bytes: 32 << 20,
            access_share: Some(share),
            judged: false,
            reason: Some(reason),
            remote_fraction: None,
            remote_interval,
            ..analysis.objects[0].clone()
        });
        let judged = 0.7 - share;
        analysis.coverage = Some(Coverage { judged, cached: 0.1, not_judged: share, elsewhere: Some(0.2), evidence: "sample".into() });
        text(&analysis, &context(), PLAIN).replace('\n', " ")
    };
    let named = "buffer of libblas.so (32 MiB, 15 % of the accesses to recorded objects): too few of its first touches were recorded (0)";
    let open = with(0.15, None);
    assert!(open.contains("NOT JUDGED: buffer of libblas.so (12 % of the accesses seen) was not judged: too few of its first"), "{open}");
    assert!(open.contains(named), "{open}");
    let local = with(0.15, Some([0.0, 0.1]));
    assert!(local.contains("no judged object is misplaced (these receive 55 % of the accesses seen)."), "{local}");
    assert!(local.contains(named), "{local}");
    let light = with(0.04, None);
    assert!(light.contains("No finding") && !light.contains("recorded objects): too few of its"), "{light}");
}
