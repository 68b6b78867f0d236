//! How far a long run of a kernel is, on a terminal.

use crate::output::tell;
use firsttouch_native::{KernelError, Outcome, Repetitions, Run};
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Shorter runs show nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// The thread that shows it wakes this often: far too seldom to slow a kernel that uses every CPU.
const PERIOD: Duration = Duration::from_millis(500);

/// Runs a kernel; `what` is the line's beginning.
///
/// # Errors
/// The kernel's.
pub fn run(run: &Run, what: &str) -> Result<Outcome, KernelError> {
    if !stderr().is_terminal() {
        return run.run();
    }
    let counted = Repetitions::default();
    let (over, ended) = channel();
    std::thread::scope(|scope| {
        let counted = &counted;
        scope.spawn(move || show(what, run.repetitions, counted, &ended));
        let outcome = run.run_counted(counted);
        drop(over);
        outcome
    })
}

fn show(what: &str, repetitions: u64, counted: &Repetitions, ended: &Receiver<()>) {
    let start = Instant::now();
    let mut shown = false;
    while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        if start.elapsed() >= PATIENCE {
            tell(&format!("\r\x1b[K{what}: {} of {repetitions} repetitions, {} s", counted.done(), start.elapsed().as_secs()));
            shown = true;
        }
    }
    if shown {
        tell("\r\x1b[K");
    }
}
