//! Runs firsttouch and other tools to their end.

use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::Firsttouch;
use serde_json::Value;
use std::process::Command;

/// The name of the guest this process runs in.
///
/// # Panics
/// Outside a guest: these tests change the system they run on.
pub fn guest() -> String {
    std::env::var("FIRSTTOUCH_GUEST").expect("this test runs in a guest only: `make test-guests`")
}

/// The firsttouch under test.
///
/// # Panics
/// Outside a guest, and if firsttouch is not built.
pub fn firsttouch() -> Firsttouch {
    let guest = guest();
    Firsttouch::find(&guest).expect("scripts/test-guests builds firsttouch")
}

/// The output of `firsttouch ARGUMENTS... --json`.
///
/// # Panics
/// If it fails.
pub fn json(arguments: &[&str]) -> Value {
    json_of(firsttouch().command(arguments).arg("--json"))
}

/// The output of `LAUNCHER... firsttouch ARGUMENTS... --json`.
///
/// # Panics
/// If it fails.
pub fn json_under(launcher: &[&str], arguments: &[&str]) -> Value {
    json_of(Command::new(launcher[0]).args(&launcher[1..]).arg(firsttouch().binary()).args(arguments).arg("--json"))
}

/// The output of a command, which must be JSON.
///
/// # Panics
/// If it fails.
pub fn json_of(command: &mut Command) -> Value {
    let text = said(command);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{command:?} printed no JSON ({error}): {text}"))
}

/// The output of a tool.
///
/// # Panics
/// If it fails: a guest has every tool that the tests use.
pub fn tool(name: &str, arguments: &[&str]) -> String {
    said(Command::new(name).args(arguments).env("LC_ALL", "C"))
}

/// The output of a command.
///
/// # Panics
/// If it fails.
pub fn said(command: &mut Command) -> String {
    let outcome = run(command);
    assert_eq!(outcome.status, 0, "{command:?}: {outcome:?}");
    outcome.stdout_text()
}
