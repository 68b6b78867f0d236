//! The processes with most memory. A thread looks at them as `top` does, with the same model; a scrape only takes what it saw last.

use super::Found;
use crate::catalogue as metric;
use crate::exposition::Batch;
use firsttouch_monitor::{JudgedMachine, Monitor, Pace, ProcessRow, Request, Snapshot, Window};
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::proc::cgroup::hierarchies;
use firsttouch_system::proc::stat::{TICKS_PER_S, summary};
use firsttouch_system::proc::{sched, thread_ids};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The part of one CPU that reading the scheduler's files of threads may take.
const SHARE: f64 = 0.002;
/// Time between two looks at all processes.
const PERIOD: Duration = Duration::from_secs(2);
/// Figures that are older are not shown as those of now.
const OLDEST: Duration = Duration::from_secs(30);

/// What is looked at.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// So many processes: those with most memory.
    pub most: usize,
    /// The window of remote shares.
    pub window: Window,
}

/// What was seen last.
struct Seen {
    at: Instant,
    batches: Vec<Batch>,
    recorders: usize,
}

/// A thread that looks at the processes.
pub struct Watcher {
    seen: Arc<Mutex<Seen>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts the thread. `root`: where /proc is, the monitor's own.
    ///
    /// # Errors
    /// When the system allows no further thread.
    pub fn start(mut monitor: Monitor, root: PathBuf, options: ProcessOptions) -> io::Result<Self> {
        let mut moved = Moved::new();
        // The first scrape has something to show.
        let seen = Arc::new(Mutex::new(look(&mut monitor, &root, &options, &mut moved)));
        let (stop, stopped) = channel();
        let shown = Arc::clone(&seen);
        let watch = move || watch(monitor, &root, &options, moved, &shown, &stopped);
        let thread = std::thread::Builder::new().name("monitor".to_owned()).spawn(watch)?;
        Ok(Self { seen, stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn found(&self) -> Found {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let age = seen.at.elapsed();
        if age > OLDEST {
            return Found { doubts: vec![format!("the processes were last seen {} s ago", age.as_secs())], ..Found::default() };
        }
        Found { batches: seen.batches.clone(), ..Found::default() }
    }

    pub(super) fn recorders(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).recorders
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // The monitor ends its recorders and removes their files.
        self.stop = None;
        drop(self.thread.take().map(JoinHandle::join));
    }
}

fn watch(mut monitor: Monitor, root: &Path, options: &ProcessOptions, mut moved: Moved, shown: &Mutex<Seen>, stopped: &Receiver<()>) {
    while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        let seen = look(&mut monitor, root, options, &mut moved);
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

fn look(monitor: &mut Monitor, root: &Path, options: &ProcessOptions, moved: &mut Moved) -> Seen {
    let snapshot = monitor.tick(Request { window: options.window, close: None });
    let rows = largest(&snapshot, options.most, std::process::id().cast_signed());
    moved.read(root, &rows);
    let mut batches = vec![judged_machine(&snapshot.machine)];
    batches.extend(rows.iter().map(|row| of_process(root, row, moved, [snapshot.time_s, snapshot.window_s])));
    Seen { at: Instant::now(), batches, recorders: snapshot.cost.sampled }
}

/// The processes with most memory, the largest first, without this one and its recorders, which come and go.
fn largest(snapshot: &Snapshot, most: usize, own: i32) -> Vec<&ProcessRow> {
    let is_shown = |row: &&ProcessRow| !row.has_ended && row.pid != own && row.parent != own;
    let mut rows: Vec<&ProcessRow> = snapshot.processes.iter().filter(is_shown).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.resident_bytes), row.pid));
    rows.truncate(most);
    rows
}

fn judged_machine(machine: &JudgedMachine) -> Batch {
    let mut batch = Batch::default();
    let is_virtual = if machine.is_virtual { "true" } else { "false" };
    batch.add(&metric::JUDGED_MACHINE, &[&machine.name, &machine.nodes.to_string(), is_virtual], 1_u64);
    batch
}

