// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a command in a folder of its own, with a temporary directory of its own, and describes what happened.

use firsttouch_e2e::process::{Outcome, Running, run};
use firsttouch_e2e::programs::program;
use firsttouch_e2e::tool::{Firsttouch, assert_no_panic, temporary_directory, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// How long the program works, ms.
pub const WORK_MS: &str = "300";

pub struct Lab {
    pub firsttouch: Firsttouch,
    pub ticker: PathBuf,
    pub forbid: PathBuf,
    folder: TempDir,
}

/// What was seen of a fault: a row of the table.
pub struct Seen {
    pub command: &'static str,
    pub program: &'static str,
    pub profile: &'static str,
    pub status: String,
    pub left: String,
}

impl Seen {
    pub fn cells(&self) -> String {
        [self.command, self.program, self.profile, &self.status, &self.left].join(" | ")
    }
}

impl Lab {
    pub fn new(test: &str) -> Option<Self> {
        let (ticker, forbid) = (program(test, "noharm/ticker")?, program(test, "noharm/forbid")?);
        let lab = Self { firsttouch: Firsttouch::find(test)?, ticker, forbid, folder: temporary_directory() };
        fs::create_dir(lab.at("tmp")).expect("a folder");
        Some(lab)
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `firsttouch profile` of the program, started by a shell after `setting`. `output`: the profile's path.
    pub fn recording(&self, setting: &str, output: &Path) -> Command {
        let result = self.at("result");
        let profile = self.firsttouch.profile(output, &[], &[text(&self.ticker), WORK_MS, text(&result)]);
        self.shell(setting, &profile)
    }

    pub fn shell(&self, setting: &str, command: &Command) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("{setting}\nexec \"$0\" \"$@\"")]).arg(command.get_program()).args(command.get_args());
        shell.current_dir(self.folder.path()).env("TMPDIR", self.at("tmp")).env_remove("XDG_RUNTIME_DIR");
        shell
    }

    /// Records the program after `setting`, and acts when it works.
    pub fn record(&self, setting: &str, act: impl FnOnce(&Running)) -> Seen {
        self.record_to(setting, &self.at("a.ftp"), act)
    }

    pub fn record_to(&self, setting: &str, output: &Path, act: impl FnOnce(&Running)) -> Seen {
        let running = Running::start(&mut self.recording(setting, output), &[]);
        // A program that is not started prints nothing.
        if !setting.contains("refused") {
            running.wait_for_stdout("ready");
            std::thread::sleep(std::time::Duration::from_millis(40));
            act(&running);
        }
        self.seen("profile", &running.wait(), output)
    }

    pub fn seen(&self, command: &'static str, outcome: &Outcome, profile: &Path) -> Seen {
        assert_no_panic(outcome);
        let result = fs::read_to_string(self.at("result")).unwrap_or_default();
        let program = match (outcome.stdout_text().as_str(), result.as_str()) {
            ("ready\ndone\n", "wrong bytes 0\n") => "unharmed",
            ("ready\n", "") => "ended by the signal",
            ("", "") => "not started",
            ("", "wrong bytes 0\n") => "unharmed",
            _ => panic!("the program is harmed: {result:?}, {outcome:?}"),
        };
        let (messages, is_killed) = (outcome.messages(), outcome.status == 137);
        let profile_is = self.profile(profile);
        let is_said = messages.contains("error: ") || messages.contains("NOT JUDGED");
        let is_well = profile_is == "whole" && program != "not started";
        assert!(is_well || is_killed || is_said, "no message says what went wrong: {outcome:?}");
        Seen { command, program, profile: profile_is, status: outcome.status.to_string(), left: self.left(profile) }
    }

    /// What the commands say about a profile.
    pub fn profile(&self, file: &Path) -> &'static str {
        if !file.is_file() {
            return "none";
        }
        let report = self.firsttouch.report(file, &["--json"]);
        assert_no_panic(&report);
        let check = run(&mut self.firsttouch.command(["check", text(file), "--ignore-failure", "--max-remote", "100"]));
        assert_no_panic(&check);
        let said = check.stdout_text() + &check.messages();
        match (report.status, check.status) {
            (1, 1) if report.messages().contains("error: ") => "named as unreadable",
            (0, 1) if said.contains("not whole") => {
                self.says_how_much_it_holds(file);
                "holds what was written; check does not pass"
            }
            (0, _) if !said.contains("not whole") => "whole",
            other => panic!("{other:?}: {report:?} {check:?}"),
        }
    }

    /// Check that the text of the report says until when a profile holds that is not whole, and that this is not longer than the recording can have taken.
    fn says_how_much_it_holds(&self, file: &Path) {
        let report = self.firsttouch.report(file, &[]).stdout_text().replace('\n', " ");
        if report.contains("the program runs unobserved") {
            return;
        }
        let held = report.split_once("holds the first ").and_then(|(_, rest)| rest.split(" s").next()?.parse::<f64>().ok());
        assert!(held.is_some_and(|seconds| (0.0..60.0).contains(&seconds)), "{held:?}: {report}");
    }

    /// The files that were not there before.
    fn left(&self, profile: &Path) -> String {
        let names = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut left: Vec<String> = names(self.at("")).map(|name| name.to_string_lossy().into_owned()).collect();
        left.retain(|name| !["tmp", "result"].contains(&name.as_str()) && !name.ends_with(".given") && !profile.ends_with(name));
        let runs = names(self.at("tmp")).count();
        left.extend((runs > 0).then(|| "a directory in TMPDIR".to_owned()));
        left.sort();
        if left.is_empty() { "nothing".to_owned() } else { left.join(", ") }
    }
}

impl Lab {
    /// Of a command that runs no program.
    pub fn seen_reading(&self, command: &'static str, outcome: &Outcome, profile: &Path) -> Seen {
        assert_no_panic(outcome);
        Seen { command, program: "-", profile: self.profile(profile), status: outcome.status.to_string(), left: self.left(profile) }
    }
}
