// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch merge`, and directories with the profiles of ranks in the place of a profile.

use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, assert_no_panic, temporary_directory, text};
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A recorded profile as that of a rank.
fn rank(directory: &Path, recording: &str, host: &str, number: i32, size: i32) -> PathBuf {
    let path = directory.join(format!("rank-{number}.ftp"));
    fs::copy(fixture(recording), &path).expect("a recorded profile");
    let place = format!("{{\"rank\": {number}, \"size\": {size}, \"launcher\": \"MPICH\"}}");
    let change = format!(
        "INSERT INTO meta VALUES ('rank', '{place}'); UPDATE machine SET value = '{host}' WHERE key = 'hostname';
         UPDATE processes SET pid = {} WHERE id = 0",
        1000 + number
    );
    Connection::open(&path).and_then(|profile| profile.execute_batch(&change)).expect("a change");
    path
}

/// Two ranks that are well placed, one that is not, and one that left nothing, of six.
fn ranks(folder: &Path) -> PathBuf {
    let directory = folder.join("x.ftp.d");
    fs::create_dir(&directory).expect("a directory");
    rank(&directory, "dgemv_parallel", "one", 0, 6);
    rank(&directory, "dgemv_serial", "two", 1, 6);
    rank(&directory, "dgemv_parallel", "one", 3, 6);
    fs::write(directory.join("rank-4.ftp"), "").expect("an empty file");
    fs::write(directory.join("job"), "77\n").expect("a key");
    directory
}

fn merge(firsttouch: &Firsttouch, words: &[&str]) -> Outcome {
    let outcome = run(&mut firsttouch.command([&["merge"], words].concat()));
    assert_no_panic(&outcome);
    outcome
}

/// Merge a directory, and in steps: check the JSON, what is said of missing ranks, and that both files have the same rows.
#[test]
fn ranks_are_merged() {
    let Some(firsttouch) = Firsttouch::find("ranks_are_merged") else { return };
    let folder = temporary_directory();
    let directory = ranks(folder.path());
    let path = |name: &str| folder.path().join(name);
    let (whole, part, steps) = (path("x.ftp"), path("part.ftp"), path("steps.ftp"));
    let outcome = merge(&firsttouch, &[text(&directory), "-o", text(&whole), "--json"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    for said in ["no profile of ranks 2,4-5", "nothing was recorded in "] {
        assert!(outcome.messages().contains(said), "{outcome:?}");
    }
    assert!(!outcome.messages().contains("different programs"), "{outcome:?}");
    let (other, both) = (fixture("serial_loop"), path("both.ftp"));
    let mixed = merge(&firsttouch, &[text(&fixture("dgemv_serial")), text(&other), "-o", text(&both)]);
    assert!(mixed.messages().contains("the profiles are of different programs: "), "{mixed:?}");
    let json: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
    assert_eq!((&json["schema"], &json["missing_ranks"]), (&"firsttouch.merge/1".into(), &serde_json::json!([2, 4, 5])), "{json:#}");
    let names =
        |list: &str, key: &str| -> Vec<Value> { json[list].as_array().expect("a list").iter().map(|one| one[key].clone()).collect() };
    assert_eq!((names("hosts", "name"), names("parts", "rank")), (vec!["one".into(), "two".into()], vec![0.into(), 3.into(), 1.into()]));

    let of = |number: i32| directory.join(format!("rank-{number}.ftp"));
    let outcome = merge(&firsttouch, &[text(&of(1)), text(&of(3)), "-o", text(&part)]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.messages().contains("2 profiles of 2 hosts (one, two) -> "), "{outcome:?}");
    assert_eq!(merge(&firsttouch, &[text(&part), text(&of(0)), "-o", text(&steps)]).status, 0);
    let dump = |path: &Path| {
        let c = Connection::open(path).expect("a profile");
        let tables = [
            "meta",
            "machine",
            "evidence",
            "threads",
            "objects",
            "frames",
            "first_touches",
            "accesses",
            "sampled_accesses",
            "hosts",
            "parts",
        ];
        tables.map(|table| {
            let mut rows = c.prepare(&format!("SELECT * FROM {table}")).expect("a table");
            let columns = rows.column_count();
            let row =
                |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at)).collect::<Result<Vec<_>, _>>();
            rows.query_map([], row).expect("rows").collect::<Result<Vec<_>, _>>().expect("values")
        })
    };
    assert!(dump(&whole) == dump(&steps), "merging in steps gave other rows");
}

