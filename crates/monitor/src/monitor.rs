//! Takes snapshots.

use crate::facts::{Memory, Nodes, Processes, Threads, tree};
use crate::program::Program;
use crate::sampling::{Figures, Launch, RecorderCommand, Sampling};
use crate::snapshot::{Cost, Detail, JudgedMachine, NodeRow, ProcessRow, SCHEMA, Snapshot, ThreadRow, rounded};
use crate::window::{Counter, Window};
use firsttouch_model::rows::Machine;
use firsttouch_pipeline::AnalysisRequest;
use firsttouch_system::calls::clock::{monotonic_ns, process_cpu_ns};
use firsttouch_system::launch::signals::send;
use firsttouch_system::proc::stat::{TICKS_PER_S, of_process};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{SystemTime, UNIX_EPOCH};

/// The processes that matter.
#[derive(Clone, Debug, Default)]
pub enum Focus {
    #[default]
    All,
    /// A process and its descendants.
    Process(i32),
    /// A program that is started, and its descendants.
    Program(Launch),
}

/// What a reader wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub window: Window,
    /// The process that is looked at closely.
    pub close: Option<i32>,
}

/// Reads this machine again and again.
pub struct Monitor {
    root: PathBuf,
    machine: JudgedMachine,
    host: String,
    nodes: Nodes,
    processes: Processes,
    memory: Memory,
    threads: Option<Threads>,
    sampling: Sampling,
    focus: Option<i32>,
    program: Program,
    /// It was said that its recorder was killed.
    is_said: bool,
    /// The first reading.
    since_ns: Option<u64>,
    own_cpu: Counter,
    recorders_cpu: Counter,
    /// CPU time of recorders that have ended, and of each that runs, clock ticks.
    ended_ticks: u64,
    recorder_ticks: BTreeMap<i32, u64>,
}

impl Monitor {
    /// Begins to watch, and starts the program if there is one.
    ///
    /// # Errors
    /// When the pinning of the request does not fit the machine, no temporary directory can be made, or the program cannot be started.
    pub fn new(root: PathBuf, machine: &Machine, request: AnalysisRequest, command: RecorderCommand, focus: &Focus) -> io::Result<Self> {
        let (name, nodes, is_virtual) = request.judged_machine(machine).map_err(|error| io::Error::other(format!("{error:#}")))?;
        let mut sampling = Sampling::new(command, request)?;
        let cpus = machine.node_cpus.values().map(Vec::len).sum::<usize>().max(1);
        let focus = match focus {
            Focus::All => None,
            Focus::Process(pid) => Some(*pid),
            Focus::Program(launch) => Some(sampling.launch(launch, cpus)?),
        };
        Ok(Self {
            processes: Processes::new(&root),
            root,
            machine: JudgedMachine { name, nodes, is_virtual },
            host: machine.hostname.clone(),
            nodes: Nodes::new(machine.node_cpus.clone()),
            memory: Memory::default(),
            threads: None,
            sampling,
            focus,
            program: Program::default(),
            is_said: false,
            since_ns: None,
            own_cpu: Counter::default(),
            recorders_cpu: Counter::default(),
            ended_ticks: 0,
            recorder_ticks: BTreeMap::new(),
        })
    }

    /// The process that is in focus: the one named, or the first of the program that was started.
    #[must_use]
    pub fn focused(&self) -> Option<i32> {
        match self.sampling.launched_pid() {
            Some(recorder) => {
                let child = self.processes.iter().find(|(_, known)| known.summary.parent == recorder).map(|(pid, _)| pid);
                child.or_else(|| self.program.pids().first().copied())
            }
            None => self.focus,
        }
    }

    /// Whether a program was started.
    #[must_use]
    pub fn has_program(&self) -> bool {
        self.sampling.launched_pid().is_some()
    }

    /// The status of the program that was started, once it has ended. Its recorder's, a signal, if that was killed.
    pub fn launched_status(&mut self) -> Option<ExitStatus> {
        let status = self.sampling.launched_status()?;
        let goes_on = status.signal().is_some() && !self.program.running(&self.root).is_empty();
        (!goes_on).then_some(status)
    }