fn of_process(root: &Path, row: &ProcessRow, moved: &Moved, [time_s, window_s]: [f64; 2]) -> Batch {
    let pid = row.pid.to_string();
    let labels = [pid.as_str(), row.name.as_str()];
    let mut batch = Batch::default();
    batch.add(&metric::PROCESS, &[&pid, &row.name, &row.user, &group(root, row.pid)], 1_u64);
    batch.add(&metric::PROCESS_RESIDENT, &labels, row.resident_bytes);
    for (node, bytes) in row.nodes.iter().flatten() {
        batch.add(&metric::PROCESS_MEMORY, &[&pid, &row.name, &node.to_string()], *bytes);
    }
    let ticks = summary(root, row.pid).map(|stat| stat.cpu_ticks);
    batch.add_known(&metric::PROCESS_CPU, &labels, ticks.map(|ticks| ticks as f64 / TICKS_PER_S as f64));
    let sums = moved.known.get(&row.pid);
    batch.add_known(&metric::PROCESS_MIGRATED, &labels, sums.and_then(|sums| sums.pages.value));
    batch.add_known(&metric::PROCESS_CPU_MIGRATIONS, &labels, sums.and_then(|sums| sums.cpus.value));
    let remote = &row.remote;
    let is_known = !remote.is_outdated(time_s, window_s);
    if let (Some(share), Some([low, high]), true) = (remote.share, remote.interval, is_known) {
        batch.add(&metric::PROCESS_REMOTE, &labels, share);
        batch.add(&metric::PROCESS_REMOTE_LOWER, &labels, low);
        batch.add(&metric::PROCESS_REMOTE_UPPER, &labels, high);
        batch.add(&metric::PROCESS_REMOTE_SAMPLES, &labels, remote.samples);
        batch.add_known(&metric::PROCESS_REMOTE_NEWEST, &labels, remote.until_s);
    }
    batch
}

/// The path of a process's control group (version 2); empty if the process is in no such group.
fn group(root: &Path, pid: i32) -> String {
    let text = std::fs::read_to_string(root.join(format!("proc/{pid}/cgroup"))).unwrap_or_default();
    hierarchies(&text).find(|one| one.is_unified()).map(|one| one.group.to_owned()).unwrap_or_default()
}

/// A counter of a process that only grows, from counters of its threads, which vanish with them.
#[derive(Default)]
struct Sum {
    value: Option<u64>,
    threads: BTreeMap<i32, u64>,
}

impl Sum {
    /// The threads' counters now. What a thread counted between the last look and its end is lost.
    fn read(&mut self, threads: BTreeMap<i32, u64>) {
        let before = std::mem::replace(&mut self.threads, threads);
        for (tid, count) in &self.threads {
            // A smaller count is that of another thread with the same number.
            let known = before.get(tid).filter(|known| *known <= count).copied().unwrap_or(0);
            self.value = Some(self.value.unwrap_or(0).saturating_add(count - known));
        }
    }
}

#[derive(Default)]
struct Sums {
    /// Clock ticks since boot: tells the process from another one with its number.
    started: u64,
    read_ns: u64,
    pages: Sum,
    cpus: Sum,
}

/// What moved: pages of processes, and their threads between CPUs.
struct Moved {
    known: BTreeMap<i32, Sums>,
    pace: Pace,
}

impl Moved {
    fn new() -> Self {
        Self { known: BTreeMap::new(), pace: Pace::new(SHARE) }
    }

    /// Reads the processes that waited longest, as far as the budget goes.
    fn read(&mut self, root: &Path, rows: &[&ProcessRow]) {
        let now_ns = monotonic_ns();
        self.known.retain(|pid, _| rows.iter().any(|row| row.pid == *pid));
        let mut order: Vec<i32> = rows.iter().map(|row| row.pid).collect();
        order.sort_by_key(|pid| self.known.get(pid).map_or(0, |sums| sums.read_ns));
        for pid in order {
            let known = &mut self.known;
            if self.pace.run(now_ns, || read_process(root, pid, now_ns, known)).is_none() {
                break;
            }
        }
    }
}

