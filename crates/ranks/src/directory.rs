//! The directory of a job: each rank writes a profile of its own there, and the last one finds that it is the last.
//!
//! | file | who makes it, and what it says |
//! |---|---|
//! | `job` | the first rank: the key of the job |
//! | `rank-3.ftp` | the profile of rank 3 |
//! | `started-3` | the recorder of rank 3, at its start: its process |
//! | `ended-3` | the same, when the profile is complete: how the program ended |
//! | `merged-by` | who merges the profiles: one process |
//!
//! Files are created whole (or exclusively), so ranks need no locks, also on file systems of several hosts.

use crate::host::Process;
use firsttouch_model::rows::RankPlace;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::rename::rename_new;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Drafts of a job's key that this process made.
static DRAFTS: AtomicU32 = AtomicU32::new(0);
/// Directories of other jobs that are passed by.
const MOST: u32 = 10_000;
/// The ending of a directory of profiles.
const ENDING: &str = ".ftp.d";

#[derive(Serialize, Deserialize)]
struct Job {
    schema: String,
    key: String,
}

const SCHEMA: &str = "firsttouch.job/1";

/// What a recorder says of itself at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub process: Process,
    #[serde(default)]
    pub place: Option<RankPlace>,
    /// The ranks that are recorded; `None` for all.
    #[serde(default)]
    pub recorded: Option<Vec<u32>>,
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// As a shell gives it.
    pub exit_code: i32,
    #[serde(default)]
    pub signal: Option<i32>,
    /// The launcher had killed what stood in for the recorder: its signal ended the program.
    #[serde(default)]
    pub by_launcher: bool,
    /// The status with which it called `MPI_Abort`, if it did.
    #[serde(default)]
    pub abort_status: Option<i32>,
    /// Why the profile is not whole.
    #[serde(default)]
    pub error: Option<String>,
}

/// A recorder's place in the directory.
#[derive(Clone, Debug)]
pub struct Seat {
    pub directory: PathBuf,
    label: String,
}

/// What is known of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its profile is complete.
    Ended(Ended),
    /// Its recorder ended before it could complete the profile: it was killed.
    Died,
    /// It runs, or nobody here can tell.
    Runs,
}

/// A recorder that started.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub label: String,
    pub profile: PathBuf,
    pub started: Started,
    pub state: State,
}

/// Makes a new directory, for the ranks of a job that will be started: the first of `NAME.ftp.d`, `NAME.2.ftp.d`, ... that does not exist.
///
/// # Errors
/// When it cannot be made.
pub fn make(name: &Path, key: &str, this: &Process) -> io::Result<PathBuf> {
    for number in 1..=MOST {
        let path = numbered(name, number);
        match fs::create_dir(&path) {
            Ok(()) => {
                let _ = is_of(&path, key, this)?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(too_many(name))
}

/// Takes the seat of a process in the directory of its job, which the first rank makes: the first of `NAME.ftp.d`, `NAME.2.ftp.d`, ... that is not
/// another job's, and where no earlier run of this rank was recorded. All ranks of the job find the same one.
///
/// # Errors
/// When no directory can be made or written.
pub fn join(name: &Path, key: &str, started: &Started) -> io::Result<Seat> {
    for number in 1..=MOST {
        let path = numbered(name, number);
        match fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        if is_of(&path, key, &started.process)?
            && !path.join("merged-by").exists()
            && let Some(seat) = sit(&path, &label(started, 1), started)?
        {
            return Ok(seat);
        }
    }
    Err(too_many(name))
}

/// Takes a seat in a directory that exists. A rank that runs several programs, one after the other, gets several.
///
/// # Errors
/// When the directory cannot be written.
pub fn join_existing(directory: &Path, started: &Started) -> io::Result<Seat> {
    for number in 1..=MOST {
        if let Some(seat) = sit(directory, &label(started, number), started)? {
            return Ok(seat);
        }
    }
    Err(too_many(directory))
}

fn too_many(name: &Path) -> io::Error {
    io::Error::other(format!("{} and {MOST} more of that name exist: name another with -o", name.display()))
}

/// `3`; `3.2` for its second program; `unknown-HOST-PID` for a process that is no rank.
fn label(started: &Started, number: u32) -> String {
    let of = started.place.as_ref().map_or_else(
        || format!("unknown-{}-{}", started.process.host.replace('/', "_"), started.process.pid),
        |place| place.rank.to_string(),
    );
    if number == 1 { of } else { format!("{of}.{number}") }
}

/// `solver.ftp.d`, `solver.2.ftp.d`, ...
fn numbered(name: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return name.to_owned();
    }
    let text = name.as_os_str().as_encoded_bytes();
    match text.strip_suffix(ENDING.as_bytes()) {
        Some(stem) => {
            // The ending is ASCII, so what is before it is whole.
            let mut path = std::ffi::OsString::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(stem));
            path.push(format!(".{number}{ENDING}"));
            path.into()
        }
        None => {
            let mut path = name.as_os_str().to_owned();
            path.push(format!(".{number}"));
            path.into()
        }
    }
}

/// Whether a directory is the job's. It becomes so if it has no key and nothing else in it.
fn is_of(directory: &Path, key: &str, this: &Process) -> io::Result<bool> {
    let file = directory.join("job");
    let is_empty = || {
        let others = |name: &str| !name.starts_with("job");
        Ok::<bool, io::Error>(names(directory)?.iter().all(|name| !others(name)))
    };
    if !file.exists() {
        if !is_empty()? {
            return Ok(file.exists() && holds(&file, key));
        }
        // Threads of one process may ask in the same nanosecond.
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let own = directory.join(format!("job-{}-{}-{}-{number}", this.host.replace('/', "_"), this.pid, monotonic_ns()));
        let job = Job { schema: SCHEMA.to_owned(), key: key.to_owned() };
        write_new(&own, &job)?;
        // Only one of several can have the name.
        match rename_new(&own, &file) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => fs::remove_file(&own)?,
            Err(error) => return Err(error),
        }
    }
    Ok(holds(&file, key))
}

