//! Files that firsttouch left in temporary and cache directories, for example because it was killed.
//!
//! | file | written by |
//! |---|---|
//! | `firsttouch-UID-PID-*/` in TMPDIR, XDG_RUNTIME_DIR, /dev/shm | a run of the agent; `check` and `demo` |
//! | `firsttouch-plan-PID` in /dev/shm and TMPDIR | `run --plan` |
//! | `libfirsttouch_*.so`, and their drafts, in the cache directory | `run --pin`, `run --plan` |
//! | `*.ftp` in the cache directory, with SQLite's `-wal` and `-shm` | `profile` in a directory that cannot be written |
//!
//! A file is in use if a process has it open, mapped or in its environment, or holds it or a file in it (`calls/claim.rs`): /proc shows the
//! processes of this container, the locks those of others. Where locks are not supported, a young file counts as in use.

use crate::calls::claim::{claim, is_held};
use crate::calls::identity;
use crate::launch::signals::process_exists;
use crate::preload::cached;
use crate::run_directory::PREFIX;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PLAN: &str = "firsttouch-plan-";
const LIBRARY: &str = "libfirsttouch_";
/// What SQLite writes beside a database.
const SIDES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Without locks, younger files count as in use.
const YOUNG: Duration = Duration::from_secs(86_400);
/// The time between the creation of a directory and the lock in it.
const CREATING: Duration = Duration::from_secs(1);
/// The time in which a program that was just started loads the libraries that hold its files.
const STARTING: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A working directory of a run.
    Run,
    /// A plan's table.
    Plan,
    /// A stored library, or a draft of one.
    Library,
    Profile,
    /// SQLite's files of a profile that is gone.
    Side,
}

impl Kind {
    /// The word in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Plan => "plan",
            Self::Library => "library",
            Self::Profile => "profile",
            Self::Side => "side",
        }
    }

    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Run => "directory of a run",
            Self::Plan => "table of a plan",
            Self::Library => "stored library",
            Self::Profile => "profile",
            Self::Side => "log of a profile that is gone",
        }
    }
}

/// Who uses a leftover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    Process(i32),
    /// A process that /proc does not show here, in another container or on another host, holds it.
    Elsewhere,
    /// It is so young that a process elsewhere may use it: it cannot be asked there.
    Perhaps,
}

impl User {
    #[must_use]
    pub fn process(self) -> Option<i32> {
        if let Self::Process(pid) = self { Some(pid) } else { None }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "process {pid} uses it"),
            Self::Elsewhere => write!(f, "a process of another container or host uses it"),
            Self::Perhaps => write!(f, "it is young, and a process of another container or host may use it"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub path: PathBuf,
    pub kind: Kind,
    pub bytes: u64,
    pub user: Option<User>,
}

impl Leftover {
    #[must_use]
    pub fn is_profile(&self) -> bool {
        self.kind == Kind::Profile
    }

