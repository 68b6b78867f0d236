//! The threads of the process that is looked at closely. A process with many is read less often, within the cost budget.

use super::Nodes;
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
            let mut before = std::mem::take(known);
            for tid in thread_ids(root, pid) {
                let Some(stat) = of_thread(root, pid, tid) else { continue };
                let mut one = before.remove(&tid).unwrap_or_else(|| Known {
                    stat: stat.clone(),
                    ticks: Counter::default(),
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
