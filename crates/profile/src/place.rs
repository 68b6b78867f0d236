//! Takes a place for a new profile: a file that this process alone writes. An older profile there is kept or replaced.

use crate::APPLICATION_ID;
use firsttouch_model::error::{Context, Error, ErrorKind, Result};
use firsttouch_system::calls::claim::claim;
use firsttouch_system::calls::identity::effective_user;
use firsttouch_system::calls::rename::{exchange, rename_new};
use firsttouch_system::proc::limits;
use rusqlite::OpenFlags;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often a name is tried that other processes take at the same time.
const TRIES: usize = 100;

/// Where a new profile goes.
#[derive(Clone, Debug)]
pub enum Output {
    /// The file that the user named. It replaces an older profile.
    File(PathBuf),
    /// `NAME.ftp` in the first of these folders that can be written. An older profile there is kept as `NAME.ftp.1`, `NAME.ftp.2`, ... If
    /// another process is writing `NAME.ftp`, the name is `NAME-PID.ftp`.
    Default { name: OsString, folders: Vec<PathBuf> },
}

/// The file that a profile was created in. The file is claimed for this process until the last copy of this value is dropped.
#[derive(Clone, Debug, Default)]
pub struct Created {
    pub path: PathBuf,
    /// The new name of the older profile.
    pub kept: Option<PathBuf>,
    /// Whether an older profile is replaced.
    pub replaces: bool,
    /// Why the name is not the usual one, as a sentence.
    pub why_elsewhere: Option<String>,
    /// The claimed file.
    pub(crate) claim: Option<Arc<File>>,
}

/// An older profile that was renamed.
pub(crate) struct Older {
    pub path: PathBuf,
    pub is_kept: bool,
}

enum Taken {
    Free(File, Option<Older>),
    /// Another process writes it. The new name of an older profile, if that had to be renamed.
    InUse(Option<PathBuf>),
}

/// Takes the place: creates an empty file that no other process writes, and fills it. If that fails, the place is as before.
///
/// # Errors
/// When the place holds something that is not a profile, is being written by another process, or cannot be written.
pub(crate) fn take<T>(output: &Output, fill: impl Fn(Created) -> Result<T>) -> Result<(T, Option<Older>)> {
    match output {
        Output::File(path) => match take_file(path, false)? {
            Taken::Free(file, older) => filled(created(path.clone(), file, older, None), fill),
            Taken::InUse(kept) => {
                let kept = kept.map_or(String::new(), |kept| format!(" (the older profile is {})", kept.display()));
                Err(Error::invalid_input(format!(
                    "cannot create profile {}: another firsttouch is writing it{kept}. Name another file with -o; %p in a name stands for the process number",
                    path.display()
                )))
            }
        },
        Output::Default { name, folders } => take_default(name, folders, fill),
    }
}

/// Fills a place that was taken, or gives it back.
fn filled<T>((created, older): (Created, Option<Older>), fill: impl Fn(Created) -> Result<T>) -> Result<(T, Option<Older>)> {
    match fill(created.clone()) {
        Ok(writer) => Ok((writer, older)),
        Err(error) => {
            withdraw(&created, older);
            Err(error)
        }
    }
}

/// Whether another folder may do: this one cannot be written, was removed, or is on a full disk.
fn may_be_elsewhere(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::NotFound => true,
        // A limit on file sizes is the same in all folders.
        ErrorKind::Other => limits::file_size().is_none(),
        _ => false,
    }
}

