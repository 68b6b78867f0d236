//! Processes below a root: /proc/PID.
//!
//! A process may end, map and unmap while it is read: values that contradict each other become a doubt. Only a process that cannot be
//! read at all is an error, which says why.

mod find;
mod maps;
mod memory;
mod threads;

pub use find::{Subject, find, process_of};
pub use maps::maps;
pub use threads::threads;

pub use crate::proc::numa_maps::NumaMapping;
use crate::proc::status::Status;
use firsttouch_model::error::{Error, Result};
use std::fs;
use std::io;
use std::path::Path;

/// The mappings of a process with policy and pages by node, by address; empty if this kernel has no numa_maps.
///
/// # Errors
/// When the process has ended, or reading it is not permitted.
pub fn numa_maps(root: &Path, pid: i32) -> Result<Vec<NumaMapping>> {
    Ok(memory::numa_mappings(root, pid, &mut Vec::new())?.unwrap_or_default())
}

/// A file of a process as text; invalid bytes are replaced. `None` if this kernel has no such file, or if it is empty because the
/// process has ended.
///
/// # Errors
/// When the process has ended, or reading it is not permitted; the message then says who may.
fn file(root: &Path, pid: i32, name: &str) -> Result<Option<String>> {
    let folder = root.join(format!("proc/{pid}"));
    match fs::read(folder.join(name)) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if gone(&error) && !folder.is_dir() => Err(no_process(root, pid)),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
            Err(Error::not_found(format!("cannot read process {pid}: it has ended")))
        }
        Err(error) if gone(&error) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(refused(&folder, root, pid, name)),
        Err(error) => Err(Error::caused_by(error, format!("cannot read {}", folder.join(name).display()))),
    }
}

const NO_PROC: &str = "/proc is not there (a chroot or container without it): mount -t proc proc /proc";

fn has_proc(root: &Path) -> bool {
    fs::read_dir(root.join("proc")).is_ok_and(|mut entries| entries.next().is_some())
}

fn no_process(root: &Path, pid: i32) -> Error {
    let why = if has_proc(root) { "it has ended, or never existed" } else { NO_PROC };
    Error::not_found(format!("cannot find process {pid}: {why}"))
}

fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory)
}

fn refused(folder: &Path, root: &Path, pid: i32, name: &str) -> Error {
    Error::permission_denied(format!("cannot read {}: {}", folder.join(name).display(), forbidden(root, pid)))
}

/// capabilities(7).
const CAP_SYS_PTRACE: u32 = 19;

/// Why a process may not be inspected: its name, who owns it, and what helps (ptrace(2), "ptrace access mode checking").
#[must_use]
pub fn forbidden(root: &Path, pid: i32) -> String {
    let status = fs::read(root.join(format!("proc/{pid}/status"))).unwrap_or_default();
    let owner = Status::parse(String::from_utf8_lossy(&status).into_owned()).user();
    let own = crate::calls::identity::effective_user();
    let process = format!("process {pid} ({})", name(root, pid));
    let may_trace = Status::parse(fs::read_to_string(root.join("proc/self/status")).unwrap_or_default())
        .capabilities()
        .is_some_and(|set| set >> CAP_SYS_PTRACE & 1 == 1);
    match owner {
        // A root of a container or a user namespace has the capability for its own processes only.
        _ if may_trace => format!(
            "the kernel refuses {process} to firsttouch, which has CAP_SYS_PTRACE in its user namespace: the process lies outside of that, or \
             a security module forbids it (Yama, AppArmor, SELinux, or PID 1 of a virtual machine); run firsttouch on the host"
        ),
        Some(owner) if owner != own => format!(
            "{process} belongs to user {}, and firsttouch runs as user {}: run it as that user, or with CAP_SYS_PTRACE (sudo)",
            user(root, owner),
            user(root, own)
        ),
        _ => format!(
            "{process} changed its user or privileges, or forbids inspection (prctl PR_SET_DUMPABLE): CAP_SYS_PTRACE is needed (sudo)"
        ),
    }
}

/// `postgres (114)`; the number alone for users that /etc/passwd does not have.
#[must_use]
pub fn user(root: &Path, id: u32) -> String {
    let users = fs::read(root.join("etc/passwd")).unwrap_or_default();
    let users = String::from_utf8_lossy(&users);
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then_some(name)
    });
    named.map_or_else(|| id.to_string(), |name| format!("{name} ({id})"))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a refusal names the process, its owner and the remedy, with and without an entry in /etc/passwd.
    #[test]
    fn refusals_name_process_and_owner() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        let other = crate::calls::identity::effective_user() + 7;
        write("proc/12/status", &format!("Name:\tpostgres\nUid:\t{other}\t{other}\t{other}\t{other}\n"));
        write("proc/12/comm", "postgres\n");
        let unnamed = forbidden(root.path(), 12);
        assert!(unnamed.starts_with(&format!("process 12 (postgres) belongs to user {other}, and firsttouch runs as user ")), "{unnamed}");
        assert!(unnamed.ends_with("run it as that user, or with CAP_SYS_PTRACE (sudo)"), "{unnamed}");
        write("etc/passwd", &format!("root:x:99999:\nbroken\ndb:x:{other}:{other}::/:/bin/sh\n"));
        let named = forbidden(root.path(), 12);
        assert!(named.contains(&format!("belongs to user db ({other}),")), "{named}");
        // Who has the capability is not told to get it.
        write("proc/self/status", "CapEff:\t0000000000080000\n");
        let privileged = forbidden(root.path(), 12);
        assert!(privileged.contains("refuses process 12 (postgres)") && !privileged.contains("sudo"), "{privileged}");
    }
}
