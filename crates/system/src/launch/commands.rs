//! Runs commands without observing them. Statuses and signals pass through.

use crate::calls::clock::monotonic_ns;
use crate::launch::signals::{Notice, Signals, send};
use crate::launch::{LaunchError, Waiting, environment, reap};
use firsttouch_model::error::Result;
use std::ffi::OsString;

/// SIGCHLD wakes the loop immediately; this timeout covers a SIGCHLD that the kernel merged with another.
const LOOK_NS: u64 = 200_000_000;

/// While this exists, signals do not end firsttouch, so that it can restore what it changed.
pub struct Commands {
    signals: Signals,
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ran {
    /// As a shell gives it: 128+N when signal N ended it.
    pub exit_code: i32,
    pub wall_s: f64,
    /// A signal that asks to stop (Ctrl-C, kill) and reached firsttouch meanwhile; the command received it too.
    pub interrupted: Option<i32>,
}

impl Commands {
    /// # Errors
    /// When the kernel has no descriptor left.
    pub fn new() -> Result<Self> {
        Ok(Self { signals: Signals::catch()? })
    }

    /// Runs `command` to its end.
    ///
    /// # Errors
    /// [`super::LaunchError`] when it cannot be executed.
    pub fn run(&self, command: &[OsString]) -> Result<Ran, LaunchError> {
        self.run_together(std::slice::from_ref(&command.to_vec()))
    }

    /// Runs several commands at the same time until all of them have ended; the status is that of the first that failed.
    ///
    /// # Errors
    /// [`super::LaunchError`] when one cannot be executed; the others are killed.
    pub fn run_together(&self, commands: &[Vec<OsString>]) -> Result<Ran, LaunchError> {
        let fork = |command: &Vec<OsString>| Waiting::fork(command, &environment(), &self.signals.original_mask);
        let children = commands.iter().map(fork).collect::<Result<Vec<_>>>()?;
        let mut running: Vec<i32> = children.iter().map(|child| child.pid).collect();
        let start = monotonic_ns();
        let mut children = children.into_iter();
        while let Some(child) = children.next() {
            let pid = child.pid;
            if let Err(error) = child.start() {
                children.by_ref().for_each(Waiting::abandon);
                for started in running.iter().take_while(|started| **started != pid) {
                    send(*started, libc::SIGKILL);
                    while reap(*started).is_none() {
                        self.signals.wait(LOOK_NS, &mut Vec::new());
                    }
                }
                return Err(error);
            }
        }
        let (mut interrupted, mut exit_code) = (None, 0);
        loop {
            running.retain(|pid| {
                let ended = reap(*pid).map(|ended| ended.status);
                exit_code = if exit_code == 0 { ended.unwrap_or(0) } else { exit_code };
                ended.is_none()
            });
            if running.is_empty() {
                let wall_s = monotonic_ns().saturating_sub(start) as f64 / 1e9;
                return Ok(Ran { exit_code, wall_s, interrupted: interrupted.or_else(|| self.interrupted()) });
            }
            match self.signals.wait(LOOK_NS, &mut Vec::new()) {
                Some(Notice::Forward(signal)) => {
                    running.iter().for_each(|pid| send(*pid, signal));
                    interrupted = interrupted.or(asks_to_stop(signal));
                }
                Some(Notice::Terminal(signal)) => interrupted = interrupted.or(asks_to_stop(signal)),
                Some(Notice::Child) | None => {}
            }
        }
    }

    /// A signal that asked to stop while no command ran.
    #[must_use]
    pub fn interrupted(&self) -> Option<i32> {
        loop {
            match self.signals.wait(0, &mut Vec::new())? {
                Notice::Forward(signal) | Notice::Terminal(signal) => {
                    if let Some(signal) = asks_to_stop(signal) {
                        return Some(signal);
                    }
                }
                Notice::Child => {}
            }
        }
    }
}

fn asks_to_stop(signal: i32) -> Option<i32> {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&signal).then_some(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that commands run at the same time, for as long as the last, and that one that cannot be executed ends the others.
    #[test]
    fn together() {
        let commands = Commands::new().expect("a descriptor");
        let sh = |script: &str| ["sh", "-c", script].map(OsString::from).to_vec();
        let ran = commands.run_together(&[sh("sleep 0.3"), sh("sleep 0.3; exit 4"), sh("exit 0")]).expect("sh runs");
        assert_eq!(ran.exit_code, 4);
        assert!((0.3..0.55).contains(&ran.wall_s), "{ran:?}");
        let none = vec![OsString::from("/nonexistent/program")];
        let start = std::time::Instant::now();
        let error = commands.run_together(&[sh("exec sleep 20"), none, sh("exec sleep 20")]).expect_err("no such program");
        assert_eq!(error.not_executed(), Some(libc::ENOENT));
        assert!(start.elapsed().as_secs() < 15);
    }

    /// Check statuses as a shell gives them, and that a command which cannot be executed is a separate error.
    #[test]
    fn statuses() {
        let commands = Commands::new().expect("a descriptor");
        for (script, exit_code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
            let ran = commands.run(&["sh", "-c", script].map(OsString::from)).expect("sh runs");
            assert_eq!((ran.exit_code, ran.interrupted), (exit_code, None), "{script}");
        }
        let error = commands.run(&[OsString::from("/nonexistent/program")]).expect_err("no such program");
        assert_eq!(error.not_executed(), Some(libc::ENOENT));
        assert_eq!(commands.interrupted(), None);
    }
}
