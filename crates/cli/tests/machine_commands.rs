//! The commands about a machine and its processes.

use crate::{firsttouch, text};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Check that every kernel runs with every initialisation, and prints its figures.
#[test]
fn every_kernel_runs() {
    let streams =
        ["copy", "scale", "add", "triad", "read", "write", "schoenauer"].map(|name| (name, &["--elements", "10000"][..], "gb_per_s"));
    let others = [
        ("dgemv", &["--tuned", "--m", "33", "--n", "70"][..], "gflops"),
        ("dmvm", &["--m", "33", "--n", "70"], "gflops"),
        ("chase", &["--lines", "1000", "--iterations", "2000"], "latency_ns"),
        ("iso3dfd", &["--n1", "40", "--n2", "33", "--n3", "29", "--n2-block", "5"], "mpoints_per_s"),
    ];
    for (kernel, sizes, figure) in streams.into_iter().chain(others) {
        for init in ["serial", "parallel", "mismatched", "blocked"] {
            let output =
                firsttouch(&[&["bench", kernel, "--init", init, "--repetitions", "2", "--threads", "2", "--json"], sizes].concat());
            assert!(output.status.success(), "{kernel}: {}", text(&output.stderr));
            let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!((&value["kernel"], &value["init"], &value["threads"]), (&kernel.into(), &init.into(), &2.into()));
            let speed = |name: &str| value[figure][name].as_f64().unwrap();
            assert!(0.0 < speed("min") && speed("min") <= speed("median") && speed("median") <= speed("max"), "{kernel} {value}");
        }
    }
}

