// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch check`: exit statuses and output formats.

use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::recorded::{fixture, recorded};
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, temporary_directory, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn check(firsttouch: &Firsttouch, words: &[&str]) -> Outcome {
    run(&mut firsttouch.command([&["check"], words].concat()))
}

/// Check that a misplaced program exceeds each limit and a well-placed one does not, and that each format reports it.
#[test]
fn misplaced_programs_are_held_back() {
    let Some(firsttouch) = Firsttouch::find("misplaced_programs_are_held_back") else { return };
    let folder = temporary_directory();
    let [serial, parallel] = ["dgemv_serial", "dgemv_parallel"].map(|name| recorded(&firsttouch, name, folder.path()));
    let (serial, parallel) = (text(&serial), text(&parallel));
    for (words, status) in [
        (&[serial][..], 3),
        (&[parallel], 0),
        (&["--max-remote", "90%", serial], 0),
        (&["--machine", "xeon-e5620x2", "--max-slowdown", "1.1", serial], 3),
        (&["--machine", "xeon-e5620x2", "--max-slowdown", "1.2", parallel], 0),
        (&["--machine", "virtual:4", serial], 3),
        (&["--baseline", parallel, serial], 3),
        (&["--baseline", serial, parallel], 0),
        (&["--baseline", serial, serial], 0),
    ] {
        let outcome = check(&firsttouch, words);
        assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
        let shown = outcome.stdout_text();
        assert!(shown.contains(if status == 3 { "FAILED" } else { "passed" }) && shown.lines().count() < 24, "{shown}");
    }
    // Figures are as fine as the limit.
    let fine = check(&firsttouch, &["--max-remote", "48.25", "--machine", "virtual:4", serial]);
    assert!(fine.stdout_text().replace('\n', " ").contains("48.25 % are allowed"), "{fine:?}");
    // A baseline can also be a report, but only one for the same machine.
    let report = folder.path().join("known-good.json");
    std::fs::write(&report, firsttouch.report(Path::new(parallel), &["--json"]).stdout).expect("a file");
    assert_eq!(check(&firsttouch, &["--baseline", text(&report), serial]).status, 3);
    let other = check(&firsttouch, &["--baseline", text(&report), "--machine", "virtual:4", serial]);
    assert_clear_error(&other, &[1], &["virtual:2", "virtual:4"]);

    formats(&firsttouch, serial);
}

fn formats(firsttouch: &Firsttouch, serial: &str) {
    let github = check(firsttouch, &["--format", "github", serial]);
    let lines = github.stdout_text();
    assert_eq!(github.status, 3);
    assert!(lines.lines().all(|line| line.starts_with("::error ")), "{lines}");
    assert!(lines.contains("dgemv.c,line=") && lines.contains("serial-first-touch"), "{lines}");

    let junit = check(firsttouch, &["--format", "junit", serial]).stdout_text();
    assert!(
        junit.starts_with("<?xml") && junit.contains("tests=\"1\" failures=\"1\"") && junit.contains("<failure type=\"max-remote\""),
        "{junit}"
    );

    let sarif: Value = serde_json::from_slice(&check(firsttouch, &["--format", "sarif", serial]).stdout).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let results = run["results"].as_array().expect("results");
    assert!(results.iter().any(|result| result["ruleId"] == "serial-first-touch"));
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        assert!(place["artifactLocation"]["uri"].as_str().is_some_and(|uri| uri.ends_with("dgemv.c")), "{result}");
        assert!(place["region"]["startLine"].as_u64().is_some_and(|line| line > 0));
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap_or_default()));
    }
    let json: Value = serde_json::from_slice(&check(firsttouch, &["--json", serial]).stdout).expect("JSON");
    assert_eq!((&json["schema"], &json["passed"]), (&"firsttouch.check/1".into(), &false.into()));
    assert_eq!((&json["limits"][0]["name"], &json["limits"][0]["verdict"]), (&"max-remote".into(), &"exceeded".into()));
}

