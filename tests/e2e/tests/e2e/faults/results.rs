// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults while results are written to files.

use super::Fault;
use super::lab::{Lab, Seen};
use super::running::on_small_disk;
use firsttouch_e2e::process::run;
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::tool::text;
use std::fs;
use std::path::Path;

pub const FAULTS: &[Fault] = &[
    ("the merged profile may not be that large (`ulimit -f 4`)", |lab| Some(limited(lab, MERGE))),
    ("the exported file may not be that large (`ulimit -f 4`)", |lab| Some(limited(lab, EXPORT))),
    ("the page may not be that large (`ulimit -f 4`)", |lab| Some(limited(lab, PAGE))),
    ("the record may not be that large (`ulimit -f 4`): an older one stays", |lab| Some(older_record(lab))),
    ("the disk is full: the merged profile", |lab| on_small_disk(lab, |lab, disk| written(lab, "", MERGE, disk))),
    ("the disk is full: the exported file", |lab| on_small_disk(lab, |lab, disk| written(lab, "", EXPORT, disk))),
    ("the disk is full: the page", |lab| on_small_disk(lab, |lab, disk| written(lab, "", PAGE, disk))),
    ("the disk is full: the record", |lab| on_small_disk(lab, |lab, disk| written(lab, "", RECORD, disk))),
];

/// A command as the table shows it, and its words. It writes OUT.
type Written = (&'static str, &'static str);

const MERGE: Written = ("merge", "merge a.ftp -o OUT");
const EXPORT: Written = ("export --to sqlite", "export a.ftp --to sqlite -o OUT");
const PAGE: Written = ("report --html", "report a.ftp --html OUT");
const RECORD: Written = ("top --record", "top -b -n 2 --record OUT");

fn limited(lab: &Lab, command: Written) -> Seen {
    let folder = lab.at("folder.given");
    fs::create_dir(&folder).expect("a folder");
    let seen = written(lab, "ulimit -f 4", command, &folder);
    assert_eq!(fs::read_dir(&folder).expect("the folder").flatten().count(), 0, "{command:?}");
    seen
}

fn older_record(lab: &Lab) -> Seen {
    let folder = lab.at("folder.given");
    fs::create_dir(&folder).expect("a folder");
    let record = folder.join("out");
    assert_eq!(run(&mut lab.firsttouch.command(["top", "-b", "-n", "1", "-d", "0.1", "--record", text(&record)])).status, 0);
    let older = fs::read(&record).expect("a record");
    let seen = written(lab, "ulimit -f 4", RECORD, &folder);
    assert_eq!(fs::read_dir(&folder).expect("the folder").flatten().count(), 1);
    assert_eq!(fs::read(&record).expect("the older record"), older);
    seen
}

/// What a command does that cannot write all of its result to `folder`.
fn written(lab: &Lab, setting: &str, (command, words): Written, folder: &Path) -> Seen {
    let (profile, out) = (lab.at("a.ftp"), folder.join("out"));
    fs::copy(fixture("serial_loop"), &profile).expect("a recorded profile");
    let words = words.split(' ').map(|word| match word {
        "OUT" => text(&out),
        "a.ftp" => text(&profile),
        word => word,
    });
    let outcome = run(&mut lab.shell(setting, &lab.firsttouch.command(words)));
    let messages = outcome.messages();
    assert!(outcome.status == 1 && messages.contains("error: cannot "), "{command}: {outcome:?}");
    // The name that the user gave, the cause and what to do, and no words about the state of a database.
    assert!(messages.contains(text(&out)) && !messages.contains(".merging-"), "{command}: {messages}");
    let is_full = messages.contains("the disk is full: make room on the file system of ") || messages.contains("No space left on device");
    assert!(is_full || !setting.is_empty(), "{command}: {messages}");
    assert!(!messages.contains("Error code") && !messages.contains("database"), "{command}: {messages}");
    lab.seen_reading(command, &outcome, &profile)
}
