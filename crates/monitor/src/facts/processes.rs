//! The processes: CPU, memory, owner. One file of each is read in a tick; what does not change is read once.

use super::{Births, rate};
use crate::snapshot::{ProcessRow, Remote};
use crate::window::{Counter, Window};
use firsttouch_model::shown::one_line;
use firsttouch_system::proc::process_ids;
use firsttouch_system::proc::stat::{Summary, TICKS_PER_S, summary};
use firsttouch_system::process::{forbidden, user};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Characters of a command line that are kept.
const LONGEST_COMMAND: usize = 256;
/// Command lines that are longer than this are read no further, bytes.
const MOST_READ: usize = 4096;

/// A process, and what was read of it.
pub struct Known {
    pub summary: Summary,
    ticks: Counter,
    user: String,
    command: String,
    /// Why it may not be looked into, if so.
    pub refused: Option<String>,
    /// When it was seen first; 0 if it ran before the first reading.
    pub since_ns: u64,
    /// CPUs in use over the last two readings.
    pub recent_cpu: f64,
}

/// A thread of the kernel is looked at again each so many readings: its number may be another process's by then.
const KERNEL_AGAIN: u64 = 16;

/// All processes that are not threads of the kernel.
#[derive(Default)]
pub struct Processes {
    known: BTreeMap<i32, Known>,
    /// Threads of the kernel, which are half of all processes on many machines.
    of_kernel: BTreeSet<i32>,
    readings: u64,
    ended: Vec<(i32, Known)>,
    users: BTreeMap<u32, String>,
    page_bytes: u64,
}

impl Processes {
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { page_bytes: super::nodes::page_bytes(root), ..Self::default() }
    }

    /// Reads them. Processes that have ended since the last time stay until the next.
    pub fn read(&mut self, root: &Path, now_ns: u64) {
        let mut before = std::mem::take(&mut self.known);
        let (is_first, births) = (before.is_empty(), Births::new(root, now_ns));
        let of_kernel = std::mem::take(&mut self.of_kernel);
        self.readings += 1;
        for pid in process_ids(root) {
            if of_kernel.contains(&pid) && !self.readings.wrapping_add(u64::from(pid.unsigned_abs())).is_multiple_of(KERNEL_AGAIN) {
                self.of_kernel.insert(pid);
                continue;
            }
            let Some(summary) = summary(root, pid).filter(|one| !matches!(one.state, 'Z' | 'X')) else { continue };
            if summary.is_of_kernel {
                self.of_kernel.insert(pid);
                continue;
            }
            let same = before.remove(&pid).filter(|known| known.summary.start_ticks == summary.start_ticks);
            let mut known = match same {
                // exec changes the name.
                Some(known) if known.summary.name == summary.name => known,
                Some(known) => Known { command: command(root, pid, &summary.name), refused: refused(root, pid), ..known },
                None => Known {
                    ticks: births.counter(summary.start_ticks),
                    user: self.user(root, pid),
                    command: command(root, pid, &summary.name),
                    refused: refused(root, pid),
                    since_ns: if is_first { 0 } else { now_ns },
                    recent_cpu: 0.0,
                    summary: summary.clone(),
                },
            };
            known.ticks.read(now_ns, summary.cpu_ticks);
            known.recent_cpu = known.ticks.rate(Window::Short).unwrap_or(0.0) / TICKS_PER_S as f64;
            known.summary = summary;
            self.known.insert(pid, known);
        }
        self.ended = before.into_iter().collect();
    }

    fn user(&mut self, root: &Path, pid: i32) -> String {
        let Ok(about) = std::fs::metadata(root.join(format!("proc/{pid}"))) else { return "?".to_owned() };
        let name = || {
            let named = user(root, about.uid());
            named.split(" (").next().unwrap_or(&named).to_owned()
        };
        self.users.entry(about.uid()).or_insert_with(name).clone()
    }

    #[must_use]
    pub fn get(&self, pid: i32) -> Option<&Known> {
        self.known.get(&pid)
    }

    pub fn iter(&self) -> impl Iterator<Item = (i32, &Known)> {
        self.known.iter().map(|(pid, known)| (*pid, known))
    }

    /// Parents by process.
    #[must_use]
    pub fn parents(&self) -> BTreeMap<i32, i32> {
        self.known.iter().map(|(pid, known)| (*pid, known.summary.parent)).collect()
    }

    /// The rows, by number: first those that run, without figures of other sources.
    #[must_use]
    pub fn rows(&self, window: Window) -> Vec<ProcessRow> {
        let row = |pid: i32, known: &Known, has_ended: bool| ProcessRow {
            pid,
            parent: known.summary.parent,
            user: known.user.clone(),
            name: one_line(&known.summary.name).into_owned(),
            command: known.command.clone(),
            state: known.summary.state,
            threads: known.summary.threads,
            cpu: rate(&known.ticks, window).map(|ticks| crate::snapshot::rounded(ticks / TICKS_PER_S as f64)),
            resident_bytes: known.summary.resident_pages.saturating_mul(self.page_bytes),
            remote: if has_ended { Remote::unknown("it has ended") } else { Remote::default() },
            has_ended,
            ..ProcessRow::default()
        };
        let mut rows: Vec<ProcessRow> = self.known.iter().map(|(pid, known)| row(*pid, known, false)).collect();
        rows.extend(self.ended.iter().filter(|(pid, _)| !self.known.contains_key(pid)).map(|(pid, known)| row(*pid, known, true)));
        rows.sort_by_key(|row| row.pid);
        rows
    }
}