/// Check that a program's output and exit status are unchanged, and that a limit that cannot be checked is a usage error before the
/// program runs.
#[test]
fn programs_keep_their_status() {
    let Some(firsttouch) = Firsttouch::find("programs_keep_their_status") else { return };
    let folder = temporary_directory();
    let output = folder.path().join("result.xml");
    // A program that does nothing would not be judged.
    let works = |end: &str| format!("i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; {end}");
    // A tick rarely falls into such a short program: then its one thread is judged.
    let idle = || check(&firsttouch, &["--", "echo", "its own"]);
    let is_not_judged = |idle: &Outcome| {
        let said = idle.stderr_text();
        idle.status == 1
            && said.matches("NOT JUDGED").count() == 1
            && said.contains("NOT JUDGED on ")
            && said.contains("no accesses were seen")
    };
    assert!((0..3).any(|_| is_not_judged(&idle())), "{:?}", idle());
    let good = check(&firsttouch, &["--format", "junit", "--output", text(&output), "--", "sh", "-c", &works("echo its own")]);
    assert_eq!((good.status, good.stdout_text().as_str()), (0, "its own\n"), "{good:?}");
    assert!(std::fs::read_to_string(&output).is_ok_and(|xml| xml.contains("failures=\"0\"")));
    // 3 means that a limit is exceeded, and nothing else.
    let programs: [(&[&str], i32); 4] =
        [(&["sh", "-c", "exit 42"], 42), (&["sh", "-c", "kill -9 $$"], 137), (&["/none/such"], 127), (&["sh", "-c", "exit 3"], 1)];
    for (command, status) in programs {
        let outcome = check(&firsttouch, &[&["--"], command].concat());
        assert_eq!(outcome.status, status, "{outcome:?}");
        assert!(!outcome.messages().is_empty(), "{outcome:?}");
    }
    // Who reads a file finds one, which says why nothing was judged.
    let failed = check(&firsttouch, &["--format", "junit", "--output", text(&output), "--", "sh", "-c", "echo its own; exit 42"]);
    let said = failed.stderr_text().matches("NOT JUDGED").count();
    assert_eq!((failed.status, failed.stdout_text().as_str(), said), (42, "its own\n", 1), "{failed:?}");
    let xml = std::fs::read_to_string(&output).unwrap();
    assert!(xml.contains("<error") && xml.contains("the program failed (exit status 42)"), "{xml}");
    let ignored = check(&firsttouch, &["--ignore-failure", "--json", "--", "sh", "-c", &works("exit 3")]);
    let json: Value = serde_json::from_slice(&ignored.stdout).expect("JSON");
    assert_eq!((ignored.status, &json["exit_code"], &json["outcome"]), (0, &3.into(), &"passed".into()), "{ignored:?}");
    let marker = folder.path().join("started");
    for (words, mentions) in [
        (&["--max-slowdown", "1.2", "--machine", "virtual:2"][..], "bandwidths of the machine are not known"),
        (&["--machine", "pdp-11"], "pdp-11"),
    ] {
        let outcome = check(&firsttouch, &[words, &["--", "touch", text(&marker)]].concat());
        assert_clear_error(&outcome, &[2], &[mentions]);
    }
    assert_clear_error(&check(&firsttouch, &["--baseline", "/none.json", "--", "touch", text(&marker)]), &[1], &["/none.json"]);
    assert_clear_error(&check(&firsttouch, &["none.ftp"]), &[1], &["none.ftp"]);
    assert!(!marker.exists(), "the program ran");
}