    /// The signal that ended the recorder of the program.
    fn recorder_killed_by(&mut self) -> Option<i32> {
        self.sampling.launched_status()?.signal()
    }

    /// What to say, once, if the recorder of the program was killed, and the program goes on.
    pub fn unobserved(&mut self) -> Option<String> {
        let words = self.unobserved_words().filter(|_| !self.is_said);
        self.is_said |= words.is_some();
        words
    }

    fn unobserved_words(&mut self) -> Option<String> {
        let signal = self.recorder_killed_by()?;
        let goes_on = self.launched_status().is_none();
        goes_on.then(|| format!("the recorder of the program was ended by signal {signal}; the program goes on, and its end is awaited"))
    }

    /// Passes a signal on to the program: to its recorder, which passes it on, or to its processes if that was killed.
    pub fn pass_on(&mut self, signal: i32) {
        match (self.sampling.launched_pid(), self.sampling.launched_status()) {
            (Some(recorder), None) => send(recorder, signal),
            _ => self.program.running(&self.root).into_iter().for_each(|pid| send(pid, signal)),
        }
    }

    /// Reads everything that is due, and returns what is known now.
    pub fn tick(&mut self, request: Request) -> Snapshot {
        let now_ns = monotonic_ns();
        self.nodes.read(&self.root, now_ns);
        self.processes.read(&self.root, now_ns);
        let close = request.close.filter(|pid| self.processes.get(*pid).is_some());
        if self.threads.as_ref().map(Threads::pid) != close {
            self.threads = close.map(Threads::new);
        }
        if let Some(threads) = &mut self.threads {
            threads.read(&self.root, now_ns);
        }
        self.memory.read(&self.root, now_ns, &self.processes, close, self.nodes.are_several());
        let is_killed = self.recorder_killed_by().is_some();
        if let Some(recorder) = self.sampling.launched_pid() {
            self.program.read(&self.processes, Some(recorder).filter(|_| !is_killed));
        }
        let in_focus = match is_killed {
            true => Some(self.program.pids()),
            false => self.focus.map(|pid| tree(&self.processes.parents(), pid)),
        };
        self.sampling.tick(now_ns, &self.processes, in_focus.as_ref(), close, request.window);
        self.snapshot(now_ns, request.window, close, in_focus.as_ref())
    }