/// A process and its descendants.
#[must_use]
pub fn tree(parents: &BTreeMap<i32, i32>, root: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::from([root]);
    loop {
        let more: Vec<i32> =
            parents.iter().filter(|(pid, parent)| found.contains(parent) && !found.contains(pid)).map(|(pid, _)| *pid).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// The command line, or the name in brackets as ps shows it.
fn command(root: &Path, pid: i32, name: &str) -> String {
    let bytes = std::fs::read(root.join(format!("proc/{pid}/cmdline"))).unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(MOST_READ)];
    let words: Vec<String> = bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let line = words.join(" ");
    let line = if line.trim().is_empty() { format!("[{name}]") } else { line.trim_end().to_owned() };
    one_line(&line).chars().take(LONGEST_COMMAND).collect()
}

/// Why this process may not be looked into; `None` if it may.
fn refused(root: &Path, pid: i32) -> Option<String> {
    match std::fs::read_link(root.join(format!("proc/{pid}/exe"))) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(forbidden(root, pid)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, pid: i32, name: &str, parent: i32, ticks: u64, start: u64) {
        let folder = root.join(format!("proc/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        let stat = format!(
            "{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 4 0 {start} 1000 10 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0"
        );
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("cmdline"), format!("{name}\0-x\0a\x1b[31m\0")).unwrap();
    }

    /// Check CPU and memory of processes that go on, end, and are replaced by another one with the same number.
    #[test]
    fn processes_come_and_go() {
        let root = tempfile::tempdir().unwrap();
        let mut processes = Processes::new(root.path());
        write(root.path(), 10, "a", 1, 100, 5);
        write(root.path(), 11, "b", 10, 100, 6);
        processes.read(root.path(), 1_000_000_000);
        assert_eq!(processes.rows(Window::Short)[0].cpu, None);
        write(root.path(), 10, "a", 1, 250, 5);
        write(root.path(), 11, "b", 10, 100, 60);
        processes.read(root.path(), 2_000_000_000);
        let rows = processes.rows(Window::Short);
        assert_eq!((rows[0].cpu, rows[0].resident_bytes, rows[0].threads), (Some(1.5), 40960, 4));
        assert!(rows[0].command.starts_with("a -x a") && !rows[0].command.contains('\x1b'), "{}", rows[0].command);
        assert_eq!((rows[1].cpu, rows[1].has_ended), (None, false), "another process has the number now");
        fs::remove_dir_all(root.path().join("proc/11")).unwrap();
        processes.read(root.path(), 3_000_000_000);
        let rows = processes.rows(Window::Short);
        assert_eq!((rows.len(), rows[1].has_ended), (2, true));
        assert_eq!(rows[1].remote.reason.as_deref(), Some("it has ended"));
        processes.read(root.path(), 4_000_000_000);
        assert_eq!(processes.rows(Window::Short).len(), 1);
    }

    /// Check that a process that is younger than a few seconds has a rate at once, since its birth, and that neither an older nor a newborn one has.
    #[test]
    fn young_processes_have_a_rate_since_their_birth() {
        let root = tempfile::tempdir().unwrap();
        let mut processes = Processes::new(root.path());
        for (pid, ticks, start) in [(10, 100, 9_900), (11, 100, 9_740), (12, 30, 9_960)] {
            write(root.path(), pid, "a", 1, ticks, start);
        }
        fs::write(root.path().join("proc/uptime"), "100.00 150.00\n").unwrap();
        processes.read(root.path(), 50_000_000_000);
        let cpu = || processes.rows(Window::Medium).iter().map(|row| row.cpu).collect::<Vec<_>>();
        assert_eq!(cpu(), [Some(1.0), None, None]);
    }

    /// Check that threads of the kernel are not listed, and that a process which gets the number of one is, before long.
    #[test]
    fn numbers_of_kernel_threads_are_looked_at_again() {
        let root = tempfile::tempdir().unwrap();
        let mut processes = Processes::new(root.path());
        write(root.path(), 10, "a", 1, 100, 5);
        let folder = root.path().join("proc/11");
        fs::create_dir_all(&folder).unwrap();
        let of_kernel = "11 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 7 0 0 20 0 1 0 9 0 0 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0";
        fs::write(folder.join("stat"), of_kernel).unwrap();
        processes.read(root.path(), 1_000_000_000);
        processes.read(root.path(), 2_000_000_000);
        assert_eq!(processes.rows(Window::Short).iter().map(|row| row.pid).collect::<Vec<_>>(), [10]);
        write(root.path(), 11, "b", 1, 100, 60);
        for reading in 0..KERNEL_AGAIN {
            processes.read(root.path(), (3 + reading) * 1_000_000_000);
        }
        assert_eq!(processes.rows(Window::Short).iter().map(|row| row.pid).collect::<Vec<_>>(), [10, 11]);
    }

    /// Check that a tree has all descendants, and that a circle does no harm.
    #[test]
    fn trees_have_descendants() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (6, 7), (7, 6)]);
        assert_eq!(tree(&parents, 2), BTreeSet::from([2, 3, 4]));
        assert_eq!(tree(&parents, 6), BTreeSet::from([6, 7]));
    }
}
