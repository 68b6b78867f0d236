// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The profile's file: places where it cannot be written, and `report` with a file that is damaged or is not a profile.

use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::skip::{is_root, lacks_tools};
use firsttouch_e2e::small_disk::SmallDisk;
use firsttouch_e2e::tool::{Firsttouch, NOBODY, assert_clear_error, assert_no_panic, good_profile, temporary_directory, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A shell command line whose only effect is the file `started`.
fn marker_program(directory: &Path) -> (PathBuf, Vec<String>) {
    let marker = directory.join("started");
    let script = format!("echo started > '{}'", marker.display());
    (marker, vec!["/bin/sh".to_owned(), "-c".to_owned(), script])
}

// ------------------------------------------------------------------------------------------------- the profile's file

/// Check that `profile -o file` fails before the program starts.
fn check_refused(test: &str, file: impl Fn(&Path) -> PathBuf, cause: &str) {
    let Some(firsttouch) = Firsttouch::find(test) else { return };
    let directory = temporary_directory();
    let (marker, command) = marker_program(directory.path());
    let file = file(directory.path());
    let outcome = run(&mut firsttouch.profile(&file, &[], &command));
    assert_clear_error(&outcome, &[1], &[text(&file), cause]);
    assert!(!marker.exists(), "the program ran although its profile cannot be written");
}

#[test]
fn output_directory_does_not_exist() {
    check_refused("output_directory_does_not_exist", |directory| directory.join("no/such/x.ftp"), "");
}

#[test]
fn output_is_a_directory() {
    check_refused("output_is_a_directory", Path::to_path_buf, "");
}

#[test]
fn output_may_not_be_written() {
    // Even root cannot create a file here.
    check_refused("output_may_not_be_written", |_| PathBuf::from("/proc/x.ftp"), "");
}

/// Check that `profile` does not overwrite a file that is not a profile.
#[test]
fn output_is_somebody_elses_file() {
    let file = |directory: &Path| {
        let file = directory.join("thesis.tex");
        fs::write(&file, "\\documentclass{article}\n").expect("the file is written");
        file
    };
    check_refused("output_is_somebody_elses_file", file, "");
}

/// Check that a second profile to the same name replaces the first.
#[test]
fn output_is_an_older_profile() {
    let name = "output_is_an_older_profile";
    let Some(die) = program(name, "noharm/die") else { return };
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("twice.ftp");
    for status in [3, 5] {
        let outcome = run(&mut firsttouch.profile(&file, &[], &[text(&die), "exit", &status.to_string()]));
        assert_eq!(outcome.status, status, "{outcome:?}");
        assert_eq!(firsttouch.report_json(&file)["exit_code"], status);
    }
}

#[test]
fn disk_is_full_at_the_start() {
    let name = "disk_is_full_at_the_start";
    let Some(disk) = SmallDisk::mount(name, 64 * 1024) else { return };
    disk.fill();
    check_refused(name, |_| disk.path().join("full.ftp"), "");
}

/// Check that a small profile fits on a small disk: rows take space once, and tables without rows take little.
#[test]
fn little_space_is_enough() {
    let name = "little_space_is_enough";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let Some(disk) = SmallDisk::mount(name, 120 << 10) else { return };
    let file = disk.path().join("small.ftp");
    let outcome = firsttouch.profile(&file, &[], &["sh", "-c", "echo done"]).output().expect("firsttouch runs");
    let messages = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success() && !messages.contains("full"), "{outcome:?}");
    assert!(!firsttouch.report(&file, &[]).stdout_text().contains("the recording was not completed"));
}

/// Check that if the disk fills up while the program runs, only the rest of the profile is lost, and the program is not harmed.
#[test]
fn disk_fills_up_on_the_way() {
    let name = "disk_fills_up_on_the_way";
    let Some(ticker) = program(name, "noharm/ticker") else { return };
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let Some(disk) = SmallDisk::mount(name, 2 << 20) else { return };
    let directory = temporary_directory();
    let (file, result) = (disk.path().join("fills.ftp"), directory.path().join("result"));
    let mut command = firsttouch.profile(&file, &[], &[text(&ticker), "3000", text(&result)]);
    let running = Running::start(&mut command, &[]);
    running.wait_for_stdout("ready");
    disk.fill();
    let outcome = running.wait();
    assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, "ready\ndone\n"), "{outcome:?}");
    assert_eq!(fs::read_to_string(&result).expect("the program's result"), "wrong bytes 0\n");
    assert_no_panic(&outcome);
    let messages = outcome.messages();
    assert!(messages.contains("full") || messages.contains("space"), "no message says that the disk is full: {outcome:?}");
    let report = firsttouch.report(&file, &[]);
    assert_no_panic(&report);
    assert!([0, 1].contains(&report.status), "{report:?}");
    // What is missing may show the opposite of what was written.
    for said in [&messages, &report.stdout_text()] {
        assert!(said.contains("NOT JUDGED: the recording was not completed") && !said.contains("MISPLACED"), "{said}");
    }
    let left = fs::read_dir(disk.path()).expect("the disk is read").filter_map(|entry| Some(entry.ok()?.file_name()));
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains(".ftp-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

// --------------------------------------------------------------------------------------------- files that are not profiles

fn check_unreadable(firsttouch: &Firsttouch, file: &Path, mentions: &[&str]) {
    for options in [&[][..], &["--json"]] {
        let outcome = firsttouch.report(file, options);
        assert_clear_error(&outcome, &[1], &[text(file)]);
        assert_clear_error(&outcome, &[1], mentions);
    }
}

#[test]
fn profile_is_missing_or_something_else() {
    let name = "profile_is_missing_or_something_else";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).expect("the file is written");
        path
    };
    let noise: Vec<u8> = (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    check_unreadable(&firsttouch, &directory.path().join("missing.ftp"), &[]);
    check_unreadable(&firsttouch, &write("empty.ftp", b""), &[]);
    check_unreadable(&firsttouch, &write("text.ftp", b"this is a letter, not a profile\n"), &[]);
    check_unreadable(&firsttouch, &write("noise.ftp", &noise), &[]);
    check_unreadable(&firsttouch, &write("head.ftp", b"SQLite format 3\0"), &[]);
    check_unreadable(&firsttouch, directory.path(), &[]);
    check_unreadable(&firsttouch, Path::new("/dev/null"), &[]);
    let text_file = fs::read(directory.path().join("text.ftp")).expect("the file still exists");
    assert_eq!(text_file, b"this is a letter, not a profile\n", "report changes nothing");
    assert!(!directory.path().join("missing.ftp").exists(), "report creates nothing");
}

