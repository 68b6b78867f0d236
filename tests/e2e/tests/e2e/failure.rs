// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Missing permissions and failures: the program is not harmed, the recorded data are kept, and the message says what is wrong
//! and what to do. firsttouch never panics. (The profile's file has its own tests: `profile_file.rs`.)

use firsttouch_e2e::paths::find_tool;
use firsttouch_e2e::process::{Outcome, Running, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::skip::{is_root, skipped};
use firsttouch_e2e::terminal::run_on_terminal;
use firsttouch_e2e::tool::{Firsttouch, NOBODY, assert_clear_error, assert_no_panic, good_profile, temporary_directory, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

// ---------------------------------------------------------------------------------------------- missing permissions

fn check_forbidden(test: &str, error: &str) {
    let (Some(forbid), Some(ticker)) = (program(test, "noharm/forbid"), program(test, "noharm/ticker")) else {
        return;
    };
    let Some(firsttouch) = Firsttouch::find(test) else { return };
    let directory = temporary_directory();
    let (file, result) = (directory.path().join("forbidden.ftp"), directory.path().join("result"));
    let profile = firsttouch.profile(&file, &[], &[text(&ticker), "300", text(&result)]);
    let outcome = run(Command::new(&forbid).args([error, "perf"]).arg(profile.get_program()).args(profile.get_args()));
    assert_eq!(outcome.stdout_text(), "ready\ndone\n", "{outcome:?}");
    assert_eq!((outcome.status, outcome.program_stderr().as_str()), (0, ""), "{outcome:?}");
    assert_no_panic(&outcome);

    // Both `profile` and `report` must say so, because someone else may read the report later.
    let report = firsttouch.report(&file, &[]);
    assert_eq!(report.status, 0, "{report:?}");
    let report_text = report.stdout_text() + &report.messages();
    for (where_said, said) in [("profile", outcome.messages()), ("report", report_text)] {
        assert!(said.contains("perf_event_open"), "{where_said} does not name the missing call: {said}");
        let remedies = ["perf_event_paranoid", "CAP_PERFMON", "seccomp"];
        assert!(remedies.iter().any(|remedy| said.contains(remedy)), "{where_said} names no remedy: {said}");
    }
    firsttouch.report_json(&file);
}

#[test]
fn perf_event_open_forbidden_as_containers_do() {
    check_forbidden("perf_event_open_forbidden_as_containers_do", "EPERM");
}

#[test]
fn perf_event_open_forbidden_as_paranoid_3_does() {
    check_forbidden("perf_event_open_forbidden_as_paranoid_3_does", "EACCES");
}

#[test]
fn kernel_without_perf() {
    check_forbidden("kernel_without_perf", "ENOSYS");
}

/// Check that an unprivileged user, at this machine's paranoid level, gets first touches or a message that says why not.
#[test]
fn user_without_privileges() {
    let name = "user_without_privileges";
    let Some(ticker) = program(name, "noharm/ticker") else { return };
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("the mode is set");
    let (file, result) = (directory.path().join("user.ftp"), directory.path().join("result"));
    let mut command = firsttouch.profile(&file, &[], &[text(&ticker), "300", text(&result)]);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let outcome = run(command.current_dir(directory.path()));
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ready\ndone\n"), "{outcome:?}");
    let report = firsttouch.report_json(&file);
    let touched = report["evidence"]
        .as_array()
        .is_some_and(|all| all.iter().any(|one| one["source"] == "touch" && one["samples"].as_u64().unwrap_or_default() > 0));
    assert!(touched || outcome.messages().contains("perf_event_paranoid"), "{outcome:?}");
}

// --------------------------------------------------------------------------------------- targets that cannot be started

#[test]
fn target_not_found() {
    let Some(firsttouch) = Firsttouch::find("target_not_found") else { return };
    let directory = temporary_directory();
    let file = directory.path().join("x.ftp");
    for missing in ["no-such-program-anywhere", "/no/such/program", "./no-such-program"] {
        let outcome = run(firsttouch.profile(&file, &[], &[missing]).current_dir(directory.path()));
        assert_clear_error(&outcome, &[127], &[missing]);
    }
}

#[test]
fn target_not_executable() {
    let Some(firsttouch) = Firsttouch::find("target_not_executable") else { return };
    let directory = temporary_directory();
    let plain = directory.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").expect("the file is written");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("its mode is set");
    let file = directory.path().join("x.ftp");
    for target in [plain.as_path(), directory.path()] {
        assert_clear_error(&run(&mut firsttouch.profile(&file, &[], &[target])), &[126], &[text(target)]);
    }
}

/// Check that a script with a missing interpreter fails with a clear message.
#[test]
fn target_with_a_bad_interpreter() {
    let Some(firsttouch) = Firsttouch::find("target_with_a_bad_interpreter") else { return };
    let directory = temporary_directory();
    let script = directory.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").expect("the file is written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("its mode is set");
    let outcome = run(&mut firsttouch.profile(&directory.path().join("x.ftp"), &[], &[&script]));
    assert_clear_error(&outcome, &[126, 127], &[text(&script)]);
}

// ------------------------------------------------------------------------------------------------------ early termination

/// Check that firsttouch keeps the profile of a killed program, with its status.
#[test]
fn target_killed() {
    let name = "target_killed";
    let Some(die) = program(name, "noharm/die") else { return };
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("killed.ftp");
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGABRT, libc::SIGSEGV] {
        let outcome = run(&mut firsttouch.profile(&file, &[], &[text(&die), "signal", &signal.to_string()]));
        assert_eq!(outcome.status, 128 + signal, "{outcome:?}");
        assert_eq!(firsttouch.report_json(&file)["exit_code"], 128 + signal);
    }
}

/// Starts `program` profiled, waits for its "ready", does `act`, and checks that the profile is kept.
fn interrupted(test: &str, source: &str, arguments: &[&str], act: impl Fn(&Running)) -> Option<Outcome> {
    let program = program(test, source)?;
    let firsttouch = Firsttouch::find(test)?;
    let directory = temporary_directory();
    let file = directory.path().join("interrupted.ftp");
    let argv: Vec<&str> = std::iter::once(text(&program)).chain(arguments.iter().copied()).collect();
    let running = Running::start(firsttouch.profile(&file, &[], &argv).current_dir(directory.path()), &[]);
    running.wait_for_stdout("ready");
    act(&running);
    let outcome = running.wait();
    assert_no_panic(&outcome);
    let report = firsttouch.report_json(&file);
    assert_eq!(report["exit_code"], outcome.status, "{outcome:?}");
    Some(outcome)
}

#[test]
fn group_interrupt_ends_the_target() {
    let act = |running: &Running| running.signal_group(libc::SIGINT);
    let name = "group_interrupt_ends_the_target";
    let Some(outcome) = interrupted(name, "noharm/ticker", &["60000", "result"], act) else { return };
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (130, "ready\n"), "{outcome:?}");
}

