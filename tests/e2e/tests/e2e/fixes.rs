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
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tempfile::TempDir;

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

/// A program whose report has a change of the source.
struct Changed {
    program: Program,
    object: String,
    before: Outcome,
    text: String,
    edits: Vec<Value>,
    folder: TempDir,
}

/// What the report of a program says, and what is wrong with that. `None` if it needs no change of the source.
fn report_of(firsttouch: &Firsttouch, program: Program, command: &[String]) -> Result<Option<Changed>, String> {
    let object = program.get("object").expect("an object").to_owned();
    let folder = temporary_directory();
    let mut first = profile(firsttouch, command, folder.path());
    for _ in 1..ATTEMPTS {
        if finding_on(&first.1, &object).is_some() {
            break;
        }
        first = profile(firsttouch, command, folder.path());
    }
    let (before, report) = first;
    let Some(finding) = finding_on(&report, &object) else {
        let names: Vec<&Value> = report["objects"].as_array().expect("objects").iter().map(|one| &one["name"]).collect();
        return Err(format!("no finding on {object}: {} {names:?}", report["findings"]));
    };
    let text = finding["fix"].as_str().unwrap_or_default().to_owned();
    if let Some(problem) = program.fix_problem(finding) {
        return Err(problem);
    }
    if matches!(program.get("fix"), Some("words" | "example")) {
        return Ok(None);
    }
    let edits = edits_of(&report);
    Ok(Some(Changed { program, object, before, text, edits, folder }))
}

/// Builds the changed copies, as many at a time as there are CPUs.
fn build(changed: &[Changed]) -> Vec<Result<Vec<String>, String>> {
    let (next, built) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        while let Some((index, one)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|index| Some((index, changed.get(index)?))) {
            let command = build_edited(&one.program, &one.edits, one.folder.path())
                .map_err(|errors| format!("the fix does not build without warnings: {}\n{errors}", one.text));
            built.lock().expect("no panic").insert(index, command);
        }
    };
    thread::scope(|scope| (0..thread::available_parallelism().map_or(1, usize::from)).for_each(|_| drop(scope.spawn(work))));
    built.into_inner().expect("no panic").into_values().collect()
}

/// What is wrong with a changed program.
fn problem(firsttouch: &Firsttouch, Changed { object, before, text, folder, .. }: &Changed, fixed: &[String]) -> Option<String> {
    let mut left = String::new();
    for _ in 0..ATTEMPTS {
        let (after, report) = profile(firsttouch, fixed, folder.path());
        if after.stdout != before.stdout {
            return Some(format!("{text}\nchanges the output: {} -> {}", before.stdout_text(), after.stdout_text()));
        }
        let finding = finding_on(&report, object)?;
        left = format!("{text}\nleaves the finding: {}", finding["message"]);
    }
    Some(left)
}

fn check(programs: Vec<Program>) {
    let Some(firsttouch) = Firsttouch::find("fixes") else { return };
    let (mut right, mut failures, mut changed) = (0, Vec::new(), Vec::new());
    let fails = |failures: &mut Vec<String>, name: &str, problem: &str| {
        eprintln!("fixes: {name}: {problem}");
        failures.push(format!("{name}: {problem}"));
    };
    for program in programs {
        let Some(command) = program.command() else { continue };
        let name = program.name.clone();
        match report_of(&firsttouch, program, &command) {
            Ok(None) => right += 1,
            Ok(Some(one)) => changed.push(one),
            Err(problem) => fails(&mut failures, &name, &problem),
        }
    }
    // Nothing is profiled while compilers run.
    for (one, built) in changed.iter().zip(build(&changed)) {
        match built.map_or_else(Some, |fixed| problem(&firsttouch, one, &fixed)) {
            None => right += 1,
            Some(problem) => fails(&mut failures, &one.program.name, &problem),
        }
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
