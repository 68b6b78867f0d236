//! Runs the program as a user does, without profiling anything (tests/e2e does that).
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod command_line;
mod doctor;
mod machine_commands;
mod predict;

use std::process::{Command, Output};

fn firsttouch(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_firsttouch")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