/// Check that a program is never called within its limits without evidence: where no accesses are seen, and where the profile could not be
/// written. Each format says that it was not judged, and why.
#[test]
fn no_evidence_passes_no_limit() {
    let name = "no_evidence_passes_no_limit";
    let (Some(firsttouch), Some(forbid)) = (Firsttouch::find(name), program(name, "noharm/forbid")) else { return };
    let Some(team) = program(name, "noharm/threads_1000") else { return };
    let folder = temporary_directory();
    let profile = folder.path().join("blind.ftp");
    // Threads that end before the first tick.
    let short = firsttouch.profile(&profile, &["--quiet"], &[team.clone().into_os_string()]);
    let mut inside = Command::new(&forbid);
    inside.args(["EPERM", "perf,memory"]).arg(short.get_program()).args(short.get_args());
    assert_eq!(run(&mut inside).status, 0);
    let report = firsttouch.report_json(&profile);
    assert_eq!(report["verdict"]["outcome"], "not-judged", "{report}");
    let file = text(&profile);
    for (words, expected) in [
        (&[file][..], "NOT JUDGED"),
        (&["--format", "github", file], "::error title=firsttouch max-remote::remote accesses: not judged: "),
        (&["--format", "junit", file], "<error type=\"not-judged\""),
        (&["--format", "sarif", file], "\"executionSuccessful\": false"),
        (&["--json", file], "\"outcome\":\"not-judged\""),
    ] {
        let outcome = check(&firsttouch, words);
        assert_eq!(outcome.status, 1, "{words:?}: {outcome:?}");
        let shown = outcome.stdout_text().replace("\"outcome\": ", "\"outcome\":");
        assert!(shown.contains(expected) && !shown.contains("\"passed\": true"), "{shown}");
    }
    let kept = folder.path().join("kept.ftp");
    for kib in [8, 64, 400] {
        let script = format!("ulimit -f {kib}; exec {} check --profile {} -- {}", text(firsttouch.binary()), text(&kept), text(&team));
        let full = run(Command::new("sh").args(["-c", &script]));
        assert_eq!(full.status, 1, "{kib}: {full:?}");
        assert!(!full.messages().contains("passed"), "{kib}: {full:?}");
    }
}

/// Check that a saved profile passes only if it is of a whole run of a program that worked, and that each format says what is wrong with it.
#[test]
fn half_runs_pass_no_limit() {
    let Some(firsttouch) = Firsttouch::find("half_runs_pass_no_limit") else { return };
    let folder = temporary_directory();
    let [serial, parallel] = ["dgemv_serial", "dgemv_parallel"].map(fixture);
    let edited = |from: &Path, name: &str, sql: &str| {
        let file = folder.path().join(name);
        std::fs::copy(from, &file).expect("a copy");
        rusqlite::Connection::open(&file).and_then(|profile| profile.execute_batch(sql)).expect("an edited profile");
        file
    };
    let failed = "UPDATE meta SET value = '7' WHERE key = 'exit_code'";
    let killed = "DELETE FROM meta WHERE key IN ('exit_code', 'symbolized')";
    let [failed, killed] = [
        (edited(&parallel, "failed.ftp", failed), "the program failed (exit status 7)", edited(&serial, "failed_serial.ftp", failed)),
        (edited(&parallel, "killed.ftp", killed), "firsttouch was killed", edited(&serial, "killed_serial.ftp", killed)),
    ];
    for (file, cause, _) in [&failed, &killed] {
        for (words, expected) in [
            (&[][..], "NOT JUDGED"),
            (&["--format", "github"], "remote accesses: not judged"),
            (&["--format", "junit"], "<error type=\"not-judged\""),
            (&["--format", "sarif"], "\"executionSuccessful\": false"),
            (&["--json"], "\"passed\": false"),
        ] {
            let outcome = check(&firsttouch, &[words, &[text(file)]].concat());
            assert_eq!(outcome.status, 1, "{words:?}: {outcome:?}");
            let shown = outcome.stdout_text().replace("&apos;", "'");
            assert!(shown.contains(expected) && shown.contains(cause), "{words:?}: {shown}");
        }
    }
    // What a failed program did is no evidence; what was recorded before a kill is, against it.
    assert_eq!(check(&firsttouch, &[text(&failed.2)]).status, 1);
    let exceeded = check(&firsttouch, &[text(&killed.2)]);
    assert!(exceeded.status == 3 && exceeded.stdout_text().contains(killed.1), "{exceeded:?}");
    assert_eq!(check(&firsttouch, &["--ignore-failure", text(&failed.0)]).status, 0);
    assert_eq!(check(&firsttouch, &["--ignore-failure", text(&failed.2)]).status, 3);
    let baseline = check(&firsttouch, &["--baseline", text(&failed.0), text(&parallel)]);
    assert_clear_error(&baseline, &[1], &["cannot use the baseline", failed.1]);
    assert_eq!(check(&firsttouch, &["--ignore-failure", "--baseline", text(&failed.0), text(&parallel)]).status, 0);
    // A recording that was to end before its program has no exit status, and is whole.
    let ended = edited(&parallel, "duration.ftp", "DELETE FROM meta WHERE key = 'exit_code'");
    assert_eq!(check(&firsttouch, &[text(&ended)]).status, 0);
}
