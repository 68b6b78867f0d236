//! Tests how `tests/guests/boot` evaluates a guest, with a script in place of virtme-ng and QEMU.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use firsttouch_e2e::process::{Outcome, run};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const UP: &str = "echo 'guest fake: up'";
const GOOD: &str = "echo 'test a ... ok'; echo 'test result: ok. 1 passed; 0 failed'; echo 'guest fake: status 0'";
/// Redirects the script's output to the file that `boot` reads, as a guest does. The console is vng's output.
const REDIRECT: &str = "for word; do case $word in /tmp/messages=*) exec >>\"${word#*=}/output\" ;; esac; done";

/// Runs `boot` with a guest that runs `script` instead of booting.
fn boot(script: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let vng = directory.path().join("vng");
    fs::write(&vng, format!("#!/bin/sh\n{REDIRECT}\n{script}\n")).unwrap();
    fs::set_permissions(&vng, fs::Permissions::from_mode(0o755)).unwrap();
    let boot = Path::new(env!("CARGO_MANIFEST_DIR")).join("boot");
    run(Command::new(boot)
        .args(["fake", "-m 1G", "/bin/true", "/bin/true", "--", "a"])
        .env("VNG", vng)
        .env("KERNEL", "/boot/vmlinuz-fake")
        .env("OVERLAY", directory.path())
        .env("FIRSTTOUCH_GUEST_BOOT_S", "1")
        .env("FIRSTTOUCH_GUEST_SILENCE_S", "2")
        .env("FIRSTTOUCH_GUEST_S", "4"))
}

/// Check the status and the output of `boot`, and that it reports a failure of the guest itself in the harness's format.
#[track_caller]
fn assert_ended(script: &str, status: i32, says: &[&str]) {
    let outcome = boot(script);
    let said = outcome.stdout_text();
    assert!(outcome.status == status && says.iter().all(|text| said.contains(text)), "{script}: {outcome:?}");
    assert_eq!(said.contains("test guest fake ... FAILED"), status != 0 && !said.contains("test result: FAILED"), "{outcome:?}");
}

/// Check that passing tests are a success, and that their output is printed unchanged, with the times.
#[test]
fn passed() {
    assert_ended(&format!("{UP}; {GOOD}"), 0, &["test a ... ok\ntest result: ok. 1 passed; 0 failed\n", "1 tests in"]);
}

/// Check that failed tests are a failure, without the console, which says nothing about them.
#[test]
fn failed() {
    let script = format!(
        "echo console >&2; {UP}; echo 'test a ... FAILED'; echo 'test result: FAILED. 0 passed; 1 failed'; echo 'guest fake: status 101'"
    );
    assert_ended(&script, 1, &["test a ... FAILED"]);
    assert!(!boot(&script).stdout_text().contains("console"));
}

/// Check that a guest that panics before, in, or after its tests is a failure, and that the console is printed.
#[test]
fn panicked() {
    let panic = "echo 'Kernel panic - not syncing' >&2; exit 255";
    let says = ["ended without a good result (status unknown of the tests, 255 of vng)", "    Kernel panic - not syncing"];
    assert_ended(panic, 1, &says);
    assert_ended(&format!("{UP}; printf 'test a ... '; {panic}"), 1, &[&says[..], &["test a ... "]].concat());
    let good = GOOD.replace("; echo 'guest fake: status 0'", "");
    assert_ended(&format!("{UP}; {good}; {panic}"), 1, &says);
    assert_ended(&format!("{UP}; exit 0"), 1, &["ended without a good result (status unknown of the tests, 0 of vng)"]);
    let killed = GOOD.replace("status 0", "status 137");
    assert_ended(&format!("{UP}; {killed}"), 1, &["ended without a good result (status 137 of the tests, 0 of vng)"]);
}

/// Check that a guest that hangs while it boots or in a test, or that never ends, is killed, and that the console is printed.
#[test]
fn hung() {
    let hang = "echo 'last words' >&2; exec sleep 100";
    assert_ended(hang, 1, &["not up after 1 s; it boots once more", "not up after 1 s; the end", "    last words"]);
    let hangs_once = format!("if mkdir \"$0.again\" 2>/dev/null; then {hang}; fi; {UP}; {GOOD}");
    assert_ended(&hangs_once, 0, &["not up after 1 s; it boots once more", "1 tests in"]);
    assert_ended(&format!("{UP}; printf 'test a ... '; {hang}"), 1, &["silent after 2 s", "test a ... \n", "    last words"]);
    assert_ended(&format!("{UP}; while :; do echo; sleep 0.1; done"), 1, &["not done after 4 s"]);
}
