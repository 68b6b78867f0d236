//! Signals through a file descriptor: signals meant for the target are forwarded, SIGCHLD wakes the loop.

use crate::proc::stat;
use firsttouch_model::error::{Context, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// Signals that a user or a batch system sends to the command they started, which is firsttouch. The real-time signals are forwarded
/// too. SIGCONT wakes firsttouch and is forwarded: the target may have stopped itself.
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
    /// The signal mask at the start; the target starts with it.
    pub original_mask: libc::sigset_t,
}

/// A signal, by what the loop has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    Child,
    /// A process sent it to firsttouch alone: forward it to the target.
    Forward(i32),
    /// It came from the terminal: the target is in the same process group and already got it.
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
            // With SIGCHLD ignored, the child's status would be lost. The child gets the original disposition.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            super::outlive_size_limit();
            libc::sigprocmask(libc::SIG_BLOCK, &set, &mut original_mask);
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(std::io::Error::last_os_error()).context("cannot watch for signals");
            }
            Ok(Self { fd: OwnedFd::from_raw_fd(fd), original_mask })
        }
    }

    /// Sleeps until a signal comes, one of `others` can be read, or `timeout_ns` passed. Leaves those of `others` out from now on whose
    /// writers have ended: a performance event of a thread that has ended would end each wait at once, until its process is reaped.
    pub fn wait(&self, timeout_ns: u64, others: &mut Vec<i32>) -> Option<Notice> {
        let entry = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polled: Vec<libc::pollfd> = std::iter::once(self.fd.as_raw_fd()).chain(others.iter().copied()).map(entry).collect();
        let timeout = libc::timespec {
            tv_sec: i64::try_from(timeout_ns / 1_000_000_000).unwrap_or(1),
            tv_nsec: i64::try_from(timeout_ns % 1_000_000_000).unwrap_or(0),
        };
        // SAFETY: valid pollfds, their number, and a valid timeout.
        let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, &timeout, std::ptr::null()) };
        if ready > 0 {
            let has_ended = |fd: i32| polled.iter().any(|polled| polled.fd == fd && polled.revents & libc::POLLHUP != 0);
            others.retain(|&fd| !has_ended(fd));
        }
        self.pending()
    }

    /// A signal that has come.
    #[must_use]
    pub fn pending(&self) -> Option<Notice> {
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

impl AsRawFd for Signals {
    /// Can be read when a signal has come: [`Signals::pending`] reads it.
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
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
    // SAFETY: no memory is involved. A target that has ended is not an error.
    unsafe { libc::kill(pid, signal) };
}

/// From now on, no signal that is sent to end the target ends this process, also one that waits since [`Signals`] was there. Programs that it starts have
/// the dispositions that it was started with.
pub fn outlive() {
    extern "C" fn nothing(_: libc::c_int) {}
    let ends = |signal: &i32| ![libc::SIGWINCH, libc::SIGCONT].contains(signal);
    for signal in FORWARDED.into_iter().filter(ends).chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
        // SAFETY: sigaction is plain data. The handler does nothing, and exec replaces it by the default.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            // What is ignored stays so, in the target too.
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_DFL {
                action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// From now on, this process is killed when the thread that started it ends, whatever ended that. Returns false if `parent` has ended already.
#[must_use]
pub fn end_with_parent(parent: i32) -> bool {
    // SAFETY: no memory is involved. Without it, a process that nobody needs goes on: no harm is done.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0);
        libc::getppid() == parent
    }
}

/// Ends this process by a signal, without a core file: so a parent sees how the target ended. Returns if the signal does not end processes.
pub fn end_by(signal: i32) {
    // SAFETY: sigset_t is plain data that sigemptyset initialises; the default action needs no handler memory.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
}

/// Whether a process runs; `false` for a zombie.
#[must_use]
pub fn process_runs(pid: i32) -> bool {
    if !process_exists(pid) {
        return false;
    }
    !stat::of_process(Path::new("/"), pid).is_some_and(|stat| matches!(stat.state, 'Z' | 'X'))
}

/// Whether a process exists (possibly of another user).
#[must_use]
pub fn process_exists(pid: i32) -> bool {
    // SAFETY: signal 0 only checks.
    unsafe { libc::kill(pid, 0) == 0 || super::errno() == libc::EPERM }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Check that a descriptor whose writer has ended ends one wait, not all that follow, and that the others stay.
    #[test]
    fn writers_that_ended_are_left_out() {
        let signals = Signals::catch().expect("a descriptor");
        let (ended, writer) = std::io::pipe().expect("a pipe");
        let (open, _writer) = std::io::pipe().expect("a pipe");
        drop(writer);
        let mut others = vec![ended.as_raw_fd(), open.as_raw_fd()];
        let began = Instant::now();
        assert_eq!(signals.wait(60_000_000_000, &mut others), None);
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(others, [open.as_raw_fd()]);
        // A signal that another test of this process causes may end a wait early.
        let lasts = |_| {
            let began = Instant::now();
            let _ = signals.wait(20_000_000, &mut others);
            began.elapsed() >= Duration::from_millis(20)
        };
        assert!((0..20).any(lasts));
        assert_eq!(others, [open.as_raw_fd()]);
    }
}
