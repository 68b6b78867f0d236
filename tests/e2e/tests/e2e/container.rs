// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every command in a container whose seccomp filter forbids perf_event_open and the calls for memory policies, with EPERM as
//! Docker does, and with ENOSYS as sandboxes do. Programs run unharmed, each missing source is named with the way to enable it,
//! and everything else is shown.

use firsttouch_e2e::process::{Outcome, Running, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::skip::is_root;
use firsttouch_e2e::tool::{Firsttouch, NOBODY, assert_clear_error, assert_no_panic, temporary_directory, text};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const ERRORS: [&str; 2] = ["EPERM", "ENOSYS"];

/// firsttouch in a container whose filter returns `error`.
struct Container {
    forbid: PathBuf,
    firsttouch: Firsttouch,
    error: &'static str,
}

/// One container for each error. Reports a skip and returns none if a program is missing.
fn containers(test: &str) -> Vec<Container> {
    let (Some(forbid), Some(firsttouch)) = (program(test, "noharm/forbid"), Firsttouch::find(test)) else { return Vec::new() };
    ERRORS.iter().map(|error| Container { forbid: forbid.clone(), firsttouch: firsttouch.clone(), error }).collect()
}

impl Container {
    fn command(&self, command: &Command) -> Command {
        let mut inside = Command::new(&self.forbid);
        inside.args([self.error, "perf,memory"]).arg(command.get_program()).args(command.get_args());
        inside
    }

    /// Runs a command of firsttouch that must succeed.
    fn succeeds(&self, arguments: &[&str]) -> Outcome {
        let outcome = run(&mut self.command(&self.firsttouch.command(arguments)));
        assert_no_panic(&outcome);
        assert_eq!(outcome.status, 0, "{} {arguments:?}: {outcome:?}", self.error);
        outcome
    }

    /// The command's output with `--json`.
    fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let outcome = self.succeeds(&arguments);
        serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| panic!("{arguments:?} is not JSON ({error}): {outcome:?}"))
    }

    /// Profiles a program that sleeps 300 ms. Returns the file and the outcome.
    fn profile(&self, ticker: &Path, folder: &Path) -> (PathBuf, Outcome) {
        let file = folder.join(format!("{}.ftp", self.error));
        let profile = self.firsttouch.profile(&file, &[], &[text(ticker), "300", text(&folder.join("result"))]);
        (file, run(&mut self.command(&profile)))
    }
}

/// Joins the lines of a text, because sentences may be wrapped at any space.
fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_says(said: &str, wanted: &[&str]) {
    let said = unfolded(said);
    for wanted in wanted {
        assert!(said.contains(wanted), "{wanted:?} is missing: {said}");
    }
}

/// The names of the forbidden calls and the ways to allow them, as the messages for each error have them.
fn missing(error: &str) -> [&'static str; 4] {
    match error {
        "EPERM" => {
            ["allow perf_event_open in the seccomp profile", "CAP_PERFMON", "move_pages is forbidden", "--security-opt seccomp=FILE"]
        }
        _ => [
            "has no perf_event_open",
            "allow the call in the sandbox's seccomp profile",
            "has no move_pages",
            "--security-opt seccomp=FILE",
        ],
    }
}

