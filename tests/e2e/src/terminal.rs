// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a command on a pseudo-terminal: the only way to send it a true Ctrl-C, which the kernel delivers to the whole
//! foreground process group.

use crate::process::shell_status;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Runs `command` on a new terminal, types `keys` once `prompt` is on the screen, and returns the screen's text and the
/// status as a shell shows it.
pub fn run_on_terminal(command: &mut Command, prompt: &str, keys: &[u8]) -> (String, i32) {
    let (mut controller, terminal) = open_terminal().expect("a pseudo-terminal");
    let stdio = || terminal.try_clone().expect("a descriptor");
    command.stdin(stdio()).stdout(stdio()).stderr(stdio());
    // Background jobs of a shell ignore SIGINT, and the processes that they start inherit that.
    // SAFETY: only async-signal-safe calls (signal, setsid, ioctl) run between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    // The command object holds copies of the terminal. Drop them: otherwise reading the screen never ends.
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    drop(terminal);

    let deadline = Instant::now() + TIME_LIMIT;
    let mut screen = Vec::new();
    let mut typed = prompt.is_empty();
    if typed {
        controller.write_all(keys).expect("the keys are typed");
    }
    loop {
        assert!(Instant::now() < deadline, "the command on the terminal did not end: {}", String::from_utf8_lossy(&screen));
        if !is_readable(&controller) {
            continue;
        }
        let mut buffer = [0; 4096];
        // EIO: the last process on the terminal has ended.
        let Ok(count @ 1..) = controller.read(&mut buffer) else { break };
        screen.extend_from_slice(&buffer[..count]);
        if !typed && String::from_utf8_lossy(&screen).contains(prompt) {
            controller.write_all(keys).expect("the keys are typed");
            typed = true;
        }
    }
    let status = child.wait().expect("the child can be waited for");
    (String::from_utf8_lossy(&screen).replace("\r\n", "\n"), shell_status(status))
}

fn open_terminal() -> std::io::Result<(File, OwnedFd)> {
    let (mut controller, mut terminal) = (-1, -1);
    // SAFETY: openpty writes two descriptors; the optional arguments may be null. Each descriptor gets one owner.
    unsafe {
        let none = std::ptr::null_mut();
        if libc::openpty(&mut controller, &mut terminal, none, none.cast(), none.cast()) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        for descriptor in [controller, terminal] {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        Ok((File::from_raw_fd(controller), OwnedFd::from_raw_fd(terminal)))
    }
}

fn is_readable(file: &File) -> bool {
    let mut poll = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, which lives on this stack.
    unsafe { libc::poll(&mut poll, 1, 100) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that Ctrl-C typed on the terminal interrupts the command, and that the screen's text is returned.
    #[test]
    fn control_c_interrupts() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.01; done"]);
        let (screen, status) = run_on_terminal(&mut command, "ready", b"\x03");
        assert!(screen.contains("caught"), "{screen}");
        assert_eq!(status, 5);
    }
}
