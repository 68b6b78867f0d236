// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line: invalid arguments, their exit statuses and their messages.

use firsttouch_e2e::process::run;
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error, assert_no_panic, good_profile, temporary_directory};
use std::fs;
use std::process::Command;

#[test]
fn usage_errors() {
    let Some(firsttouch) = Firsttouch::find("usage_errors") else { return };
    let directory = temporary_directory();
    let table: [&[&str]; 12] = [
        &[],
        &["profile"],
        &["profile", "--"],
        &["profile", "-o", "x.ftp"],
        &["profile", "--no-such-option", "--", "/bin/true"],
        &["profile", "--min-size", "many", "--", "/bin/true"],
        &["profile", "--duration", "soon", "--", "/bin/true"],
        &["profile", "--pid", "1", "--", "/bin/true"],
        &["no-such-command"],
        &["report"],
        &["report", "a.ftp", "--no-such-option"],
        &["--no-such-option"],
    ];
    for arguments in table {
        let outcome = run(firsttouch.command(arguments).current_dir(directory.path()));
        assert_no_panic(&outcome);
        assert_eq!(outcome.status, 2, "{arguments:?}: {outcome:?}");
        assert!(outcome.stdout.is_empty() && !outcome.stderr.is_empty(), "usage goes to stderr: {outcome:?}");
    }
    assert_eq!(fs::read_dir(directory.path()).expect("the directory exists").count(), 0, "nothing was written");
}

/// Check that no command replaces a profile by something else without a word: a merge is not written over its input, a program's output not appended to
/// a profile, and an export says that it replaces one.
#[test]
fn profiles_are_not_lost_to_results() {
    let Some(firsttouch) = Firsttouch::find("profiles_are_not_lost_to_results") else { return };
    let directory = temporary_directory();
    let (one, other) = (directory.path().join("one.ftp"), directory.path().join("other.ftp"));
    for file in [&one, &other] {
        fs::copy(fixture("dgemv_parallel"), file).expect("a copy");
    }
    let before = fs::read(&one).expect("a profile");
    let in_folder = |arguments: &[&str]| run(firsttouch.command(arguments).current_dir(directory.path()));
    let merged = in_folder(&["merge", "one.ftp", "other.ftp", "-o", "one.ftp"]);
    assert_clear_error(&merged, &[2], &["cannot merge one.ftp into itself"]);
    let watched = in_folder(&["top", "-b", "-n", "1", "-o", "one.ftp", "--", "true"]);
    assert!(watched.status != 0 && watched.stderr_text().contains("one.ftp: it is a profile"), "{watched:?}");
    assert_eq!(fs::read(&one).expect("a profile"), before);
    let exported = in_folder(&["export", "--to", "sqlite", "one.ftp", "-o", "other.ftp"]);
    assert!(exported.status == 0 && exported.stderr_text().contains("which replaces an older profile"), "{exported:?}");
}

/// Check that a directory is not said to lack a permission, that an empty name finds no process, and that a status of a signal is said to be one.
#[test]
fn causes_are_the_true_ones() {
    let Some(firsttouch) = Firsttouch::find("causes_are_the_true_ones") else { return };
    let directory = temporary_directory();
    fs::create_dir(directory.path().join("folder")).expect("a folder");
    let said = |arguments: &[&str]| {
        let outcome = run(firsttouch.command(arguments).current_dir(directory.path()));
        assert_no_panic(&outcome);
        (outcome.status, outcome.stderr_text())
    };
    let (status, message) = said(&["run", "--", "./folder"]);
    assert!(status == 126 && message.contains("cannot run ./folder: it is a directory"), "{status}: {message}");
    let (status, message) = said(&["ps", ""]);
    assert!(status == 1 && message.contains("a process without a name"), "{status}: {message}");
    let (status, message) = said(&["stat", "--", "sh", "-c", "kill -9 $$"]);
    assert!(status == 137 && message.contains("as for a program that signal 9 ended"), "{status}: {message}");
    let missing = [said(&["check", "none.ftp"]), said(&["check", "--wait", "none.ftp"])];
    assert!(missing[0] == missing[1] && missing[0].0 == 1, "{missing:?}");
}

