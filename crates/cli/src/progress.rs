//! Progress of measurements, shown on a terminal only.

use crate::output::{message, replace_line};
use firsttouch_native::{KernelError, KernelResult, KernelRun, Repetitions};
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// No progress is shown for a kernel that runs for less than this.
const PATIENCE: Duration = Duration::from_secs(2);
/// The interval between updates of the line: long enough not to slow a kernel that uses every CPU.
const PERIOD: Duration = Duration::from_millis(500);

/// A message about the next step.
pub fn step(text: &str) {
    if stderr().is_terminal() {
        message(text);
    }
}

/// Replaces the last line of the terminal.
pub fn line(text: &str) {
    replace_line(text);
}

/// Runs a kernel and counts its repetitions on a line that begins with `what`.
///
/// # Errors
/// When the kernel fails.
pub fn kernel(run: &KernelRun, what: &str) -> Result<KernelResult, KernelError> {
    if !stderr().is_terminal() {
        return run.run();
    }
    let repetitions = Repetitions::default();
    let (end, ended) = channel();
    std::thread::scope(|scope| {
        let repetitions = &repetitions;
        scope.spawn(move || show(what, run.repetitions, repetitions, &ended));
        let outcome = run.run_counted(repetitions);
        drop(end);
        outcome
    })
}

fn show(what: &str, all: u64, repetitions: &Repetitions, ended: &Receiver<()>) {
    let start = Instant::now();
    let mut shown = false;
    while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        if start.elapsed() >= PATIENCE {
            line(&format!("{what}: {} of {all} repetitions, {} s", repetitions.done(), start.elapsed().as_secs()));
            shown = true;
        }
    }
    if shown {
        line("");
    }
}
