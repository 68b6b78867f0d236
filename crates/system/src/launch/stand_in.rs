//! A process that stands in for this one. Launchers of ranks kill the process group of a rank, with SIGKILL and without warning, when another rank fails:
//! whoever recorded the rank could not complete its profile. So the launcher's child becomes a stand-in that passes signals on, and the recorder goes on in a
//! process group of its own. The program is in the launcher's group.

use super::child::reap;
use super::signals::{Notice, Signals, end_by, send};
use firsttouch_model::error::{Context, Result};
use std::sync::atomic::{AtomicI32, Ordering};

/// How often the stand-in looks whether the recorder has ended, if no signal says so, ns.
const LOOK_NS: u64 = 1_000_000_000;

/// The process group that programs are started in; 0: that of this process.
static GROUP: AtomicI32 = AtomicI32::new(0);
/// The process that stands in for this one; 0: none.
static STAND_IN: AtomicI32 = AtomicI32::new(0);

/// Divides this process. The one that returns is the recorder, a child of the stand-in, and must end by `exit`: this thread is its only one. The stand-in
/// never returns: it ends as the recorder ends.
///
/// # Errors
/// When the system has no process or descriptor left: this process goes on alone.
pub fn go_behind_stand_in() -> Result<()> {
    let signals = Signals::catch()?;
    // SAFETY: getpgrp cannot fail. After fork, the child goes on as a copy of this thread; at most the main thread is beside it, which waits for it and
    // holds no lock.
    let (group, this, pid) = unsafe { (libc::getpgrp(), libc::getpid(), libc::fork()) };
    match pid {
        -1 => Err(std::io::Error::last_os_error()).context("cannot start a process"),
        0 => {
            // SAFETY: no memory is involved.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                libc::setpgid(0, 0);
            }
            GROUP.store(group, Ordering::Relaxed);
            STAND_IN.store(this, Ordering::Relaxed);
            Ok(())
        }
        recorder => stand_in(&signals, recorder),
    }
}

/// Whether somebody killed the stand-in.
#[must_use]
pub fn stand_in_is_gone() -> bool {
    let stand_in = STAND_IN.load(Ordering::Relaxed);
    // SAFETY: getppid cannot fail.
    stand_in != 0 && unsafe { libc::getppid() } != stand_in
}

fn stand_in(signals: &Signals, recorder: i32) -> ! {
    loop {
        if let Some(ended) = reap(recorder) {
            if let Some(signal) = ended.signal {
                end_by(signal);
            }
            // SAFETY: ends this process; nothing of it is left to do.
            unsafe { libc::_exit(ended.status) };
        }
        // A terminal's signals reach the program without this.
        if let Some(Notice::Forward(signal)) = signals.wait(LOOK_NS, &mut Vec::new()) {
            send(recorder, signal);
        }
    }
}

/// Puts a forked child into the launcher's process group. Async-signal-safe.
pub(super) fn join_group() {
    let group = GROUP.load(Ordering::Relaxed);
    if group != 0 {
        // SAFETY: no memory is involved. If the group is gone, the child stays in the recorder's.
        unsafe { libc::setpgid(0, group) };
    }
}