/// Check that `tune` writes its outcome as text and as JSON, also where there is nothing to move.
#[test]
fn tune_writes_its_outcome() {
    let Some(firsttouch) = Firsttouch::find("tune_writes_its_outcome") else { return };
    let directory = temporary_directory();
    let outcome = run(firsttouch.command(["tune", "--json=t.json", "-o", "t.txt", "--", "true"]).current_dir(directory.path()));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let json = fs::read_to_string(directory.path().join("t.json")).expect("JSON");
    assert!(json.contains("firsttouch.tune/1"), "{json}");
    assert!(!fs::read_to_string(directory.path().join("t.txt")).expect("text").is_empty());
}

/// Check that a wrong word in a variable is a usage error before the program starts, and that an empty variable counts as unset.
#[test]
fn words_in_variables() {
    let Some(firsttouch) = Firsttouch::find("words_in_variables") else { return };
    let directory = temporary_directory();
    for (variable, allowed) in [("FIRSTTOUCH_WATCHPOINTS", "always, guarded or never"), ("FIRSTTOUCH_WATCHPOINTS_REST", "never")] {
        for arguments in [&["profile", "--", "/bin/touch", "ran"][..], &["check", "--", "/bin/touch", "ran"]] {
            let outcome = run(firsttouch.command(arguments).current_dir(directory.path()).env(variable, "nevr"));
            assert_clear_error(&outcome, &[2], &[&format!("{variable}=nevr"), allowed]);
            assert_eq!(
                fs::read_dir(directory.path()).expect("the directory exists").count(),
                0,
                "{arguments:?}: nothing was started or written"
            );
        }
        let outcome = run(firsttouch.command(["profile", "--", "/bin/true"]).current_dir(directory.path()).env(variable, ""));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        fs::remove_file(directory.path().join("true.ftp")).expect("the profile exists");
    }
}

#[test]
fn help_and_version() {
    let Some(firsttouch) = Firsttouch::find("help_and_version") else { return };
    for arguments in [&["--help"][..], &["--version"], &["profile", "--help"], &["report", "--help"]] {
        let outcome = run(&mut firsttouch.command(arguments));
        assert!(outcome.status == 0 && !outcome.stdout.is_empty() && outcome.stderr.is_empty(), "{outcome:?}");
    }
}

#[test]
fn machines_that_cannot_be() {
    let name = "machines_that_cannot_be";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let Some(file) = good_profile(name, &firsttouch, directory.path()) else { return };
    for machine in ["virtual:0", "virtual:65", "virtual:x", "virtual:", "virtual:-1", "virtual:2.5", "no-such-machine"] {
        assert_clear_error(&firsttouch.report(&file, &["--machine", machine]), &[1, 2], &[machine]);
    }
    for machine in ["virtual:1", "virtual:2", "virtual:64"] {
        let outcome = firsttouch.report(&file, &["--machine", machine, "--json"]);
        assert_eq!(outcome.status, 0, "{machine}: {outcome:?}");
    }
}

#[test]
fn pins_that_cannot_be() {
    let name = "pins_that_cannot_be";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let Some(file) = good_profile(name, &firsttouch, directory.path()) else { return };
    for pin in ["nonsense", "0-", "N:99999"] {
        let outcome = firsttouch.report(&file, &["--machine", "virtual:2", "--pin", pin]);
        assert_clear_error(&outcome, &[1, 2], &[pin]);
    }
    for pin in ["spread", "compact"] {
        let outcome = firsttouch.report(&file, &["--machine", "virtual:2", "--pin", pin, "--json"]);
        assert_eq!(outcome.status, 0, "{pin}: {outcome:?}");
    }
}

/// Check that a reader that closes the pipe (`firsttouch report x | head -1`) causes no message.
#[test]
fn output_into_a_closed_pipe() {
    let name = "output_into_a_closed_pipe";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    let directory = temporary_directory();
    let Some(file) = good_profile(name, &firsttouch, directory.path()) else { return };
    let script = "\"$0\" report \"$1\" --json | true; \"$0\" report \"$1\" | head -c 1 > /dev/null";
    let outcome = run(Command::new("bash").args(["-c", script]).arg(firsttouch.binary()).arg(&file));
    assert_eq!(outcome.stderr_text(), "", "{outcome:?}");
}
