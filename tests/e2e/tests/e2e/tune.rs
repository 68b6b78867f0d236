// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch tune` on a machine with one node: what it would do on another one, its errors, statuses, and that programs survive it.

use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, assert_no_panic, temporary_directory, text};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

fn has_one_node() -> bool {
    !std::path::Path::new("/sys/devices/system/node/node1").exists()
}

/// Check that a dry run says what would be moved on two nodes, half of the matrix, and why, that it writes a plan, and that the program's output and status are
/// its own.
#[test]
fn a_dry_run_on_two_virtual_nodes() {
    let Some(firsttouch) = Firsttouch::find("tune::a_dry_run_on_two_virtual_nodes") else { return };
    let Some(program) = program("tune::a_dry_run_on_two_virtual_nodes", "truth/dgemv") else { return };
    let directory = temporary_directory();
    let (json, plan) = (directory.path().join("tune.json"), directory.path().join("plan.toml"));
    let json_to = format!("--json={}", text(&json));
    let options = ["tune", "--dry-run", "--machine", "virtual:2", "--save-plan", text(&plan), &json_to, "--", text(&program)];
    // Where other programs use the CPUs, there are few samples, and little is gained until they are seen for longer.
    let mut outcome = None;
    for seconds in ["3", "6", "12"] {
        let one = run(firsttouch.command(options).args(["--seconds", seconds, "--init", "serial"]));
        let is_decided = one.status != 0 || one.stderr_text().contains("most of it was on node 0");
        outcome = Some(one);
        if is_decided {
            break;
        }
    }
    let outcome = outcome.expect("a run");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout_text().contains("\"remote\""), "the program's own output: {outcome:?}");
    let said = outcome.stderr_text();
    assert!(said.contains("would move") && said.contains("threads on node 1 use it; most of it was on node 0"), "{said}");
    let json: Value = serde_json::from_str(&fs::read_to_string(&json).expect("JSON")).expect("JSON");
    assert_eq!(
        (json["schema"].as_str(), json["dry_run"].as_bool(), json["nodes"].as_u64()),
        (Some("firsttouch.tune/1"), Some(true), Some(2))
    );
    let process = &json["processes"][0];
    let object = &process["objects"][0];
    assert_eq!((object["name"].as_str(), process["moved_pages"].as_u64()), (Some("A"), Some(0)), "{json:#}");
    let (bytes, all) = (object["moves"][0]["bytes"].as_f64().unwrap_or(0.0), object["bytes"].as_f64().unwrap_or(0.0));
    assert!((0.4..0.6).contains(&(bytes / all)), "{json:#}");
    let before = process["remote_before"]["share"].as_f64().unwrap_or(f64::NAN);
    // Four standard errors of the hundred samples that a busy machine leaves.
    assert!((before - 0.5).abs() < 0.2 && process["remote_expected"].as_f64().is_some_and(|share| share < 0.1), "{json:#}");
    let explained = run(&mut firsttouch.command(["run", "--plan", text(&plan), "--explain", "--", text(&program)]));
    assert_eq!(explained.status, 0, "{explained:?}");
}

/// Check that one node is said to be one, that errors are clear, and that statuses are those of the program.
#[test]
fn errors_and_statuses() {
    let Some(firsttouch) = Firsttouch::find("tune::errors_and_statuses") else { return };
    let refused = |words: &[&str], status: i32, mentions: &[&str]| {
        let outcome = run(firsttouch.command(["tune"]).args(words));
        assert_clear_error(&outcome, &[status], mentions);
        assert_no_panic(&outcome);
    };
    refused(&["999999999"], 1, &["999999999"]);
    refused(&["--machine", "virtual:2", "--", "true"], 2, &["required arguments"]);
    refused(&["--budget", "0", "1"], 2, &["--budget"]);
    refused(&[], 2, &["required arguments"]);
    let directory = temporary_directory();
    let source = directory.path().join("a.c");
    fs::write(&source, "int main(void) { return 0; }\n").expect("a file");
    refused(&["--save-plan", text(&source), "--", "true"], 1, &["another kind of file"]);
    for (words, status) in [(&["sh", "-c", "exit 7"][..], 7), (&["/none/such"], 127), (&["sh", "-c", "kill -TERM $$"], 143)] {
        for command in [&["tune", "--dry-run", "--machine", "virtual:2", "--"][..], &["run", "--tune", "--"]] {
            let outcome = run(firsttouch.command(command).args(words));
            assert_no_panic(&outcome);
            // A program that firsttouch becomes ends by its own signal.
            assert!(
                outcome.status == status || outcome.status + 128 == status || outcome.status == -15,
                "{command:?} {words:?}: {outcome:?}"
            );
        }
    }
    if has_one_node() {
        let outcome = run(&mut firsttouch.command(["tune", &std::process::id().to_string(), "--json"]));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.stderr_text().contains("This machine has one node: there is nowhere to move pages."), "{outcome:?}");
        let json: Value = serde_json::from_str(&outcome.stdout_text()).expect("JSON");
        assert_eq!((json["nodes"].as_u64(), json["settled"].as_bool()), (Some(1), Some(true)));
    }
}

/// Check that `kill -9` leaves the process that is watched as it was, and no recorder.
#[test]
fn killed_it_leaves_nothing() {
    let Some(firsttouch) = Firsttouch::find("tune::killed_it_leaves_nothing") else { return };
    let Some(program) = program("tune::killed_it_leaves_nothing", "truth/triad") else { return };
    let running = Running::start(Command::new(program).args(["--seconds", "20", "--init", "serial"]), b"");
    let pid = running.pid().to_string();
    let allowed = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
        status.lines().filter(|line| line.contains("_allowed")).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = allowed();
    let tune = Running::start(&mut firsttouch.command(["tune", "--dry-run", "--machine", "virtual:2", "--duration", "60", &pid]), b"");
    let recorder = || {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", tune.pid())).unwrap_or_default();
        children.split_whitespace().next().map(str::to_owned)
    };
    let start = Instant::now();
    let recorder = loop {
        if let Some(recorder) = recorder() {
            break recorder;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "no recorder");
        std::thread::sleep(Duration::from_millis(20));
    };
    std::thread::sleep(Duration::from_millis(300));
    tune.signal(libc::SIGKILL);
    drop(tune.wait());
    let is_gone = || fs::read_to_string(format!("/proc/{recorder}/stat")).map_or(true, |stat| stat.contains(") Z "));
    let start = Instant::now();
    while !is_gone() {
        assert!(start.elapsed() < Duration::from_secs(10), "the recorder goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(allowed(), before);
    assert!(fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")));
    running.signal(libc::SIGKILL);
    drop(running.wait());
}