    fn snapshot(&mut self, now_ns: u64, window: Window, close: Option<i32>, focus: Option<&BTreeSet<i32>>) -> Snapshot {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        let mut figures: BTreeMap<i32, Figures> = BTreeMap::new();
        let helpers: BTreeSet<i32> = self.sampling.recorder_pids().collect();
        let is_listed = |row: &ProcessRow| {
            let is_in_focus = focus.is_none_or(|focus| focus.contains(&row.pid) || (row.has_ended && focus.contains(&row.parent)));
            is_in_focus && !helpers.contains(&row.pid)
        };
        let all = self.processes.rows(window);
        let mut system = self.nodes.system(window);
        system.processes = all.iter().filter(|row| !row.has_ended).count();
        let mut processes: Vec<ProcessRow> = all.into_iter().filter(is_listed).collect();
        for row in processes.iter_mut().filter(|row| !row.has_ended) {
            let known = self.processes.get(row.pid);
            self.memory.add_to(row, known.and_then(|known| known.refused.as_deref()), self.nodes.only());
            let found = self.sampling.of(now_ns, row.pid, &self.processes);
            row.remote = found.remote.clone();
            figures.insert(row.pid, found);
        }
        let detail = close.and_then(|pid| self.detail(pid, window, figures.get(&pid), processes.iter().find(|row| row.pid == pid)?));
        let mut nodes = self.nodes.rows(window);
        traffic(&mut nodes, &self.machine, &processes, &figures);
        let mut notes = self.nodes.doubts().to_vec();
        notes.extend(self.unobserved_words());
        Snapshot {
            schema: SCHEMA.to_owned(),
            time_s: rounded(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())),
            window_s: f64::from(window.seconds()),
            seen_s: rounded(now_ns.saturating_sub(since_ns).min(window.ns()) as f64 / 1e9),
            host: self.host.clone(),
            machine: self.machine.clone(),
            system,
            nodes,
            processes,
            detail,
            cost: self.cost(now_ns, window),
            notes,
        }
    }

    fn detail(&self, pid: i32, window: Window, figures: Option<&Figures>, row: &ProcessRow) -> Option<Detail> {
        let figures = figures.cloned().unwrap_or_default();
        let mut threads = self.threads.as_ref()?.rows(&self.nodes, window);
        for thread in &mut threads {
            add_figures(thread, &figures, self.machine.is_virtual);
        }
        let mut doubts: Vec<String> = row.nodes_unknown.iter().cloned().collect();
        doubts.extend(figures.remote.reason.iter().filter(|why| !doubts.contains(why)).cloned().collect::<Vec<_>>());
        Some(Detail {
            pid,
            name: row.name.clone(),
            threads,
            objects: figures.objects,
            mappings: self.memory.mappings().to_vec(),
            matrix: figures.matrix,
            remote: figures.remote,
            doubts,
        })
    }

    fn cost(&mut self, now_ns: u64, window: Window) -> Cost {
        self.own_cpu.read(now_ns, process_cpu_ns());
        let running: BTreeMap<i32, u64> =
            self.sampling.recorder_pids().filter_map(|pid| Some((pid, of_process(&self.root, pid)?.cpu_ticks))).collect();
        let before = std::mem::replace(&mut self.recorder_ticks, running);
        self.ended_ticks += before.iter().filter(|(pid, _)| !self.recorder_ticks.contains_key(pid)).map(|(_, ticks)| ticks).sum::<u64>();
        self.recorders_cpu.read(now_ns, self.ended_ticks + self.recorder_ticks.values().sum::<u64>());
        Cost {
            own_cpu: self.own_cpu.rate(window).map(|ns| (ns / 1e9 * 1e4).round() / 1e4),
            recorders_cpu: self.recorders_cpu.rate(window).map(|ticks| (ticks / TICKS_PER_S as f64 * 1e4).round() / 1e4),
            sampled: self.sampling.sampled(),
        }
    }
}

fn add_figures(thread: &mut ThreadRow, figures: &Figures, is_virtual: bool) {
    if let Some(found) = figures.threads.get(&thread.tid) {
        thread.judged_node = is_virtual.then_some(found.node);
        thread.remote = found.remote;
        thread.hottest.clone_from(&found.hottest);
    }
}

/// Adds to the nodes which part of all sampled accesses comes in from other nodes, and goes out to them: each process counts by the CPU that it uses.
/// Only where the judged machine is this one.
fn traffic(nodes: &mut [NodeRow], machine: &JudgedMachine, processes: &[ProcessRow], figures: &BTreeMap<i32, Figures>) {
    if machine.is_virtual {
        return;
    }
    let known: Vec<(f64, &Vec<Vec<f64>>)> = processes
        .iter()
        .filter_map(|row| Some((row.cpu?, &figures.get(&row.pid)?.matrix)))
        .filter(|(cpu, matrix)| *cpu > 0.0 && !matrix.is_empty())
        .collect();
    let all: f64 = known.iter().map(|(cpu, _)| cpu).sum();
    if all <= 0.0 {
        return;
    }
    let cell = |matrix: &[Vec<f64>], thread: usize, page: usize| matrix.get(thread).and_then(|row| row.get(page)).copied().unwrap_or(0.0);
    for row in nodes {
        let own = row.node as usize;
        let sum = |of: &dyn Fn(&[Vec<f64>], usize) -> f64| {
            let others = |matrix: &[Vec<f64>]| (0..machine.nodes).filter(|other| *other != own).map(|other| of(matrix, other)).sum::<f64>();
            rounded(known.iter().map(|(cpu, matrix)| cpu * others(matrix)).sum::<f64>() / all)
        };
        row.accesses_in = Some(sum(&|matrix, other| cell(matrix, other, own)));
        row.accesses_out = Some(sum(&|matrix, other| cell(matrix, own, other)));
    }
}
