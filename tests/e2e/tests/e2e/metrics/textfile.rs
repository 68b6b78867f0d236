// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file for node_exporter's textfile collector: whole at any time.

use super::groups;
use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::small_disk::SmallDisk;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, temporary_directory, text};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Whether a text has all of the metrics: its last line is that of the last metric.
fn is_whole(metrics: &str) -> bool {
    metrics.starts_with("# HELP firsttouch_")
        && metrics.ends_with('\n')
        && metrics.lines().last().is_some_and(|last| last.starts_with("firsttouch_scrape_series_dropped{collector=\"pressure\"} "))
}

#[track_caller]
fn assert_whole(file: &Path) {
    let metrics = fs::read_to_string(file).expect("the file");
    assert!(is_whole(&metrics), "{metrics}");
}

/// Check that a kill at any time leaves the old file, or the new one, and at most one file beside it, which the next run replaces.
#[test]
fn kills_leave_whole_files() {
    let Some(firsttouch) = Firsttouch::find("metrics::kills_leave_whole_files") else { return };
    let directory = temporary_directory();
    let file = directory.path().join("firsttouch.prom");
    let write = || firsttouch.command(["serve-metrics", "--root", &groups(), "--textfile", text(&file)]);
    assert_eq!(run(&mut write()).status, 0);
    assert_whole(&file);
    let mut killed = 0;
    for step in 0..30 {
        let running = Running::start(&mut write(), b"");
        std::thread::sleep(Duration::from_micros(400 * step));
        running.signal(libc::SIGKILL);
        killed += usize::from(running.wait().status == 137);
        assert_whole(&file);
        assert!(fs::read_dir(directory.path()).expect("the folder").count() <= 2);
    }
    assert!(killed >= 3, "{killed}");
    assert_eq!(run(&mut write()).status, 0);
    assert_eq!(fs::read_dir(directory.path()).expect("the folder").count(), 1, "what a kill left is gone");
}

/// Check that where a file cannot be written, the error says so and the old file stays.
#[test]
fn failures_keep_the_old_file() {
    let Some(firsttouch) = Firsttouch::find("metrics::failures_keep_the_old_file") else { return };
    let directory = temporary_directory();
    let file = directory.path().join("firsttouch.prom");
    assert_eq!(run(&mut firsttouch.command(["serve-metrics", "--textfile", text(&file)])).status, 0);
    let before = fs::read_to_string(&file).expect("the file");
    let limited =
        format!("ulimit -f 1; exec '{}' serve-metrics --textfile '{}' --no-cgroups", firsttouch.binary().display(), file.display());
    let outcome = run(Command::new("bash").args(["-c", &limited]));
    assert_clear_error(&outcome, &[1], &["cannot write", text(&file)]);
    assert_eq!(fs::read_to_string(&file).expect("the file"), before);
    assert_eq!(fs::read_dir(directory.path()).expect("the folder").count(), 1);
    let notes = directory.path().join("node.prom");
    fs::write(&notes, "node_up 1\n").expect("a file");
    for (path, mention) in [(text(&notes), "another kind of file"), ("/none/such/a.prom", "No such file"), ("/dev/full", "No space left")] {
        let outcome = run(&mut firsttouch.command(["serve-metrics", "--no-cgroups", "--textfile", path]));
        assert!(outcome.status == 1 && outcome.messages().contains(mention), "{path}: {outcome:?}");
    }
    assert_eq!(fs::read_to_string(&notes).expect("the file"), "node_up 1\n");
}

/// Check a disk that is full for a while: it is said once, the old file stays, and then the new one comes; SIGTERM ends it well.
#[test]
fn disks_may_be_full_for_a_while() {
    let name = "metrics::disks_may_be_full_for_a_while";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let Some(disk) = SmallDisk::mount(name, 64 << 10) else { return };
    let file = disk.path().join("firsttouch.prom");
    let mut command = firsttouch.command(["serve-metrics", "--no-cgroups", "--interval", "1s", "--textfile", text(&file)]);
    let running = Running::start(&mut command, b"");
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    disk.fill();
    let said = running.wait_for_stderr("cannot write");
    assert!(said.contains("No space left") && said.contains("the old file is kept"), "{said}");
    assert_whole(&file);
    disk.empty();
    running.wait_for_stderr("is written again");
    assert_whole(&file);
    running.signal(libc::SIGTERM);
    let outcome = running.wait();
    assert_eq!((outcome.status, outcome.stderr_text().matches("cannot write").count()), (0, 1), "{outcome:?}");
}
