//! Finds the processes that a user means: by process id or by name.

use super::{NO_PROC, has_proc, no_process};
use crate::proc::process_ids;
use crate::proc::status::Status;
use firsttouch_model::error::{Error, Result};
use std::fs;
use std::path::Path;

/// The processes that a user means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Pid(i32),
    /// The name of a program, as ps shows it or as it was started.
    Name(String),
}

impl Subject {
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.parse::<i32>() {
            Ok(pid) if pid >= 1 && text.bytes().all(|byte| byte.is_ascii_digit()) => Self::Pid(pid),
            _ => Self::Name(text.to_owned()),
        }
    }
}

/// The matching processes, ascending; `own` is never found by name.
///
/// # Errors
/// When no process matches.
pub fn find(root: &Path, subject: &Subject, own: i32) -> Result<Vec<i32>> {
    let name = match subject {
        Subject::Pid(pid) if root.join(format!("proc/{pid}")).is_dir() => return Ok(vec![process_of(root, *pid)]),
        Subject::Pid(pid) => return Err(no_process(root, *pid)),
        Subject::Name(name) if name.trim().is_empty() => {
            return Err(Error::invalid_input("cannot find a process without a name: give the number of a process, or its program's name"));
        }
        Subject::Name(name) => name,
    };
    let found: Vec<i32> = process_ids(root).into_iter().filter(|pid| *pid != own && is_called(root, *pid, name)).collect();
    if found.is_empty() && !has_proc(root) {
        return Err(Error::not_found(format!("cannot find a process called '{name}': {NO_PROC}")));
    }
    if found.is_empty() {
        return Err(Error::not_found(format!(
            "cannot find a process called '{name}': give the number of a process, or its program's whole name"
        )));
    }
    Ok(found)
}

/// The process of a thread. /proc/TID exists for threads too, although /proc does not list it.
#[must_use]
pub fn process_of(root: &Path, tid: i32) -> i32 {
    Status::of_process(root, tid).and_then(|status| status.process()).unwrap_or(tid)
}

/// Compares with the process's name (15 bytes at most) and with the last part of the program's path.
fn is_called(root: &Path, pid: i32, name: &str) -> bool {
    if super::name(root, pid) == name {
        return true;
    }
    let line = fs::read(root.join(format!("proc/{pid}/cmdline"))).unwrap_or_default();
    let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
    program.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that only plain positive numbers are process ids.
    #[test]
    fn subjects() {
        assert_eq!(Subject::parse("4711"), Subject::Pid(4711));
        for text in ["0", "-1", "+1", "solver", "4711x", "99999999999", ""] {
            assert_eq!(Subject::parse(text), Subject::Name(text.to_owned()));
        }
    }
}
