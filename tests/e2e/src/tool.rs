// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The firsttouch under test.

use crate::paths::target_dir;
use crate::process::{Outcome, run};
use crate::programs::program;
use crate::skip::skipped;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The unprivileged user that tests switch to when they run as root.
pub const NOBODY: u32 = 65534;

/// The binary: `FIRSTTOUCH_BIN`, else `target/release/firsttouch`.
#[derive(Debug, Clone)]
pub struct Firsttouch {
    binary: PathBuf,
}

impl Firsttouch {
    /// Finds the binary, or reports that `test` is skipped.
    pub fn find(test: &str) -> Option<Self> {
        let binary = match std::env::var_os("FIRSTTOUCH_BIN") {
            Some(path) => PathBuf::from(path),
            None => target_dir().join("release/firsttouch"),
        };
        if !binary.is_file() {
            skipped(test, &format!("{} is not built (`make build`)", binary.display()));
            return None;
        }
        Some(Firsttouch { binary })
    }

    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// A command line of firsttouch.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments);
        command
    }

    /// `firsttouch profile -o FILE OPTIONS -- PROGRAM...`
    pub fn profile<A: AsRef<OsStr>>(&self, file: &Path, options: &[&str], program: &[A]) -> Command {
        let mut command = self.command(["profile", "-o"]);
        command.arg(file).args(options).arg("--").args(program);
        command
    }

    /// `firsttouch report FILE ...`
    pub fn report(&self, file: &Path, options: &[&str]) -> Outcome {
        run(self.command(["report"]).arg(file).args(options))
    }

    /// The JSON report of a readable profile.
    ///
    /// # Panics
    /// If the report fails.
    pub fn report_json(&self, file: &Path) -> Value {
        let outcome = self.report(file, &["--json"]);
        assert_eq!(outcome.status, 0, "report of {} failed: {}", file.display(), outcome.stderr_text());
        let value: Value = serde_json::from_slice(&outcome.stdout)
            .unwrap_or_else(|error| panic!("report --json is not JSON ({error}): {}", outcome.stdout_text()));
        assert_eq!(value["schema"], "firsttouch.report/1", "{value}");
        value
    }
}

/// A directory that is removed when the value is dropped.
pub fn temporary_directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

/// The profile of a short program, in `directory`.
pub fn good_profile(test: &str, firsttouch: &Firsttouch, directory: &Path) -> Option<PathBuf> {
    let short = program(test, "noharm/short_run")?;
    let file = directory.join("good.ftp");
    let outcome = run(&mut firsttouch.profile(&file, &[], &[&short]));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    Some(file)
}

/// Check that `outcome` is an error as a user should see it: the status, firsttouch's prefix, the cause, nothing on stdout, and
/// no trace of a panic.
pub fn assert_clear_error(outcome: &Outcome, statuses: &[i32], mentions: &[&str]) {
    let messages = outcome.messages();
    assert!(statuses.contains(&outcome.status), "status {} is not one of {statuses:?}: {outcome:?}", outcome.status);
    assert!(!messages.is_empty(), "no message that starts with \"firsttouch: \": {outcome:?}");
    assert!(outcome.stdout.is_empty(), "an error leaves stdout empty: {}", outcome.stdout_text());
    assert_no_panic(outcome);
    for text in mentions {
        assert!(messages.contains(text), "the message does not name {text:?}: {messages}");
    }
}

/// Check that no panic text reached the user.
pub fn assert_no_panic(outcome: &Outcome) {
    let text = outcome.stderr_text();
    for trace in ["panicked at", "RUST_BACKTRACE", "thread 'main'", "stack backtrace"] {
        assert!(!text.contains(trace), "stderr shows a panic: {text}");
    }
}
