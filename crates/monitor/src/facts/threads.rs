//! The threads of the process that is looked at closely. A process with many is read less often, within the cost budget.

use super::{Births, Nodes};
use crate::pace::Pace;
use crate::snapshot::{ThreadRow, rounded};
use crate::window::{Counter, Window};
use firsttouch_model::shown::one_line;
use firsttouch_system::proc::stat::{Stat, TICKS_PER_S, of_thread};
use firsttouch_system::proc::status::Status;
use firsttouch_system::proc::{sched, thread_ids};
use std::collections::BTreeMap;
use std::path::Path;

/// The part of one CPU that reading them may take: their state, and what changes rarely.
const SHARE: f64 = 0.002;
const RARE_SHARE: f64 = 0.001;

struct Known {
    stat: Stat,
    ticks: Counter,
    allowed_cpus: Option<String>,
    allowed_nodes: Option<String>,
    migrations: Option<u64>,
}

/// The threads of one process.
pub struct Threads {
    pid: i32,
    known: BTreeMap<i32, Known>,
    pace: Pace,
    rare: Pace,
}

impl Threads {
    #[must_use]
    pub fn new(pid: i32) -> Self {
        Self { pid, known: BTreeMap::new(), pace: Pace::new(SHARE), rare: Pace::new(RARE_SHARE) }
    }

    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Reads them if that is due.
    pub fn read(&mut self, root: &Path, now_ns: u64) {
        let (pid, known) = (self.pid, &mut self.known);
        self.pace.run(now_ns, || {
            let (mut before, births) = (std::mem::take(known), Births::new(root, now_ns));
            for tid in thread_ids(root, pid) {
                let Some(stat) = of_thread(root, pid, tid) else { continue };
                let mut one = before.remove(&tid).unwrap_or_else(|| Known {
                    ticks: births.counter(stat.start_ticks),
                    stat: stat.clone(),
                    allowed_cpus: None,
                    allowed_nodes: None,
                    migrations: None,
                });
                one.ticks.read(now_ns, stat.cpu_ticks);
                one.stat = stat;
                known.insert(tid, one);
            }
        });
        self.rare.run(now_ns, || {
            for (&tid, one) in known.iter_mut() {
                let text = |name: &str| std::fs::read_to_string(root.join(format!("proc/{pid}/task/{tid}/{name}"))).unwrap_or_default();
                let status = Status::parse(text("status"));
                one.allowed_cpus = status.allowed_cpus().map(str::to_owned);
                one.allowed_nodes = status.value("Mems_allowed_list").filter(|list| !list.is_empty()).map(str::to_owned);
                one.migrations = sched::parse(&text("sched")).migrations;
            }
        });
    }

    /// The rows, without what samples say.
    #[must_use]
    pub fn rows(&self, nodes: &Nodes, window: Window) -> Vec<ThreadRow> {
        let row = |(&tid, known): (&i32, &Known)| ThreadRow {
            tid,
            name: one_line(&known.stat.name).into_owned(),
            state: known.stat.state,
            cpu: known.ticks.rate(window).map(|ticks| rounded(ticks / TICKS_PER_S as f64)),
            last_cpu: known.stat.cpu,
            node: nodes.of_cpu(known.stat.cpu),
            allowed_cpus: known.allowed_cpus.clone(),
            allowed_nodes: known.allowed_nodes.clone(),
            migrations: known.migrations,
            ..ThreadRow::default()
        };
        self.known.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, tid: i32, ticks: u64, cpu: u32) {
        let folder = root.join(format!("proc/10/task/{tid}"));
        fs::create_dir_all(&folder).unwrap();
        let stat = format!("{tid} (w) R 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 4 0 9 1000 10 1 1 1 1 1 1 0 0 0 0 0 0 0 17 {cpu} 0 0");
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("status"), "Cpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1\n").unwrap();
        fs::write(folder.join("sched"), "se.nr_migrations : 12\n").unwrap();
    }

    /// Check CPU, node and allowed nodes of threads that run, are born and end.
    #[test]
    fn threads_are_read() {
        let root = tempfile::tempdir().unwrap();
        let nodes = Nodes::new([(0, vec![0, 1]), (1, vec![2, 3])].into());
        let mut threads = Threads::new(10);
        write(root.path(), 10, 0, 1);
        write(root.path(), 11, 100, 2);
        threads.read(root.path(), 1_000_000_000);
        write(root.path(), 10, 50, 1);
        write(root.path(), 12, 1, 3);
        // That one was born a second ago.
        fs::write(root.path().join("proc/uptime"), "1.09 2.00\n").unwrap();
        fs::remove_dir_all(root.path().join("proc/10/task/11")).unwrap();
        // Later than the pace allows, whatever the first reading cost.
        threads.read(root.path(), 1_001_000_000_000);
        let rows = threads.rows(&nodes, Window::Medium);
        assert_eq!(rows.iter().map(|row| row.tid).collect::<Vec<_>>(), [10, 12]);
        assert_eq!((rows[0].cpu, rows[0].node, rows[1].node, rows[1].cpu), (Some(0.001), Some(0), Some(1), Some(0.01)));
        assert_eq!(
            (rows[0].allowed_cpus.as_deref(), rows[0].allowed_nodes.as_deref(), rows[0].migrations),
            (Some("0-3"), Some("0-1"), Some(12))
        );
    }
}
