// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fixes that are applied: each program is profiled, the changes of its report are made in a copy, and the copy is built and profiled. It prints
//! what the program printed, its build prints no warning, and the finding is gone. Where no change is certain to keep what a program computes,
//! the report must show none: the header says `fix = words`, or `fix = example` where the words have lines that are no change.
//!
//! The programs are those of tests/programs/fixes; with `FIRSTTOUCH_WHOLE_CORPUS` all of corpus/ too. (`corpus::` checks in every run that those
//! of corpus/ have a change or words, as their header says.)

use firsttouch_e2e::corpus::{Program, programs, programs_in};
use firsttouch_e2e::edits::{build_crate, build_edited, build_library, edits_of, library_edits_of};
use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::side_by_side::side_by_side;
use firsttouch_e2e::tool::{Firsttouch, temporary_directory};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The samples of a short run can miss an object by chance.
const ATTEMPTS: usize = 3;
/// So many programs that are changed to call libfirsttouch are built and run; with `FIRSTTOUCH_WHOLE_CORPUS` all.
const LIBRARY_BUILDS: usize = 8;
/// Of each language one.
const LIBRARY_RUNS: usize = 5;
const FILE: &str = "run.ftp";
const CHANGES: &str = "changes the output";

/// Profiles a command, in the file `run.ftp` of the folder.
fn profile(firsttouch: &Firsttouch, command: &[String], folder: &Path) -> Outcome {
    let file = folder.join(FILE);
    let _ = std::fs::remove_file(&file);
    let mut profile = firsttouch.profile(&file, &["--quiet"], command);
    let outcome = run(profile.env("OPENBLAS_NUM_THREADS", "1"));
    assert_eq!(outcome.status, 0, "{command:?}: {outcome:?}");
    outcome
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

/// A program that was profiled, and its report.
struct Profiled {
    program: Program,
    object: String,
    command: Vec<String>,
    folder: TempDir,
    before: Option<Outcome>,
    report: Value,
}

impl Profiled {
    fn finding(&self) -> Option<&Value> {
        finding_on(&self.report, &self.object)
    }
}

/// Profiles the programs one after another, and then makes their reports, several at a time; again those without a finding.
fn profile_all(firsttouch: &Firsttouch, programs: Vec<Program>) -> Vec<Profiled> {
    let of = |program: Program| {
        let (command, object) = (program.command()?, program.get("object").expect("an object").to_owned());
        Some(Profiled { program, object, command, folder: temporary_directory(), before: None, report: Value::Null })
    };
    let mut all: Vec<Profiled> = programs.into_iter().filter_map(of).collect();
    for _ in 0..ATTEMPTS {
        let mut left: Vec<&mut Profiled> = all.iter_mut().filter(|one| one.finding().is_none()).collect();
        left.iter_mut().for_each(|one| one.before = Some(profile(firsttouch, &one.command, one.folder.path())));
        let files: Vec<PathBuf> = left.iter().map(|one| one.folder.path().join(FILE)).collect();
        let reports = side_by_side(&files, |file| firsttouch.report_json(file));
        left.into_iter().zip(reports).for_each(|(one, report)| one.report = report);
    }
    all
}

/// What the report of a program says, and what is wrong with that. `None` if it needs no change of the source.
fn report_of(profiled: Profiled) -> Result<Option<Changed>, String> {
    let Some(finding) = profiled.finding() else {
        let report = &profiled.report;
        let names: Vec<&Value> = report["objects"].as_array().expect("objects").iter().map(|one| &one["name"]).collect();
        return Err(format!("no finding on {}: {} {names:?}", profiled.object, report["findings"]));
    };
    let text = finding["fix"].as_str().unwrap_or_default().to_owned();
    if let Some(problem) = profiled.program.fix_problem(finding) {
        return Err(problem);
    }
    if matches!(profiled.program.get("fix"), Some("words" | "example")) {
        return Ok(None);
    }
    let edits = edits_of(&profiled.report);
    let Profiled { program, object, before, folder, .. } = profiled;
    Ok(Some(Changed { program, object, before: before.expect("it was profiled"), text, edits, folder }))
}

/// Builds the changed copies, as many at a time as there are CPUs.
fn build(changed: &[Changed]) -> Vec<Result<Vec<String>, String>> {
    side_by_side(changed, |one| {
        build_edited(&one.program, &one.edits, one.folder.path(), None)
            .map_err(|errors| format!("the fix does not build without warnings: {}\n{errors}", one.text))
    })
}

/// What is wrong with each of the changed programs, if something is. They are profiled as the first time; in `make test` every second one, and the
/// others only run.
fn problems(firsttouch: &Firsttouch, fixed: &[(&Changed, Vec<String>)]) -> Vec<Option<String>> {
    let mut problems: Vec<Option<String>> = fixed.iter().map(|_| Some(String::new())).collect();
    let is_whole = std::env::var_os("FIRSTTOUCH_WHOLE_CORPUS").is_some();
    for (at, (Changed { before, text, .. }, command)) in fixed.iter().enumerate().filter(|(at, _)| !is_whole && at % 2 == 1) {
        let after = run(Command::new(&command[0]).args(&command[1..]).env("OPENBLAS_NUM_THREADS", "1"));
        let is_same = (after.status, &after.stdout) == (0, &before.stdout);
        problems[at] = (!is_same).then(|| format!("{text}\n{CHANGES}: {} -> {after:?}", before.stdout_text()));
    }
    for _ in 0..ATTEMPTS {
        let mut left = Vec::new();
        for (at, (Changed { before, text, folder, .. }, command)) in fixed.iter().enumerate() {
            let is_open = problems[at].as_ref().is_some_and(|problem| !problem.contains(CHANGES));
            if is_open {
                let after = profile(firsttouch, command, folder.path());
                if after.stdout == before.stdout {
                    left.push(at);
                } else {
                    problems[at] = Some(format!("{text}\n{CHANGES}: {} -> {}", before.stdout_text(), after.stdout_text()));
                }
            }
        }
        let reports = side_by_side(&left, |at| firsttouch.report_json(&fixed[*at].0.folder.path().join(FILE)));
        for (at, report) in left.into_iter().zip(reports) {
            let Changed { object, text, .. } = fixed[at].0;
            problems[at] = finding_on(&report, object).map(|finding| format!("{text}\nleaves the finding: {}", finding["message"]));
        }
    }
    problems
}

/// A program whose report has a call of libfirsttouch.
struct Called {
    program: Program,
    before: String,
    edits: Vec<Value>,
    folder: TempDir,
}

impl Called {
    fn is_built_by(&self, tool: &str) -> bool {
        self.program.get("build").is_some_and(|build| build.starts_with(tool))
    }
}

/// Those that `make test` tries: first one of each language. Cargo would build the crate once more.
fn few_of_each_language(called: Vec<Called>) -> Vec<Called> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut order: Vec<(usize, Called)> = Vec::new();
    for one in called.into_iter().filter(|one| !one.is_built_by("cargo")) {
        let extension = one.program.source.extension().unwrap_or_default().to_string_lossy().into_owned();
        let count = seen.entry(extension).or_default();
        order.push((*count, one));
        *count += 1;
    }
    order.sort_by_key(|(number, _)| *number);
    order.into_iter().map(|(_, one)| one).take(LIBRARY_BUILDS).collect()
}