    /// Removes it.
    ///
    /// # Errors
    /// When the system refuses, or a firsttouch has begun to write the profile.
    pub fn remove(&self) -> io::Result<()> {
        match self.kind {
            Kind::Run => fs::remove_dir_all(&self.path),
            Kind::Plan | Kind::Library | Kind::Side => fs::remove_file(&self.path),
            Kind::Profile => {
                let file = File::open(&self.path)?;
                if !claim(&file) {
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a firsttouch is writing it"));
                }
                sides(&self.path).iter().filter(|side| side.exists()).try_for_each(fs::remove_file)?;
                fs::remove_file(&self.path)
            }
        }
    }
}

/// All leftovers of this user, by path.
#[must_use]
pub fn find() -> Vec<Leftover> {
    let processes = Processes::read(Path::new("/proc"));
    let mut temporary = vec![std::env::temp_dir(), PathBuf::from("/dev/shm")];
    temporary.extend(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
    let mut list: Vec<Leftover> = temporary.iter().flat_map(|folder| temporary_in(folder, &processes)).collect();
    list.extend(cached::candidates().iter().flat_map(|folder| cached_in(folder, &processes)));
    list.sort_by(|one, other| one.path.cmp(&other.path));
    list.dedup();
    list
}

/// Removes the directories of runs that were killed. A program that outlived its firsttouch holds the library in it; while it executes another
/// program, its environment names it.
pub fn remove_old_runs(folder: &Path) {
    let is_left = |one: &Leftover| one.kind == Kind::Run && fs::metadata(&one.path).is_ok_and(|about| age(&about) > CREATING);
    let left: Vec<Leftover> = unused(folder).filter(is_left).collect();
    if left.is_empty() {
        return;
    }
    let processes = Processes::read(Path::new("/proc"));
    left.iter().filter(|one| processes.user_of(&one.path).is_none()).for_each(|one| {
        let _ = one.remove();
    });
}

/// Removes the tables of programs that were killed.
pub fn remove_old_plans(folder: &Path) {
    unused(folder).filter(|one| one.kind == Kind::Plan).for_each(|one| {
        let _ = one.remove();
    });
}

/// What nobody holds. Without a look at all processes, which takes milliseconds.
fn unused(folder: &Path) -> impl Iterator<Item = Leftover> {
    temporary_in(folder, &Processes(Vec::new())).into_iter().filter(|one| one.user.is_none())
}

/// This user's entries of a directory whose name begins in one of these ways. Others are not looked at: a shared directory may have thousands.
fn entries<'a>(folder: &Path, beginnings: &'a [&str]) -> impl Iterator<Item = (String, PathBuf, fs::Metadata)> + use<'a> {
    let own = identity::effective_user();
    fs::read_dir(folder).into_iter().flatten().flatten().filter_map(move |entry| {
        let name = entry.file_name().into_string().ok().filter(|name| beginnings.iter().any(|beginning| name.starts_with(beginning)))?;
        let about = fs::symlink_metadata(entry.path()).ok().filter(|about| about.uid() == own && !about.is_symlink())?;
        Some((name, entry.path(), about))
    })
}

fn temporary_in(folder: &Path, processes: &Processes) -> Vec<Leftover> {
    let mine = format!("{PREFIX}{}-", identity::user_and_group().0);
    let one = |(name, path, about): (String, PathBuf, fs::Metadata)| {
        let run = name.strip_prefix(&mine).and_then(|rest| rest.split('-').next()?.parse::<i32>().ok()).filter(|_| about.is_dir());
        let plan = name.strip_prefix(PLAN).and_then(|pid| pid.parse::<i32>().ok()).filter(|_| about.is_file());
        let (kind, pid) = run.map(|pid| (Kind::Run, pid)).or_else(|| plan.map(|pid| (Kind::Plan, pid)))?;
        let user = Some(pid).filter(|pid| process_exists(*pid)).map(User::Process).or_else(|| user(&path, kind, &about, processes));
        Some(Leftover { bytes: bytes_of(&path, &about), path, kind, user })
    };
    entries(folder, &[&mine, PLAN]).filter_map(one).collect()
}

fn cached_in(folder: &Path, processes: &Processes) -> Vec<Leftover> {
    let one = |(name, path, about): (String, PathBuf, fs::Metadata)| {
        let draft = name.strip_prefix('.').and_then(|rest| rest.strip_prefix(LIBRARY)?.strip_suffix(".new"));
        let writer = draft.and_then(|rest| rest.rsplit('-').next()?.parse::<i32>().ok()).filter(|pid| process_exists(*pid));
        let is_library = draft.is_some() || (name.starts_with(LIBRARY) && name.ends_with(".so"));
        // The side files of a profile that is there belong to it.
        let is_side = SIDES.iter().any(|side| name.strip_suffix(side).is_some_and(|main| is_profile(main) && !folder.join(main).exists()));
        let kind = match () {
            () if is_library => Kind::Library,
            () if is_profile(&name) => Kind::Profile,
            () if is_side => Kind::Side,
            () => return None,
        };
        let user = writer.map(User::Process).or_else(|| user(&path, kind, &about, processes));
        about.is_file().then(|| Leftover { bytes: bytes_of(&path, &about), path, kind, user })
    };
    entries(folder, &[""]).filter_map(one).collect()
}

