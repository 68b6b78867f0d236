// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `bench`: placement, impossible arguments, and odd sizes.

#![allow(clippy::unwrap_used, reason = "this file is a test")]

use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error};
use serde_json::Value;

const QUICK: [&str; 4] = ["--repetitions", "2", "--iterations", "1"];

fn measured(firsttouch: &Firsttouch, arguments: &[&str]) -> Value {
    let outcome = run(firsttouch.command(["bench"]).args(arguments).args(QUICK).arg("--json"));
    assert_eq!(outcome.status, 0, "{arguments:?}: {outcome:?}");
    serde_json::from_slice(&outcome.stdout).unwrap()
}

/// Check that `--place` places a kernel, with an affinity expression and with options of `run`.
#[test]
fn placed_as_run_does() {
    let Some(firsttouch) = Firsttouch::find("placed_as_run_does") else { return };
    let allowed = run(&mut firsttouch.command(["topology", "--json"]));
    let allowed: Value = serde_json::from_slice(&allowed.stdout).unwrap();
    let last = allowed["process"]["allowed_cpus"].as_array().unwrap().last().unwrap().as_u64().unwrap();
    let options = format!("-C {last} --membind 0");
    for place in [&last.to_string(), &options] {
        let bench = measured(&firsttouch, &["triad", "--elements", "100000", "--threads", "1", "--place", place]);
        assert_eq!((&bench["ran_on_cpus"], &bench["place"]), (&serde_json::json!([last]), &Value::from(place.as_str())), "{bench:#}");
    }
    let one = measured(&firsttouch, &["copy", "--elements", "100000", "--place", "compact:1"]);
    assert_eq!(one["threads"], 1, "{one:#}");
    for (place, said) in [("S999:0", "S999"), ("--membind 999", "999"), ("--no-such-option", "--no-such-option")] {
        let outcome = run(&mut firsttouch.command(["bench", "triad", "--place", place]));
        assert_clear_error(&outcome, &[1, 2], &[said]);
    }
}

/// Check that impossible sizes are rejected before anything is allocated.
#[test]
fn impossible_sizes() {
    let Some(firsttouch) = Firsttouch::find("impossible_sizes") else { return };
    for arguments in [
        &["dgemv", "--m", "0"][..],
        &["dgemv", "--n", "-5"],
        &["dgemv", "--m", "10000000", "--n", "10000000"],
        &["dgemv", "--m", "18446744073709551615", "--n", "3"],
        &["triad", "--elements", "0"],
        &["triad", "--elements", "99999999999999"],
        &["triad", "--threads", "0"],
        &["chase", "--lines", "0"],
        &["iso3dfd", "--n1", "16"],
        &["iso3dfd", "--n1", "2000000", "--n2", "2000000", "--n3", "2000000"],
        &["iso3dfd", "--n2-block", "0"],
    ] {
        let outcome = run(firsttouch.command(["bench"]).args(arguments));
        assert_clear_error(&outcome, &[1, 2], &[]);
    }
}

/// Check that kernels compute the correct result with odd sizes and blocks, and with more threads than CPUs.
#[test]
fn odd_sizes() {
    let Some(firsttouch) = Firsttouch::find("odd_sizes") else { return };
    for arguments in [
        &["dgemv", "--m", "1", "--n", "1"][..],
        &["dgemv", "--tuned", "--m", "7", "--n", "1001", "--threads", "5"],
        &["dmvm", "--m", "13", "--n", "5"],
        &["triad", "--elements", "1", "--threads", "3"],
        &["triad", "--elements", "100003", "--threads", "7", "--schedule", "guided,3"],
        &["chase", "--lines", "3"],
        &["iso3dfd", "--n1", "17", "--n2", "19", "--n3", "23"],
        &[
            "iso3dfd",
            "--n1",
            "45",
            "--n2",
            "33",
            "--n3",
            "61",
            "--n1-block",
            "7",
            "--n2-block",
            "5",
            "--n3-block",
            "1000",
            "--threads",
            "9",
        ],
    ] {
        let bench = measured(&firsttouch, arguments);
        assert!(bench["worst_error"].as_f64() < Some(1e-4), "{arguments:?}: {bench:#}");
    }
}
