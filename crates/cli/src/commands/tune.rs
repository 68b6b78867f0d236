//! `firsttouch tune`

use crate::arguments::Tune;
use crate::processes;
use crate::tuning::{Request, tune_process, tune_program};
use anyhow::{Error, Result, anyhow};
use std::path::Path;

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
        Some(process) => tune_process(processes::only(process).map_err(|error| or_start(process, &error))?, &request),
        None => tune_program(&arguments.program, &request),
    }
}

/// An argument that is a program's file is likely meant to be started.
fn or_start(process: &str, error: &Error) -> Error {
    let start =
        if Path::new(process).is_file() { format!("; to start it and tune it: firsttouch tune -- {process}") } else { String::new() };
    anyhow!("{error:#}{start}")
}
