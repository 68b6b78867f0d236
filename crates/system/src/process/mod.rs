//! Processes below a root: /proc/PID.
//!
//! A process may end, map and unmap while it is read: what does not fit together is a doubt. Only a process that cannot be read
//! at all is an error, which says why.

mod find;
mod maps;
mod memory;
pub mod numa_maps;
pub mod smaps;
mod threads;

pub use find::{Subject, find};
pub use maps::maps;
pub use numa_maps::NumaMapping;
pub use threads::threads;

use anyhow::{Result, anyhow, bail};
use std::fs;
use std::io;
use std::path::Path;

/// The mappings of a process with policy and pages by node, by address; empty where the kernel does not tell.
///
/// # Errors
/// When the process is gone, or reading it is not permitted.
pub fn numa_maps(root: &Path, pid: i32) -> Result<Vec<NumaMapping>> {
    Ok(memory::numa_mappings(root, pid, &mut Vec::new())?.unwrap_or_default())
}

/// A file of a process, as text; bytes that are none are replaced. `None` where this kernel has no such file, or it is empty
/// because the process has ended.
///
/// # Errors
/// When the process is gone, or reading it is not permitted: then says who may.
fn file(root: &Path, pid: i32, name: &str) -> Result<Option<String>> {
    let folder = root.join(format!("proc/{pid}"));
    match fs::read(folder.join(name)) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if gone(&error) && !folder.is_dir() => bail!("cannot find process {pid}: it has ended, or never was"),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => bail!("cannot read process {pid}: it has ended"),
        Err(error) if gone(&error) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(refused(&folder, pid, name)),
        Err(error) => Err(anyhow!(error).context(format!("cannot read {}", folder.join(name).display()))),
    }
}

fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory)
}

/// Whose the process is, and what helps: ptrace(2), "ptrace access mode checking".
fn refused(folder: &Path, pid: i32, name: &str) -> anyhow::Error {
    let status = fs::read(folder.join("status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let owner = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse::<u32>().ok());
    // SAFETY: geteuid has no arguments and cannot fail.
    let ours = unsafe { libc::geteuid() };
    let why = match owner {
        Some(owner) if owner != ours => {
            format!("it belongs to user {owner}, and firsttouch runs as user {ours}: run it as that user, or with CAP_SYS_PTRACE (sudo)")
        }
        _ => "it changed its user or privileges, or forbids to be looked into (prctl PR_SET_DUMPABLE): CAP_SYS_PTRACE is needed (sudo)"
            .to_owned(),
    };
    anyhow!("cannot read {}: not permitted; process {pid}: {why}", folder.join(name).display())
}

/// `Key:   12 kB` of status or smaps, in bytes.
fn kib(text: &str) -> Option<u64> {
    text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// `1 mapping`, `2 mappings`.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The name in /proc/PID/comm, or `?`.
fn name(root: &Path, pid: i32) -> String {
    let name = fs::read(root.join(format!("proc/{pid}/comm"))).unwrap_or_default();
    let name = String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned();
    if name.is_empty() { "?".to_owned() } else { name }
}
