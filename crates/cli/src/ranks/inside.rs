//! Records one rank of a job.

use super::merged::{Merged, merge, named};
use super::naming::JobName;
use super::{Joins, ROOT, Rank, this};
use crate::arguments::Profile;
use crate::exit::{FAILED, unless_not_executed};
use crate::output::{error as print_error, message};
use crate::record::{DESCRIPTORS, record, status, write_unobserved};
use anyhow::{Context, Result};
use firsttouch_capture::{Output, Recording};
use firsttouch_model::UNOBSERVED;
use firsttouch_pipeline::AnalysisRequest;
use firsttouch_ranks::directory::{Ended, Seat, Started, State, is_complete, join_existing, may_merge, missing, recorders};
use firsttouch_ranks::key;
use firsttouch_system::MachineInfo;
use firsttouch_system::launch::{become_program, can_open, end_by, go_behind_stand_in, outlive, raise_file_limit, stand_in_is_gone};
use std::path::{Path, PathBuf};

/// What the last rank of a job finds when it has ended.
pub enum JobEnd {
    /// The merged profile; `None` if nothing was recorded.
    Merged(Result<Option<Merged>>),
    /// All ranks that are recorded in the job's directory have ended, but others did not come until now.
    Incomplete { missing: String, directory: PathBuf },
}

/// Records the rank. `own` makes the exit status of the program that of this command. If it is the last of its job, it gives what it finds and the program's exit status to `then`, which may return another one. A program that a signal ended ends firsttouch by that signal, so that the launcher sees what it would see without firsttouch.
///
/// # Errors
/// Nothing was started.
pub fn record_rank(
    arguments: &Profile,
    request: &AnalysisRequest,
    rank: Rank,
    own: fn(u8) -> u8,
    then: impl FnOnce(JobEnd, u8) -> Option<u8>,
) -> Result<u8> {
    raise_file_limit();
    let quiet = Profile { quiet: true, verbose: false, json: None, ..arguments.clone() };
    if !can_open(DESCRIPTORS) {
        return unobserved(&quiet, &rank);
    }
    let info = MachineInfo::read(Path::new(ROOT))?;
    request.check(&info.machine)?;
    // Before there are other threads.
    if let Err(error) = go_behind_stand_in() {
        message(&format!("warning: {}: {error:#}", rank.name()));
    }
    // The launcher of a job that fails sends signals to all ranks: they end programs, not what follows them.
    outlive();
    firsttouch_capture::prepare();
    let status = match rank.sit() {
        Ok(seat) => match record(&quiet, request, info, Output::File(seat.profile())) {
            Ok(Ok(recording)) => ended(&rank, &seat, recording, own, then),
            Ok(Err(not_started)) => {
                seat.leave();
                not_started
            }
            Err(error) => {
                seat.leave();
                unrecorded(arguments, &rank, &error)
            }
        },
        Err(error) => unrecorded(arguments, &rank, &error),
    };
    // Behind a stand-in, this thread is the only one.
    std::process::exit(status.into());
}

/// Runs the program all the same: the other ranks would wait for it.
fn unrecorded(arguments: &Profile, rank: &Rank, error: &anyhow::Error) -> u8 {
    message(&format!("error: {} runs unrecorded: {error:#}", rank.name()));
    unless_not_executed(become_program(&arguments.program, &[])).unwrap_or_else(|error| {
        print_error(&error);
        FAILED
    })
}

/// The program has ended: completes what is recorded, and ends as the program did.
fn ended(rank: &Rank, seat: &Seat, recording: Recording, own_status: fn(u8) -> u8, then: impl FnOnce(JobEnd, u8) -> Option<u8>) -> u8 {
    let (own, signal) = (status(&recording), recording.signal);
    if let Err(error) = rank.end(seat, &recording) {
        print_error(&error);
    }
    drop(recording);
    let end = match &rank.joins {
        Joins::Existing(_) => None,
        Joins::Own(name) => end_of_job(name, seat),
    };
    let judged = end.and_then(|end| then(end, own));
    if judged.is_none()
        && let Some(signal) = signal
    {
        end_by(signal);
    }
    judged.unwrap_or_else(|| own_status(own))
}

impl Rank {
    fn sit(&self) -> Result<Seat> {
        let started = Started { process: this(), place: self.place.clone(), recorded: self.recorded.clone() };
        match (&self.joins, &self.place) {
            (Joins::Existing(directory), _) => {
                join_existing(directory, &started).with_context(|| format!("cannot write profiles to {}", directory.display()))
            }
            (Joins::Own(name), Some(place)) => name.join(&key(Path::new(ROOT), place, &started.process), &started),
            (Joins::Own(name), None) => name.join("no job", &started),
        }
    }

    fn name(&self) -> String {
        self.place.as_ref().map_or_else(|| "a process".to_owned(), |place| format!("rank {}", place.rank))
    }

    fn end(&self, seat: &Seat, recording: &Recording) -> Result<()> {
        if let Some(error) = &recording.profile_error {
            let what = if recording.is_cut { "the profile is incomplete: " } else { "" };
            message(&format!("error: {}: {what}{error}", self.name()));
        }
        let error = recording.profile_error.clone().filter(|_| recording.is_cut);
        let exit_code = recording.exit_code.unwrap_or(0);
        let (signal, abort_status) = (recording.signal, recording.abort_status);
        let ended = Ended { exit_code, signal, by_launcher: stand_in_is_gone(), abort_status, error };
        seat.end(&ended).with_context(|| format!("{}: cannot write to {}", self.name(), seat.directory.display()))
    }
}

/// The program runs without being observed, and the job's profile says so.
fn unobserved(arguments: &Profile, rank: &Rank) -> Result<u8> {
    message(&format!("NOT JUDGED: {}: {UNOBSERVED}", rank.name()));
    let account = || -> Result<()> {
        let seat = rank.sit()?;
        // Nothing is prepared: its threads open files, of which too few are left.
        write_unobserved(arguments, MachineInfo::read(Path::new(ROOT))?, Output::File(seat.profile()))?;
        Ok(seat.end(&Ended::default())?)
    };
    if let Err(error) = account() {
        print_error(&error);
    }
    unless_not_executed(become_program(&arguments.program, &[]))
}

/// `None` if others are still to end.
fn end_of_job(name: &JobName, seat: &Seat) -> Option<JobEnd> {
    let directory = &seat.directory;
    let all = match recorders(directory, Path::new(ROOT), &this()).with_context(|| format!("cannot read {}", directory.display())) {
        Ok(all) => all,
        Err(error) => return Some(JobEnd::Merged(Err(error))),
    };
    if is_complete(&all) {
        return may_merge(directory, &this()).then(|| JobEnd::Merged(merge(directory, &name.merged(directory))));
    }
    let none_runs = all.iter().all(|one| one.state != State::Runs);
    none_runs.then(|| JobEnd::Incomplete { missing: named(missing(&all)), directory: directory.clone() })
}
