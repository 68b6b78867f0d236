//! Exit statuses, and the errors that determine them.

use crate::output::{messages, print_own};
use crate::terminal::style;
use anyhow::Result;
use clap::error::{ContextKind, ErrorKind};
use firsttouch_experiments::ErrorKind as ExperimentError;
use firsttouch_launch::ErrorKind as PlacementError;
use firsttouch_pipeline::PipelineError;
use firsttouch_system::launch::LaunchError;

pub const DONE: u8 = 0;
pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;

/// A usage error: the command line is valid, but asks for something impossible.
#[derive(Debug)]
pub struct Usage(pub anyhow::Error);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Usage {}

/// Marks an error as a usage error.
pub fn usage<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| Usage(error).into())
}

/// Prints help or the version (stdout, 0), or what is wrong with the command line (stderr, 2).
pub fn help_or_usage(mut refusal: clap::Error) -> Result<u8> {
    // clap suggests `-- OPTION` for an unknown option, which misleads: no command takes such values.
    if refusal.kind() == ErrorKind::UnknownArgument {
        refusal.remove(ContextKind::Suggested);
    }
    let text = refusal.render();
    if !matches!(refusal.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        messages(&text.to_string());
        return Ok(USAGE);
    }
    print_own(&if style(&std::io::stdout()).colour { text.ansi().to_string() } else { text.to_string() })?;
    Ok(DONE)
}

/// The exit status of a command that failed.
pub fn of_error(error: &anyhow::Error) -> u8 {
    let is_usage = error.is::<Usage>()
        || error.downcast_ref::<PipelineError>().is_some_and(PipelineError::is_usage)
        || error.downcast_ref::<firsttouch_experiments::Error>().is_some_and(|error| error.kind() == ExperimentError::Usage)
        || error.downcast_ref::<firsttouch_launch::Error>().is_some_and(|error| error.kind() == PlacementError::Usage);
    if is_usage { USAGE } else { FAILED }
}

/// The exit status for a program's status.
pub fn of_program(code: i32) -> u8 {
    u8::try_from(code & 0xff).unwrap_or(FAILED)
}

/// The status 126 or 127, as in a shell, for a program that could not be executed. Other errors are returned.
pub fn unless_not_executed(error: impl Into<anyhow::Error>) -> Result<u8> {
    let error = error.into();
    let launch = error.downcast_ref().and_then(LaunchError::not_executed);
    let capture = error.downcast_ref::<firsttouch_capture::Error>().and_then(|error| error.launch()?.not_executed());
    let experiment = error.downcast_ref::<firsttouch_experiments::Error>().and_then(|error| match error.kind() {
        ExperimentError::NotExecuted { errno } => Some(errno),
        _ => None,
    });
    let Some(errno) = launch.or(capture).or(experiment) else { return Err(error) };
    crate::output::error(&error);
    Ok(of_unexecuted(errno))
}

/// 127 if there is no such program, 126 if it exists but cannot be executed.
fn of_unexecuted(errno: i32) -> u8 {
    let kind = std::io::Error::from_raw_os_error(errno).kind();
    if matches!(kind, std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) { 127 } else { 126 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the statuses of programs that cannot be executed, as a shell gives them.
    #[test]
    fn programs_that_cannot_be_executed() {
        assert_eq!([libc::ENOENT, libc::ENOTDIR, libc::EACCES, libc::ENOEXEC].map(of_unexecuted), [127, 127, 126, 126]);
    }
}
