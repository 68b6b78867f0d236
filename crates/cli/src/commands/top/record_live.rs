//! `firsttouch record-live`: what `top` and `tune` start for each process that they sample. It writes a profile that keeps recent samples only.

use crate::arguments::RecordLive;
use crate::exit::{self, unless_not_executed};
use anyhow::Result;
use firsttouch_capture::{Live, LiveEffort, Options, Output};
use firsttouch_system::MachineInfo;
use firsttouch_system::debug_exceptions::Policy;
use std::path::Path;
use std::time::Duration;

/// Samples that the longest window needs, and time for a reader to come.
const KEPT: Duration = Duration::from_secs(75);
/// As `profile` has it.
const MIN_SIZE: u64 = 64 << 10;

pub fn run(arguments: &RecordLive) -> Result<u8> {
    let info = MachineInfo::read(Path::new("/"))?;
    let options = Options {
        command: arguments.program.clone(),
        output: Output::File(arguments.output.clone()),
        min_size: MIN_SIZE,
        // Children of an attached process are sampled by recorders of their own.
        follow: arguments.pid.is_none(),
        wait: false,
        duration: None,
        pid: arguments.pid,
        watchpoints: Policy::Never,
        watchpoints_may_rest: true,
        agent: firsttouch_native::AGENT,
        machine: info.machine,
        rank: None,
        notes: info.doubts,
        progress: None,
        observed: None,
        live: Some(Live {
            kept: KEPT,
            period: Duration::from_micros(arguments.period_us),
            parent: arguments.parent,
            effort: if arguments.tuning { LiveEffort::Tuning } else { LiveEffort::View },
        }),
    };
    match firsttouch_capture::profile(&options) {
        Ok(recording) => Ok(recording.exit_code.map_or(exit::DONE, exit::of_program)),
        Err(error) => unless_not_executed(error),
    }
}
