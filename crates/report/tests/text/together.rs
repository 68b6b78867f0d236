//! Findings on several objects that were judged together.

use super::{PLAIN, context, matrix_a, recommended, serial, text};
use firsttouch_analysis::{Analysis, Finding, ObjectView};
use firsttouch_model::finding::FindingKind;
use firsttouch_report::{CheckJson, check_sarif};
use std::collections::BTreeSet;
use std::path::Path;

/// Check that the report names all objects of a finding, adds up their sizes, and says whose lines it shows.
#[test]
fn all_objects_are_named() {
    let mut analysis = serial();
    let names: Vec<String> = (0..14).map(|number| format!("v{number}")).collect();
    analysis.objects = names.iter().zip(7..).map(|(name, id)| ObjectView { id, name: name.clone(), ..matrix_a() }).collect();
    analysis.findings[0].object_name = "v0, v1, v2 and 11 more".into();
    analysis.findings[0].together = (8..21).collect();
    let report = text(&analysis, &context(), PLAIN);
    assert!(report.contains("1. v0, v1, v2 and 11 more   41.7 GiB   serial-first-touch"), "{report}");
    assert!(report.contains("   together       v0 (2.98 GiB), v1 (2.98 GiB), "), "{report}");
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("v11 (2.98 GiB), and 2 more; the lines above are those of v0"), "{report}");
    assert!(!words.contains("v12 ("), "{report}");
}

/// An analysis with findings of one kind, each on these objects: (id, name, number among the objects of this name).
fn joint(findings: &[&[(i64, &str, usize)]]) -> Analysis {
    let one = |objects: &&[(i64, &str, usize)]| {
        let names: Vec<&str> = objects.iter().map(|object| object.1).collect();
        let ids: Vec<i64> = objects.iter().map(|object| object.0).collect();
        let [object, together @ ..] = ids.as_slice() else { panic!("an object") };
        let about = (Some(*object), together.to_vec(), names.join(", "));
        Finding {
            kind: FindingKind::SerialFirstTouch,
            object: about.0,
            together: about.1,
            object_name: about.2,
            ..serial().findings[0].clone()
        }
    };
    let view = |&(id, name, ordinal): &(i64, &str, usize)| ObjectView { id, name: name.into(), ordinal, ..matrix_a() };
    let objects = findings.iter().flat_map(|objects| objects.iter().map(view)).collect();
    Analysis { objects, findings: findings.iter().map(one).collect(), ..serial() }
}

/// The fingerprints and messages of all results.
fn results(analysis: &Analysis) -> Vec<(String, String)> {
    let recommendations = recommended(analysis);
    let log = check_sarif(&CheckJson::new(analysis, &recommendations, &[], Path::new("/home/me"), None), "1.0.0");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let results = log["runs"][0]["results"].as_array().unwrap();
    results.iter().map(|one| (text(&one["partialFingerprints"]["object/v1"]), text(&one["message"]["text"]))).collect()
}

/// Check that each object of a finding keeps its fingerprint if another one is no longer judged with it, whatever its id and place in the
/// list, and that no two results share one, also where objects have the same name.
#[test]
fn fingerprints_are_of_objects() {
    let prints = |findings: &[&[(i64, &str, usize)]]| -> Vec<String> { results(&joint(findings)).into_iter().map(|one| one.0).collect() };
    let all = [(7, "u", 0), (8, "v", 0), (9, "w", 0), (10, "x", 0)];
    let before: BTreeSet<String> = prints(&[&all]).into_iter().collect();
    assert_eq!(before.len(), all.len());
    for leaves in 0..all.len() {
        let mut rest: Vec<_> = all.iter().map(|&(id, name, ordinal)| (id + 100, name, ordinal)).collect();
        let alone = rest.remove(leaves);
        rest.reverse();
        let after: BTreeSet<String> = prints(&[&rest]).into_iter().collect();
        assert!(after.is_subset(&before) && after.len() == 3, "{after:?}");
        assert_eq!(prints(&[&rest, &[alone]]).into_iter().collect::<BTreeSet<_>>(), before, "judged alone");
    }
    let same = prints(&[&[(1, "v", 0), (2, "w", 0)], &[(3, "v", 1), (4, "w", 1), (5, "v", 2)]]);
    assert_eq!(same, ["v", "w", "v#2", "w#2", "v#3"].map(|name| format!("serial-first-touch:{name}")));
    let (_, message) = &results(&joint(&[&all]))[0];
    assert!(message.starts_with("u: Thread 0 touched"), "{message}");
}
