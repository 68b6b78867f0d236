// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measured bandwidth, through the commands that show it: a recorded profile with rows as a system with counters would have them.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::process::run;
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::tool::{Firsttouch, temporary_directory, text};
use rusqlite::{Connection, params};
use std::fs;
use std::path::Path;

const TABLE: &str = "CREATE TABLE bandwidth (source TEXT NOT NULL, node INTEGER NOT NULL, from_ns INTEGER NOT NULL, to_ns INTEGER NOT NULL, \
                     bytes INTEGER NOT NULL, read_bytes INTEGER, local_bytes INTEGER, part INTEGER)";

/// A recorded profile in which memory controllers counted 3 GB/s on node 0 and 1 GB/s on node 1, two thirds of it reads, in ten readings.
fn counted(path: &Path) {
    fs::copy(fixture("dgemv_serial"), path).expect("a copy");
    let profile = Connection::open(path).expect("a profile");
    let time = |key: &str| -> i64 {
        let text: String = profile.query_row("SELECT value FROM meta WHERE key = ?", [key], |row| row.get(0)).expect("a time");
        text.parse().expect("a number")
    };
    let (start, end) = (time("start_ns"), time("end_ns"));
    profile.execute_batch(&format!("DROP TABLE IF EXISTS bandwidth; {TABLE}")).expect("the table");
    for reading in 0..10 {
        let (from, to) = (start + (end - start) * reading / 10, start + (end - start) * (reading + 1) / 10);
        for (node, speed) in [(0, 3), (1, 1)] {
            let bytes = (to - from) * speed;
            let row = params![node, from, to, bytes, bytes * 2 / 3];
            profile.execute("INSERT INTO bandwidth VALUES ('uncore', ?, ?, ?, ?, ?, NULL, NULL)", row).expect("a row");
        }
    }
}

/// Check that the timeline has the measured bandwidth of each node beside the estimate, that a track and the page show it, and that a merged profile keeps it;
/// and that a profile without counters says nothing of them.
#[test]
fn counters_are_shown() {
    let Some(firsttouch) = Firsttouch::find("counters_are_shown") else { return };
    let folder = temporary_directory();
    let path = folder.path().join("counted.ftp");
    counted(&path);
    let timeline = |path: &Path| {
        let outcome = run(&mut firsttouch.command(["report", text(path), "--timeline"]));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        outcome.stdout_text()
    };
    let shown = timeline(&path);
    let measured = shown.split("Bandwidth by the system's counters").nth(1).unwrap_or_else(|| panic!("{shown}"));
    let row = measured.lines().find(|line| line.trim().starts_with("0.00 s")).unwrap_or_else(|| panic!("{shown}"));
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[..7], ["0.00", "s", "4.0", "67", "%", "3.0", "1.0"], "{shown}");
    assert!(measured.contains("Time by bandwidth of the counters") && measured.contains("100 %"), "{shown}");
    assert!(!timeline(&fixture("dgemv_serial")).contains("counters"));
    let export = run(&mut firsttouch.command(["export", text(&path), "--to", "firefox"]));
    let track = String::from_utf8_lossy(&export.stdout).matches("bandwidth of node 1").count();
    assert!(export.status == 0 && track > 0);
    let page = folder.path().join("counted.html");
    assert_eq!(run(&mut firsttouch.command(["report", text(&path), "--html", text(&page)])).status, 0);
    let page = fs::read_to_string(&page).expect("a page");
    assert!(
        page.contains("Bandwidth by the node of the memory, counted by memory controllers")
            && page.contains("Up to 4.0 GB/s of the whole system")
    );
    let merged = folder.path().join("merged.ftp");
    let outcome = run(&mut firsttouch.command(["merge", text(&path), "-o", text(&merged)]));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(timeline(&merged).contains(measured.trim_end()), "{}", timeline(&merged));
}

/// Check that a table of other columns is refused by name.
#[test]
fn other_columns_are_refused() {
    let Some(firsttouch) = Firsttouch::find("other_columns_are_refused") else { return };
    let folder = temporary_directory();
    let path = folder.path().join("other.ftp");
    counted(&path);
    Connection::open(&path).expect("a profile").execute_batch("ALTER TABLE bandwidth ADD COLUMN more").expect("a column");
    let outcome = run(&mut firsttouch.command(["report", text(&path), "--timeline"]));
    assert!(outcome.status == 1 && outcome.stderr_text().contains("table 'bandwidth' has 'more'"), "{outcome:?}");
}

/// Check that doctor says of a machine whose counters an ordinary user may not read what would help.
#[test]
fn doctor_says_what_helps() {
    let Some(firsttouch) = Firsttouch::find("doctor_says_what_helps") else { return };
    let doctor = |machine: &str| {
        let machine = workspace_root().join("fixtures/bandwidth").join(machine);
        let outcome = run(&mut firsttouch.command(["doctor", "--verbose", "-i", text(&machine)]));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        outcome.stdout_text().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let refused = doctor("constructed-intel-2-nodes");
    assert!(
        refused.contains("uncore_imc_0: perf_event_open: Permission denied") && refused.contains("kernel.perf_event_paranoid=0"),
        "{refused}"
    );
    let readable = doctor("constructed-amd-2-nodes");
    assert!(readable.contains("can be read: mbm_total_bytes of resctrl"), "{readable}");
}