/// Check that a profiled program runs unchanged, and that profile and report name each missing source and the way to enable it. Check
/// that a report made in a container succeeds.
#[test]
fn profile_and_report() {
    let name = "profile_and_report";
    let Some(ticker) = program(name, "noharm/ticker") else { return };
    for container in containers(name) {
        let folder = temporary_directory();
        let (file, outcome) = container.profile(&ticker, folder.path());
        assert_no_panic(&outcome);
        assert_eq!(
            (outcome.status, outcome.stdout_text().as_str(), outcome.program_stderr().as_str()),
            (0, "ready\ndone\n", ""),
            "{outcome:?}"
        );
        assert_eq!(std::fs::read_to_string(folder.path().join("result")).expect("the program's result"), "wrong bytes 0\n");
        let report = container.succeeds(&["report", text(&file)]);
        for said in [outcome.messages(), report.stdout_text()] {
            assert_says(&said, &missing(container.error));
            assert_says(&said, &["Evidence 'touch' not available", "Evidence 'watch' not available", "Evidence 'resident' not available"]);
            assert!(!unfolded(&said).contains("Longer runs"), "longer runs would not help: {said}");
        }
        let report = container.json(&["report", text(&file)]);
        assert_eq!(report["exit_code"], 0);
        assert!(report["objects"].as_array().is_some_and(|objects| !objects.is_empty()), "the agent saw the allocations: {report}");
        assert!(report["threads"].as_array().is_some_and(|threads| threads.len() > 1), "{report}");
        // Attaching uses the same calls.
        let running = Running::start(Command::new(&ticker).args(["3000", text(&folder.path().join("attached"))]), &[]);
        running.wait_for_stdout("ready");
        let file = folder.path().join("attached.ftp");
        let outcome = container.succeeds(&["profile", "-o", text(&file), "--duration", "0.5", "--pid", &running.pid().to_string()]);
        assert_says(&outcome.messages(), &missing(container.error)[..2]);
        assert_eq!(running.wait().stdout_text(), "ready\ndone\n");
    }
}

/// Check that the whole machine is shown, and that the policy comes from /proc if the system call is forbidden.
#[test]
fn topology() {
    let name = "topology";
    let Some(outside) = Firsttouch::find(name) else { return };
    let bare: Value = serde_json::from_slice(&run(&mut outside.command(["topology", "--json"])).stdout).expect("JSON");
    for container in containers(name) {
        let inside = container.json(&["topology"]);
        for key in ["cpus", "packages", "cores", "caches", "distances"] {
            assert_eq!(inside[key], bare[key], "{key}");
        }
        let reported = container.succeeds(&["topology"]).stdout_text();
        assert_says(&reported, &["get_mempolicy failed", "docker run --cap-add SYS_NICE allows it"]);
        if inside["process"]["policy"].is_object() {
            assert_eq!(inside["process"]["policy"]["source"], "numa_maps");
            assert_says(&reported, &["taken from /proc/self/numa_maps"]);
        }
    }
}

/// Check that the doctor names each forbidden call and the way to allow it.
#[test]
fn doctor() {
    for container in containers("doctor") {
        let found = container.json(&["doctor"]);
        let findings: Vec<&str> = found["findings"].as_array().expect("findings").iter().filter_map(|one| one["id"].as_str()).collect();
        assert!(findings.contains(&"perf-forbidden"), "{found}");
        assert!(findings.contains(&"mempolicy-forbidden"), "{found}");
        let reported = container.succeeds(&["doctor"]).stdout_text();
        assert_says(&reported, &["perf_event_open:", container.error, "--cap-add PERFMON", "Seccomp: 2"]);
        container.succeeds(&["doctor", "--", "/bin/sh"]);
    }
}

/// Check that samples of registers suffice for a verdict: one thread initialises an array that four threads use in blocks. The array is so large
/// that its initialisation takes dozens of ticks.
#[test]
fn a_verdict_without_perf() {
    let name = "a_verdict_without_perf";
    let Some(program) = program(name, "truth/dgemv") else { return };
    let command = [text(&program), "--threads", "4", "--seconds", "3", "--mib", "1024", "--init", "serial"];
    for container in containers(name) {
        let folder = temporary_directory();
        let file = folder.path().join("serial.ftp");
        let profile = container.firsttouch.profile(&file, &["--quiet"], &command);
        let outcome = run(&mut container.command(&profile));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let report = container.json(&["report", text(&file)]);
        let finding = &report["findings"][0];
        assert_eq!((finding["id"].as_str(), finding["object_name"].as_str()), (Some("serial-first-touch"), Some("A")), "{report:#}");
        assert_eq!(report["remote_evidence"], "sample", "{report:#}");
        let bound = |index: usize| report["remote_interval"][index].as_f64().unwrap_or(f64::NAN);
        assert!(bound(0) < 0.5 && 0.5 < bound(1) && bound(1) - bound(0) < 0.4, "{report:#}");
    }
}

