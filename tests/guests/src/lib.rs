// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the tests inside guests share. `scripts/test-guests` boots a guest once and runs all tests of a file of `tests/` in it, one
//! after another, as root, on the host's files, which are read-only there but for `/tmp` and the target directory.

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
/// Outside a guest, and where it was not built.
pub fn firsttouch() -> Firsttouch {
    let guest = guest();
    Firsttouch::find(&guest).expect("scripts/test-guests builds firsttouch")
}

/// What `firsttouch ARGUMENTS... --json` prints.
///
/// # Panics
/// If it fails.
pub fn json(arguments: &[&str]) -> Value {
    let text = said(firsttouch().command(arguments).arg("--json"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?} --json is no JSON ({error}): {text}"))
}

/// What a tool prints.
///
/// # Panics
/// If it fails: in a guest, every tool that the tests use is there.
pub fn tool(name: &str, arguments: &[&str]) -> String {
    said(Command::new(name).args(arguments).env("LC_ALL", "C"))
}

fn said(command: &mut Command) -> String {
    let outcome = run(command);
    assert_eq!(outcome.status, 0, "{command:?}: {outcome:?}");
    outcome.stdout_text()
}
