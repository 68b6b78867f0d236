//! From what a user types to processes: a number, or a program's name.

use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

/// What a user asks about.
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

/// The processes meant, ascending; `own` is never among those found by name.
///
/// # Errors
/// When there is none.
pub fn find(root: &Path, subject: &Subject, own: i32) -> Result<Vec<i32>> {
    let name = match subject {
        Subject::Pid(pid) if root.join(format!("proc/{pid}")).is_dir() => return Ok(vec![process_of(root, *pid)]),
        Subject::Pid(pid) => bail!("cannot find process {pid}: it has ended, or never was"),
        Subject::Name(name) => name,
    };
    let mut found: Vec<i32> = fs::read_dir(root.join("proc"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own && is_called(root, *pid, name))
        .collect();
    found.sort_unstable();
    if found.is_empty() {
        bail!("cannot find a process called '{name}': give the number of a process, or its program's whole name");
    }
    Ok(found)
}

/// The process of a thread: /proc has directories of threads too, which it does not list.
fn process_of(root: &Path, tid: i32) -> i32 {
    let status = fs::read(root.join(format!("proc/{tid}/status"))).unwrap_or_default();
    let group = |line: &str| line.strip_prefix("Tgid:")?.trim().parse().ok().filter(|pid| *pid >= 1);
    String::from_utf8_lossy(&status).lines().find_map(group).unwrap_or(tid)
}

/// By the thread's name (15 bytes at most), or the last part of the program's path.
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

    /// Check that only plain positive numbers are process numbers.
    #[test]
    fn subjects() {
        assert_eq!(Subject::parse("4711"), Subject::Pid(4711));
        for text in ["0", "-1", "+1", "solver", "4711x", "99999999999", ""] {
            assert_eq!(Subject::parse(text), Subject::Name(text.to_owned()));
        }
    }
}
