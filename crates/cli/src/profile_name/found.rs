//! Profiles in the current directory, for commands without a file.

use crate::exit::usage;
use crate::output::message;
use anyhow::{Context, Result, anyhow};
use firsttouch_pipeline::merge::{find, is_directory, merged_name};
use firsttouch_pipeline::{is_firsttouch_profile, kept_profiles};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The profile that the user names, else the newest one here, which a message names.
///
/// # Errors
/// A usage error, if the directory has no profile.
pub fn named_or_newest(named: Option<&Path>, command: &str) -> Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let profile = newest(command)?;
    message(&format!("{} is the newest profile in this directory", profile.display()));
    Ok(profile)
}

/// The newest `*.ftp` in the current directory, or the newest directory `*.ftp.d` with the profiles of ranks if it is newer than its merged
/// profile.
///
/// # Errors
/// A usage error, if the directory has no profile.
pub fn newest(command: &str) -> Result<PathBuf> {
    let found = newest_in(Path::new(".")).context("cannot look for profiles in this directory")?;
    usage(found.ok_or_else(|| {
        anyhow!(
            "no profile (*.ftp) is in this directory: name one (firsttouch {command} FILE), or make one (firsttouch profile -- ./program)"
        )
    }))
}

fn newest_in(folder: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(folder)?.flatten() {
        let path = PathBuf::from(entry.file_name());
        let is_file = path.extension().is_some_and(|ending| ending == "ftp") && is_firsttouch_profile(&entry.path());
        let time = if is_file { modified(&entry.path()) } else { newest_rank(&entry.path()) };
        found.extend(time.map(|time| (time, path)));
    }
    Ok(found.into_iter().max().map(|(_, path)| path))
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|meta| meta.modified()).ok()
}

/// The time of the newest profile in a directory of ranks, unless they were merged since.
fn newest_rank(directory: &Path) -> Option<SystemTime> {
    let merged = merged_name(directory)?;
    let ranks = if is_directory(directory) { find(&[directory.to_owned()]).ok()?.files } else { return None };
    let newest = ranks.iter().filter(|file| is_firsttouch_profile(file)).filter_map(|file| modified(file)).max()?;
    let is_merged = is_firsttouch_profile(&merged) && modified(&merged).is_some_and(|time| time >= newest);
    (!is_merged).then_some(newest)
}

/// The profile that was kept when this one was made.
///
/// # Errors
/// A usage error, if the directory has no profile.
pub fn predecessor(profile: &Path) -> Result<PathBuf> {
    let last = kept_profiles(profile).into_iter().map(|(_, path)| path).rfind(|path| is_firsttouch_profile(path));
    let name = profile.display();
    usage(last.ok_or_else(|| {
        anyhow!(
            "cannot compare {name} with the profile before it: there is no {name}.1. Profile the program again without -o, which keeps the \
             older profile, or name two profiles (firsttouch diff BEFORE AFTER)"
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_profile::{Output, Writer};

    fn profile(output: &Output) -> firsttouch_profile::Created {
        let mut writer = Writer::create_at(output).unwrap();
        writer.keep();
        let created = writer.created();
        writer.finish().unwrap();
        created
    }

    /// Check that the newest profile is found among other files, and its predecessor among kept ones.
    #[test]
    fn the_newest_profile_is_found() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(newest_in(folder.path()).unwrap(), None);
        let of = |name: &str| Output::Default { name: name.into(), folders: vec![folder.path().to_owned()] };
        for _ in 0..3 {
            drop(profile(&of("a")));
        }
        let a = folder.path().join("a.ftp");
        assert_eq!(predecessor(&a).unwrap(), folder.path().join("a.ftp.2"));
        let b = profile(&of("b")).path;
        assert!(predecessor(&b).is_err());
        std::fs::write(folder.path().join("z.ftp"), "no profile").unwrap();
        let old = SystemTime::now() - std::time::Duration::from_secs(60);
        std::fs::File::options().write(true).open(&b).unwrap().set_modified(old).unwrap();
        assert_eq!(newest_in(folder.path()).unwrap(), Some(PathBuf::from("a.ftp")));
    }

    /// Check that a directory of ranks counts as long as it is newer than what was merged from it.
    #[test]
    fn directories_of_ranks_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("x.ftp.d");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("rank-7.ftp"), "no profile").unwrap();
        assert_eq!(newest_in(folder.path()).unwrap(), None);
        let of = |name: &str| profile(&Output::File(folder.path().join(name))).path;
        let (rank, merged) = (of("x.ftp.d/rank-0.ftp"), of("x.ftp"));
        let age = |path: &Path, s: u64| {
            let time = SystemTime::now() - std::time::Duration::from_secs(s);
            std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        };
        age(&rank, 60);
        assert_eq!(newest_in(folder.path()).unwrap(), Some(PathBuf::from("x.ftp")));
        age(&merged, 120);
        assert_eq!(newest_in(folder.path()).unwrap(), Some(PathBuf::from("x.ftp.d")));
        std::fs::rename(&merged, folder.path().join("y.ftp")).unwrap();
        assert_eq!(newest_in(folder.path()).unwrap(), Some(PathBuf::from("x.ftp.d")));
        age(&rank, 180);
        assert_eq!(newest_in(folder.path()).unwrap(), Some(PathBuf::from("y.ftp")));
    }
}
