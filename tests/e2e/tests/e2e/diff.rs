// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch diff`: the differences between two profiles, and which of them may be chance.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::recorded::recorded;
use firsttouch_e2e::skip::lacks_tools;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, temporary_directory, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn diff(firsttouch: &Firsttouch, words: &[&str]) -> Outcome {
    run(&mut firsttouch.command([&["diff"], words].concat()))
}

fn json(firsttouch: &Firsttouch, words: &[&str]) -> Value {
    let outcome = diff(firsttouch, &[words, &["--json"]].concat());
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let json: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
    assert_eq!(json["schema"], "firsttouch.diff/1");
    json
}

/// Compare a repaired program with its earlier version, and a profile with itself: check which differences are significant, which findings
/// are gone or new, that text and JSON agree, and that a report can replace its profile.
#[test]
fn repaired_programs_differ() {
    let Some(firsttouch) = Firsttouch::find("repaired_programs_differ") else { return };
    let folder = temporary_directory();
    let [serial, parallel] = ["dgemv_serial", "dgemv_parallel"].map(|name| recorded(&firsttouch, name, folder.path()));
    let (serial, parallel) = (text(&serial), text(&parallel));

    let found = json(&firsttouch, &[serial, parallel]);
    assert_eq!(found["significant"], true, "{found:#}");
    assert!(found["remote_fraction"]["difference"].as_f64().expect("a number") < -0.3, "{found:#}");
    let high = found["remote_fraction"]["difference_interval"][1].as_f64().expect("a number");
    assert!(high < 0.0, "{found:#}");
    let gone = found["findings_gone"].as_array().expect("a list");
    assert!(
        gone.iter().any(|one| one["id"] == "serial-first-touch" && one["object_name"] == "A" && one["object_in_both"] == true),
        "{found:#}"
    );
    assert!(found["findings_new"].as_array().is_some_and(Vec::is_empty), "{found:#}");
    let matrix = found["objects"].as_array().expect("objects").iter().find(|one| one["name"] == "A").expect("A");
    assert!(
        matrix["in_profiles"] == "both" && matrix["matched_by"] == "line" && matrix["remote_fraction"]["significant"] == true,
        "{matrix:#}"
    );
    // The commands differ in one word.
    assert!(found["doubts"][0].as_str().is_some_and(|doubt| doubt.contains("The commands differ")), "{found:#}");

    let back = json(&firsttouch, &[parallel, serial]);
    assert!(back["findings_new"].as_array().is_some_and(|list| !list.is_empty()) && back["significant"] == true, "{back:#}");

    let same = json(&firsttouch, &[serial, serial]);
    assert_eq!((&same["significant"], &same["remote_fraction"]["difference"]), (&Value::from(false), &Value::from(0.0)), "{same:#}");
    for list in ["findings_gone", "findings_new", "doubts"] {
        assert!(same[list].as_array().is_some_and(Vec::is_empty), "{list}: {same:#}");
    }

    let shown = diff(&firsttouch, &[serial, parallel]);
    let words = shown.stdout_text();
    assert!(words.contains("Fewer accesses are remote in the second: the difference is significant (95 %"), "{words}");
    assert!(words.contains("Findings gone") && !words.contains("Findings that are new") && !words.contains('\u{1b}'), "{words}");
    assert!(words.lines().all(|line| line.chars().count() <= 100), "{words}");
    let same = diff(&firsttouch, &[serial, serial]).stdout_text();
    assert!(same.contains("do not differ significantly: the difference may be chance"), "{same}");

    reports(&firsttouch, folder.path(), serial, parallel);
}

/// Check that a report can replace its profile, for the machine of the report.
fn reports(firsttouch: &Firsttouch, folder: &Path, serial: &str, parallel: &str) {
    let report = folder.join("before.json");
    std::fs::write(&report, firsttouch.report(Path::new(serial), &["--json"]).stdout).expect("a file");
    let (of_report, of_profile) = (json(firsttouch, &[text(&report), parallel]), json(firsttouch, &[serial, parallel]));
    assert_eq!(of_report["remote_fraction"], of_profile["remote_fraction"]);
    let other = diff(firsttouch, &[text(&report), parallel, "--machine", "virtual:4"]);
    assert_clear_error(&other, &[1], &["virtual:2", "virtual:4"]);
    let described = json(firsttouch, &[serial, parallel, "--machine", "xeon-e5620x2"]);
    assert_eq!(described["slowdown"]["significant"], true, "{:#}", described["slowdown"]);
}

/// Check that a file that is not a profile is an error that names the file.
#[test]
fn damaged_files_are_refused() {
    let Some(firsttouch) = Firsttouch::find("damaged_files_are_refused") else { return };
    let folder = temporary_directory();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path
    };
    let damaged = [
        (file("empty.ftp", b""), "neither a profile nor a report"),
        (file("words.ftp", b"hello"), "neither a profile nor a report"),
        (file("cut.ftp", b"SQLite format 3\0\x10\0"), "cut.ftp"),
        (file("other.json", b"{\"schema\": \"firsttouch.map/1\"}"), "neither a profile nor a report"),
        (folder.path().join("none.ftp"), "No such file"),
    ];
    for (path, words) in damaged {
        assert_clear_error(&diff(&firsttouch, &[text(&path), text(&path)]), &[1], &[text(&path), words]);
    }
    assert_clear_error(&diff(&firsttouch, &["a.ftp", "b.ftp", "--pin", "9x"]), &[2], &["9x"]);
    assert_eq!(diff(&firsttouch, &["a.ftp"]).status, 2);
}

/// Check that variables keep their names when the source is changed after the run, so that profiles before and after a change compare.
#[test]
fn names_outlive_their_source() {
    const TEST: &str = "names_outlive_their_source";
    let Some(firsttouch) = Firsttouch::find(TEST) else { return };
    if lacks_tools(TEST, &["gcc"]) {
        return;
    }
    let folder = temporary_directory();
    let (source, program, file) = (folder.path().join("loop.c"), folder.path().join("loop"), folder.path().join("a.ftp"));
    let words = std::fs::read_to_string(workspace_root().join("corpus/serial_loop.c")).expect("a source");
    std::fs::write(&source, &words).expect("a source");
    let built = run(Command::new("gcc").args(["-O2", "-g", "-fopenmp"]).arg(&source).arg("-o").arg(&program));
    assert_eq!(built.status, 0, "{built:?}");
    assert_eq!(run(&mut firsttouch.profile(&file, &[], &[&program])).status, 0);
    std::fs::write(&source, format!("// A line more.\n{words}")).expect("a source");
    let report = firsttouch.report_json(&file);
    let names: Vec<&str> = report["objects"].as_array().expect("objects").iter().filter_map(|object| object["name"].as_str()).collect();
    assert!(names.contains(&"a"), "{names:?}");
}