fn holds(file: &Path, key: &str) -> bool {
    read::<Job>(file).is_some_and(|job| job.key == key)
}

fn sit(directory: &Path, label: &str, started: &Started) -> io::Result<Option<Seat>> {
    match write_new(&directory.join(format!("started-{label}")), started) {
        Ok(()) => Ok(Some(Seat { directory: directory.to_owned(), label: label.to_owned() })),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

impl Seat {
    /// Where its profile goes.
    #[must_use]
    pub fn profile(&self) -> PathBuf {
        profile(&self.directory, &self.label)
    }

    /// Nothing was recorded: leaves nothing behind, nor a directory in which there is nothing else.
    pub fn leave(&self) {
        let _ = fs::remove_file(self.directory.join(format!("started-{}", self.label)));
        remove_empty(&self.directory);
    }

    /// The profile is complete.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn end(&self, ended: &Ended) -> io::Result<()> {
        let temporary = self.directory.join(format!(".ended-{}", self.label));
        write_new(&temporary, ended)?;
        fs::rename(temporary, self.directory.join(format!("ended-{}", self.label)))
    }
}

fn profile(directory: &Path, label: &str) -> PathBuf {
    directory.join(format!("rank-{label}.ftp"))
}

/// Removes a directory of a job without recorders.
pub fn remove_empty(directory: &Path) {
    if names(directory).is_ok_and(|names| names.iter().all(|name| name == "job")) {
        let _ = fs::remove_file(directory.join("job"));
        let _ = fs::remove_dir(directory);
    }
}

/// The recorders that have a seat, in order of their ranks.
///
/// # Errors
/// When the directory cannot be read.
pub fn recorders(directory: &Path, root: &Path, this: &Process) -> io::Result<Vec<Recorder>> {
    // Reading the directory, unlike asking for one file, shows what others made before this process made its own file, on NFS too.
    let names = names(directory)?;
    let mut found: Vec<Recorder> = names
        .iter()
        .filter_map(|name| {
            let label = name.strip_prefix("started-")?;
            // Of one that is just being written, nothing is known yet.
            let started: Started = read(&directory.join(name)).unwrap_or_default();
            let state = if names.contains(&format!("ended-{label}")) {
                State::Ended(read(&directory.join(format!("ended-{label}"))).unwrap_or_default())
            } else if started.process.has_ended(root, this) == Some(true) {
                State::Died
            } else {
                State::Runs
            };
            Some(Recorder { label: label.to_owned(), profile: profile(directory, label), started, state })
        })
        .collect();
    found
        .sort_by_key(|one| (one.started.place.as_ref().map_or(u32::MAX, |place| place.rank), one.started.process.start, one.label.clone()));
    Ok(found)
}

/// The ranks that have no recorder, of those that are to be recorded.
#[must_use]
pub fn missing(recorders: &[Recorder]) -> Vec<u32> {
    let seen: BTreeSet<u32> = recorders.iter().filter_map(|one| Some(one.started.place.as_ref()?.rank)).collect();
    let first = recorders.iter().find_map(|one| Some((one.started.place.as_ref()?.size, one.started.recorded.as_ref())));
    let Some((size, recorded)) = first else { return Vec::new() };
    (0..size).filter(|rank| recorded.is_none_or(|list| list.contains(rank)) && !seen.contains(rank)).collect()
}

/// Whether all recorders have ended, of all ranks that are to be recorded.
#[must_use]
pub fn is_complete(recorders: &[Recorder]) -> bool {
    missing(recorders).is_empty() && recorders.iter().all(|one| one.state != State::Runs)
}

/// Whether this process is the one that merges the profiles: the first to ask.
#[must_use]
pub fn may_merge(directory: &Path, this: &Process) -> bool {
    write_new(&directory.join("merged-by"), this).is_ok()
}

fn names(directory: &Path) -> io::Result<BTreeSet<String>> {
    let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

fn read<T: for<'a> Deserialize<'a>>(file: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Writes a file that must not exist yet.
fn write_new(file: &Path, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(value).map_err(io::Error::other)?;
    File::options().write(true).create_new(true).open(file)?.write_all(format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests;