#[test]
fn group_interrupt_is_the_targets_to_handle() {
    let act = |running: &Running| running.signal_group(libc::SIGINT);
    let name = "group_interrupt_is_the_targets_to_handle";
    let Some(outcome) = interrupted(name, "noharm/sigint_handler", &["wait"], act) else { return };
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (7, "ready\ninterrupted\n"), "{outcome:?}");
}

#[test]
fn interrupt_of_firsttouch_alone_is_forwarded() {
    let act = |running: &Running| running.signal(libc::SIGINT);
    let name = "interrupt_of_firsttouch_alone_is_forwarded";
    let Some(outcome) = interrupted(name, "noharm/sigint_handler", &["wait"], act) else { return };
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (7, "ready\ninterrupted\n"), "{outcome:?}");
}

#[test]
fn sigterm_to_firsttouch_alone_is_forwarded() {
    let act = |running: &Running| running.signal(libc::SIGTERM);
    let name = "sigterm_to_firsttouch_alone_is_forwarded";
    let Some(outcome) = interrupted(name, "noharm/ticker", &["60000", "result"], act) else { return };
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (143, "ready\n"), "{outcome:?}");
}

#[test]
fn sighup_to_firsttouch_alone_is_forwarded() {
    let act = |running: &Running| running.signal(libc::SIGHUP);
    let name = "sighup_to_firsttouch_alone_is_forwarded";
    let Some(outcome) = interrupted(name, "noharm/ticker", &["60000", "result"], act) else { return };
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (129, "ready\n"), "{outcome:?}");
}

