// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples of registers from outside the program: of programs that were attached to, of static ones, and of threads without a timer.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::programs::{Built, build, program};
use firsttouch_e2e::skip::{is_root, skipped};
use firsttouch_e2e::tool::{Firsttouch, NOBODY, temporary_directory, text};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const TOLERANCE: f64 = 0.03;
const TRIES: usize = 3;
const OUTSIDE: &str = "sampled from outside the program";

/// Samples of registers in a report, and what it says of them. `None` if the kernel forbids performance events.
fn samples(report: &Value) -> Option<(u64, String)> {
    let evidence = |name: &str| report["evidence"].as_array()?.iter().find(|one| one["source"] == name).cloned();
    evidence("touch").filter(|touch| touch["available"] == true)?;
    let sample = evidence("sample")?;
    Some((sample["samples"].as_u64()?, sample["detail"].as_str().unwrap_or_default().to_owned()))
}

/// The last line of what a program that counts its accesses prints.
fn truth(stdout: &str) -> Value {
    serde_json::from_str(stdout.lines().last().unwrap_or_default()).expect("the program's own count")
}

/// Figures of a report that are further from the truth than 3 points, and that their intervals do not cover.
fn wrong_figures(report: &Value, truth: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: String, got: &Value, interval: &Value, truth: f64| {
        let got = got.as_f64().unwrap_or(f64::NAN);
        let is_covered = interval[0].as_f64().zip(interval[1].as_f64()).is_some_and(|(low, high)| low <= truth && truth <= high);
        if (got - truth).abs() > TOLERANCE && !is_covered || got.is_nan() {
            wrong.push(format!("{what}: {got:.3} {interval}, truth {truth:.3}"));
        }
    };
    let objects = truth["objects"].as_object().expect("objects");
    let count = |value: &Value| value.as_f64().expect("a count");
    let all: f64 = objects.values().map(|object| count(&object["accesses"])).sum();
    for (name, object) in objects {
        let accesses = count(&object["accesses"]);
        let seen = report["objects"].as_array().and_then(|seen| seen.iter().find(|one| one["name"] == name.as_str()));
        let seen = seen.unwrap_or(&Value::Null);
        compare(format!("share of {name}"), &seen["access_share"], &seen["access_share_interval"], accesses / all);
        for (thread, own) in object["by_thread"].as_array().expect("threads").iter().enumerate() {
            let (got, interval) = (&seen["used_by_thread"][thread], &seen["used_by_thread_interval"][thread]);
            compare(format!("use of {name} by thread {thread}"), got, interval, count(own) / accesses);
        }
    }
    wrong
}

/// Profiles up to three times, because the evidence is a sample. Each try returns its report and the truth.
fn check_figures(test: &str, least_samples: u64, said: &str, profile: impl Fn() -> (Value, Value)) {
    let mut wrong = Vec::new();
    for attempt in 1..=TRIES {
        let (report, truth) = profile();
        let Some((samples, detail)) = samples(&report) else { return skipped(test, "performance events are forbidden here") };
        assert!(detail.contains(said), "{detail}");
        wrong = wrong_figures(&report, &truth);
        eprintln!("{test} try {attempt}: {samples} samples, wrong: {wrong:?}");
        if samples < least_samples {
            wrong.push(format!("{samples} samples"));
        }
        if wrong.is_empty() {
            return;
        }
    }
    panic!("{test}: {wrong:#?}");
}

/// Check that the figures of a program that was attached to are those that the program counts itself.
#[test]
fn attached_figures_are_true() {
    let name = "attached_figures_are_true";
    let (Some(firsttouch), Some(shares)) = (Firsttouch::find(name), program(name, "truth/known_shares")) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("attached.ftp");
    check_figures(name, 100, OUTSIDE, || {
        let running = Running::start(Command::new(&shares).args(["--threads", "2", "--seconds", "6"]), &[]);
        running.wait_for_stdout("ready");
        let pid = running.pid().to_string();
        let outcome = run(firsttouch.command(["profile", "--quiet", "--duration", "4", "--pid", &pid, "-o"]).arg(&file));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let ended = running.wait();
        assert_eq!((ended.status, ended.stderr_text().as_str()), (0, ""), "{ended:?}");
        (firsttouch.report_json(&file), truth(&ended.stdout_text()))
    });
}

