//! `bench --place`: the kernel in this process, after `firsttouch run` has placed it.

use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes `firsttouch run PLACEMENT -- firsttouch bench ...`, which is this command without its placement.
///
/// # Errors
/// If it cannot be started.
pub fn become_placed(placement: &str) -> Result<u8> {
    let firsttouch = std::env::current_exe().context("cannot find firsttouch's own file, to run it placed")?;
    let error = Command::new(&firsttouch)
        .arg("run")
        .args(options(placement))
        .arg("--")
        .arg(&firsttouch)
        .args(without_placement(std::env::args_os().skip(1)))
        .arg(format!("--placed={placement}"))
        .exec();
    Err(error).with_context(|| format!("cannot start {}", firsttouch.display()))
}

/// Options of `run`, or an expression or policy of its `--pin`.
fn options(placement: &str) -> Vec<String> {
    if placement.trim_start().starts_with('-') {
        placement.split_whitespace().map(str::to_owned).collect()
    } else {
        vec!["--pin".to_owned(), placement.to_owned()]
    }
}

fn without_placement(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.peekable();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if word == OsStr::new("--place") {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"--place=") {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check what stays of a command line, and what the placement becomes.
    #[test]
    fn placements_move() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in ["bench triad --place spread:8 --json", "bench triad --place=spread:8 --json"] {
            assert_eq!(without_placement(words(line).into_iter()), words("bench triad --json"));
        }
        assert_eq!(options("spread:8"), ["--pin", "spread:8"]);
        assert_eq!(options("--interleave all -C 0,1"), ["--interleave", "all", "-C", "0,1"]);
    }
}
