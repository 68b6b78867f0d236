//! `firsttouch top -b`: a log.

use super::{Started, by_signal, delay, window};
use crate::arguments::Top;
use crate::output::{json_line, message, print_or_end};
use anyhow::Result;
use firsttouch_monitor::recording::Writer;
use firsttouch_monitor::{Monitor, Request, Snapshot};
use firsttouch_system::launch::signals::{Notice, Signals, process_runs};
use firsttouch_top::{CsvTable, text};
use std::time::{Duration, Instant};

/// The format of the log.
pub enum Format {
    Text,
    Json,
    Csv(CsvTable),
}

impl Format {
    pub fn of(arguments: &Top) -> Self {
        match (arguments.json, arguments.csv) {
            (true, _) => Self::Json,
            (_, true) => Self::Csv(CsvTable::default()),
            _ => Self::Text,
        }
    }

    /// Prints a snapshot. Returns false if the reader has closed the pipe.
    pub fn print(&mut self, snapshot: &Snapshot) -> Result<bool> {
        print_or_end(&match self {
            Self::Text => text(snapshot),
            Self::Json => json_line(snapshot)?,
            Self::Csv(table) => table.lines(snapshot),
        })
    }
}

pub fn run(arguments: &Top, mut monitor: Monitor, started: &Started, mut record: Option<Writer>) -> Result<u8> {
    let signals = Signals::catch()?;
    let mut format = Format::of(arguments);
    let request = |monitor: &Monitor| Request { window: window(arguments), close: monitor.focused() };
    let first = request(&monitor);
    // Rates need two readings.
    monitor.tick(first);
    let mut shown = 0;
    let mut next = Instant::now() + delay(arguments);
    while arguments.count.is_none_or(|count| shown < count) {
        if let Some(signal) = wait(&signals, next, &mut monitor) {
            if monitor.has_program() {
                monitor.pass_on(signal);
                return Ok(started.status(&mut monitor, &signals));
            }
            return Ok(by_signal(signal));
        }
        next = (next + delay(arguments)).max(Instant::now());
        let request = request(&monitor);
        let snapshot = monitor.tick(request);
        let is_over = monitor.launched_status().is_some();
        if let Some(why) = monitor.unobserved() {
            message(&why);
        }
        if let Some(writer) = record.as_mut().filter(|_| !is_over) {
            writer.add(&snapshot)?;
        }
        if is_over || !format.print(&snapshot)? {
            break;
        }
        shown += 1;
        if let Some(pid) = started.pid.filter(|_| snapshot.processes.iter().all(|row| row.has_ended)) {
            message(&gone(pid));
            break;
        }
    }
    Ok(started.status(&mut monitor, &signals))
}

/// Why a process is not among those that are watched.
fn gone(pid: i32) -> String {
    if process_runs(pid) {
        format!("process {pid} is a thread of the kernel, which has no memory of its own")
    } else {
        format!("process {pid} has ended")
    }
}

/// Waits until then, or until the program has ended. Returns a signal that asks firsttouch to end.
fn wait(signals: &Signals, until: Instant, monitor: &mut Monitor) -> Option<i32> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return None;
        }
        match signals.wait(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX), &mut Vec::new()) {
            Some(Notice::Forward(signal) | Notice::Terminal(signal)) if ends(signal) => return Some(signal),
            Some(Notice::Child) if monitor.launched_status().is_some() => return None,
            _ => {}
        }
    }
}

/// Whether a signal asks firsttouch to end: of those that are caught.
pub fn ends(signal: i32) -> bool {
    // SIGHUP, SIGINT, SIGQUIT, SIGTERM.
    [1, 2, 3, 15].contains(&signal)
}
