//! Names that contain control characters.

use super::{PLAIN, context, serial, text};
use firsttouch_analysis::CodeLocation;
use firsttouch_model::finding::FindingKind;
use firsttouch_report::Context;

/// Check that a hostile name cannot reach the terminal, and that commands to copy are quoted.
#[test]
fn hostile_names_are_harmless() {
    let mut analysis = serial();
    let evil = "\u{1b}]0;owned\u{7}\r\n";
    analysis.command = vec![evil.into()];
    analysis.machine.name = evil.into();
    analysis.findings[0].object_name = evil.into();
    analysis.findings[0].kind = FindingKind::SerialFirstTouch;
    analysis.objects[0].used_at[0].text = Some(evil.into());
    analysis.objects[0].allocated_at = Some(CodeLocation { file: Some(evil.into()), line: Some(1), ..CodeLocation::default() });
    analysis.not_judged[0].name = evil.into();
    analysis.notes = vec![evil.into()];
    let options = ["--machine", "epyc-7451x2"].map(str::to_owned).to_vec();
    let context = Context { profile: "my run's.ftp".into(), options, ..context() };
    let text = text(&analysis, &context, PLAIN);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(text.contains(r"firsttouch report 'my run'\''s.ftp' --machine epyc-7451x2 --verbose"), "{text}");
}
