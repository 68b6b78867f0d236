//! Files that firsttouch left in temporary and cache directories, for example because it was killed.
//!
//! | file | written by |
//! |---|---|
//! | `firsttouch-UID-PID-*/` in TMPDIR, XDG_RUNTIME_DIR, /dev/shm | a run of the agent; `check` and `demo` |
//! | `firsttouch-plan-PID` in /dev/shm and TMPDIR | `run --plan` |
//! | `libfirsttouch_*.so`, and their drafts, in the cache directory | `run --pin`, `run --plan` |
//! | `*.ftp` in the cache directory | `profile` in a directory that cannot be written |

use crate::calls::identity;
use crate::launch::signals::process_exists;
use crate::preload::cached;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The start of the names in directories that others use too.
const PREFIX: &str = "firsttouch-";
const PLAN: &str = "firsttouch-plan-";
const LIBRARY: &str = "libfirsttouch_";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A working directory of a run.
    Run,
    /// A plan's table.
    Plan,
    /// A stored library, or a draft of one.
    Library,
    Profile,
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
        }
    }

    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Run => "directory of a run",
            Self::Plan => "table of a plan",
            Self::Library => "stored library",
            Self::Profile => "profile",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub path: PathBuf,
    pub kind: Kind,
    pub bytes: u64,
    /// A live process that uses it.
    pub user: Option<i32>,
}

impl Leftover {
    #[must_use]
    pub fn is_profile(&self) -> bool {
        self.kind == Kind::Profile
    }

    /// Removes it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn remove(&self) -> io::Result<()> {
        if self.kind == Kind::Run { fs::remove_dir_all(&self.path) } else { fs::remove_file(&self.path) }
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

/// The name of the working directory of a run begins with this.
#[must_use]
pub fn run_prefix() -> String {
    format!("{PREFIX}{}-{}-", identity::user_and_group().0, std::process::id())
}

/// This user's entries of a directory.
fn entries(folder: &Path) -> impl Iterator<Item = (String, PathBuf, fs::Metadata)> {
    let own = identity::effective_user();
    fs::read_dir(folder).into_iter().flatten().flatten().filter_map(move |entry| {
        let about = fs::symlink_metadata(entry.path()).ok().filter(|about| about.uid() == own && !about.is_symlink())?;
        Some((entry.file_name().into_string().ok()?, entry.path(), about))
    })
}

fn temporary_in(folder: &Path, processes: &Processes) -> Vec<Leftover> {
    let mine = format!("{PREFIX}{}-", identity::user_and_group().0);
    let one = |(name, path, about): (String, PathBuf, fs::Metadata)| {
        let run = name.strip_prefix(&mine).and_then(|rest| rest.split('-').next()?.parse::<i32>().ok()).filter(|_| about.is_dir());
        let plan = name.strip_prefix(PLAN).and_then(|pid| pid.parse::<i32>().ok()).filter(|_| about.is_file());
        let (kind, pid) = run.map(|pid| (Kind::Run, pid)).or_else(|| plan.map(|pid| (Kind::Plan, pid)))?;
        let user = Some(pid).filter(|pid| process_exists(*pid)).or_else(|| processes.user_of(&path));
        Some(Leftover { bytes: bytes_of(&path, &about), path, kind, user })
    };
    entries(folder).filter_map(one).collect()
}

fn cached_in(folder: &Path, processes: &Processes) -> Vec<Leftover> {
    let one = |(name, path, about): (String, PathBuf, fs::Metadata)| {
        let draft = name.strip_prefix('.').and_then(|rest| rest.strip_prefix(LIBRARY)?.strip_suffix(".new"));
        let writer = draft.and_then(|rest| rest.rsplit('-').next()?.parse::<i32>().ok()).filter(|pid| process_exists(*pid));
        let is_library = draft.is_some() || (name.starts_with(LIBRARY) && name.ends_with(".so"));
        let is_profile = Path::new(&name).extension().is_some_and(|end| end == "ftp") || is_kept_profile(&name);
        let kind = if is_library { Kind::Library } else { Some(Kind::Profile).filter(|_| is_profile)? };
        let user = writer.or_else(|| processes.user_of(&path));
        about.is_file().then_some(Leftover { bytes: about.len(), path, kind, user })
    };
    entries(folder).filter_map(one).collect()
}

/// `a.ftp.1`
fn is_kept_profile(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(name, number)| name.ends_with(".ftp") && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn bytes_of(path: &Path, about: &fs::Metadata) -> u64 {
    if about.is_file() {
        return about.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().filter_map(|entry| entry.metadata().ok()).map(|about| about.len()).sum()
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

    /// Check which files are leftovers, and that a file that a process has open stays.
    #[test]
    fn leftovers_are_told_from_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let (user, own) = (identity::user_and_group().0, std::process::id());
        // The highest possible number: no process has it.
        let dead = i32::MAX;
        let at = |name: &str| folder.path().join(name);
        for name in
            [format!("firsttouch-{user}-{dead}-1"), format!("firsttouch-{user}-{own}-1"), format!("firsttouch-{}-{dead}-1", user + 1)]
        {
            fs::create_dir(at(&name)).unwrap();
        }
        for name in ["firsttouch-thesis.txt", "firsttouch-plan-2147483647", "firsttouch-plan-mine"] {
            fs::write(at(name), "x").unwrap();
        }
        let none = Processes(Vec::new());
        let mut found = temporary_in(folder.path(), &none);
        found.sort_by_key(|one| one.path.clone());
        let names: Vec<(String, Option<i32>)> =
            found.iter().map(|one| (one.path.file_name().unwrap().to_string_lossy().into_owned(), one.user)).collect();
        let mut expected = vec![
            (format!("firsttouch-{user}-{dead}-1"), None),
            (format!("firsttouch-{user}-{own}-1"), i32::try_from(own).ok()),
            ("firsttouch-plan-2147483647".to_owned(), None),
        ];
        expected.sort();
        assert_eq!(names, expected);

        let cache = tempfile::tempdir().unwrap();
        for name in ["libfirsttouch_pin-00.so", ".libfirsttouch_pin-2147483647.new", "a.ftp", "a.ftp.1", "notes.txt"] {
            fs::write(cache.path().join(name), "x").unwrap();
        }
        let open = fs::File::open(cache.path().join("a.ftp")).unwrap();
        let found = cached_in(cache.path(), &Processes::read(Path::new("/proc")));
        assert_eq!(found.len(), 4, "{found:?}");
        let used: Vec<&Leftover> = found.iter().filter(|one| one.user.is_some()).collect();
        assert!(used.len() == 1 && used[0].path.ends_with("a.ftp"), "{used:?}");
        drop(open);
        found.iter().filter(|one| !one.is_profile()).for_each(|one| one.remove().unwrap());
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 3);
    }
}