/// What is wrong with the programs that call libfirsttouch instead: they build without warnings and print the same.
fn problems_of_library(called: Vec<Called>) -> Vec<String> {
    let library = temporary_directory();
    build_library(library.path());
    let is_whole = std::env::var_os("FIRSTTOUCH_WHOLE_CORPUS").is_some();
    let called = if is_whole { called } else { few_of_each_language(called) };
    if called.iter().any(|one| one.is_built_by("rustc")) {
        build_crate(library.path());
    }
    let built = side_by_side(&called, |one| build_edited(&one.program, &one.edits, one.folder.path(), Some(library.path())));
    let runs = if is_whole { called.len() } else { LIBRARY_RUNS };
    let mut problems = Vec::new();
    for (at, (one, built)) in called.iter().zip(built).enumerate() {
        match built {
            Err(errors) => {
                problems.push(format!("{}: the call of the library does not build without warnings: {errors}", one.program.name))
            }
            Ok(command) if at < runs => {
                let shared = library.path().join("shared/libfirsttouch.so.1");
                let package = workspace_root().join("bindings/python");
                let after = run(Command::new(&command[0]).args(&command[1..]).env("FIRSTTOUCH_LIBRARY", shared).env("PYTHONPATH", package));
                if (after.status, after.stdout_text()) != (0, one.before.clone()) {
                    problems.push(format!("{}: the call of the library {CHANGES}: {} -> {after:?}", one.program.name, one.before));
                }
            }
            Ok(_) => {}
        }
    }
    problems
}

