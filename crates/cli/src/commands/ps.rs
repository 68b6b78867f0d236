//! `firsttouch ps`

use crate::arguments::Ps;
use crate::output::{message, print, print_json, style};
use anyhow::Result;
use firsttouch_report::{PsJson, ps_text};
use firsttouch_system::process::{self, Subject};
use std::io::stdout;
use std::path::Path;

pub fn run(arguments: &Ps) -> Result<u8> {
    let root = Path::new("/");
    let processes = of_each(&arguments.process, |pid| Ok(process::threads(root, pid)?))?;
    if arguments.json {
        print_json(&PsJson::new(&processes))?;
    } else {
        print(&ps_text(&processes, style(&stdout())))?;
    }
    Ok(0)
}

/// Reads each process meant. Of several, those that cannot be read are told and left out.
pub fn of_each<T>(process: &str, read: impl Fn(i32) -> Result<T>) -> Result<Vec<T>> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let pids = process::find(Path::new("/"), &Subject::parse(process), own)?;
    let mut list = Vec::new();
    let mut refused = None;
    for pid in pids {
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
