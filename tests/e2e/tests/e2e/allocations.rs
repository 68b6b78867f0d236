// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that allocate faster than anyone writes: each allocation is in the profile, or counted in the report as lost.

use firsttouch_e2e::process::{Outcome, Running};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::tool::{Firsttouch, assert_no_panic, temporary_directory, text};
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// `liveblocks` allocates so many blocks, which all live until the end. Small ones: a gigabyte of pages is not what is tested.
const BYTES: u64 = 64;

fn recording(firsttouch: &Firsttouch, file: &Path, program: &Path, blocks: u64, rate: u64) -> Command {
    let words = [text(program).to_owned(), blocks.to_string(), BYTES.to_string(), rate.to_string()];
    firsttouch.profile(file, &["--quiet", "--min-size", "64"], &words)
}

/// Of the blocks, how many are in the profile, and how many the report says were lost.
fn recorded_and_lost(firsttouch: &Firsttouch, file: &Path) -> (u64, u64) {
    let profile = Connection::open(file).expect("a profile");
    let recorded = profile
        .query_row("SELECT count(*) FROM objects WHERE bytes = ? AND call = 'malloc'", [BYTES], |row| row.get::<_, u64>(0))
        .expect("a number");
    let report = firsttouch.report_json(file);
    let lost = report["lost"].as_array().expect("what was lost").iter().filter(|one| one["source"] == "agent");
    (recorded, lost.filter_map(|one| one["count"].as_u64()).sum())
}

/// Check that no block is missing in silence, and that the program did what it does without firsttouch. Returns how many were lost.
fn check(firsttouch: &Firsttouch, file: &Path, outcome: &Outcome, blocks: u64) -> u64 {
    assert_no_panic(outcome);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let printed = outcome.stdout_text();
    assert!(printed.starts_with(&format!("{blocks} blocks of {BYTES} bytes: ")) && printed.lines().count() == 1, "{printed}");
    let (recorded, lost) = recorded_and_lost(firsttouch, file);
    // Other records can be among those that are lost: the array of the blocks, a stack, the C library's own blocks.
    assert!(recorded <= blocks && recorded + lost >= blocks && recorded + lost <= blocks + 50, "{recorded} recorded, {lost} lost");
    lost
}

/// Check that of a million allocations in a second each is recorded or counted, and that the recorder's memory stays within what it needs for a
/// million objects.
#[test]
fn a_million_allocations() {
    let name = "a_million_allocations";
    let (Some(firsttouch), Some(liveblocks)) = (Firsttouch::find(name), program(name, "liveblocks")) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("a.ftp");
    let blocks = 1_000_000;
    let mut running = Running::start(&mut recording(&firsttouch, &file, &liveblocks, blocks, blocks), &[]);
    let mut peak_kb = 0;
    while !running.has_ended() {
        let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        peak_kb = peak_kb.max(peak.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(10));
    }
    let lost = check(&firsttouch, &file, &running.wait(), blocks);
    println!("{lost} of {blocks} lost, {} MB", peak_kb >> 10);
    // 0.5 GB on the machine of docs/scale.md.
    assert!((1..900 << 10).contains(&peak_kb), "{peak_kb} kB");
}

/// Check that the report gives the number of records that were dropped while nobody read the agent's ring.
#[test]
fn records_that_a_full_ring_drops_are_counted() {
    let name = "records_that_a_full_ring_drops_are_counted";
    let (Some(firsttouch), Some(liveblocks)) = (Firsttouch::find(name), program(name, "liveblocks")) else { return };
    let directory = temporary_directory();
    let file = directory.path().join("a.ftp");
    let blocks = 400_000;
    let running = Running::start(&mut recording(&firsttouch, &file, &liveblocks, blocks, 400_000), &[]);
    let recorder = running.pid();
    let deadline = Instant::now() + Duration::from_secs(60);
    let wait_until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(Instant::now() < deadline, "the program does not begin or end");
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let child = || -> Option<i32> {
        let children = fs::read_to_string(format!("/proc/{recorder}/task/{recorder}/children")).ok()?;
        children.split_whitespace().find_map(|pid| pid.parse().ok())
    };
    let comm = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    wait_until(&|| child().is_some_and(|pid| comm(pid).starts_with("liveblocks")));
    let pid = child().expect("the program");
    running.signal(libc::SIGSTOP);
    // It is not waited for while firsttouch is stopped.
    let has_ended = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    wait_until(&has_ended);
    running.signal(libc::SIGCONT);
    let lost = check(&firsttouch, &file, &running.wait(), blocks);
    assert!(lost > blocks / 4, "{lost}");
    let grouped: String = {
        let digits = lost.to_string();
        let from_end = |at: usize| (digits.len() - at).is_multiple_of(3);
        digits.char_indices().flat_map(|(at, c)| [if at > 0 && from_end(at) { "," } else { "" }.to_owned(), c.to_string()]).collect()
    };
    let report = firsttouch.report(&file, &[]).stdout_text().replace('\n', " ");
    let expected = format!("agent {grouped}: records of allocations dropped because the ring was full");
    assert!(report.contains(&expected), "{expected}: {report}");
}
