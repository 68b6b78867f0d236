//! Starts a launcher with firsttouch before each of its programs, so that each rank is recorded where it runs.

use super::merged::{Merged, merge};
use super::{Outside, ROOT, this};
use crate::arguments::Profile;
use crate::exit::{self, unless_not_executed};
use crate::output::message;
use anyhow::{Context, Result};
use firsttouch_pipeline::AnalysisRequest;
use firsttouch_ranks::directory::{State, recorders, remove_empty};
use firsttouch_system::MachineInfo;
use firsttouch_system::launch::{Commands, become_program};
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long recorders may take that outlive the launcher: it waits for them unless it is killed, or kills the ranks.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(20);

/// Runs the launcher, merges the profiles of its ranks, and gives the result and the launcher's exit status to `then`, which may return another one.
///
/// # Errors
/// Nothing was started.
pub fn record_job(
    arguments: &Profile,
    request: &AnalysisRequest,
    outside: &Outside,
    then: impl FnOnce(Result<Option<Merged>>, u8) -> Option<u8>,
) -> Result<u8> {
    request.check(&MachineInfo::read(Path::new(ROOT))?.machine)?;
    let own = std::env::current_exe().context("cannot find the file of firsttouch, which starts each rank")?;
    let Some(name) = &outside.name else {
        let command = with_recorders(arguments, outside, &named_options(arguments, request), &own);
        return unless_not_executed(become_program(&command, &[]));
    };
    let this = this();
    let directory = name.make(&format!("{} {} {} {}", this.host, this.numbers, this.pid, this.start), &this)?;
    // Ranks may have another working directory.
    let absolute = std::path::absolute(&directory).with_context(|| format!("cannot find {}", directory.display()))?;
    let command = with_recorders(arguments, outside, &[OsString::from("--job-directory"), absolute.into()], &own);
    let commands = Commands::new()?;
    let ran = match commands.run(&command) {
        Ok(ran) => ran,
        Err(error) => {
            remove_empty(&directory);
            return unless_not_executed(error);
        }
    };
    wait_for_recorders(&directory);
    let own_status = exit::of_program(ran.exit_code);
    let merged = merge(&directory, &name.merged(&directory));
    if let Ok(None) = merged {
        remove_empty(&directory);
        message(&format!("NOT JUDGED: {} started no program that could be recorded", outside.launcher));
    }
    Ok(then(merged, own_status).unwrap_or(own_status))
}

/// The launcher's command line, with firsttouch before each program.
fn with_recorders(arguments: &Profile, outside: &Outside, options: &[OsString], own: &Path) -> Vec<OsString> {
    let mut command = Vec::new();
    for (at, word) in arguments.program.iter().enumerate() {
        if outside.programs.contains(&at) {
            command.extend([own.into(), OsString::from("profile")]);
            command.extend_from_slice(options);
            command.extend(recorded_options(arguments));
            command.push("--".into());
        }
        command.push(word.clone());
    }
    command
}

/// The options that say what is recorded.
fn recorded_options(arguments: &Profile) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![format!("--min-size={}", arguments.min_size).into()];
    words.extend(arguments.follow.then(|| "--follow".into()));
    words.extend(arguments.wait.then(|| "--wait".into()));
    words.extend(arguments.duration.map(|time| format!("--duration={:.9}s", time.as_secs_f64()).into()));
    words.extend(arguments.ranks.as_ref().map(|ranks| format!("--ranks={}", ranks.text).into()));
    words.extend(arguments.quiet.then(|| "--quiet".into()));
    words
}

/// The options of ranks that each write a file of the user's name.
fn named_options(arguments: &Profile, request: &AnalysisRequest) -> Vec<OsString> {
    let joined = |option: &str, value: &std::ffi::OsStr| {
        let mut word = OsString::from(option);
        word.push(value);
        word
    };
    let output = arguments.output.iter().map(|name| joined("--output=", name.as_os_str()));
    let json = arguments.json.iter().map(|name| joined("--json=", name.as_os_str()));
    output.chain(json).chain(request.options().iter().map(OsString::from)).collect()
}

fn wait_for_recorders(directory: &Path) {
    let until = Instant::now() + PATIENCE;
    let one_runs = || {
        let all = recorders(directory, Path::new(ROOT), &this());
        all.is_ok_and(|all| all.iter().any(|one| one.state == State::Runs))
    };
    while Instant::now() < until && one_runs() {
        std::thread::sleep(LOOK);
    }
}