/// Give commands the directory in the place of a profile: check that each says the same as of the merged file.
#[test]
fn commands_take_directories() {
    let Some(firsttouch) = Firsttouch::find("commands_take_directories") else { return };
    let folder = temporary_directory();
    let directory = ranks(folder.path());
    fs::remove_file(directory.join("rank-4.ftp")).expect("the empty file");
    let whole = folder.path().join("x.ftp");
    assert_eq!(merge(&firsttouch, &[text(&directory), "-o", text(&whole)]).status, 0);
    for words in [
        ["report", "--json", "FILE"].as_slice(),
        &["report", "FILE"],
        &["plan", "--json", "FILE"],
        &["predict", "--machine", "epyc-7451x2", "--json", "FILE"],
        &["diff", "--machine", "virtual:2", "--json", "FILE", "FILE"],
        &["check", "FILE"],
    ] {
        let outcome = |file: &Path| {
            let words = words.iter().map(|word| if *word == "FILE" { text(file).to_owned() } else { (*word).to_owned() });
            let outcome = run(&mut firsttouch.command(words));
            assert_no_panic(&outcome);
            // Lines end elsewhere where the name is longer, and a plan has the name without its end.
            let (name, plan) = (file.to_str().expect("a name"), whole.with_extension("toml"));
            let named = |text: String| {
                let named = text.replace(name, "FILE").replace(plan.to_str().expect("a name"), "PLAN");
                named.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ")
            };
            (outcome.status, named(outcome.stdout_text()), named(outcome.messages()))
        };
        let (of_directory, of_file) = (outcome(&directory), outcome(&whole));
        assert_eq!(of_directory, of_file, "{words:?}");
        assert!(!of_directory.1.is_empty() || !of_directory.2.is_empty(), "{words:?}");
        assert!([0, 3].contains(&of_directory.0), "{words:?}: {of_directory:?}");
    }
    // The newest profile here is the merged one, or the directory while there is none.
    let newest = || run(firsttouch.command(["report"]).current_dir(folder.path()));
    assert!(newest().messages().contains("x.ftp is the newest profile"), "{:?}", newest());
    fs::remove_file(&whole).expect("the merged profile");
    let outcome = newest();
    assert!(outcome.status == 0 && outcome.messages().contains("x.ftp.d is the newest profile"), "{outcome:?}");
}

/// Check the errors: recordings that are there twice, files that are no profiles, directories without profiles, results that cannot be written.
#[test]
fn what_cannot_be_merged_is_named() {
    let Some(firsttouch) = Firsttouch::find("what_cannot_be_merged_is_named") else { return };
    let folder = temporary_directory();
    let directory = ranks(folder.path());
    let path = |name: &str| folder.path().join(name);
    let (first, copy, other) = (directory.join("rank-0.ftp"), path("copy.ftp"), path("other"));
    fs::copy(&first, &copy).expect("a copy");
    fs::write(path("text.ftp"), "no profile").expect("a file");
    fs::create_dir(&other).expect("a directory");
    let bytes = fs::read(&first).expect("a profile");
    fs::write(path("half.ftp"), &bytes[..bytes.len() / 2]).expect("a file");
    let result = path("m.ftp");
    for (inputs, status, mentions) in [
        (vec![&first, &copy], 1, ["rank-0.ftp and ", "are the same recording (process 1000 on host 'one')"]),
        (vec![&directory, &copy], 1, ["rank-0.ftp and ", "are the same recording"]),
        (vec![&first, &path("text.ftp")], 1, ["text.ftp", "not a firsttouch profile"]),
        (vec![&path("half.ftp"), &first], 1, ["half.ftp", "damaged"]),
        (vec![&path("none.ftp")], 1, ["none.ftp", "No such file"]),
        (vec![&other], 1, ["other", "the directory has no profiles of ranks (rank-*.ftp)"]),
    ] {
        let words: Vec<&str> = inputs.iter().map(|path| text(path)).chain(["-o", text(&result)]).collect();
        assert_clear_error(&merge(&firsttouch, &words), &[status], &mentions);
        assert!(!result.exists());
    }
    assert_clear_error(&firsttouch.report(&other, &[]), &[1], &["other", "no profiles of ranks"]);
    let text_file = path("text.ftp");
    assert_clear_error(&merge(&firsttouch, &[text(&first), "-o", text(&text_file)]), &[1], &["not a firsttouch profile is already there"]);
    assert_clear_error(&merge(&firsttouch, &[text(&first), "-o", text(&other)]), &[1], &["it is a directory"]);
    assert_clear_error(&merge(&firsttouch, &[text(&first), "-o", "-"]), &[2], &["standard output"]);
    assert_clear_error(&merge(&firsttouch, &[text(&first)]), &[2], &["required arguments were not provided"]);
    let mut left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("a file").file_name()).collect();
    left.sort();
    assert_eq!(left, ["copy.ftp", "half.ftp", "other", "text.ftp", "x.ftp.d"]);
}
