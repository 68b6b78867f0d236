// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of files that are read, and of the streams that results go to.

use super::Fault;
use super::lab::{Lab, Seen};
use firsttouch_e2e::process::run;
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::tool::text;
use rusqlite::Connection;
use std::fs;

pub const FAULTS: &[Fault] = &[
    ("the profile is missing", |lab| Some(read(lab, |_| None))),
    ("the profile is empty", |lab| Some(read(lab, |_| Some(Vec::new())))),
    ("the profile is cut off in the middle", |lab| Some(read(lab, |bytes| Some(bytes[..bytes.len() / 2].to_vec())))),
    ("the profile's first page is damaged", |lab| Some(read(lab, |bytes| Some(flipped(bytes, 100..1000))))),
    ("the profile's pages are damaged", |lab| Some(read(lab, |bytes| Some(flipped(bytes, 4096..40_000))))),
    ("the profile is another database", |lab| Some(changed(lab, "PRAGMA application_id = 1"))),
    ("the profile is of a later version", |lab| Some(changed(lab, "PRAGMA user_version = 1000"))),
    ("the profile lacks a table", |lab| Some(changed(lab, "DROP TABLE objects"))),
    ("the clock was set back: the profile is from the future", |lab| {
        Some(changed(lab, "INSERT OR REPLACE INTO meta VALUES ('start_unix_s', '99999999999')"))
    }),
    ("the monotonic clock steps: events after the end, the end before the start", |lab| {
        Some(changed(
            lab,
            "UPDATE meta SET value = '5' WHERE key = 'end_ns'; UPDATE first_touches SET time_ns = 9000000000000000000 WHERE id % 2",
        ))
    }),
    ("the plan is damaged", |lab| Some(with_file(lab, "run --plan FILE -- /bin/true", "schema = \"firsttouch.plan/1\"\nnodes = x"))),
    ("the machine file is damaged", |lab| Some(with_file(lab, "machines show FILE", "schema = \"firsttouch.machine/1\"\nnodes = x"))),
    ("standard output is closed", |lab| Some(written(lab, "exec >&-"))),
    ("standard output is full", |lab| Some(written(lab, "exec >/dev/full"))),
];

const COMMANDS: [(&str, &str); 5] = [("report", ""), ("plan", ""), ("predict", ""), ("check", "--max-remote=100"), ("diff", "FILE")];
const NAMES: &str = "report, plan, predict, check, diff";

/// What the commands do with a profile that was changed.
fn read(lab: &Lab, change: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Seen {
    let file = lab.at("a.ftp");
    if let Some(bytes) = change(&fs::read(fixture("serial_loop")).expect("a recorded profile")) {
        fs::write(&file, bytes).expect("a file");
    }
    all(lab, "", NAMES)
}

fn changed(lab: &Lab, sql: &str) -> Seen {
    fs::copy(fixture("serial_loop"), lab.at("a.ftp")).expect("a recorded profile");
    Connection::open(lab.at("a.ftp")).and_then(|profile| profile.execute_batch(sql)).expect("a change");
    all(lab, "", NAMES)
}

fn written(lab: &Lab, setting: &str) -> Seen {
    fs::copy(fixture("serial_loop"), lab.at("a.ftp")).expect("a recorded profile");
    all(lab, setting, NAMES)
}

fn flipped(bytes: &[u8], range: std::ops::Range<usize>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.get_mut(range).expect("a large profile").iter_mut().for_each(|byte| *byte ^= 0x5a);
    bytes
}

/// Runs each command on the profile.
fn all(lab: &Lab, setting: &str, command: &'static str) -> Seen {
    let file = lab.at("a.ftp");
    let mut statuses = Vec::new();
    let mut seen = None;
    for (name, more) in COMMANDS {
        let words =
            [name, text(&file)].into_iter().chain(Some(if more == "FILE" { text(&file) } else { more }).filter(|one| !one.is_empty()));
        let outcome = run(&mut lab.shell(setting, &lab.firsttouch.command(words)));
        assert!(outcome.status == 0 || outcome.status == 3 || outcome.messages().contains("error: "), "{name}: {outcome:?}");
        assert!(outcome.wall.as_secs() < 10, "{name}: {outcome:?}");
        statuses.push(outcome.status);
        seen = Some(lab.seen_reading(command, &outcome, &file));
    }
    statuses.sort_unstable();
    statuses.dedup();
    let status = statuses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    Seen { status, ..seen.expect("a command") }
}

fn with_file(lab: &Lab, command: &'static str, contents: &str) -> Seen {
    let file = lab.at("file.given");
    fs::write(&file, contents).expect("a file");
    let words = command.split(' ').map(|word| if word == "FILE" { text(&file) } else { word });
    let outcome = run(&mut lab.shell("", &lab.firsttouch.command(words)));
    assert!(outcome.messages().contains("error: "), "{outcome:?}");
    let seen = lab.seen_reading(command, &outcome, &lab.at("a.ftp"));
    Seen { program: if command.starts_with("run") { "not started" } else { "-" }, profile: "-", ..seen }
}