/// Check with a true Ctrl-C: the kernel sends SIGINT to the target itself, so firsttouch must not send it again (many programs
/// exit immediately on the second one).
#[test]
fn control_c_reaches_the_target_once() {
    let name = "control_c_reaches_the_target_once";
    let Some(handler) = program(name, "noharm/sigint_handler") else { return };
    let (screen, status) = run_on_terminal(Command::new(&handler).arg("count"), "ready", b"\x03");
    assert!(status == 7 && screen.contains("interrupts 1"), "bare: {status} {screen}");
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("terminal.ftp");
    let mut command = firsttouch.profile(&file, &[], &[text(&handler), "count"]);
    let (screen, status) = run_on_terminal(&mut command, "ready", b"\x03");
    assert!(status == 7 && screen.contains("interrupts 1"), "profiled: {status} {screen}");
    assert_eq!(firsttouch.report_json(&file)["exit_code"], 7);
}

/// Check that if firsttouch is killed, the target completes its work and the profile is readable.
#[test]
fn firsttouch_killed_with_9() {
    let name = "firsttouch_killed_with_9";
    let Some(ticker) = program(name, "noharm/ticker") else { return };
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let (file, result) = (directory.path().join("killed.ftp"), directory.path().join("result"));
    let mut command = firsttouch.profile(&file, &[], &[text(&ticker), "3000", text(&result)]);
    let running = Running::start(&mut command, &[]);
    running.wait_for_stdout("ready");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    running.signal(libc::SIGKILL);
    let outcome = running.wait();
    assert_eq!(outcome.status, 137, "firsttouch's own status: {outcome:?}");
    assert_eq!(outcome.stdout_text(), "ready\ndone\n", "the target's output is complete: {outcome:?}");
    assert_eq!(fs::read_to_string(&result).expect("the program's result"), "wrong bytes 0\n");
    let report = firsttouch.report_json(&file);
    assert!(report["threads"].as_array().is_some_and(|threads| !threads.is_empty()), "the data recorded so far are kept: {report}");
    assert!(report["exit_code"].is_null(), "firsttouch did not see the program end: {report}");
}

// ------------------------------------------------------------------------------------------------------------- short targets

#[test]
fn target_runs_20_ms() {
    let name = "target_runs_20_ms";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let Some(file) = good_profile(name, &firsttouch, directory.path()) else { return };
    let report = firsttouch.report_json(&file);
    assert!(report["wall_s"].as_f64().is_some_and(|wall_s| (0.02..2.0).contains(&wall_s)), "{}", report["wall_s"]);
    let text_report = firsttouch.report(&file, &[]);
    assert_eq!(text_report.status, 0, "{text_report:?}");
    assert!(!text_report.stdout_text().contains("NaN"), "{}", text_report.stdout_text());
}

#[test]
fn target_does_nothing() {
    let name = "target_does_nothing";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("true.ftp");
    let outcome = run(&mut firsttouch.profile(&file, &[], &["/bin/true"]));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report = firsttouch.report_json(&file);
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(0), "{report}");
    assert!(!firsttouch.report(&file, &[]).stdout_text().contains("NaN"));
}

#[test]
fn static_binary_is_said_to_be_static() {
    let name = "static_binary_is_said_to_be_static";
    let Some(binary) = program(name, "noharm/static_binary") else { return };
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("static.ftp");
    let outcome = run(&mut firsttouch.profile(&file, &[], &[&binary]));
    let report = firsttouch.report(&file, &[]);
    assert_eq!((outcome.status, report.status), (0, 0), "{outcome:?} {report:?}");
    for (where_said, said) in [("profile", outcome.messages()), ("report", report.stdout_text())] {
        assert!(said.contains("static"), "{where_said} does not say that the binary is static: {said}");
    }
    // firsttouch reads the mappings periodically and the program runs for only 0.1 s, so try three times.
    let has_objects = (0..3).any(|_| {
        assert_eq!(run(&mut firsttouch.profile(&file, &["--quiet"], &[&binary])).status, 0);
        firsttouch.report_json(&file)["objects"].as_array().is_some_and(|objects| !objects.is_empty())
    });
    assert!(has_objects, "the mappings of a static binary are its objects");
}