fn read_process(root: &Path, pid: i32, now_ns: u64, known: &mut BTreeMap<i32, Sums>) {
    let Some(started) = summary(root, pid).map(|stat| stat.start_ticks) else { return };
    let sums = known.entry(pid).or_default();
    if sums.started != started {
        *sums = Sums { started, ..Sums::default() };
    }
    sums.read_ns = now_ns;
    let (mut pages, mut cpus) = (BTreeMap::new(), BTreeMap::new());
    for tid in thread_ids(root, pid) {
        let text = std::fs::read_to_string(root.join(format!("proc/{pid}/task/{tid}/sched"))).unwrap_or_default();
        let sched = sched::parse(&text);
        pages.extend(sched.pages_migrated.map(|count| (tid, count)));
        cpus.extend(sched.migrations.map(|count| (tid, count)));
    }
    sums.pages.read(pages);
    sums.cpus.read(cpus);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::Exposition;
    use crate::render::{Format, render};
    use firsttouch_monitor::Remote;
    use std::fs;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Check that sums of threads only grow, while threads come, go and get numbers anew.
    #[test]
    fn sums_only_grow() {
        let mut sum = Sum::default();
        sum.read(BTreeMap::new());
        assert_eq!(sum.value, None, "a kernel without the counter");
        sum.read([(1, 10), (2, 5)].into());
        sum.read([(1, 12)].into());
        assert_eq!(sum.value, Some(17));
        sum.read([(1, 12), (2, 3)].into());
        sum.read([(1, 1)].into());
        assert_eq!(sum.value, Some(21));
    }

    /// Check the metrics of a process, and that what is not known is missing and not 0.
    #[test]
    fn processes_have_metrics() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "proc/7/cgroup", "3:cpuset:/old\n0::/system.slice/a.service\n");
        write(
            root.path(),
            "proc/7/stat",
            "7 (a b) S 1 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 0 2 0 9 1000 10 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0",
        );
        write(root.path(), "proc/7/task/7/sched", "se.nr_migrations : 12\nnuma_pages_migrated : 3\n");
        write(root.path(), "proc/7/task/8/sched", "se.nr_migrations : 2\nnuma_pages_migrated : 0\n");
        let remote = Remote { share: Some(0.5), interval: Some([0.25, 0.75]), samples: 40, until_s: Some(1990.5), ..Remote::default() };
        let row = ProcessRow {
            pid: 7,
            name: "a b".to_owned(),
            user: "me".to_owned(),
            resident_bytes: 40,
            nodes: Some([(0, 30), (1, 10)].into()),
            remote,
            ..ProcessRow::default()
        };
        let mut moved = Moved::new();
        moved.read(root.path(), &[&row]);
        let text = |row: &ProcessRow, moved: &Moved| {
            let mut exposition = Exposition::new(100);
            exposition.take("processes", of_process(root.path(), row, moved, [2000.0, 10.0]));
            render(&exposition, Format::Text).lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
        };
        let of = "pid=\"7\",name=\"a b\"";
        let expected = format!(
            "firsttouch_process_info{{{of},user=\"me\",cgroup=\"/system.slice/a.service\"}} 1\n\
             firsttouch_process_resident_memory_bytes{{{of}}} 40\n\
             firsttouch_process_memory_bytes{{{of},node=\"0\"}} 30\nfirsttouch_process_memory_bytes{{{of},node=\"1\"}} 10\n\
             firsttouch_process_cpu_seconds_total{{{of}}} 2\n\
             firsttouch_process_migrated_pages_total{{{of}}} 3\nfirsttouch_process_cpu_migrations_total{{{of}}} 14\n\
             firsttouch_process_remote_access_ratio{{{of}}} 0.5\n\
             firsttouch_process_remote_access_lower_bound_ratio{{{of}}} 0.25\n\
             firsttouch_process_remote_access_upper_bound_ratio{{{of}}} 0.75\n\
             firsttouch_process_remote_access_samples{{{of}}} 40\n\
             firsttouch_process_remote_access_newest_sample_timestamp_seconds{{{of}}} 1990.5"
        );
        assert_eq!(text(&row, &moved), expected);
        // Its newest sample is older than the window.
        let old = Remote { until_s: Some(1989.5), ..row.remote.clone() };
        let old = text(&ProcessRow { remote: old, ..row.clone() }, &moved);
        assert!(!old.contains("remote_access") && old.contains("firsttouch_process_cpu_seconds_total"), "{old}");
        let unknown = ProcessRow { pid: 9, name: "c".to_owned(), ..ProcessRow::default() };
        let text = text(&unknown, &moved);
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    /// Check that those with most memory are chosen: none that has ended, and neither the exporter nor its recorders.
    #[test]
    fn the_largest_are_chosen() {
        let row = |pid, parent, resident_bytes| ProcessRow { pid, parent, resident_bytes, ..ProcessRow::default() };
        let mut processes = vec![row(1, 0, 5), row(2, 0, 9), row(3, 1, 7), row(4, 1, 5), row(5, 1, 8), row(6, 5, 8)];
        processes[1].has_ended = true;
        let snapshot = Snapshot { processes, ..Snapshot::default() };
        assert_eq!(largest(&snapshot, 2, 5).iter().map(|row| row.pid).collect::<Vec<_>>(), [3, 1]);
    }
}