/// Check that attaching to a program that mostly sleeps in system calls ends none of them early, as an ordinary user if possible: there the
/// kernel reports no ticks in system calls.
#[test]
fn attach_to_calls_that_sleep() {
    let name = "attach_to_calls_that_sleep";
    let (Some(firsttouch), Some(sleeping)) = (Firsttouch::find(name), program(name, "noharm/sleeping_calls")) else { return };
    let directory = temporary_directory();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).expect("the mode is set");
    let is_reachable = |path: &Path| run(Command::new("/usr/bin/test").arg("-x").arg(path).uid(NOBODY).gid(NOBODY)).status == 0;
    let as_nobody = is_root() && is_reachable(firsttouch.binary()) && is_reachable(&sleeping);
    let user = |mut command: Command| {
        command.current_dir(directory.path());
        if as_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    let bare = run(&mut user(Command::new(&sleeping)));
    let file = directory.path().join("sleeping.ftp");
    let running = Running::start(&mut user(Command::new(&sleeping)), &[]);
    running.wait_for_stdout("ready");
    let pid = running.pid().to_string();
    let attached = run(&mut user(firsttouch.command(["profile", "--quiet", "--pid", &pid, "-o", text(&file)])));
    assert_eq!(attached.status, 0, "{attached:?}");
    let ended = running.wait();
    assert_eq!((ended.status, ended.stdout_text(), ended.stderr_text()), (bare.status, bare.stdout_text(), bare.stderr_text()));
    assert!(ended.stdout_text().contains("calls that ended early: 0, short writes: 0, received whole"), "{ended:?}");
    let report = firsttouch.report_json(&file);
    let Some((samples, detail)) = samples(&report) else { return skipped(name, "performance events are forbidden here") };
    assert!(samples > 5 && detail.contains(OUTSIDE), "{samples} samples; {detail}");
}

/// Check that a static program, which cannot load the agent, gets samples, true figures and a verdict.
#[test]
fn static_binary_gets_samples_and_a_verdict() {
    let name = "static_binary_gets_samples_and_a_verdict";
    let (Some(firsttouch), Some(shares)) = (Firsttouch::find(name), program(name, "truth/known_shares_static")) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("static.ftp");
    check_figures(name, 100, OUTSIDE, || {
        let command = [text(&shares), "--threads", "2", "--seconds", "4"];
        let outcome = run(&mut firsttouch.profile(&file, &["--quiet"], &command));
        assert_eq!((outcome.status, outcome.program_stderr().as_str()), (0, ""), "{outcome:?}");
        let report = firsttouch.report_json(&file);
        let found: Vec<(&str, &str)> = report["findings"]
            .as_array()
            .map(|all| all.iter().filter_map(|one| Some((one["id"].as_str()?, one["object_name"].as_str()?))).collect())
            .unwrap_or_default();
        assert!(found.contains(&("serial-first-touch", "a")), "{found:?}");
        let truth = truth(&outcome.stdout_text());
        (report, truth)
    });
}

/// Check that threads which get no timer are sampled from outside, and those with one only by their timers.
#[test]
fn threads_without_timers_are_sampled_from_outside() {
    let name = "threads_without_timers_are_sampled_from_outside";
    let (Some(firsttouch), Some(shares)) = (Firsttouch::find(name), program(name, "truth/known_shares")) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("limited.ftp");
    let profile = |signals: Option<u64>| {
        let mut command = firsttouch.profile(&file, &["--quiet"], &[text(&shares), "--threads", "2", "--seconds", "4"]);
        if let Some(signals) = signals {
            let limit = libc::rlimit { rlim_cur: signals, rlim_max: signals };
            // SAFETY: setrlimit is async-signal-safe, and the limit is a value of its own.
            unsafe {
                command.pre_exec(move || {
                    libc::setrlimit(libc::RLIMIT_SIGPENDING, &raw const limit);
                    Ok(())
                });
            }
        }
        let outcome = run(&mut command);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        (firsttouch.report_json(&file), truth(&outcome.stdout_text()))
    };
    check_figures(name, 100, "2 threads got no timer", || profile(Some(0)));
    let Some((samples, detail)) = samples(&profile(None).0) else { return };
    assert!(samples > 100 && !detail.contains("outside"), "{samples} samples; {detail}");
}

/// Check that programs that start in another user or PID namespace, where the agent cannot record them, are judged by their mappings: as
/// fresh memory, with the cause that the agent was not there.
#[test]
fn other_namespaces() {
    let name = "other_namespaces";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let Ok(Built { path: serial, .. }) = build(&workspace_root().join("corpus/serial_loop.c")) else {
        return skipped(name, "gcc with OpenMP is not installed");
    };
    let directory = temporary_directory();
    for (options, unshare, cause) in
        [(&[][..], "-Ur", "another user namespace"), (&["--follow"][..], "-pf", "another PID namespace (unshare -p")]
    {
        if run(Command::new("unshare").args([unshare, "true"])).status != 0 {
            skipped(name, &format!("unshare {unshare} is refused"));
            continue;
        }
        let file = directory.path().join("unshared.ftp");
        let mut wrong = String::new();
        for _ in 0..TRIES {
            let outcome = run(&mut firsttouch.profile(&file, options, &["unshare", unshare, text(&serial)]));
            assert_eq!(outcome.status, 0, "{outcome:?}");
            let said = outcome.messages().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains("Evidence 'agent'") && said.contains(cause), "{said}");
            let report = firsttouch.report_json(&file);
            let findings: Vec<&str> = report["findings"].as_array().into_iter().flatten().filter_map(|one| one["id"].as_str()).collect();
            assert!(!findings.contains(&"recycled-memory"), "{said}");
            wrong = if findings == ["serial-first-touch"] { String::new() } else { said };
            if wrong.is_empty() {
                break;
            }
        }
        assert!(wrong.is_empty(), "{unshare}: {wrong}");
    }
}
