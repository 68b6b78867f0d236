//! libfirsttouch in each language: `profile` finds nothing in a program whose arrays it places, and says so with evidence. C by gcc is in `library`.
//!
//! The programs (bindings/tests/placed.*, bindings/rust/tests/placed.rs) first check that at least 99 % of the pages of each partition are on target. Each is profiled
//! in one of the guests, so that these end at the same time, and `bindings` checks every partition in the other.

use firsttouch_e2e::paths::{target_dir, workspace_root};
use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{temporary_directory, text};
use firsttouch_guests::{first_two_with_cpus, firsttouch, json, nodes};
use firsttouch_oracles::list;
use serde_json::Value;

/// Bytes of the field that the threads use in blocks, of the tables that they read, and checks of the programs without and with a table.
const FIELD: u64 = 4 << 20;
const TABLE: u64 = 2 << 20;
const CHECKS: usize = 8;

/// C++, with LLVM's OpenMP runtime.
#[test]
fn clang() {
    nothing_is_found(&[&built("placed_clang++")], 4, true);
}

#[test]
fn gfortran() {
    nothing_is_found(&[&built("placed_gfortran")], 4, false);
}

#[test]
fn rustc() {
    nothing_is_found(&[&built("placed_rust")], 4, true);
}

/// (`import numpy` takes most of the time, and its accesses count too, so the threads work longer. `bindings` checks Python's partitions.)
#[test]
#[ignore = "takes up to 96 s"]
fn python() {
    nothing_is_found(&["/usr/bin/python3", text(&workspace_root().join("bindings/tests/placed.py"))], 6, false);
}

/// What `bindings/tests/run.sh` has built.
fn built(name: &str) -> String {
    text(&target_dir().join("bindings").join(name)).to_owned()
}

/// Check that the profile of a program has a verdict, without a finding, and that no access of its threads to its field or its table is remote. Two threads work, so that
/// the recorder has a CPU. If the samples do not suffice, once more and three times as long.
#[track_caller]
fn nothing_is_found(program: &[&str], seconds: u32, has_table: bool) {
    let mut report = profiled(program, has_table, seconds);
    if !is_judged(&report) {
        eprintln!("{program:?} was not judged after {seconds} s: {}", report["verdict"]);
        report = profiled(program, has_table, 3 * seconds);
    }
    assert!(is_judged(&report), "{report:#}");
    assert_eq!(report["machine"]["nodes"].as_u64(), Some(nodes().len() as u64), "{report:#}");
    assert!(report["remote_fraction"].as_f64() < Some(0.03), "{report:#}");
    let bytes = if has_table { &[FIELD, TABLE][..] } else { &[FIELD] };
    for bytes in bytes {
        let object = used(&report, *bytes).unwrap_or_else(|| panic!("no object of {bytes} bytes is judged: {report:#}"));
        // The library's own threads read the first copy of a table once, to make the others.
        let copying = list(object, "used_at").iter().filter(|place| place["function"] == "run_pinned");
        let most = 0.005 + copying.filter_map(|place| place["share"].as_f64()).sum::<f64>();
        assert!(object["remote_fraction"].as_f64() < Some(most), "{object:#}");
    }
}

/// Whether there is an all-clear that rests on the field. A finding fails at once.
#[track_caller]
fn is_judged(report: &Value) -> bool {
    assert_eq!(list(report, "findings").len(), 0, "{report:#}");
    report["verdict"]["outcome"] == "well-placed" && used(report, FIELD).is_some()
}

/// The judged object of this size. (Arrays of the checks have the size of the field, and too few accesses.)
fn used(report: &Value, bytes: u64) -> Option<&Value> {
    list(report, "objects").iter().find(|object| object["bytes"] == bytes && object["judged"] == true)
}

#[track_caller]
fn profiled(program: &[&str], has_table: bool, seconds: u32) -> Value {
    let folder = temporary_directory();
    let file = folder.path().join("placed.ftp");
    let cpus = first_two_with_cpus().map(|node| node.cpus[0].to_string());
    // OpenMP's threads go where OMP_PLACES says, the others where the arguments say.
    let seconds = seconds.to_string();
    let command: Vec<&str> = program.iter().copied().chain([&*seconds, &cpus[0], &cpus[1]]).collect();
    let mut profile = firsttouch().profile(&file, &["-q"], &command);
    let site = target_dir().join("bindings/site");
    profile.env("OMP_PLACES", format!("{{{}}},{{{}}}", cpus[0], cpus[1])).env("OMP_NUM_THREADS", "2").env("OMP_PROC_BIND", "true");
    profile.env("PYTHONPATH", site).env("PYTHONDONTWRITEBYTECODE", "1").env("OPENBLAS_NUM_THREADS", "1");
    let outcome = run(&mut profile);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let said = outcome.stdout_text();
    let good = said.lines().filter(|line| line.starts_with("ok     placed: ")).count();
    assert_eq!(good, CHECKS + usize::from(has_table), "{said}");
    json(&["report", text(&file)])
}