/// `a.ftp`, `a.ftp.1`
fn is_profile(name: &str) -> bool {
    let is_kept =
        |(name, number): (&str, &str)| name.ends_with(".ftp") && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    name.ends_with(".ftp") || name.rsplit_once('.').is_some_and(is_kept)
}

fn sides(profile: &Path) -> Vec<PathBuf> {
    let side = |end: &&str| {
        let mut name = OsString::from(profile);
        name.push(end);
        PathBuf::from(name)
    };
    SIDES.iter().map(side).collect()
}

/// Who uses a file or directory. `None` if nobody does.
fn user(path: &Path, kind: Kind, about: &fs::Metadata, processes: &Processes) -> Option<User> {
    if let Some(pid) = processes.user_of(path) {
        return Some(User::Process(pid));
    }
    let inside: Vec<Option<bool>> = match kind {
        Kind::Run => fs::read_dir(path).into_iter().flatten().flatten().map(|entry| is_held(&entry.path())).collect(),
        _ => vec![is_held(path)],
    };
    if inside.contains(&Some(true)) {
        return Some(User::Elsewhere);
    }
    let patience = match kind {
        _ if !inside.contains(&Some(false)) => YOUNG,
        Kind::Plan => STARTING,
        _ => Duration::ZERO,
    };
    (age(about) < patience).then_some(User::Perhaps)
}

/// The time since the last change; zero if the clock was set back since.
fn age(about: &fs::Metadata) -> Duration {
    about.modified().ok().and_then(|time| time.elapsed().ok()).unwrap_or_default()
}

fn bytes_of(path: &Path, about: &fs::Metadata) -> u64 {
    let files: u64 = if about.is_file() {
        sides(path).iter().filter_map(|side| fs::metadata(side).ok()).map(|about| about.len()).sum()
    } else {
        fs::read_dir(path).into_iter().flatten().flatten().filter_map(|entry| entry.metadata().ok()).map(|about| about.len()).sum()
    };
    if about.is_file() { files + about.len() } else { files }
}

/// The files that live processes have mapped or open, and those that their environment names (LD_PRELOAD): they load these when they
/// execute another program.
struct Processes(Vec<(i32, Vec<u8>)>);

