//! `reproduce` on two nodes: the runs of an experiment place their pages as described, and the output has the published figures.

use firsttouch_guests::{Setting, json};
use firsttouch_oracles::list;
use serde_json::Value;

/// A huge page that two parts share is on the node of its first toucher.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

/// Pages on nodes 0 and 1, of 64.
fn pages(reproduction: &Value, init: &str) -> [f64; 2] {
    let table =
        list(reproduction, "tables").iter().find(|table| table["title"].as_str().unwrap().starts_with("where the matrix is")).unwrap();
    let row = list(table, "rows").iter().find(|row| row["labels"][0] == init).unwrap();
    [0, 1].map(|node| row["cells"][node]["median"].as_f64().unwrap())
}

/// Check that with serial initialisation the whole matrix is on one node, that with parallel initialisation each thread's rows are on its
/// node, and that the verdict on the effect follows from the runs.
#[test]
fn first_touch_places_the_matrix() {
    let _settings = (Setting::set(HUGE_PAGES, "never"), Setting::set(BALANCING, "0"));
    let reproduction = json(&["reproduce", "dgemv-first-touch", "--size", "4M", "--runs", "2"]);
    assert_eq!(pages(&reproduction, "serial"), [64.0, 0.0], "{reproduction:#}");
    let [own, other] = pages(&reproduction, "parallel");
    assert!((own - 32.0).abs() <= 2.0 && own + other == 64.0, "{own} and {other}");
    let times = &list(&reproduction, "tables")[0];
    let published: Vec<f64> = list(times, "rows").iter().filter_map(|row| row["cells"][0]["value"].as_f64()).collect();
    assert_eq!(published, [0.87, 0.54]);
    // Two runs of each are not sufficient to show the effect, although the machine could show it.
    assert_eq!(reproduction["effects"][0]["verdict"], "not-shown", "{reproduction:#}");
}

/// Check that experiments that need two nodes measure both: no case fails, and every row of this machine has a figure.
#[test]
fn both_nodes_are_measured() {
    for (name, figures) in [("triad-domains", 6), ("one-socket-two-sockets", 5), ("map-scan", 4)] {
        let reproduction = json(&["reproduce", name, "--size", "1M", "--runs", "1"]);
        let notes = list(&reproduction, "notes").iter().filter_map(Value::as_str);
        assert_eq!(notes.filter(|note| note.starts_with("Not measured")).collect::<Vec<_>>(), [""; 0], "{name}");
        let rows = list(&reproduction, "tables").iter().flat_map(|table| list(table, "rows"));
        let measured = rows.flat_map(|row| list(row, "cells")).filter(|cell| cell["median"].as_f64() > Some(0.0));
        assert_eq!(measured.count(), figures, "{name}: {reproduction:#}");
        assert_eq!(reproduction["effects"][0]["verdict"], "not-shown", "{name}: one run is not sufficient");
    }
}
