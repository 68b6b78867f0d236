//! Names of profiles: the default name of a program's profile, names with `%p`, and the profiles in the current directory.

mod found;
mod program;
mod template;

pub use found::{named_or_newest, newest, predecessor};
pub use program::{launcher, name};

use crate::exit::usage;
use anyhow::{Result, anyhow};
use firsttouch_capture::Output;
use firsttouch_system::calls::identity::effective_user;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where the profile of a program or a process goes: the file that the user names, or one with a default name.
///
/// # Errors
/// When the name cannot be one of a profile: a usage error.
pub fn output(named: Option<&Path>, program: &[OsString], pid: Option<i32>) -> Result<Output> {
    match named {
        Some(name) => named_file(name, pid).map(Output::File),
        None => {
            let name = pid.map_or_else(|| program::name(program), |pid| format!("pid-{pid}").into());
            Ok(Output::Default { name, folders: folders() })
        }
    }
}

/// The folders that take a profile without a name, the first that can be written.
pub fn folders() -> Vec<PathBuf> {
    [Some(PathBuf::new()), cache_folder(), Some(temporary_folder())].into_iter().flatten().collect()
}

/// Whether a name has parts that differ between the ranks of a job: `%p`, `%h` or `%q{VARIABLE}`.
pub fn is_pattern(name: &Path) -> bool {
    let name = name.as_os_str().as_encoded_bytes();
    let mut parts = name.split(|byte| *byte == b'%');
    // What follows a percent sign; after `%%`, an empty part.
    parts.next();
    let mut is_escaped = false;
    parts.any(|part| {
        let is_part = !is_escaped && part.first().is_some_and(|letter| b"phq".contains(letter));
        is_escaped = !is_escaped && part.is_empty();
        is_part
    })
}

/// The file that the user names, with `%p` and others replaced.
///
/// # Errors
/// When the name is invalid: a usage error.
pub fn named_file(name: &Path, pid: Option<i32>) -> Result<PathBuf> {
    if name == Path::new("-") {
        return usage(Err(anyhow!(
            "cannot write a profile to standard output: it is a database, written while the program runs. Name a file; --json prints the report"
        )));
    }
    let process = pid.map_or_else(|| std::process::id().to_string(), |pid| pid.to_string());
    let values = template::Values { process, host: &host, variable: &|name| std::env::var_os(name) };
    usage(
        template::expand(name.as_os_str(), &values)
            .map(PathBuf::from)
            .map_err(|why| anyhow!("cannot use the file name '{}': {why}", name.display())),
    )
}

/// The name of this machine.
fn host() -> OsString {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    OsString::from(if name.is_empty() { "localhost" } else { name })
}

/// firsttouch's folder for files that no other folder takes: `$XDG_CACHE_HOME/firsttouch` or `~/.cache/firsttouch`.
pub fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("firsttouch"))
}

/// Where a user without a home writes, as `run --pin` does.
fn temporary_folder() -> PathBuf {
    std::env::temp_dir().join(format!("firsttouch-{}", effective_user()))
}

/// A word of a command line as a path's last part.
fn base(word: &OsStr) -> &OsStr {
    Path::new(word).file_name().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which names differ between ranks.
    #[test]
    fn patterns_are_told() {
        let is = |name: &str| is_pattern(Path::new(name));
        assert_eq!(["x-%p.ftp", "%h/x.ftp", "x-%q{RANK}.ftp", "%%%p"].map(is), [true; 4]);
        assert_eq!(["x.ftp", "100%%.ftp", "%%p.ftp", "%", ""].map(is), [false; 5]);
    }
}
