//! `firsttouch top`

mod batch;
mod interactive;
mod record_live;
mod replay;
mod started;

pub use record_live::run as record_live;

use crate::arguments::{Top, WindowArgument};
use crate::exit;
use crate::output::message;
use crate::request::analysis_request;
use anyhow::{Result, anyhow};
use firsttouch_monitor::recording::Writer;
use firsttouch_monitor::{Focus, Monitor, RecorderCommand, Window};
use firsttouch_system::MachineInfo;
use firsttouch_system::launch::raise_file_limit;
use firsttouch_system::process::{self, Subject};
use started::Started;
use std::io::{IsTerminal, stdin, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;

const DELAY: Duration = Duration::from_secs(2);

pub fn run(arguments: &Top) -> Result<u8> {
    let is_batch = arguments.batch || arguments.json || arguments.csv || !has_screen();
    if is_batch && !arguments.batch && !arguments.json && !arguments.csv {
        message("the output is no terminal: printing a log, as with -b");
    }
    if let Some(record) = &arguments.replay {
        return replay::run(arguments, record, is_batch);
    }
    let started = match Started::new(arguments)? {
        Ok(started) => started,
        Err(status) => return Ok(status),
    };
    let record = arguments.record.as_deref().map(record).transpose()?;
    let monitor = monitor(arguments, &started)?;
    if is_batch { batch::run(arguments, monitor, &started, record) } else { interactive::run(arguments, monitor, &started, record) }
}

/// Creates a record.
fn record(path: &Path) -> Result<Writer> {
    let writer = Writer::create(path)?;
    if let Some(kept) = writer.kept() {
        message(&format!("the record before it is kept as {}", kept.display()));
    }
    Ok(writer)
}

fn has_screen() -> bool {
    stdout().is_terminal() && stdin().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn window(arguments: &Top) -> Window {
    match arguments.window {
        WindowArgument::One => Window::Short,
        WindowArgument::Ten => Window::Medium,
        WindowArgument::Sixty => Window::Long,
    }
}

fn delay(arguments: &Top) -> Duration {
    arguments.delay.unwrap_or(DELAY)
}

fn monitor(arguments: &Top, started: &Started) -> Result<Monitor> {
    let request = analysis_request(&arguments.judge())?;
    let info = MachineInfo::read(Path::new("/"))?;
    request.check(&info.machine)?;
    raise_file_limit();
    let command = RecorderCommand {
        program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("firsttouch")),
        arguments: vec!["record-live".into()],
    };
    let focus = match (&started.launch, started.pid) {
        (Some(launch), _) => Focus::Program(launch.clone()),
        (None, Some(pid)) => Focus::Process(pid),
        (None, None) => Focus::All,
    };
    Monitor::new(PathBuf::from("/"), &info.machine, request, command, &focus).map_err(|error| anyhow!("cannot watch this machine: {error}"))
}

/// The process that the command line names; of a thread, its process.
fn named_process(arguments: &Top) -> Result<Option<i32>> {
    let Some(pid) = arguments.pid else { return Ok(None) };
    let found = process::find(Path::new("/"), &Subject::Pid(pid), 0)?;
    Ok(found.first().copied())
}

/// The status of `top` when a signal ended it.
fn by_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(exit::FAILED)
}
