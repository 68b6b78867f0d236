// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `report`, `check` and `plan` agree about each object: on recorded profiles and all machines of the catalogue, and on what no plan can place.
//! The module `corpus` asks the same of live profiles of every program there.

use firsttouch_e2e::agreement::{contradictions_on, false_promises, machines};
use firsttouch_e2e::process::run;
use firsttouch_e2e::recorded::{names, recorded};
use firsttouch_e2e::tool::{Firsttouch, temporary_directory};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Machines for profiles without findings, about which there is little to agree.
const FEW: usize = 3;

/// Check that no machine of the catalogue, and no virtual one, has a contradiction between the report on a recorded profile and its plan. Each profile is
/// compared on every second machine, the next one on the others; on all with `FIRSTTOUCH_WHOLE_CORPUS=1`.
#[test]
fn report_and_plan_agree() {
    let Some(firsttouch) = Firsttouch::find("report_and_plan_agree") else { return };
    let (folder, machines) = (temporary_directory(), machines(&firsttouch));
    assert!(machines.len() >= 15, "{machines:?}");
    let (mut compared, mut problems) = (0, Vec::new());
    let files = names().into_iter().map(|name| recorded(&firsttouch, &name, folder.path()));
    let every = if std::env::var_os("FIRSTTOUCH_WHOLE_CORPUS").is_some() { 1 } else { 2 };
    for (index, file) in files.chain(further_profiles()).enumerate() {
        let has_findings = firsttouch.report_json(&file)["findings"].as_array().is_some_and(|findings| !findings.is_empty());
        let step = if has_findings { every } else { machines.len() / FEW };
        for machine in machines.iter().skip(index % every).step_by(step) {
            compared += 1;
            problems.extend(contradictions_on(&firsttouch, &file, machine));
        }
        for machine in ["virtual:2", "thunderx2-cn9980x2"] {
            problems.extend(false_promises(&firsttouch, &file, machine));
        }
        // One profile shows what is wrong.
        if !problems.is_empty() {
            break;
        }
    }
    eprintln!("agreement: {compared} reports compared with their plans, {} contradictions", problems.len());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The profiles in the directory that `FIRSTTOUCH_PROFILES` names.
fn further_profiles() -> Vec<PathBuf> {
    let Some(directory) = std::env::var_os("FIRSTTOUCH_PROFILES") else { return Vec::new() };
    let all = std::fs::read_dir(directory).expect("FIRSTTOUCH_PROFILES").flatten().map(|entry| entry.path());
    all.filter(|path| path.extension().is_some_and(|extension| extension == "ftp")).collect()
}

/// Check that `check` lists the findings of the report, in its order and with its recommendations.
#[test]
fn check_and_report_agree() {
    let Some(firsttouch) = Firsttouch::find("check_and_report_agree") else { return };
    let folder = temporary_directory();
    for name in ["kernel_iso3dfd", "dynamic_schedule"] {
        let file = recorded(&firsttouch, name, folder.path());
        for machine in ["epyc-7451x2", "thunderx2-cn9980x2", "virtual:4"] {
            let read = |command: &str| -> Value {
                let outcome = run(firsttouch.command([command, "--json", "--machine", machine]).arg(&file));
                serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| panic!("{command}: {error}: {outcome:?}"))
            };
            assert_eq!(read("check")["findings"], read("report")["findings"], "{name} on {machine}");
        }
    }
}

/// The profile of `serial_loop`, changed by SQL.
fn changed(firsttouch: &Firsttouch, folder: &Path, sql: &str) -> PathBuf {
    let file = recorded(firsttouch, "serial_loop", folder);
    rusqlite::Connection::open(&file).and_then(|profile| profile.execute_batch(sql)).expect(sql);
    file
}

/// Check that reports promise no plan for memory that no plan can place, and say the true reason, as the plan does.
#[test]
fn no_plan_is_promised_where_it_would_be_empty() {
    let Some(firsttouch) = Firsttouch::find("no_plan_is_promised_where_it_would_be_empty") else { return };
    for (what, sql, reason) in [
        (
            "a static program",
            "UPDATE objects SET kind = 'mapping', call = NULL, site = NULL; UPDATE evidence SET available = 0, detail = 'the program is statically \
             linked, so no agent can be loaded into it: objects are named by mapping' WHERE source = 'agent'",
            "the program is statically linked, so no agent can be loaded into it; a run could not load the library that places memory either",
        ),
        ("a segment", "UPDATE objects SET kind = 'anonymous', call = 'shmat'", "shmat attached it, which a run does not follow"),
        (
            "Python",
            "UPDATE frames SET module = 'python' WHERE site IN (SELECT site FROM objects)",
            "it is allocated by Python code, whose stacks a run does not follow",
        ),
        (
            "an interpreter",
            "UPDATE frames SET module = '/usr/bin/python3.11' WHERE site IN (SELECT site FROM objects)",
            "it is the interpreter's own memory, which holds objects of all kinds",
        ),
        ("a call that was not seen", "UPDATE objects SET site = NULL", "the call that allocated it is not known"),
        (
            "an attached process",
            "UPDATE objects SET kind = 'mapping', call = NULL, site = NULL; UPDATE meta SET value = 'attach' WHERE key = 'mode'",
            "the call that mapped it was not seen, so a run could not follow it",
        ),
    ] {
        let folder = temporary_directory();
        let file = changed(&firsttouch, folder.path(), sql);
        let outcome = run(firsttouch.command(["report"]).arg(&file));
        let words = outcome.stdout_text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("MISPLACED") && !words.contains("firsttouch plan") && words.contains(reason), "{what}: {outcome:?}");
        let planned = run(firsttouch.command(["plan", "-o", "-"]).arg(&file));
        assert!(planned.stdout_text().contains(reason) && !planned.stdout_text().contains("[[place]]"), "{what}: {planned:?}");
        assert!(!planned.stderr_text().contains("there is no finding"), "{what}: {planned:?}");
        assert_eq!(contradictions_on(&firsttouch, &file, "virtual:2"), [""; 0], "{what}");
    }
}