// ----------------------------------------------------------------------------------------------------------- attaching

#[test]
fn attach_to_nobody() {
    let Some(firsttouch) = Firsttouch::find("attach_to_nobody") else { return };
    let directory = temporary_directory();
    let attach = |pid: &str| {
        let mut command = firsttouch.command(["profile", "--duration", "1", "--pid", pid]);
        run(command.current_dir(directory.path()))
    };
    // A PID above the highest pid_max that the kernel allows, and the PID of a process that has ended.
    let mut ended = Command::new("/bin/true").spawn().expect("true starts");
    let ended_pid = ended.id().to_string();
    ended.wait().expect("true ends");
    for pid in ["4194305", &ended_pid] {
        assert_clear_error(&attach(pid), &[1], &[pid]);
    }
    for nonsense in ["0", "-1", "abc", "99999999999999999999"] {
        let outcome = attach(nonsense);
        assert_no_panic(&outcome);
        assert!([1, 2].contains(&outcome.status), "{nonsense}: {outcome:?}");
    }
}

#[test]
fn attach_to_another_users_process() {
    let name = "attach_to_another_users_process";
    if !is_root() {
        // PID 1 belongs to another user.
        let Some(firsttouch) = Firsttouch::find(name) else { return };
        let directory = temporary_directory();
        let mut command = firsttouch.command(["profile", "--duration", "1", "--pid", "1"]);
        return assert_clear_error(&run(command.current_dir(directory.path())), &[1], &["1"]);
    }
    let Some(ticker) = program(name, "noharm/ticker") else { return };
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("the mode is set");
    let running = Running::start(Command::new(&ticker).arg("3000").arg(directory.path().join("result")), &[]);
    running.wait_for_stdout("ready");
    let pid = running.pid().to_string();
    let mut command = firsttouch.command(["profile", "--duration", "1", "--pid", &pid]);
    let outcome = run(command.uid(NOBODY).gid(NOBODY).current_dir(directory.path()));
    assert_clear_error(&outcome, &[1], &["(ticker) belongs to user root (0)", "sudo"]);
    assert_eq!(outcome.messages().matches(&format!("process {pid}")).count(), 1, "{outcome:?}");
    assert_eq!(running.wait().stdout_text(), "ready\ndone\n");
}

/// Check that processes which outlive the program are named, recorded or not, where performance events are forbidden too; that `--wait` records them
/// to their end, also a daemon that left its parents and its session; and that the exit status is the program's.
#[test]
fn processes_that_outlive_the_program() {
    let name = "processes_that_outlive_the_program";
    let (Some(firsttouch), Some(ticker)) = (Firsttouch::find(name), program(name, "noharm/ticker")) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("left.ftp");
    let result = directory.path().join("result");
    let script = format!("(setsid {} 800 {} >/dev/null 2>&1 &); exit 4", text(&ticker), text(&result));
    let forbid = program(name, "noharm/forbid");
    for (options, is_named, is_forbidden) in [
        (&["--quiet"][..], true, false),
        (&["--quiet"], true, true),
        (&["--quiet", "--follow"], true, false),
        (&["--quiet", "--wait"], false, false),
    ] {
        let mut command = firsttouch.profile(&file, options, &["sh", "-c", &script]);
        if is_forbidden {
            let Some(forbid) = &forbid else { continue };
            let mut forbidden = Command::new(forbid);
            forbidden.args(["EPERM", "perf"]).arg(command.get_program()).args(command.get_args());
            command = forbidden;
        }
        let outcome = run(&mut command);
        assert_eq!(outcome.status, 4, "{outcome:?}");
        let report = firsttouch.report_json(&file);
        let causes = report["verdict"]["causes"].to_string();
        assert_eq!(causes.contains("1 process of the program still runs and is no longer recorded"), is_named, "{causes}");
        assert_eq!(report["wall_s"].as_f64().is_some_and(|wall| wall < 0.7), is_named, "{report}");
        assert_eq!(report["exit_code"], 4);
    }
}