fn take_default<T>(name: &OsStr, folders: &[PathBuf], fill: impl Fn(Created) -> Result<T>) -> Result<(T, Option<Older>)> {
    let mut refused: Option<Error> = None;
    let with = |middle: &str| {
        let mut file = name.to_owned();
        file.push(middle);
        file.push(".ftp");
        file
    };
    for folder in folders {
        // As the cache directory is made elsewhere too: only this user can write there.
        let makes = || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).is_ok() && is_own(folder);
        if refused.is_some() && !makes() {
            continue;
        }
        let mut in_use = None;
        for file in [with(""), with(&format!("-{}", std::process::id()))] {
            let path = folder.join(&file);
            match take_file(&path, true) {
                Ok(Taken::Free(file, older)) => {
                    let why = match (&refused, in_use) {
                        (Some(error), _) => {
                            Some(format!("cannot write here ({}): the profile is {}; -o names another", error.root_cause(), path.display()))
                        }
                        (None, Some(other)) => {
                            let other: PathBuf = other;
                            Some(format!("another firsttouch is writing {}: this profile is {}", other.display(), path.display()))
                        }
                        (None, None) => None,
                    };
                    match filled(created(path, file, older, why), &fill) {
                        Err(error) if may_be_elsewhere(&error) => {
                            refused.get_or_insert(error);
                            break;
                        }
                        done => return done,
                    }
                }
                Ok(Taken::InUse(_)) => in_use = Some(path),
                Err(error) if may_be_elsewhere(&error) => {
                    refused.get_or_insert(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    Err(refused.unwrap_or_else(|| {
        Error::other(format!("cannot create profile {}: other processes are writing it: name a file with -o", with("").display()))
    }))
}

/// A folder in a directory that others can write to may have been made by one of them.
fn is_own(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder).is_ok_and(|about| about.uid() == effective_user() && about.mode() & 0o002 == 0 && about.is_dir())
}

fn created(path: PathBuf, file: File, older: Option<Older>, why_elsewhere: Option<String>) -> (Created, Option<Older>) {
    let kept = older.as_ref().filter(|older| older.is_kept).map(|older| older.path.clone());
    let replaces = older.as_ref().is_some_and(|older| !older.is_kept);
    (Created { path, kept, replaces, why_elsewhere, claim: Some(Arc::new(file)) }, older)
}

/// Creates the file at `path`. An older profile there is renamed: to the next free name if `keep`, else to a temporary one.
fn take_file(path: &Path, keep: bool) -> Result<Taken> {
    let context = || {
        let limit = limits::file_size_remedy();
        format!("cannot create profile {}{limit}", path.display())
    };
    let refuse = |why: &str| Err(Error::invalid_input(format!("cannot create profile {}: {why}", path.display())));
    for _ in 0..TRIES {
        // Opening the file here first gives the operating system's reason; SQLite only says "unable to open".
        match File::options().read(true).write(true).create_new(true).open(path) {
            Ok(file) if !claim(&file) => return Ok(Taken::InUse(None)),
            // Another process found it empty and without a claim, took it for what a killed run left, and removed it.
            Ok(file) if !is_at(&file, path) => {}
            Ok(file) => {
                if let Some(side) = SIDES.iter().map(|suffix| beside(path, suffix)).find(|side| side.exists()) {
                    let _ = std::fs::remove_file(path);
                    return refuse(&format!("{} is in the way: move it away or name another with -o", side.display()));
                }
                return Ok(Taken::Free(file, None));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(context),
        }
        let meta = match std::fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
                return refuse("it is a link that leads nowhere: remove it or name another with -o");
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(context),
        };
        if meta.is_dir() {
            return refuse("it is a directory: name a file with -o");
        }
        if !meta.is_file() {
            return refuse("it is not a regular file: name another with -o");
        }
        let file = File::options().read(true).write(true).open(path).or_else(|_| File::open(path));
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(context),
        };
        if !claim(&file) {
            return Ok(Taken::InUse(None));
        }
        if !is_at(&file, path) {
            // Another process renamed it in the meantime.
            continue;
        }
        // What it was before it was claimed may be out of date.
        if file.metadata().with_context(context)?.len() == 0 {
            std::fs::remove_file(path).with_context(context)?;
            remove_sides(path).with_context(context)?;
        } else if !is_profile(path) {
            return refuse("a file that is not a firsttouch profile is already there: move it away or name another with -o");
        } else {
            return replace(path, keep).with_context(context);
        }
    }
    Err(Error::other(format!("{}: other processes create it too: name another with -o", context())))
}

/// Whether the file at its path is still this one. The user may have removed it, and another process may have taken the name.
pub(crate) fn is_ours(created: &Created) -> bool {
    created.claim.as_ref().is_some_and(|file| is_at(file, &created.path))
}

/// Whether an open file is the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |one: &std::fs::Metadata, other: &std::fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
    matches!((std::fs::metadata(path), file.metadata()), (Ok(now), Ok(opened)) if same(&now, &opened))
}

/// Puts a new file, claimed, in the place of an older profile, in one step where the file system can: no other process finds the place
/// empty. The caller has claimed the older profile.
fn replace(path: &Path, keep: bool) -> Result<Taken> {
    // After a crash, the last flush is in the WAL. If it cannot be merged (full disk, a reader), it stays beside the profile.
    if beside(path, "-wal").exists()
        && let Ok(connection) = crate::reader::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    {
        let _ = connection.execute_batch("PRAGMA journal_mode = DELETE;");
    }
    let (aside, mut file) = new_aside(path)?;
    let exchanged = move_sides(path, &aside).and_then(|()| exchange(&aside, path));
    match exchanged {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            std::fs::rename(path, &aside)?;
            let created = File::options().read(true).write(true).create_new(true).open(path);
            match created {
                Ok(created) if claim(&created) => file = created,
                // Another process took the place between the two steps. It may withdraw, so the older profile is kept in any case.
                Ok(_) => return Ok(Taken::InUse(Some(rename_to_next(&aside, path)?))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Ok(Taken::InUse(Some(rename_to_next(&aside, path)?)));
                }
                Err(error) => {
                    put_back(&aside, path);
                    return Err(error.into());
                }
            }
        }
        Err(error) => {
            let _ = move_sides(&aside, path);
            let _ = std::fs::remove_file(&aside);
            return Err(error.into());
        }
    }
    let aside = if keep { rename_to_next(&aside, path)? } else { aside };
    Ok(Taken::Free(file, Some(Older { path: aside, is_kept: keep })))
}

