//! Recording a program, for the commands that profile one.

use crate::arguments::Profile;
use crate::exit::{self, usage};
use crate::output::message;
use crate::watchpoints;
use anyhow::Result;
use firsttouch_capture::{Options, Output, Recording};
use firsttouch_report::thousands;
use firsttouch_system::MachineInfo;
use std::path::Path;

/// Below this count of call stacks, show no progress.
const SHOWN_STACKS: usize = 20_000;

/// The machine that programs are recorded on.
pub fn this_machine() -> Result<MachineInfo> {
    firsttouch_capture::prepare();
    Ok(MachineInfo::read(Path::new("/"))?)
}

/// Runs the program and records it. Returns the exit status to use if the program could not be started.
pub fn record(arguments: &Profile, info: MachineInfo, output: Output) -> Result<std::result::Result<Recording, u8>> {
    let watchpoints = usage(watchpoints::policy())?;
    let watchpoints_may_rest = usage(watchpoints::may_rest())?;
    let options = Options {
        command: arguments.program.clone(),
        output,
        min_size: arguments.min_size,
        follow: arguments.follow || arguments.wait,
        wait: arguments.wait,
        duration: arguments.duration,
        pid: arguments.pid,
        watchpoints,
        watchpoints_may_rest,
        agent: firsttouch_native::AGENT,
        machine: info.machine,
        notes: info.doubts,
        progress: (!arguments.quiet).then_some(print_progress as fn(usize, usize)),
    };
    match firsttouch_capture::profile(&options) {
        Ok(recording) => Ok(Ok(recording)),
        Err(error) => exit::unless_not_executed(error).map(Err),
    }
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