fn check(programs: Vec<Program>) {
    let Some(firsttouch) = Firsttouch::find("fixes") else { return };
    let (mut right, mut failures, mut changed) = (0, Vec::new(), Vec::new());
    let fails = |failures: &mut Vec<String>, name: &str, problem: &str| {
        eprintln!("fixes: {name}: {problem}");
        failures.push(format!("{name}: {problem}"));
    };
    let mut called = Vec::new();
    for profiled in profile_all(&firsttouch, programs) {
        let name = profiled.program.name.clone();
        let edits = library_edits_of(&profiled.report);
        if let Some(before) = profiled.before.as_ref().filter(|_| !edits.is_empty()) {
            let before = before.stdout_text();
            called.push(Called { program: profiled.program.clone(), before, edits, folder: temporary_directory() });
        }
        match report_of(profiled) {
            Ok(None) => right += 1,
            Ok(Some(one)) => changed.push(one),
            Err(problem) => fails(&mut failures, &name, &problem),
        }
    }
    // Nothing is profiled while compilers run.
    let mut fixed = Vec::new();
    for (one, built) in changed.iter().zip(build(&changed)) {
        match built {
            Ok(command) => fixed.push((one, command)),
            Err(problem) => fails(&mut failures, &one.program.name, &problem),
        }
    }
    for ((one, _), problem) in fixed.iter().zip(problems(&firsttouch, &fixed)) {
        match problem {
            None => right += 1,
            Some(problem) => fails(&mut failures, &one.program.name, &problem),
        }
    }
    let with_call = called.len();
    failures.extend(problems_of_library(called));
    eprintln!("fixes: {right} programs right, {with_call} with a call of the library, {} wrong", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Programs whose fixes are tried.
const LEAST_SHAPES: usize = 50;

fn shapes() -> Vec<Program> {
    let only = std::env::var("FIRSTTOUCH_FIXES").unwrap_or_default();
    let all = programs_in(&workspace_root().join("tests/programs/fixes"));
    all.into_iter().filter(|program| only.is_empty() || only.split(' ').any(|name| name == program.name)).collect()
}

/// Check the fixes of all shapes.
#[test]
fn fixes_keep_the_output_and_remove_the_finding() {
    let all = shapes();
    let is_whole = std::env::var_os("FIRSTTOUCH_FIXES").is_none();
    assert!(!is_whole || all.len() >= LEAST_SHAPES, "the shapes have shrunk to {}", all.len());
    check(all);
}

/// Check that every program of the corpus with a defect says what its fix is, and the others have none.
#[test]
fn the_corpus_says_its_fixes() {
    for program in programs() {
        assert_eq!(program.get("fix").is_some(), program.get("finding") != Some("none"), "{}", program.name);
    }
}

/// Check the fixes of the corpus.
#[ignore = "builds and profiles 40 programs twice, some minutes: make whole-corpus"]
#[test]
fn fixes_of_the_corpus() {
    check(programs().into_iter().filter(|program| program.get("finding") != Some("none")).collect());
}

/// Check that the fix and the plan of a matrix that loops divide by rows and by columns follow the loop over rows, and that predict agrees.
#[test]
fn fix_and_plan_follow_one_of_two_loops() {
    let name = "fix_and_plan_follow_one_of_two_loops";
    let (Some(firsttouch), Some(program)) = (Firsttouch::find(name), program(name, "first_hour/rows_and_columns")) else { return };
    let folder = temporary_directory();
    let (file, plan) = (folder.path().join("matrix.ftp"), folder.path().join("matrix.toml"));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut profile = firsttouch.profile(&file, &["--quiet"], &[program.to_str().expect("a path"), "60"]);
        let outcome = run(profile.env("OMP_NUM_THREADS", "4"));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let report = firsttouch.report_json(&file);
        let finding = &report["findings"][0];
        let follows =
            finding["fix"].as_str().is_some_and(|fix| fix.starts_with("two loops divide matrix differently. If its first touch follows"));
        if finding["id"] != "no-stable-partition" || !follows {
            seen.push(finding.clone());
            continue;
        }
        assert_eq!(finding["fix_kind"], "divide-first-touch", "{finding}");
        assert_eq!(run(firsttouch.command(["plan"]).arg(&file).arg("-o").arg(&plan)).status, 0);
        let text = std::fs::read_to_string(&plan).expect("a plan");
        assert!(text.contains("policy = \"blocked\"") && text.contains("threads = [0, 1, 2, 3]"), "{text}");
        let predicted = run(firsttouch.command(["predict", "--json"]).arg(&file)).stdout_text();
        let predicted: Value = serde_json::from_str(&predicted).expect("JSON");
        let remote = |name: &str| {
            let placements = predicted["placements"].as_array().expect("placements");
            placements.iter().find(|one| one["name"] == name).and_then(|one| one["remote_fraction"].as_f64()).expect("a share")
        };
        // In the guess at the speeds of both loops, 10 to 40 % of all accesses are the remote half of the second loop's.
        assert!(remote("plan") < 0.42 && remote("plan") + 0.08 < remote("as-is"), "{predicted}");
        assert!((remote("plan") - remote("parallel-first-touch")).abs() < 0.02, "report, plan and predict name one repair: {predicted}");
        return;
    }
    panic!("{seen:#?}");
}

/// Check that the fix for an array whose most frequent loop goes through half of it is not to fill the array by that loop.
#[test]
fn loops_over_a_part_fill_no_array() {
    let name = "loops_over_a_part_fill_no_array";
    let (Some(firsttouch), Some(program)) = (Firsttouch::find(name), program(name, "first_hour/half_of_array")) else { return };
    let folder = temporary_directory();
    let file = folder.path().join("half.ftp");
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut profile = firsttouch.profile(&file, &["--quiet"], &[program.to_str().expect("a path"), "100"]);
        let outcome = run(profile.env("OMP_NUM_THREADS", "2"));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let report = firsttouch.report_json(&file);
        let finding = &report["findings"][0];
        if finding["id"] == "mismatched-partition" {
            let fix = finding["fix"].as_str().expect("a fix");
            assert!(fix.contains("goes through a part of w only") && !fix.contains("with the loop that uses it"), "{fix}");
            return;
        }
        seen.push(finding.clone());
    }
    panic!("{seen:#?}");
}
