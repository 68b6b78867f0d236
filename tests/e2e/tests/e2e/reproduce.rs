// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch reproduce`: every experiment at a small size, its output, and invalid arguments.

use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, temporary_directory, text};
use serde_json::Value;
use std::fs;

const NAMES: [&str; 8] = [
    "dgemv-scaling",
    "dgemv-first-touch",
    "balancing",
    "iso3dfd-first-touch",
    "one-socket-two-sockets",
    "map-scan",
    "triad-domains",
    "dmvm-variability",
];
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

fn reproduce(firsttouch: &Firsttouch, words: &[&str]) -> Outcome {
    run(firsttouch.command([&["reproduce"], words].concat()).env_remove("COLUMNS"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no list '{key}' in {value}"))
}

/// Check that the list has an entry for every experiment, within the width, and that the JSON list has the same experiments.
#[test]
fn experiments_are_listed() {
    let Some(firsttouch) = Firsttouch::find("experiments_are_listed") else { return };
    let shown = reproduce(&firsttouch, &["--list"]).stdout_text();
    // Further lines of an experiment begin with spaces.
    let lines: Vec<&str> = shown.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(lines.len(), NAMES.len(), "{shown}");
    for (line, name) in lines.iter().zip(NAMES) {
        assert!(line.starts_with(&format!("{name} ")) && line.len() > name.len() + 20, "{line}");
    }
    assert!(shown.lines().all(|line| line.len() <= 100), "{shown}");
    let json: Value = serde_json::from_slice(&reproduce(&firsttouch, &["--list", "--json"]).stdout).expect("JSON");
    let names: Vec<&str> = list(&json, "experiments").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!((json["schema"].as_str(), &names[..]), (Some("firsttouch.reproduce-list/1"), &NAMES[..]));
}

/// Check that an unknown name, a size that does not fit or a file that cannot be written is an error before anything runs.
#[test]
fn what_cannot_be_is_refused() {
    let Some(firsttouch) = Firsttouch::find("what_cannot_be_is_refused") else { return };
    let unknown = reproduce(&firsttouch, &["dgemv-scalling"]);
    assert_clear_error(&unknown, &[2], &["dgemv-scalling"]);
    assert!(NAMES.iter().all(|name| unknown.stderr_text().contains(name)), "every name is listed: {unknown:?}");
    for (words, status, reported) in [
        (&["map-scan", "--runs", "0"][..], 2, "0"),
        (&["map-scan", "--size", "1K"], 2, "too small"),
        (&["map-scan", "--size", "100000G"], 2, "does not fit"),
        (&["map-scan", "--size", "-1"], 2, "-1"),
        (&["map-scan", "--list"], 2, "--list"),
        (&["map-scan", "--svg", "/nonexistent/figure.svg"], 1, "cannot write /nonexistent/figure.svg"),
    ] {
        let outcome = reproduce(&firsttouch, words);
        assert_clear_error(&outcome, &[status], &[]);
        assert!(outcome.stderr_text().contains(reported), "{words:?}: {outcome:?}");
    }
}

/// Check a measured figure of a table: minimum, median and maximum are in order, and the number of runs is as requested.
fn check_measured(cell: &Value, runs: usize) {
    let figure = |key: &str| cell[key].as_f64().unwrap_or_else(|| panic!("no {key}: {cell}"));
    assert!(figure("min") <= figure("median") && figure("median") <= figure("max"), "{cell}");
    let count = list(cell, "runs").len();
    assert!(count == runs || count == 1, "{count} runs: {cell}");
}

/// Check each experiment's JSON: complete tables, published or predicted figures, measured figures, and effects that one node cannot
/// show.
#[test]
fn every_experiment_runs() {
    let Some(firsttouch) = Firsttouch::find("every_experiment_runs") else { return };
    for name in NAMES {
        let before = fs::read_to_string(BALANCING).ok();
        let outcome = reproduce(&firsttouch, &[name, "--size", "1M", "--runs", "2", "--json"]);
        assert_eq!((outcome.status, outcome.messages().as_str()), (0, ""), "{name}: {outcome:?}");
        assert_eq!(fs::read_to_string(BALANCING).ok(), before, "{name} changed the balancing");
        let json: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
        assert_eq!((json["schema"].as_str(), json["experiment"].as_str()), (Some("firsttouch.reproduce/1"), Some(name)));
        let mut seen = std::collections::BTreeSet::new();
        for table in list(&json, "tables") {
            let columns = list(table, "columns");
            assert!(!list(table, "rows").is_empty(), "{name}: {table}");
            for row in list(table, "rows") {
                assert_eq!(
                    (list(row, "labels").len(), list(row, "cells").len()),
                    (list(table, "heads").len(), columns.len()),
                    "{name}: {row}"
                );
                for (cell, column) in list(row, "cells").iter().zip(columns).filter(|(cell, _)| !cell.is_null()) {
                    let source = column["source"].as_str().unwrap_or_default();
                    seen.insert(source.to_owned());
                    match source {
                        "measured" => check_measured(cell, 2),
                        _ => assert!(cell["value"].as_f64().is_some(), "{name}: {cell}"),
                    }
                }
            }
        }
        assert!(seen.contains("measured") && seen.len() > 1, "{name}: {seen:?}");
        let one_node = json["here"]["nodes"] == 1;
        for effect in list(&json, "effects") {
            let sentence = effect["sentence"].as_str().unwrap_or_default();
            if one_node {
                assert_eq!(effect["verdict"], "impossible", "{name}: {effect}");
                assert!(sentence.contains("cannot appear here: this machine has one node"), "{name}: {sentence}");
            }
        }
        assert!(!list(&json, "effects").is_empty() && !list(&json, "sources").is_empty(), "{name}");
    }
}

/// Check that the text has the published figures and at most 100 columns, and that the SVG figure is drawn.
#[test]
fn published_and_measured_are_side_by_side() {
    let Some(firsttouch) = Firsttouch::find("published_and_measured_are_side_by_side") else { return };
    let folder = temporary_directory();
    for (name, figures) in [
        ("dgemv-scaling", &["0.73", "3.38", "5.48"][..]),
        ("dgemv-first-touch", &["0.87", "0.54", "0.248783"]),
        ("one-socket-two-sockets", &["2948.22", "2765.7", "5682.07"]),
        ("map-scan", &["32.4", "10.6"]),
    ] {
        let picture = folder.path().join(format!("{name}.svg"));
        let outcome = reproduce(&firsttouch, &[name, "--size", "1M", "--runs", "2", "--svg", text(&picture)]);
        let shown = outcome.stdout_text();
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(figures.iter().all(|figure| shown.contains(figure)), "{shown}");
        assert!(shown.contains("published") && shown.contains("measured here") && shown.contains("runs"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
        let drawn = fs::read_to_string(&picture).expect("a picture");
        assert!(drawn.starts_with("<svg ") && drawn.trim_end().ends_with("</svg>") && !drawn.contains("NaN"), "{name}");
        assert!(drawn.contains("published") && drawn.contains("measured here"), "{name}");
    }
}
