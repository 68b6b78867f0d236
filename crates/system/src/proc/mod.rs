//! Parsers of /proc: one module for each file.
//!
//! | module | file |
//! |---|---|
//! | [`auxv`] | /proc/self/auxv: the page size |
//! | [`cgroup`] | /proc/self/cgroup: control groups and those above them |
//! | [`limits`] | /proc/self/limits: the limit on file sizes |
//! | [`maps`] | /proc/PID/maps, and the headers of smaps |
//! | [`meminfo`] | /proc/meminfo, and meminfo of each node |
//! | [`numa_maps`] | /proc/PID/numa_maps: policies, and pages by node |
//! | [`pressure`] | /proc/pressure: how long tasks waited for CPUs and memory |
//! | [`sched`] | /proc/PID/task/TID/sched: migrations and hinting faults |
//! | [`schedstat`] | /proc/PID/task/TID/schedstat: time on a CPU, and waiting for one |
//! | [`smaps`] | /proc/PID/smaps: what of each mapping is resident |
//! | [`stat`] | /proc/PID/task/TID/stat: CPU time, faults, CPU; /proc/stat: the CPUs |
//! | [`status`] | /proc/PID/status: sums of memory, allowed CPUs and nodes, user, capabilities |
//!
//! Parsers take text and never panic. The caller decides what a damaged file means: the profiler goes on without it, `maps` and `ps` add
//! a doubt, the reader of the machine returns an error. Functions that open files take the root directory.

pub mod auxv;
pub mod cgroup;
pub mod limits;
pub mod maps;
pub mod meminfo;
pub mod numa_maps;
pub mod pressure;
pub mod sched;
pub mod schedstat;
pub mod smaps;
pub mod stat;
pub mod status;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Thread ids of a process, ascending; empty if it has ended.
#[must_use]
pub fn thread_ids(root: &Path, pid: i32) -> Vec<i32> {
    numbers(&root.join(format!("proc/{pid}/task")))
}

/// The file of the program that a process runs.
///
/// # Errors
/// `NotFound` for threads of the kernel, and when the process has ended; `PermissionDenied` for processes of other users.
pub fn executable(root: &Path, pid: i32) -> io::Result<PathBuf> {
    fs::read_link(root.join(format!("proc/{pid}/exe")))
}

/// Process ids, ascending.
#[must_use]
pub fn process_ids(root: &Path) -> Vec<i32> {
    numbers(&root.join("proc"))
}

/// The processes that a process started, those that these started, and so on, with the parent of each: parents come first.
#[must_use]
pub fn descendants(root: &Path, pid: i32) -> Vec<(i32, i32)> {
    let parents: Vec<(i32, i32)> = process_ids(root).into_iter().filter_map(|child| Some((child, stat::parent(root, child)?))).collect();
    let mut found: Vec<(i32, i32)> = Vec::new();
    let mut next = vec![pid];
    while let Some(parent) = next.pop() {
        // A process id that was used again while /proc was read may close a circle.
        let is_new = |child: i32| child != pid && found.iter().all(|(known, _)| *known != child);
        let children: Vec<(i32, i32)> = parents.iter().copied().filter(|&(child, of)| of == parent && is_new(child)).collect();
        next.extend(children.iter().map(|(child, _)| *child));
        found.extend(children);
    }
    found
}

/// The processes whose parent, process group or session is one of these, those of which this is true in turn, and so on. A daemon leaves its
/// parent, but often not the session or the group that its parent made.
#[must_use]
pub fn kin(root: &Path, of: &BTreeSet<i32>) -> BTreeSet<i32> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let others = process_ids(root).into_iter().filter(|&pid| pid != own);
    let mut others: Vec<(i32, [i32; 3])> = others.filter_map(|pid| Some((pid, stat::relatives(root, pid)?))).collect();
    let mut found = BTreeSet::new();
    loop {
        let is_kin = |pid: &i32| of.contains(pid) || found.contains(pid);
        let (new, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, relatives)| relatives.iter().any(is_kin));
        if new.is_empty() {
            return found;
        }
        found.extend(new.into_iter().map(|(pid, _)| pid));
        others = rest;
    }
}

fn numbers(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// kernel.perf_event_paranoid, if this kernel has it.
#[must_use]
pub fn perf_event_paranoid(root: &Path) -> Option<i32> {
    fs::read_to_string(root.join("proc/sys/kernel/perf_event_paranoid")).ok()?.trim().parse().ok()
}

/// The text of a file of at most some kilobytes, in one read: the profiler reads these ten times a second.
pub(crate) fn small_file(path: &Path) -> Option<String> {
    let mut buffer = [0; 8192];
    let length = File::open(path).ok()?.read(&mut buffer).ok()?;
    Some(String::from_utf8_lossy(buffer.get(..length)?).into_owned())
}

/// `  12 kB`, in bytes.
fn kib(text: &str) -> Option<u64> {
    text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that children of children are found, that others are not, and that a name with brackets and a circle do no harm.
    #[test]
    fn descendants_are_found() {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (pid, name, parent) in
            [(1, "init", 0), (10, "a", 1), (20, "b) S 1 (", 10), (30, "c", 20), (40, "d", 1), (50, "e", 51), (51, "f", 50)]
        {
            let folder = root.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("stat"), format!("{pid} ({name}) S {parent} 1 1 0\n")).expect("a file");
        }
        assert_eq!(descendants(root.path(), 10), [(20, 10), (30, 20)]);
        assert_eq!(descendants(root.path(), 40), []);
        assert_eq!(descendants(root.path(), 50), [(51, 50)]);
        assert_eq!(descendants(root.path(), 1).len(), 4);
    }

    /// Check that a daemon whose parent has ended is found by the session or the group that its parent made, and its children by it.
    #[test]
    fn kin_are_found() {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (pid, parent, group, session) in [
            (1, 0, 1, 1),
            (5, 1, 5, 5),
            (10, 5, 5, 5),
            (21, 1, 20, 20),
            (22, 21, 22, 20),
            (31, 1, 30, 5),
            (40, 1, 40, 40),
            (41, 40, 40, 40),
        ] {
            let folder = root.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("stat"), format!("{pid} (x) S {parent} {group} {session} 0\n")).expect("a file");
        }
        assert_eq!(kin(root.path(), &BTreeSet::from([20])), BTreeSet::from([21, 22]));
        assert_eq!(kin(root.path(), &BTreeSet::from([30])), BTreeSet::from([31]));
        assert_eq!(kin(root.path(), &BTreeSet::from([10, 99])), BTreeSet::new());
    }
}
