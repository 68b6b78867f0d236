// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One program, run bare and profiled: its output, exit status and files must be the same.

use crate::process::{Outcome, run_with_input};
use crate::tool::{Firsttouch, assert_no_panic};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

type Setup = Box<dyn Fn(&Path)>;

/// A program and what it is expected to do.
pub struct Case {
    name: String,
    argv: Vec<OsString>,
    input: Vec<u8>,
    environment: Vec<(String, String)>,
    setup: Option<Setup>,
    artifacts: Vec<String>,
    status: i32,
    options: Vec<Vec<&'static str>>,
    under_plan: bool,
    without_timers: bool,
}

/// The result of a run: its outcome and the files named as artifacts (`None` if a file is missing).
struct Run {
    outcome: Outcome,
    artifacts: Vec<Option<Vec<u8>>>,
}

impl Case {
    pub fn new<A: Into<OsString>>(name: &str, argv: impl IntoIterator<Item = A>) -> Self {
        Case {
            name: name.to_owned(),
            argv: argv.into_iter().map(Into::into).collect(),
            input: Vec::new(),
            environment: Vec::new(),
            setup: None,
            artifacts: Vec::new(),
            status: 0,
            options: vec![vec![]],
            under_plan: false,
            without_timers: false,
        }
    }

    /// Bytes for stdin.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Prepares the new working directory of each run.
    pub fn setup(mut self, setup: impl Fn(&Path) + 'static) -> Self {
        self.setup = Some(Box::new(setup));
        self
    }

    /// A file in the working directory that each run must write with the same content.
    pub fn artifact(mut self, name: &str) -> Self {
        self.artifacts.push(name.to_owned());
        self
    }

    /// The exit status, as a shell shows it.
    pub fn status(mut self, status: i32) -> Self {
        self.status = status;
        self
    }

    /// Runs the program once more, with these options of `profile`.
    pub fn also_with(mut self, options: &[&'static str]) -> Self {
        self.options.push(options.to_vec());
        self
    }

    /// Runs the program once more under a plan that examines every allocation.
    pub fn also_under_a_plan(mut self) -> Self {
        self.under_plan = true;
        self
    }

    /// Runs everything under a limit on pending signals below which the agent gives no thread a timer: registers are sampled from outside.
    pub fn without_timers(mut self) -> Self {
        self.without_timers = true;
        self
    }

    /// Check that two bare runs agree (otherwise the test proves nothing), then that profiled runs agree with them.
    pub fn check(&self) {
        let base = tempfile::tempdir().expect("a temporary directory");
        let directory = base.path().join("work");
        let bare_command = || {
            let mut command = Command::new(&self.argv[0]);
            command.args(&self.argv[1..]);
            command
        };
        let bare = self.run(&directory, bare_command());
        let again = self.run(&directory, bare_command());
        assert_eq!(bare.outcome.status, self.status, "{}, bare: {:?}", self.name, bare.outcome);
        self.compare("bare, second run", &bare, &again);

        let Some(firsttouch) = Firsttouch::find(&self.name) else { return };
        for options in &self.options {
            let profile = base.path().join("profile.ftp");
            let profiled = self.run(&directory, firsttouch.profile(&profile, options, &self.argv));
            assert_no_panic(&profiled.outcome);
            self.compare(&format!("profiled {options:?}"), &bare, &profiled);
            let report = firsttouch.report_json(&profile);
            assert_eq!(report["exit_code"], self.status, "{}: the profile's exit_code", self.name);
        }
        if self.under_plan {
            let plan = base.path().join("plan.toml");
            let words = format!(
                "schema = 'firsttouch.plan/1'\nnodes = 2\nleast_bytes = 1\n[[module]]\nname = 'm'\npath = '{}'\n[[place]]\nwhat = 'x'\n\
                 at = 'x.c:1'\npolicy = 'interleave'\nframes = [{{ module = 'm', offset = 1 }}]\n",
                self.argv[0].to_string_lossy()
            );
            fs::write(&plan, words).expect("a plan");
            let mut command = firsttouch.command(["run", "--plan"]);
            command.arg(&plan).arg("--").args(&self.argv);
            let placed = self.run(&directory, command);
            assert_no_panic(&placed.outcome);
            self.compare("under a plan", &bare, &placed);
        }
    }

    fn run(&self, directory: &Path, mut command: Command) -> Run {
        if self.without_timers {
            let mut limited = Command::new("bash");
            limited.args(["-c", "ulimit -i 1000; exec \"$@\"", "bash"]).arg(command.get_program()).args(command.get_args());
            command = limited;
        }
        // The same path for each run, because programs print it and compilers record it.
        if directory.exists() {
            fs::remove_dir_all(directory).expect("the working directory is removed");
        }
        fs::create_dir(directory).expect("the working directory is made");
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).expect("its mode is set");
        if let Some(setup) = &self.setup {
            setup(directory);
        }
        command.current_dir(directory).envs(self.environment.iter().cloned());
        let outcome = run_with_input(&mut command, &self.input);
        let artifacts = self.artifacts.iter().map(|name| fs::read(directory.join(name)).ok()).collect();
        Run { outcome, artifacts }
    }

    fn compare(&self, label: &str, bare: &Run, other: &Run) {
        let name = &self.name;
        let messages = other.outcome.messages();
        assert_eq!(bare.outcome.status, other.outcome.status, "{name}, {label}: exit status; stderr: {}", other.outcome.stderr_text());
        if bare.outcome.stdout != other.outcome.stdout {
            let (left, right) = (bare.outcome.stdout_text(), other.outcome.stdout_text());
            panic!("{name}, {label}: stdout differs\n{}\nmessages: {messages}", first_difference(&left, &right));
        }
        let (left, right) = (bare.outcome.program_stderr(), other.outcome.program_stderr());
        assert!(left == right, "{name}, {label}: stderr differs\n{}", first_difference(&left, &right));
        for (file, (left, right)) in self.artifacts.iter().zip(bare.artifacts.iter().zip(&other.artifacts)) {
            assert!(left.is_some(), "{name}: the bare run did not write {file}");
            assert!(left == right, "{name}, {label}: {file} differs or is missing; messages: {messages}");
        }
    }
}

/// The first line that differs, with its number.
fn first_difference(bare: &str, other: &str) -> String {
    let (mut left, mut right) = (bare.lines(), other.lines());
    for number in 1.. {
        match (left.next(), right.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let show = |line: Option<&str>| line.map_or("(nothing)".to_owned(), |text| format!("{text:?}"));
                return format!("line {number}\n  bare:  {}\n  other: {}", show(a), show(b));
            }
        }
    }
    "only in line ends".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the first difference is found, also when one text is longer.
    #[test]
    fn differences_are_located() {
        assert_eq!(first_difference("a\nb", "a\nc"), "line 2\n  bare:  \"b\"\n  other: \"c\"");
        assert_eq!(first_difference("a\n", "a\nc"), "line 2\n  bare:  (nothing)\n  other: \"c\"");
        assert_eq!(first_difference("a", "a\n"), "only in line ends");
    }

    /// Check that a program whose bare runs differ fails the test.
    #[test]
    #[should_panic(expected = "stdout differs")]
    fn nondeterminism_is_refused() {
        Case::new("random", ["/bin/sh", "-c", "date +%N"]).check();
    }
}
