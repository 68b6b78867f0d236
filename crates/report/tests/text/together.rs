//! Findings on several objects that were judged together.

use super::{PLAIN, context, matrix_a, serial, text};
use firsttouch_analysis::ObjectView;

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