/// A new file next to `path`, claimed.
fn new_aside(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut number = 0;
    loop {
        // A number follows if a run that had this process number was killed.
        let after = if number == 0 { String::new() } else { format!("-{number}") };
        let aside = beside(path, &format!(".old-{}{after}", std::process::id()));
        match File::options().read(true).write(true).create_new(true).open(&aside) {
            Ok(file) if claim(&file) => return Ok((aside, file)),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists || number > TRIES => return Err(error),
            _ => number += 1,
        }
    }
}

/// Renames an older profile of `path` to the `a.ftp.N` after the last one.
fn rename_to_next(aside: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut next = kept(path).last().map_or(1, |(number, _)| number + 1);
    loop {
        let to = beside(path, &format!(".{next}"));
        match rename_new(aside, &to) {
            Ok(()) => {
                move_sides(aside, &to)?;
                return Ok(to);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => next += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Renames an older profile back, or, if another process has taken the name, to the next one that is kept.
fn put_back(aside: &Path, path: &Path) {
    match rename_new(aside, path) {
        Ok(()) => {
            let _ = move_sides(aside, path);
        }
        Err(_) => {
            let _ = rename_to_next(aside, path);
        }
    }
}

/// Removes a new profile, and puts the older one back.
pub(crate) fn withdraw(created: &Created, older: Option<Older>) {
    let path = &created.path;
    let is_ours = is_ours(created);
    if is_ours {
        let _ = remove_sides(path);
    }
    match older.map(|older| older.path) {
        Some(aside) if is_ours && exchange(&aside, path).is_ok() => {
            let _ = move_sides(&aside, path);
            let _ = std::fs::remove_file(&aside);
        }
        older => {
            if is_ours {
                let _ = std::fs::remove_file(path);
            }
            if let Some(aside) = older {
                put_back(&aside, path);
            }
        }
    }
}

/// The older profiles that were kept of a profile (`a.ftp.1`, ...), with their numbers, oldest first.
#[must_use]
pub fn kept(path: &Path) -> Vec<(u64, PathBuf)> {
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else { return Vec::new() };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut list: Vec<(u64, PathBuf)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let other = entry.file_name();
            let rest = other.as_encoded_bytes().strip_prefix(name.as_encoded_bytes())?.strip_prefix(b".")?;
            let digits = std::str::from_utf8(rest).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
            let number: u64 = digits.parse().ok().filter(|number| *number > 0)?;
            Some((number, beside(path, &format!(".{digits}"))))
        })
        .collect();
    list.sort_unstable();
    list
}

/// Whether a file is a firsttouch profile, by its first bytes.
#[must_use]
pub fn is_profile(path: &Path) -> bool {
    crate::reader::application_id(path) == Some(APPLICATION_ID)
}

/// Suffixes of the files that SQLite keeps next to a database.
const SIDES: [&str; 3] = ["-wal", "-shm", "-journal"];

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut side = path.as_os_str().to_owned();
    side.push(suffix);
    PathBuf::from(side)
}

/// Removes a profile and the files that SQLite may have left next to it.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)?;
    remove_sides(path)
}

pub(crate) fn remove_sides(path: &Path) -> io::Result<()> {
    SIDES.iter().try_for_each(|suffix| found(std::fs::remove_file(beside(path, suffix))))
}

/// Renames what SQLite keeps next to a profile along with it. (The index of the WAL is made anew.)
fn move_sides(from: &Path, to: &Path) -> io::Result<()> {
    for suffix in ["-wal", "-journal"] {
        found(std::fs::rename(beside(from, suffix), beside(to, suffix)))?;
    }
    remove_sides(from)
}

fn found(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Check that of two that create a profile at the same time, each that gets the place has the file that is there, and not both get it.
    #[test]
    fn a_place_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..2000 {
            let output = Output::File(folder.path().join(format!("{round}.ftp")));
            let (start, end) = (Barrier::new(2), Barrier::new(2));
            let take_one = || {
                start.wait();
                let taken = take(&output, Ok).ok();
                end.wait();
                taken.map(|(created, _)| (is_ours(&created), created))
            };
            let taken = std::thread::scope(|scope| [scope.spawn(take_one), scope.spawn(take_one)].map(|one| one.join().unwrap()));
            let ours: Vec<bool> = taken.iter().flatten().map(|(is_ours, _)| *is_ours).collect();
            assert!(ours == [true] || ours.is_empty(), "{round}: {ours:?}");
        }
    }
}
