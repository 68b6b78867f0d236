//! Profiles on a directory of the host, over 9p, which accepts SQLite's WAL mode but has no shared memory for it.

use firsttouch_e2e::process::Running;
use firsttouch_e2e::tool::text;
use firsttouch_guests::{Blocks, findings, firsttouch, json, said, tool};
use firsttouch_oracles::list;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SIGKILL: i32 = 9;

fn beside(file: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path != file).collect()
}

/// Check that a profile can be written there and read back, as one file.
#[test]
fn profile_over_9p() {
    let folder = tempfile::tempdir_in("/tmp/host").unwrap();
    assert_eq!(tool("findmnt", &["--noheadings", "--output=FSTYPE", "--target", text(folder.path())]).trim(), "9p");
    let file = folder.path().join("blocks.ftp");
    let report = Blocks { seconds: 1, ..Blocks::on(&[0, 2], "stay") }.profiled(&file);
    assert_eq!((findings(&report), list(&report, "threads").len()), (vec![], 2), "{report:#}");
    assert!(list(&report, "objects").iter().any(|object| object["name"] == "parts"), "{report:#}");
    assert_eq!(beside(&file), [] as [PathBuf; 0]);
    let shown = said(firsttouch().command(["report"]).arg(&file));
    assert!(shown.contains("virtme-ng"), "{shown}");
}

/// Check that after firsttouch was killed, the data written there so far can be read.
#[test]
fn killed_over_9p() {
    let folder = tempfile::tempdir_in("/tmp/host").unwrap();
    let file = folder.path().join("killed.ftp");
    let running = Running::start(&mut Blocks { seconds: 60, ..Blocks::on(&[0, 2], "stay") }.profile(&file), &[]);
    let is_empty = || std::fs::metadata(&file).map_or(0, |file| file.len()) == 0;
    (0..300).take_while(|_| is_empty()).for_each(|_| std::thread::sleep(Duration::from_millis(100)));
    // Where both guests share two busy CPUs, 5 s were too few to write the threads.
    std::thread::sleep(Duration::from_secs(15));
    running.signal_group(SIGKILL);
    running.wait();
    let report = json(&["report", text(&file)]);
    assert_eq!((report["command"][4].as_str(), report["exit_code"].is_null()), (Some("stay"), true), "{report:#}");
    assert!(!list(&report, "threads").is_empty(), "{report:#}");
}
