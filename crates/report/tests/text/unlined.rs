//! Advice on code without lines in a program that has lines.

use super::{PLAIN, context, serial, text};
use firsttouch_analysis::CodeLocation;

/// Check that code without lines is a matter of the part of the program it is, and no matter if it makes few of the accesses.
#[test]
fn only_what_lacks_lines_is_named() {
    let shown = |share: f64| {
        let mut analysis = serial();
        let used = &mut analysis.objects[0].used_at;
        used[0].share = 1.0 - share;
        let nameless = CodeLocation { file: None, line: None, text: None, function: Some("memcpy_impl".into()), share, ..used[0].clone() };
        used.push(nameless);
        text(&analysis, &context(), PLAIN).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(!shown(0.05).contains("no line numbers"), "{}", shown(0.05));
    let expected = "- Some code of dgemv (memcpy_impl) has no line numbers; compiling that part with -g too would show them.";
    assert!(shown(0.4).contains(expected), "{}", shown(0.4));
}
