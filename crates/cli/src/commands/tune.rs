//! `firsttouch tune`

use crate::arguments::Tune;
use crate::processes;
use crate::tuning::{Request, tune_process, tune_program};
use anyhow::Result;

pub fn run(arguments: &Tune) -> Result<u8> {
    let request = Request {
        options: &arguments.options,
        judge: arguments.judge(),
        once: arguments.once,
        dry_run: arguments.dry_run,
        duration: arguments.duration,
        json: arguments.json.as_deref(),
        output: arguments.output.as_deref(),
    };
    match &arguments.process {
        Some(process) => tune_process(processes::only(process)?, &request),
        None => tune_program(&arguments.program, &request),
    }
}