/// Check the views of a running process and of the system: only the nodes of a profile's objects need a forbidden call.
#[test]
fn views_of_a_running_system() {
    let name = "views_of_a_running_system";
    let Some(ticker) = program(name, "noharm/ticker") else { return };
    for container in containers(name) {
        let folder = temporary_directory();
        let running = Running::start(Command::new(&ticker).args(["6000", text(&folder.path().join("result"))]), &[]);
        running.wait_for_stdout("ready");
        let pid = running.pid().to_string();
        let file = folder.path().join("ticker.ftp");
        // Make the profile outside the container, where all sources are available.
        let outcome = run(&mut container.firsttouch.command(["profile", "--quiet", "-o", text(&file), "--duration", "0.5", "--pid", &pid]));
        assert_eq!(outcome.status, 0, "{outcome:?}");

        let threads = container.json(&["ps", &pid]);
        assert!(threads["processes"][0]["threads"].as_array().is_some_and(|threads| threads.len() > 1), "{threads}");
        container.succeeds(&["ps", &pid]);
        let maps = container.json(&["maps", &pid]);
        assert!(maps["processes"][0]["mappings"].as_array().is_some_and(|mappings| mappings.len() > 3), "{maps}");
        let reported = container.succeeds(&["maps", &pid, "--profile", text(&file)]).stdout_text();
        assert_says(&reported, &missing(container.error)[2..]);

        let counters = container.json(&["stat"]);
        assert!(counters["system"].as_object().is_some_and(|system| !system.is_empty()), "{counters}");
        container.succeeds(&["stat"]);
        assert_eq!(container.json(&["balancing"])["schema"], "firsttouch.balancing/1");
        container.succeeds(&["balancing"]);
        assert_eq!(running.wait().stdout_text(), "ready\ndone\n", "the process ran undisturbed");
    }
}

/// Check that a program under `stat` keeps its output and status, and that `balancing measure` names the missing capability.
#[test]
fn commands_are_run_unharmed() {
    for container in containers("commands_are_run_unharmed") {
        let script = "echo out; echo err >&2; exit 7";
        let outcome = run(&mut container.command(&container.firsttouch.command(["stat", "--", "/bin/sh", "-c", script])));
        assert_no_panic(&outcome);
        assert_eq!((outcome.status, outcome.stdout_text().as_str()), (7, "out\n"), "{outcome:?}");
        assert!(outcome.stderr_text().starts_with("err\n") && outcome.stderr_text().contains("numa_hit"), "{outcome:?}");
        // Not as root, because a test must not change the machine's settings.
        let mut measure = container.command(&container.firsttouch.command(["balancing", "measure", "--rounds", "1", "--", "/bin/true"]));
        if is_root() {
            measure.uid(NOBODY).gid(NOBODY);
        }
        assert_clear_error(&run(&mut measure), &[1], &["CAP_SYS_ADMIN"]);
    }
}

/// Check that the bundled program runs and checks its result, and that the demo reports that it cannot show its findings, and why.
#[test]
fn bundled_programs() {
    for container in containers("bundled_programs") {
        let sizes =
            ["bench", "dgemv", "--init", "serial", "--m", "512", "--n", "512", "--iterations", "3", "--repetitions", "1", "--threads", "2"];
        let bench = container.json(&sizes);
        assert!(bench["seconds"]["median"].as_f64().is_some_and(|seconds| seconds > 0.0), "{bench}");
        let outcome = run(&mut container.command(&container.firsttouch.command(["demo"])));
        assert_no_panic(&outcome);
        assert_eq!(outcome.status, 1, "{outcome:?}");
        let reported = outcome.stdout_text();
        assert_says(&reported, &missing(container.error)[..2]);
        assert_says(&reported, &["cannot be shown here"]);
    }
}
