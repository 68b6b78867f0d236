//! Where the profiles of a job go: a directory, and the merged profile beside it.

use super::Wanted;
use crate::profile_name;
use anyhow::{Context, Result, anyhow};
use firsttouch_capture::Output;
use firsttouch_ranks::Process;
use firsttouch_ranks::directory::{self, Seat, Started};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// The ending of a directory of profiles.
const DIRECTORY: &str = ".ftp.d";

/// The name of a job's profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobName {
    /// The user names the merged profile or the directory.
    Given { directory: PathBuf, merged: PathBuf },
    /// `NAME.ftp` and `NAME.ftp.d` in the first of these folders that can be written.
    Default { name: OsString, folders: Vec<PathBuf> },
}

/// Whether a name is that of a directory.
pub fn is_directory(name: &Path) -> bool {
    let text = name.as_os_str().as_encoded_bytes();
    text.ends_with(b"/") || text.ends_with(DIRECTORY.as_bytes()) || name.is_dir()
}

impl JobName {
    /// # Errors
    /// When the user's name cannot be one.
    pub fn of(wanted: &Wanted<'_>) -> Result<Self> {
        let Some(name) = wanted.output else {
            let name = wanted.default_name.map_or_else(|| profile_name::name(wanted.program), OsString::from);
            return Ok(Self::Default { name, folders: profile_name::folders() });
        };
        let file = profile_name::named_file(name, None)?;
        if !is_directory(&file) {
            let ending = if file.extension() == Some(OsStr::new("ftp")) { ".d" } else { DIRECTORY };
            return Ok(Self::Given { directory: with_ending(&file, ending), merged: file });
        }
        // Without a slash at the end.
        let directory: PathBuf = file.components().collect();
        let last = directory.file_name().with_context(|| format!("cannot use the file name '{}': name a directory", name.display()))?;
        let merged = match last.to_str().and_then(|last| last.strip_suffix(".d")).filter(|last| last.ends_with(".ftp")) {
            Some(last) => directory.with_file_name(last),
            None => with_ending(&directory, ".ftp"),
        };
        Ok(Self::Given { directory, merged })
    }

    /// Takes the seat of a rank in the directory of its job.
    pub fn join(&self, key: &str, started: &Started) -> Result<Seat> {
        self.first(|directory| directory::join(directory, key, started))
    }

    /// Makes a new directory.
    pub fn make(&self, key: &str, this: &Process) -> Result<PathBuf> {
        self.first(|directory| directory::make(directory, key, this))
    }

    fn first<T>(&self, mut take: impl FnMut(&Path) -> io::Result<T>) -> Result<T> {
        let cannot = |directory: &Path| format!("cannot write profiles to {}", directory.display());
        let (name, folders) = match self {
            Self::Given { directory, .. } => return take(directory).with_context(|| cannot(directory)),
            Self::Default { name, folders } => (with_ending(Path::new(name), DIRECTORY), folders),
        };
        let mut refused = None;
        for folder in folders {
            if refused.is_some() && std::fs::create_dir_all(folder).is_err() {
                continue;
            }
            let directory = folder.join(&name);
            match take(&directory) {
                Ok(taken) => return Ok(taken),
                Err(error) => refused = refused.or(Some(anyhow::Error::from(error).context(cannot(&directory)))),
            }
        }
        Err(refused.unwrap_or_else(|| anyhow!("no folder can be written")))
    }

    /// Where the merged profile goes, if the profiles are in `directory`. `or`: for a merged profile that nobody keeps.
    pub fn merged(&self, directory: &Path) -> Output {
        match self {
            Self::Given { merged, .. } => Output::File(merged.clone()),
            Self::Default { name, folders } => {
                let beside = directory.parent().unwrap_or(Path::new("")).to_owned();
                let others = folders.iter().filter(|folder| **folder != beside).cloned();
                Output::Default { name: name.clone(), folders: std::iter::once(beside.clone()).chain(others).collect() }
            }
        }
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(ending);
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(output: Option<&str>, program: &[&str]) -> JobName {
        let program: Vec<OsString> = program.iter().map(OsString::from).collect();
        let output = output.map(PathBuf::from);
        let wanted =
            Wanted { output: output.as_deref(), default_name: None, program: &program, pid: None, ranks: None, job_directory: None };
        JobName::of(&wanted).unwrap()
    }

    /// Check the names of the directory and of the merged profile.
    #[test]
    fn names_of_jobs() {
        for (output, directory, merged) in [
            ("x.ftp", "x.ftp.d", "x.ftp"),
            ("dir/x", "dir/x.ftp.d", "dir/x"),
            ("dir/x.ftp.d", "dir/x.ftp.d", "dir/x.ftp"),
            ("ranks/", "ranks", "ranks.ftp"),
            ("100%%.ftp", "100%.ftp.d", "100%.ftp"),
        ] {
            assert_eq!(of(Some(output), &["./x"]), JobName::Given { directory: directory.into(), merged: merged.into() }, "{output}");
        }
        let JobName::Default { name, folders } = of(None, &["mpirun", "-n", "2", "./solver"]) else { panic!("default") };
        assert_eq!((name, &folders[0]), ("solver".into(), &PathBuf::new()));
    }

    /// Check that a directory goes to the first folder that can be written, with the merged profile beside it.
    #[test]
    fn other_folders_are_tried() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["file/x", "cache"].map(|name| folder.path().join(name));
        std::fs::write(folder.path().join("file"), "").unwrap();
        let name = JobName::Default { name: "x".into(), folders: vec![first.clone(), second.clone()] };
        let made = name.make("key", &Process::default()).unwrap();
        assert_eq!(made, second.join("x.ftp.d"));
        let Output::Default { folders, .. } = name.merged(&made) else { panic!("default") };
        assert_eq!(folders, [second, first]);
        assert!(
            JobName::Given { directory: folder.path().join("file/x.ftp.d"), merged: "x".into() }.make("key", &Process::default()).is_err()
        );
    }
}
