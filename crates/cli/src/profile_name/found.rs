//! Profiles in the current directory, for commands without a file.

use crate::exit::usage;
use crate::output::message;
use anyhow::{Context, Result, anyhow};
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

/// The newest `*.ftp` in the current directory.
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
        let time = std::fs::metadata(entry.path()).and_then(|meta| meta.modified());
        if let Ok(time) = time
            && path.extension().is_some_and(|ending| ending == "ftp")
            && is_firsttouch_profile(&entry.path())
        {
            found.push((time, path));
        }
    }
    Ok(found.into_iter().max().map(|(_, path)| path))
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
}