impl Processes {
    fn read(proc: &Path) -> Self {
        let mut list = Vec::new();
        for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            let mut text = fs::read(entry.path().join("maps")).unwrap_or_default();
            text.extend(fs::read(entry.path().join("environ")).unwrap_or_default());
            for open in fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten() {
                if let Ok(target) = fs::read_link(open.path()) {
                    text.extend_from_slice(target.as_os_str().as_encoded_bytes());
                    text.push(b'\n');
                }
            }
            // Only firsttouch's files are looked for.
            if text.windows(b"firsttouch".len()).any(|part| part == b"firsttouch") {
                list.push((pid, text));
            }
        }
        Self(list)
    }

    fn user_of(&self, path: &Path) -> Option<i32> {
        let name = path.as_os_str().as_encoded_bytes();
        self.0.iter().find(|(_, text)| text.windows(name.len()).any(|part| part == name)).map(|(pid, _)| *pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::claim::hold;
    use crate::run_directory::RunDirectory;

    /// The highest possible number: no process has it.
    const DEAD: i32 = i32::MAX;

    fn none() -> Processes {
        Processes(Vec::new())
    }

    fn names(found: &[Leftover]) -> Vec<(String, Option<User>)> {
        let mut list: Vec<(String, Option<User>)> =
            found.iter().map(|one| (one.path.file_name().unwrap().to_string_lossy().into_owned(), one.user)).collect();
        list.sort_by(|one, other| one.0.cmp(&other.0));
        list
    }

    fn make_old(path: &Path) {
        File::open(path).unwrap().set_modified(std::time::SystemTime::now() - 2 * YOUNG).unwrap();
    }

    /// Check which files are leftovers.
    #[test]
    fn leftovers_are_told_from_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let (user, own) = (identity::user_and_group().0, std::process::id());
        let at = |name: &str| folder.path().join(name);
        for name in
            [format!("firsttouch-{user}-{DEAD}-1"), format!("firsttouch-{user}-{own}-1"), format!("firsttouch-{}-{DEAD}-1", user + 1)]
        {
            fs::create_dir(at(&name)).unwrap();
        }
        for name in ["firsttouch-thesis.txt", "firsttouch-plan-2147483647", "firsttouch-plan-mine"] {
            fs::write(at(name), "x").unwrap();
            make_old(&at(name));
        }
        let mut expected = vec![
            (format!("firsttouch-{user}-{DEAD}-1"), Some(User::Perhaps)),
            (format!("firsttouch-{user}-{own}-1"), i32::try_from(own).ok().map(User::Process)),
            ("firsttouch-plan-2147483647".to_owned(), None),
        ];
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(names(&temporary_in(folder.path(), &none())), expected);

        let cache = tempfile::tempdir().unwrap();
        for name in [
            "libfirsttouch_pin-00.so",
            ".libfirsttouch_pin-2147483647.new",
            "a.ftp",
            "a.ftp-wal",
            "a.ftp.1",
            "b.ftp-wal",
            "b.ftp.2-shm",
            "c.ftp.old",
            "d-wal",
            "notes.txt",
        ] {
            fs::write(cache.path().join(name), "x").unwrap();
        }
        let open = File::open(cache.path().join("a.ftp")).unwrap();
        let found = cached_in(cache.path(), &Processes::read(Path::new("/proc")));
        assert_eq!(found.iter().map(|one| one.kind == Kind::Side).filter(|side| *side).count(), 2, "{found:?}");
        let used: Vec<&Leftover> = found.iter().filter(|one| one.user.is_some()).collect();
        assert!(used.len() == 1 && used[0].path.ends_with("a.ftp") && used[0].bytes == 2, "{used:?}");
        drop(open);
        found.iter().filter(|one| !one.is_profile()).for_each(|one| one.remove().unwrap());
        let left = || names(&cached_in(cache.path(), &none())).into_iter().map(|one| one.0).collect::<Vec<_>>();
        assert_eq!(left(), ["a.ftp", "a.ftp.1"]);
        // A profile goes with its log.
        found.iter().filter(|one| one.is_profile()).for_each(|one| one.remove().unwrap());
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 3);
    }

    /// Check that a directory whose run is not among the processes of /proc stays while a process holds a file in it.
    #[test]
    fn what_others_hold_stays() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::create_in(folder.path()).unwrap();
        // As seen from another container: the number in the name is no process there.
        let elsewhere = folder.path().join(format!("firsttouch-{}-{DEAD}-1", identity::user_and_group().0));
        fs::rename(run.path(), &elsewhere).unwrap();
        let plan = folder.path().join("firsttouch-plan-2147483647");
        fs::write(&plan, "x").unwrap();
        let table = File::open(&plan).unwrap();
        hold(&table);
        for path in [&elsewhere, &plan] {
            make_old(path);
        }
        let users = || names(&temporary_in(folder.path(), &none())).into_iter().map(|one| one.1).collect::<Vec<_>>();
        assert_eq!(users(), [Some(User::Elsewhere); 2]);
        remove_old_runs(folder.path());
        remove_old_plans(folder.path());
        assert!(elsewhere.exists() && plan.exists());
        drop((run, table));
        assert_eq!(users(), [None; 2]);
        remove_old_runs(folder.path());
        remove_old_plans(folder.path());
        assert!(!elsewhere.exists() && !plan.exists());
    }

    /// Check that a profile that is being written is not removed, also if its writer came after the look.
    #[test]
    fn profiles_have_writers() {
        let cache = tempfile::tempdir().unwrap();
        let path = cache.path().join("a.ftp");
        fs::write(&path, "x").unwrap();
        let found = cached_in(cache.path(), &none());
        let writer = File::options().read(true).write(true).open(&path).unwrap();
        assert!(claim(&writer));
        assert_eq!(cached_in(cache.path(), &none())[0].user, Some(User::Elsewhere));
        assert!(found[0].user.is_none() && found[0].remove().is_err() && path.exists());
        drop(writer);
        found[0].remove().unwrap();
        assert!(!path.exists());
    }
}
