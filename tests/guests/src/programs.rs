//! The programs of tests/programs/guests.

use firsttouch_e2e::process::Running;
use firsttouch_e2e::programs::program;
use std::path::PathBuf;
use std::process::Command;

const SIGKILL: i32 = 9;

/// A program of tests/programs/guests, built on the host.
///
/// # Panics
/// If it is not built.
pub fn guest_program(name: &str) -> PathBuf {
    program(name, &format!("guests/{name}")).expect("scripts/test-guests builds it")
}

/// A test program that has printed `ready` and waits. Dropping the value kills it.
pub struct Waiting {
    running: Option<Running>,
}

impl Waiting {
    pub fn start(name: &str, arguments: &[&str]) -> Self {
        Self::started(Command::new(guest_program(name)).args(arguments))
    }

    pub fn start_under(launcher: &[&str], name: &str, arguments: &[&str]) -> Self {
        Self::started(Command::new(launcher[0]).args(&launcher[1..]).arg(guest_program(name)).args(arguments))
    }

    pub fn started(command: &mut Command) -> Self {
        let running = Running::start(command, &[]);
        running.wait_for_stdout("ready\n");
        Self { running: Some(running) }
    }

    pub fn pid(&self) -> String {
        self.running.as_ref().unwrap().pid().to_string()
    }

    /// Kills the program and returns its output.
    pub fn end(mut self) -> String {
        let running = self.running.take().unwrap();
        running.signal_group(SIGKILL);
        running.wait().stdout_text()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal_group(SIGKILL);
            running.wait();
        }
    }
}