/// Check that `--wait` ends when the last process does, not at the next of the rare looks at everything (0.125 s after the start, then every
/// 0.5 s). On a loaded machine, one of three tries suffices.
#[test]
fn waiting_ends_with_the_last_process() {
    let Some(firsttouch) = Firsttouch::find("waiting_ends_with_the_last_process") else { return };
    let directory = temporary_directory();
    let file = directory.path().join("wait.ftp");
    let wall_s = || {
        let command = ["sh", "-c", "sleep 0.7 >/dev/null 2>&1 & exit 0"];
        assert_eq!(run(&mut firsttouch.profile(&file, &["--quiet", "--wait"], &command)).status, 0);
        firsttouch.report_json(&file)["wall_s"].as_f64().expect("a time")
    };
    let times: Vec<f64> = (0..3).map(|_| wall_s()).collect();
    assert!(times.iter().all(|time| *time >= 0.7) && times.iter().any(|time| *time < 0.95), "{times:?}");
}

/// Check that attaching says what is recorded and until when, shows the progress on a terminal, and ends with Ctrl-C; and that a launched
/// program has the terminal for itself.
#[test]
fn recordings_say_that_they_go_on() {
    let name = "recordings_say_that_they_go_on";
    let (Some(firsttouch), Some(ticker)) = (Firsttouch::find(name), program(name, "noharm/ticker")) else { return };
    let directory = temporary_directory();
    let (file, result) = (directory.path().join("live.ftp"), directory.path().join("result"));
    let mut running = Command::new(&ticker).args(["20000", text(&result)]).stdout(Stdio::null()).spawn().expect("it starts");
    let pid = running.id().to_string();
    let mut attach = firsttouch.command(["profile", "--pid", &pid, "--duration", "30", "-o", text(&file)]);
    let (screen, status) = run_on_terminal(&mut attach, "recording: 2 s", b"\x03");
    running.kill().expect("it runs");
    running.wait().expect("it was killed");
    assert_eq!(status, 0, "{screen}");
    assert!(screen.contains(&format!("recording process {pid} (ticker) for 30 s, until it ends, or until Ctrl-C")), "{screen}");
    assert!(screen.contains(" threads, ") && screen.contains(" first touches"), "{screen}");
    let (screen, _) = run_on_terminal(&mut firsttouch.profile(&file, &[], &["sleep", "3"]), "", b"");
    assert!(!screen.contains("recording: "), "the program may write to this terminal: {screen}");
}

/// Check that memory which numactl interleaves is interleaved on a virtual machine too.
#[test]
fn policies_are_recorded_on_one_node() {
    let name = "policies_are_recorded_on_one_node";
    let (Some(firsttouch), Some(dgemv)) = (Firsttouch::find(name), program(name, "truth/dgemv")) else { return };
    if find_tool("numactl").is_none() {
        return skipped(name, "numactl is not installed");
    }
    let directory = temporary_directory();
    let file = directory.path().join("policy.ftp");
    let words = ["numactl", "--interleave=all", text(&dgemv), "--threads", "2", "--mib", "32", "--init", "parallel", "--seconds", "2"];
    assert_eq!(run(&mut firsttouch.profile(&file, &["--quiet"], &words)).status, 0);
    let report: serde_json::Value =
        serde_json::from_slice(&firsttouch.report(&file, &["--machine", "virtual:2", "--json"]).stdout).expect("JSON");
    let array = report["objects"].as_array().and_then(|objects| objects.iter().find(|one| one["name"] == "A")).expect("A");
    assert!(array["policy"].as_str().is_some_and(|policy| policy.starts_with("interleave")), "{array}");
    assert!(array["remote_fraction"].as_f64().is_none_or(|remote| remote > 0.3), "{array}");
}
