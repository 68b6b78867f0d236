//! Profiles on a directory of the host, over 9p, which accepts SQLite's WAL mode but has no shared memory for it.

use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::tool::text;
use firsttouch_guests::{Blocks, findings, firsttouch, guest_program, json, said, tool};
use firsttouch_oracles::list;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SIGKILL: i32 = 9;

fn beside(file: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path != file).collect()
}

/// Check that a profile can be written there and read back, as one file.
#[test]
#[ignore = "two_hosts_write_to_one_directory does the same twice"]
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

/// Check ranks on two hosts (with names of their own) that write to one directory: each has a profile, one of the recorders merges all, and the hosts' nodes are
/// kept apart.
#[test]
fn two_hosts_write_to_one_directory() {
    let folder = tempfile::tempdir_in("/tmp/host").unwrap();
    let file = folder.path().join("job.ftp");
    // A launcher that starts the ranks at once and waits for them.
    let launcher = r#"for rank in 0 1; do
        OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 PMIX_NAMESPACE=job-7 \
            unshare --uts sh -c 'hostname $0 && exec "$@"' host-$rank "$@" &
        ranks="$ranks $!"
    done
    for rank in $ranks; do wait $rank || exit 1; done"#;
    let (ours, program) = (firsttouch(), guest_program("blocks"));
    let record = [text(ours.binary()), "profile", "-o", text(&file), "--", text(&program), "1", "4", "-1"];
    let outcome = run(Command::new("sh").args(["-c", launcher, "launcher"]).args(record));
    assert_eq!((outcome.status, outcome.stderr_text().matches("2 ranks, ").count()), (0, 1), "one report: {outcome:?}");
    let mut written: Vec<String> =
        beside(&folder.path().join("job.ftp.d/job")).iter().map(|path| text(path).rsplit('/').next().unwrap().to_owned()).collect();
    written.retain(|name| name.ends_with(".ftp"));
    written.sort_unstable();
    assert_eq!(written, ["rank-0.ftp", "rank-1.ftp"]);
    let report = json(&["report", text(&file)]);
    let hosts: Vec<_> = list(&report, "hosts").iter().map(|host| (host["name"].as_str(), host["first_node"].as_u64())).collect();
    assert_eq!(hosts, [(Some("host-0"), Some(0)), (Some("host-1"), Some(4))], "{report:#}");
    let places: Vec<_> = list(&report, "ranks").iter().map(|rank| (rank["rank"].as_u64(), rank["host"].as_u64())).collect();
    assert_eq!(places, [(Some(0), Some(0)), (Some(1), Some(1))]);
}
