//! Recording a program, for the commands that profile one.

use crate::arguments::Profile;
use crate::exit::{self, usage};
use crate::first_verdict::FirstVerdict;
use crate::output::message;
use crate::progress;
use crate::terminal::style;
use crate::watchpoints;
use anyhow::Result;
use firsttouch_capture::{Created, Observed, Observer, Options, Output, Recording};
use firsttouch_model::shown::one_line;
use firsttouch_pipeline::AnalysisRequest;
use firsttouch_report::{counted_as, thousands};
use firsttouch_system::MachineInfo;
use firsttouch_system::process::process_of;
use std::cell::{Cell, RefCell};
use std::io::{IsTerminal, stderr, stdout};
use std::path::Path;

/// A recording that sees anything needs so many: the profile, signals, pipes, the agent's ring, and a file at a time.
pub const DESCRIPTORS: usize = 16;
/// No progress is shown in the first seconds.
const PATIENCE_S: f64 = 2.0;
/// Below this count of call stacks, show no progress.
const SHOWN_STACKS: usize = 20_000;

/// The machine that programs are recorded on.
pub fn this_machine() -> Result<MachineInfo> {
    firsttouch_capture::prepare();
    Ok(MachineInfo::read(Path::new("/"))?)
}

/// Runs the program and records it. `judged_as`: for the verdict so far. Returns the exit status to use if the program could not be started.
pub fn record(
    arguments: &Profile,
    judged_as: &AnalysisRequest,
    info: MachineInfo,
    output: Output,
) -> Result<std::result::Result<Recording, u8>> {
    // Of a thread, its process is recorded, as `ps` and `maps` show it.
    let pid = arguments.pid.map(|pid| process_of(Path::new("/"), pid));
    let arguments = &Profile { pid, ..arguments.clone() };
    let options = Options { observed: observer(arguments, judged_as), ..options(arguments, info, output)? };
    announce(arguments);
    match firsttouch_capture::profile(&options) {
        Ok(recording) => Ok(Ok(recording)),
        Err(error) => exit::unless_not_executed(error).map(Err),
    }
}

fn options(arguments: &Profile, info: MachineInfo, output: Output) -> Result<Options> {
    Ok(Options {
        command: arguments.program.clone(),
        output,
        min_size: arguments.min_size,
        follow: arguments.follow || arguments.wait,
        wait: arguments.wait,
        duration: arguments.duration,
        pid: arguments.pid,
        watchpoints: usage(watchpoints::policy())?,
        watchpoints_may_rest: usage(watchpoints::may_rest())?,
        agent: firsttouch_native::AGENT,
        machine: info.machine,
        rank: arguments.pid.is_none().then(crate::ranks::here).flatten(),
        notes: info.doubts,
        progress: (!arguments.quiet).then_some(print_progress as fn(usize, usize)),
        observed: None,
        live: None,
    })
}

/// Writes the profile of a program that will run unobserved.
pub fn write_unobserved(arguments: &Profile, info: MachineInfo, output: Output) -> Result<Created> {
    Ok(firsttouch_capture::write_unobserved(&options(arguments, info, output)?)?)
}

/// The program's own status; 0 if firsttouch attached to it.
pub fn status(recording: &Recording) -> u8 {
    recording.exit_code.map_or(exit::DONE, exit::of_program)
}

fn print_progress(done: usize, all: usize) {
    if done == 0 && all > SHOWN_STACKS {
        message(&format!("looking up the names of {} call stacks", thousands(all as u64)));
    }
}

/// Says what is recorded, and until when, where this is not simply a program's run.
fn announce(arguments: &Profile) {
    if arguments.quiet {
        return;
    }
    let time = arguments.duration.map(|duration| format!("for {} s", duration.as_secs_f64()));
    match (arguments.pid, time) {
        (Some(pid), time) => {
            // Without the process, or permission to look into it, there is nothing to record, and an error follows.
            let Ok(name) = std::fs::read_to_string(format!("/proc/{pid}/comm")) else { return };
            if std::fs::read_link(format!("/proc/{pid}/exe")).is_err() {
                return;
            }
            let time = time.map_or_else(String::new, |time| format!(" {time},"));
            message(&format!("recording process {pid} ({}){time} until it ends, or until Ctrl-C", one_line(name.trim_end())));
        }
        (None, Some(time)) => message(&format!("recording {time}; the program then goes on unobserved")),
        (None, None) => {}
    }
}

/// Shows what was recorded so far: on a terminal, and only if the program does not write to it as well.
fn observer(arguments: &Profile, judged_as: &AnalysisRequest) -> Option<Observer> {
    let is_shared = arguments.pid.is_none() && stdout().is_terminal();
    if arguments.quiet || !stderr().is_terminal() || is_shared {
        return None;
    }
    let verdict = RefCell::new(FirstVerdict::new(judged_as.options().to_vec()));
    let is_shown = Cell::new(false);
    Some(Box::new(move |observed| match observed {
        Some(observed) if observed.elapsed_s >= PATIENCE_S => {
            is_shown.set(true);
            let mut verdict = verdict.borrow_mut();
            let line = recording(observed, verdict.at(observed.profile, observed.elapsed_s));
            // A line that wraps could not be replaced.
            progress::line(&line.chars().take(style(&stderr()).width.saturating_sub(1)).collect::<String>());
        }
        Some(_) => {}
        None => {
            verdict.borrow_mut().end();
            if is_shown.get() {
                progress::line("");
            }
        }
    }))
}

/// `recording: 12 s, 8 threads, 1,204 accesses, 4,707 first touches`; with a verdict, fewer figures fit into a line.
fn recording(observed: &Observed<'_>, verdict: Option<&str>) -> String {
    let (time, accesses) = (format!("recording: {:.0} s", observed.elapsed_s), counted_as(observed.accesses, "access", "accesses"));
    match verdict {
        Some(verdict) => format!("{time}, {accesses}, so far {verdict}"),
        None => format!(
            "{time}, {}, {accesses}, {}",
            counted_as(observed.threads, "thread", "threads"),
            counted_as(observed.first_touches, "first touch", "first touches")
        ),
    }
}
