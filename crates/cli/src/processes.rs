//! Finds the processes that a command line names by number or by program.

use crate::output::message;
use anyhow::{Result, bail};
use firsttouch_system::process::{self, Subject};
use std::path::Path;

const ROOT: &str = "/";

/// Reads each of the processes. If there are several, those that cannot be read are reported and left out.
pub fn of_each<T>(process: &str, read: impl Fn(i32) -> Result<T>) -> Result<Vec<T>> {
    let mut list = Vec::new();
    let mut refused = None;
    for pid in find(process)? {
        match read(pid) {
            Ok(one) => list.push(one),
            Err(error) => {
                if let Some(before) = refused.replace(error) {
                    message(&format!("{before:#}"));
                }
            }
        }
    }
    match refused {
        Some(error) if list.is_empty() => Err(error),
        Some(error) => {
            message(&format!("{error:#}"));
            Ok(list)
        }
        None => Ok(list),
    }
}

/// The process, for commands that change it; an error if there are several.
pub fn only(process: &str) -> Result<i32> {
    let found = find(process)?;
    match found[..] {
        [pid] => Ok(pid),
        _ => {
            let pids: Vec<String> = found.iter().map(i32::to_string).collect();
            bail!("cannot choose among {} processes called '{process}': name one by its number: {}", found.len(), pids.join(", "))
        }
    }
}

fn find(process: &str) -> Result<Vec<i32>> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    Ok(process::find(Path::new(ROOT), &Subject::parse(process), own)?)
}