#[test]
fn profile_may_not_be_read() {
    let name = "profile_may_not_be_read";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let Some(file) = good_profile(name, &firsttouch, directory.path()) else { return };
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("the mode is set");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("the mode is set");
    let mut command = firsttouch.command(["report"]);
    command.arg(&file);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    assert_clear_error(&run(command.current_dir("/")), &[1], &[text(&file)]);
}

/// Check that `report` reads a read-only profile in a read-only directory.
#[test]
fn profile_in_a_read_only_directory() {
    let name = "profile_in_a_read_only_directory";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let Some(file) = good_profile(name, &firsttouch, directory.path()) else { return };
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).expect("the mode is set");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).expect("the mode is set");
    let mut command = firsttouch.command(["report", "--json"]);
    command.arg(&file);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let outcome = run(command.current_dir("/"));
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("the mode is set");
    assert_eq!(outcome.status, 0, "{outcome:?}");
}

#[test]
fn profile_is_truncated() {
    let name = "profile_is_truncated";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let Some(file) = good_profile(name, &firsttouch, directory.path()) else { return };
    let bytes = fs::read(&file).expect("the profile is there");
    let cut = directory.path().join("cut.ftp");
    for length in [16, 100, 1000, 4096, bytes.len() / 2] {
        fs::write(&cut, &bytes[..length]).expect("the file is written");
        check_unreadable(&firsttouch, &cut, &[]);
    }
}

/// Check that flipped bytes give a report or an error, never a panic and never a hang.
#[test]
fn profile_has_flipped_bytes() {
    let name = "profile_has_flipped_bytes";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let Some(file) = good_profile(name, &firsttouch, directory.path()) else { return };
    let good = fs::read(&file).expect("the profile is there");
    let damaged = directory.path().join("damaged.ftp");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64; // xorshift64: the same damage in every run
    for round in 0..60 {
        let mut bytes = good.clone();
        for _ in 0..1 + round * round {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let place = usize::try_from(random >> 16).expect("64-bit") % bytes.len();
            bytes[place] = random as u8;
        }
        fs::write(&damaged, &bytes).expect("the file is written");
        let outcome = firsttouch.report(&damaged, &["--json"]);
        assert_no_panic(&outcome);
        match outcome.status {
            0 => assert!(serde_json::from_slice::<serde_json::Value>(&outcome.stdout).is_ok(), "round {round}"),
            _ => assert_clear_error(&outcome, &[1], &[text(&damaged)]),
        }
    }
}

#[test]
fn profile_is_a_foreign_database_or_of_another_version() {
    let name = "profile_is_a_foreign_database_or_of_another_version";
    if lacks_tools(name, &["sqlite3"]) {
        return;
    }
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let sql = |file: &Path, statement: &str| {
        let outcome = run(Command::new("sqlite3").arg(file).arg(statement));
        assert_eq!(outcome.status, 0, "{outcome:?}");
    };
    let foreign = directory.path().join("foreign.ftp");
    sql(&foreign, "CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('https://example.org');");
    check_unreadable(&firsttouch, &foreign, &["not a"]);

    let Some(good) = good_profile(name, &firsttouch, directory.path()) else { return };
    for version in [0, 999] {
        let other = directory.path().join(format!("version-{version}.ftp"));
        fs::copy(&good, &other).expect("the profile is copied");
        sql(&other, &format!("PRAGMA user_version = {version};"));
        check_unreadable(&firsttouch, &other, &["version"]);
    }
    let gutted = directory.path().join("gutted.ftp");
    fs::copy(&good, &gutted).expect("the profile is copied");
    sql(&gutted, "DROP TABLE objects;");
    check_unreadable(&firsttouch, &gutted, &[]);
}
