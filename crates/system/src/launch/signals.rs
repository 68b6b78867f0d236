//! Signals as a file descriptor: those meant for the target are passed on, SIGCHLD wakes the loop.

use anyhow::{Context, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Signals a user or a batch system sends to the command they started, which is firsttouch. The real-time signals are among them
/// too. SIGCONT is both: it wakes us, and the target may have stopped itself.
const FORWARDED: [i32; 14] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGWINCH,
    libc::SIGCONT,
    libc::SIGXCPU,
    libc::SIGIO,
    libc::SIGPROF,
    libc::SIGVTALRM,
    libc::SIGPWR,
];

pub struct Signals {
    fd: OwnedFd,
    /// The mask as it was: the target starts with it.
    pub original_mask: libc::sigset_t,
}

/// What the loop has to do about a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    Child,
    /// Sent to firsttouch alone by a process: the target is to get it too.
    Forward(i32),
    /// From the terminal: the target, in the same process group, already has it.
    Terminal(i32),
}

impl Signals {
    /// Blocks the signals and opens the descriptor.
    ///
    /// # Errors
    /// When the kernel has no descriptor left.
    pub fn catch() -> Result<Self> {
        // SAFETY: sigset_t is plain data that sigemptyset initialises; all pointers are to locals.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut original_mask: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGCHLD);
            for signal in FORWARDED.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
                libc::sigaddset(&mut set, signal);
            }
            // Ignored, our own child's status could not be had; the child gets the disposition back.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            // A write beyond the limit on file sizes is an error to be told, not an end.
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::sigprocmask(libc::SIG_BLOCK, &set, &mut original_mask);
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(std::io::Error::last_os_error()).context("cannot watch for signals");
            }
            Ok(Self { fd: OwnedFd::from_raw_fd(fd), original_mask })
        }
    }

    /// Sleeps until a signal comes, one of `others` can be read, or `timeout_ns` passed.
    pub fn wait(&self, timeout_ns: u64, others: &[i32]) -> Option<Notice> {
        let entry = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polled: Vec<libc::pollfd> = std::iter::once(self.fd.as_raw_fd()).chain(others.iter().copied()).map(entry).collect();
        let timeout = libc::timespec {
            tv_sec: i64::try_from(timeout_ns / 1_000_000_000).unwrap_or(1),
            tv_nsec: i64::try_from(timeout_ns % 1_000_000_000).unwrap_or(0),
        };
        // SAFETY: valid pollfds, their number, and a valid timeout.
        unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, &timeout, std::ptr::null()) };
        // SAFETY: signalfd_siginfo is plain data, filled whole by a successful read.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer has the size the kernel writes.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), std::ptr::from_mut(&mut info).cast(), size) };
        if usize::try_from(got) != Ok(size) {
            return None;
        }
        let signal = info.ssi_signo.cast_signed();
        Some(match signal {
            libc::SIGCHLD => Notice::Child,
            // Codes above zero come from the kernel (here: the terminal); zero and below from kill, sigqueue, tgkill.
            _ if info.ssi_code > 0 && signal < libc::SIGRTMIN() => Notice::Terminal(signal),
            _ => Notice::Forward(signal),
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: restores the mask saved in `catch`.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.original_mask, std::ptr::null_mut()) };
    }
}

/// Sends a signal to the target.
pub fn send(pid: i32, signal: i32) {
    // SAFETY: no memory is involved; a dead target is no error here.
    unsafe { libc::kill(pid, signal) };
}

/// Whether a process runs: one that ended and waits for its parent to take note does not.
#[must_use]
pub fn process_runs(pid: i32) -> bool {
    if !process_exists(pid) {
        return false;
    }
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|line| line.get(line.rfind(')')? + 1..)?.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// Whether a process exists (possibly of another user).
#[must_use]
pub fn process_exists(pid: i32) -> bool {
    // SAFETY: signal 0 only checks.
    unsafe { libc::kill(pid, 0) == 0 || super::errno() == libc::EPERM }
}
