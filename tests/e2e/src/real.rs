// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Real programs, from tests/programs/real/programs.toml: what they run, and what must be the same with and without firsttouch.

use crate::case::Case;
use crate::paths::workspace_root;
use serde::Deserialize;
use std::process::Command;

#[derive(Deserialize)]
struct Programs {
    program: Vec<Program>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub name: String,
    /// Commands.
    pub needs: Vec<String>,
    /// The packages that have them.
    pub package: String,
    script: String,
    #[serde(default)]
    status: i32,
    #[serde(default)]
    files: Vec<String>,
}

impl Program {
    /// All programs, in the order of the file.
    pub fn all() -> Vec<Self> {
        let text = std::fs::read_to_string(workspace_root().join("tests/programs/real/programs.toml")).expect("the list of programs");
        toml::from_str::<Programs>(&text).expect("a list of programs").program
    }

    /// The commands that are not there.
    pub fn missing(&self) -> Vec<&str> {
        let is_there = |command: &str| {
            let found = Command::new("bash").args(["-c", "command -v -- \"$1\"", "bash", command]).output();
            found.is_ok_and(|output| output.status.success())
        };
        self.needs.iter().map(String::as_str).filter(|command| !is_there(command)).collect()
    }

    /// Check that two bare runs agree, and that profiled runs agree with them.
    pub fn check(&self) {
        let case = Case::new(&self.name, ["bash", "-c", &self.script]).status(self.status).also_with(&["--follow"]);
        self.files.iter().fold(case, |case, file| case.artifact(file)).check();
    }
}
