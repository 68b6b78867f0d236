//! Code that the program generated while it ran.

use super::{PLAIN, context, serial, text};

/// Check that code which is in no file is neither called stripped nor to be compiled with -g.
#[test]
fn generated_code_without_names() {
    for module in ["[generated code]", "//anon"] {
        let mut analysis = serial();
        for place in &mut analysis.objects[0].used_at {
            (place.module, place.function, place.file, place.line, place.text) = (Some(module.into()), None, None, None, None);
        }
        let report = text(&analysis, &context(), PLAIN);
        assert!(report.contains("used           generated code (no perf map)  8 threads, each its own block\n"), "{report}");
        assert!(!report.contains("stripped") && !report.contains("with -g"), "{report}");
        // The name that a perf map gives.
        analysis.objects[0].used_at[0].function = Some("fill (fill.js:1)".into());
        let report = text(&analysis, &context(), PLAIN);
        assert!(report.contains("used           fill (fill.js:1) "), "{report}");
        assert!(!report.contains("has no names") && !report.contains("no line numbers"), "{report}");
    }
}