/// Check the table and the SVG figure for several team sizes.
#[test]
fn bench_shows_scaling() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("triad.svg");
    let arguments = ["bench", "triad", "--elements", "50000", "--scaling", "1,2,3", "--repetitions", "3"];
    let output = firsttouch(&[&arguments[..], &["--svg", picture.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("       ")).collect();
    assert!(rows.len() == 3 && rows[0].trim_start().starts_with('1') && rows[0].ends_with("1.00"), "{table}");
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg "));
    let output = firsttouch(&[&arguments[..], &["--json"]].concat());
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let teams: Vec<u64> = value["scaling"].as_array().unwrap().iter().map(|team| team["threads"].as_u64().unwrap()).collect();
    assert_eq!(teams, [1, 2, 3]);
    assert_eq!((&value["threads"], value["scaling"][0]["speedup"].as_f64()), (&3.into(), Some(1.0)));
}

/// Check the JSON of bench: the keys, and that the values are consistent.
#[test]
fn bench_prints_json() {
    let arguments = ["bench", "dgemv", "--init", "serial", "--m", "64", "--n", "32", "--threads", "3", "--repetitions", "3"];
    let output = firsttouch(&[&arguments[..], &["--schedule", "dynamic,4", "--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["kernel"], "dgemv");
    assert_eq!(value["threads"], 3);
    assert_eq!(value["init"], "serial");
    assert_eq!(value["schedule"], "dynamic,4");
    assert_eq!(value["bytes"], 8 * (64 * 32 + 64 + 32));
    for key in ["seconds", "gb_per_s", "gflops"] {
        let figure = |name: &str| value[key][name].as_f64().unwrap();
        assert!(0.0 < figure("min") && figure("min") <= figure("median") && figure("median") <= figure("max"), "{key}");
    }
}

/// Check `topology`: text, JSON, and files with the format of their name, for this system, a recorded one, and hwloc's XML.
#[test]
fn topology_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let recorded = fixtures.join("machines/constructed-nps4").display().to_string();
    let shown = firsttouch(&["topology"]);
    assert!(shown.status.success() && text(&shown.stdout).contains("\nNodes\n") && shown.stderr.is_empty());
    let json = firsttouch(&["topology", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["schema"], "firsttouch.topology/1");
    assert!(!value["cpus"]["online"].as_array().unwrap().is_empty());

    let [svg, xml] = ["a.svg", "a.xml"].map(|name| folder.path().join(name).display().to_string());
    let written = firsttouch(&["topology", "-i", &recorded, "--svg", &svg, "--xml", &xml]);
    assert!(written.status.success() && written.stdout.is_empty() && written.stderr.is_empty(), "{written:?}");
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg "));
    let again = firsttouch(&["topology", "--input", &xml, "--xml", "-"]);
    assert!(again.status.success() && again.stdout.starts_with(b"<?xml "));

    for (arguments, message) in [
        (&["topology", "-i", "/nonexistent.xml"][..], "cannot read /nonexistent.xml: No such file or directory"),
        (&["topology", "-i", &svg], "it is not an hwloc topology: the first element is 'svg'"),
        (&["topology", "-i", folder.path().to_str().unwrap()], "cannot find the machine's CPUs"),
        (&["topology", "--svg", "/nonexistent/a.svg"], "cannot write /nonexistent/a.svg: No such file or directory"),
    ] {
        let output = firsttouch(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
}

/// Check that `stat` passes on a program's exit status and signals, reports on stderr, and leaves stdout to the program and to JSON.
#[test]
fn stat_passes_the_status_on() {
    for (script, status) in [("echo out; exit 0", 0), ("echo out; exit 9", 9), ("echo out; kill -TERM $$", 143)] {
        let output = firsttouch(&["stat", "--", "sh", "-c", script]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(status), "out\n"), "{script}");
        assert!(text(&output.stderr).contains(&format!("exit status {status}")), "{}", text(&output.stderr));
    }
    let missing = firsttouch(&["stat", "--json", "/nonexistent/program"]);
    assert_eq!((missing.status.code(), missing.stdout.len()), (Some(127), 0));
    let json = firsttouch(&["stat", "--json", "--", "sh", "-c", "exit 4"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((json.status.code(), &value["span"], &value["exit_code"]), (Some(4), &"command".into(), &4.into()));
    assert_eq!(value["command"], serde_json::json!(["sh", "-c", "exit 4"]));
}

/// Check that a signal sent to `stat` reaches the program, and that `stat` ends with the program's status.
#[test]
fn stat_passes_signals_on() {
    let script = "trap 'exit 5' USR1; echo ready; while :; do sleep 0.05; done";
    let mut child = Command::new(env!("CARGO_BIN_EXE_firsttouch"))
        .args(["stat", "--", "sh", "-c", script])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut ready).unwrap();
    assert!(Command::new("kill").args(["-USR1", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

/// Check intervals: one, several as lines of JSON, and that they end if the reader closes the pipe.
#[test]
fn stat_of_intervals() {
    let one = firsttouch(&["stat", "--interval", "50ms"]);
    assert!(one.status.success() && text(&one.stdout).starts_with("Counts of 0."), "{}", text(&one.stdout));
    let lines = firsttouch(&["stat", "--watch", "--count", "2", "-i", "20ms", "--json"]);
    let reported: Vec<serde_json::Value> = text(&lines.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(reported.len() == 2 && reported.iter().all(|one| one["wall_s"].as_f64().unwrap() >= 0.02));
    let table = firsttouch(&["stat", "--watch", "--count", "3", "-I", "10ms"]);
    let rows: Vec<&str> = text(&table.stdout).lines().collect();
    let heading = rows.iter().position(|line| line.trim_start().starts_with("seconds")).unwrap();
    assert!(
        heading == rows.len() - 4 && rows.iter().any(|row| row.contains("numa_hit: ")),
        "one line an interval: {}",
        text(&table.stdout)
    );
    let script = "timeout 20 \"$0\" stat --watch -i 10ms | head -n 1; exit \"${PIPESTATUS[0]}\"";
    let ended = Command::new("bash").args(["-c", script, env!("CARGO_BIN_EXE_firsttouch")]).output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    for wrong in [&["stat", "--watch", "--", "true"][..], &["stat", "-i", "0"], &["stat", "--count", "2"], &["stat", "-i", "1", "true"]] {
        assert_eq!(firsttouch(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

/// Check `ps` and `maps` of a process that this test started, by PID, and their errors for a process that does not exist.
#[test]
fn processes_are_shown() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = child.id().to_string();
    let shown = [&["ps", &pid][..], &["maps", &pid, "--all"], &["ps", &pid, "--json"], &["maps", &pid, "--json"]].map(firsttouch);
    child.kill().unwrap();
    child.wait().unwrap();
    for output in &shown {
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    }
    assert!(text(&shown[0].stdout).starts_with(&format!("sleep ({pid}): 1 thread, ")), "{}", text(&shown[0].stdout));
    assert!(text(&shown[1].stdout).contains("[stack]"), "{}", text(&shown[1].stdout));
    let [ps, maps] = [2, 3].map(|index: usize| serde_json::from_slice::<serde_json::Value>(&shown[index].stdout).unwrap());
    assert_eq!((&ps["schema"], &ps["processes"][0]["threads"][0]["name"]), (&"firsttouch.ps/1".into(), &"sleep".into()));
    assert_eq!((&maps["schema"], &maps["processes"][0]["pid"]), (&"firsttouch.maps/1".into(), &child.id().into()));
    for command in ["ps", "maps"] {
        let gone = firsttouch(&[command, "99999999"]);
        assert_eq!(gone.status.code(), Some(1));
        assert!(text(&gone.stderr).contains("cannot find process 99999999: it has ended, or never existed"), "{}", text(&gone.stderr));
    }
}

/// Check `balancing`: its state, and that a command line without a program to measure is an error. The test changes no setting.
#[test]
fn balancing_is_shown() {
    let shown = firsttouch(&["balancing"]);
    assert!(shown.status.success() && text(&shown.stdout).starts_with("NUMA balancing is "), "{}", text(&shown.stdout));
    let json: serde_json::Value = serde_json::from_slice(&firsttouch(&["balancing", "--json"]).stdout).unwrap();
    assert_eq!(json["schema"], "firsttouch.balancing/1");
    for wrong in [&["balancing", "measure"][..], &["balancing", "measure", "--rounds", "0", "true"], &["balancing", "maybe"]] {
        assert_eq!(firsttouch(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
