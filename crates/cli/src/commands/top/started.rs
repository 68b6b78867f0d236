//! What `top` watches: the program that it starts, and what becomes of it.

use super::named_process;
use crate::arguments::Top;
use crate::exit::{self, unless_not_executed};
use crate::output::message;
use anyhow::{Context, Result, bail};
use firsttouch_monitor::{Launch, Monitor};
use firsttouch_pipeline::is_profile;
use firsttouch_system::launch::signals::{Notice, Signals};
use firsttouch_system::launch::{LaunchError, find_program};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How long a wait for the program lasts until it is looked at again, ns.
const LOOK_NS: u64 = 200_000_000;

/// The process or program that the command line names.
pub struct Started {
    pub launch: Option<Launch>,
    pub pid: Option<i32>,
}

impl Started {
    /// Checks that the program can be started and its output written. Returns the exit status to use if it cannot.
    pub fn new(arguments: &Top) -> Result<std::result::Result<Self, u8>> {
        if let Some(pid) = named_process(arguments)? {
            return Ok(Ok(Self { launch: None, pid: Some(pid) }));
        }
        let Some(name) = arguments.program.first() else { return Ok(Ok(Self { launch: None, pid: None })) };
        if let Some(errno) = not_executable(find_program(name).as_deref()) {
            let error = LaunchError::NotExecuted { command: name.to_string_lossy().into_owned(), errno };
            return unless_not_executed(error).map(Err);
        }
        let output = arguments.output.clone().unwrap_or_else(|| default_output(Path::new(name)));
        let context = || format!("cannot write the program's output to {}: name another file with -o, or /dev/null", output.display());
        if is_profile(&output) {
            bail!("cannot write the program's output to {}: it is a profile; name another file with -o", output.display());
        }
        File::options().append(true).create(true).open(&output).with_context(context)?;
        Ok(Ok(Self { launch: Some(Launch { command: arguments.program.clone(), output: Some(output) }), pid: None }))
    }

    /// The file with the program's output.
    fn output(&self) -> Option<&Path> {
        self.launch.as_ref()?.output.as_deref()
    }

    /// Waits for the end of the program that `top` started, and returns its status; 0 if `top` started no program.
    pub fn status(&self, monitor: &mut Monitor, signals: &Signals) -> u8 {
        let Some(output) = self.output().filter(|_| monitor.has_program()) else { return exit::DONE };
        let mut is_said = false;
        loop {
            if let Some(status) = monitor.launched_status() {
                let Some(code) = status.code() else {
                    let place = output.display();
                    message(&format!("the recorder of the program was killed, so its status is not known; its output is in {place}"));
                    return exit::FAILED;
                };
                message(&format!("the program has ended with status {code}; its output is in {}", output.display()));
                return exit::of_program(code);
            }
            if !is_said {
                is_said = true;
                message(&format!("waiting for the program to end (Ctrl-C ends it); its output goes to {}", output.display()));
            }
            if let Some(why) = monitor.unobserved() {
                message(&why);
            }
            if let Some(Notice::Forward(signal)) = signals.wait(LOOK_NS, &mut Vec::new()) {
                monitor.pass_on(signal);
            }
        }
    }
}

/// Why a program cannot be executed, as an error number, as far as its file says: ENOENT, EACCES.
fn not_executable(program: Option<&Path>) -> Option<i32> {
    const NOT_THERE: i32 = 2;
    const NOT_ALLOWED: i32 = 13;
    let Some(about) = program.and_then(|program| std::fs::metadata(program).ok()) else { return Some(NOT_THERE) };
    let is_executable = about.is_file() && about.permissions().mode() & 0o111 != 0;
    (!is_executable).then_some(NOT_ALLOWED)
}

/// `PROGRAM.out` in this directory.
fn default_output(program: &Path) -> PathBuf {
    let mut name = program.file_name().unwrap_or(program.as_os_str()).to_owned();
    name.push(".out");
    name.into()
}
