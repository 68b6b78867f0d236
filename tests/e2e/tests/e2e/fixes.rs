// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fixes that are applied: each program is profiled, the changes of its report are made in a copy, and the copy is built and profiled. It prints
//! what the program printed, its build prints no warning, and the finding is gone. Where no change is certain to keep what a program computes,
//! the report must show none: the header says `fix = words`, or `fix = example` where the words have lines that are no change.
//!
//! The programs are those of tests/programs/fixes; with `FIRSTTOUCH_WHOLE_CORPUS` all of corpus/ too. (`corpus::` checks in every run that those
//! of corpus/ have a change or words, as their header says.)

use firsttouch_e2e::corpus::{Program, programs, programs_in};
use firsttouch_e2e::edits::{build_edited, edits_of};
use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::tool::{Firsttouch, temporary_directory};
use serde_json::Value;
use std::path::Path;

/// The samples of a short run can miss an object by chance.
const ATTEMPTS: usize = 3;

/// A profile of a command, and its report.
fn profile(firsttouch: &Firsttouch, command: &[String], folder: &Path) -> (Outcome, Value) {
    let file = folder.join("run.ftp");
    let _ = std::fs::remove_file(&file);
    let mut profile = firsttouch.profile(&file, &["--quiet"], command);
    let outcome = run(profile.env("OPENBLAS_NUM_THREADS", "1"));
    assert_eq!(outcome.status, 0, "{command:?}: {outcome:?}");
    (outcome, firsttouch.report_json(&file))
}

fn finding_on<'r>(report: &'r Value, object: &str) -> Option<&'r Value> {
    report["findings"].as_array()?.iter().find(|finding| finding["object_name"] == object)
}

/// The problems of one program's fix.
fn problems(firsttouch: &Firsttouch, program: &Program, command: &[String], folder: &Path) -> Vec<String> {
    let object = program.get("object").expect("an object");
    let mut first = profile(firsttouch, command, folder);
    for _ in 1..ATTEMPTS {
        if finding_on(&first.1, object).is_some() {
            break;
        }
        first = profile(firsttouch, command, folder);
    }
    let (before, report) = first;
    let Some(finding) = finding_on(&report, object) else {
        let names: Vec<&Value> = report["objects"].as_array().expect("objects").iter().map(|one| &one["name"]).collect();
        return vec![format!("no finding on {object}: {} {names:?}", report["findings"])];
    };
    let text = finding["fix"].as_str().unwrap_or_default();
    if let Some(problem) = program.fix_problem(finding) {
        return vec![problem];
    }
    if matches!(program.get("fix"), Some("words" | "example")) {
        return Vec::new();
    }
    let edits = edits_of(&report);
    let fixed = match build_edited(program, &edits, folder) {
        Ok(fixed) => fixed,
        Err(errors) => return vec![format!("the fix does not build without warnings: {text}\n{errors}")],
    };
    let mut left = String::new();
    for _ in 0..ATTEMPTS {
        let (after, report) = profile(firsttouch, &fixed, folder);
        if after.stdout != before.stdout {
            return vec![format!("{text}\nchanges the output: {} -> {}", before.stdout_text(), after.stdout_text())];
        }
        let Some(finding) = finding_on(&report, object) else { return Vec::new() };
        left = format!("{text}\nleaves the finding: {}", finding["message"]);
    }
    vec![left]
}

fn check(programs: Vec<Program>) {
    let Some(firsttouch) = Firsttouch::find("fixes") else { return };
    let (mut right, mut failures) = (0, Vec::new());
    for program in programs {
        let Some(command) = program.command() else { continue };
        let folder = temporary_directory();
        let found = problems(&firsttouch, &program, &command, folder.path());
        right += usize::from(found.is_empty());
        for problem in &found {
            eprintln!("fixes: {}: {problem}", program.name);
        }
        failures.extend(found.into_iter().map(|problem| format!("{}: {problem}", program.name)));
    }
    eprintln!("fixes: {right} programs right, {} wrong", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn shapes() -> Vec<Program> {
    let only = std::env::var("FIRSTTOUCH_FIXES").unwrap_or_default();
    let all = programs_in(&workspace_root().join("tests/programs/fixes"));
    all.into_iter().filter(|program| only.is_empty() || only.split(' ').any(|name| name == program.name)).collect()
}

/// Check the fixes of all shapes.
#[test]
fn fixes_keep_the_output_and_remove_the_finding() {
    check(shapes());
}

/// Check that every program of the corpus with a defect says what its fix is, and the others have none.
#[test]
fn the_corpus_says_its_fixes() {
    for program in programs() {
        assert_eq!(program.get("fix").is_some(), program.get("finding") != Some("none"), "{}", program.name);
    }
}

/// Check the fixes of the corpus. Each program runs for two seconds, twice: `FIRSTTOUCH_WHOLE_CORPUS`.
#[test]
fn fixes_of_the_corpus() {
    if std::env::var_os("FIRSTTOUCH_WHOLE_CORPUS").is_some() {
        check(programs().into_iter().filter(|program| program.get("finding") != Some("none")).collect());
    }
}
