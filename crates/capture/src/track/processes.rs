//! Processes and threads: births, deaths, programs replaced, modules mapped.

use super::Tracker;
use super::objects::LiveObjects;
use super::policies::Schedule;
use super::touches::Touches;
use crate::unwind::Unwinder;
use firsttouch_model::rows::{Id, Process as ProcessRow, Seen, Thread as ThreadRow};
use firsttouch_system::calls::page_sizes::PageSizes;
use firsttouch_system::proc;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;

/// A live process.
pub struct Process {
    pub id: Id,
    pub pid: i32,
    pub parent: Option<Id>,
    pub born_ns: u64,
    pub exe: Option<String>,
    /// Executable mappings: start -> (end, file offset, path).
    pub modules: BTreeMap<u64, (u64, u64, String)>,
    pub unwinder: Unwinder,
    pub objects: LiveObjects,
    pub touches: Touches,
    pub page_sizes: PageSizes,
    pub policies: Schedule,
    /// The agent announced itself in the current program.
    pub has_agent: bool,
}

impl Process {
    /// File and offset of a code address.
    #[must_use]
    pub fn locate(&self, address: u64) -> Option<(String, u64)> {
        let (start, (end, file_offset, path)) = self.modules.range(..=address).next_back()?;
        (address < *end).then(|| (path.clone(), address - start + file_offset))
    }
}

/// A live thread.
pub struct ThreadState {
    pub id: Id,
    pub pid: i32,
    pub tid: i32,
    pub process: Id,
    pub parent: Option<Id>,
    pub name: Option<String>,
    pub born_ns: u64,
    pub cpu_ns: Option<u64>,
    pub omp_number: Option<u32>,
    pub user_faults: f64,
    /// (user faults, all faults) read at the same moment.
    pub faults_read: Option<(f64, u64)>,
    pub cpus: BTreeMap<u32, Seen>,
    pub allowed_cpus: Option<String>,
    /// Node and CPU time at the last look.
    looked: Option<(u32, u64)>,
    pub node_moves: u64,
    /// Waits counted so far.
    pub waits: u64,
}

/// A thread that is gone. Records of it may still come: the agent's wait behind one whose writer was interrupted.
pub(super) struct EndedThread {
    id: Id,
    pid: i32,
    at_ns: u64,
}

/// Those of the last seconds, by tid.
#[derive(Default)]
pub(super) struct EndedThreads {
    latest: HashMap<i32, EndedThread>,
    before: HashMap<i32, EndedThread>,
    since_ns: u64,
}

impl EndedThreads {
    /// No record comes later than this after its thread's end.
    const KEPT_NS: u64 = 5_000_000_000;

    fn add(&mut self, tid: i32, thread: EndedThread) {
        if thread.at_ns.saturating_sub(self.since_ns) > Self::KEPT_NS {
            self.since_ns = thread.at_ns;
            self.before = std::mem::take(&mut self.latest);
        }
        self.latest.insert(tid, thread);
    }

    fn find(&self, pid: i32, tid: i32, time: u64) -> Option<Id> {
        let of = [&self.latest, &self.before];
        of.iter().filter_map(|map| map.get(&tid)).find(|ended| ended.pid == pid && time <= ended.at_ns).map(|ended| ended.id)
    }
}

impl Tracker {
    /// The process of this pid, new if it was not known.
    pub fn process(&mut self, pid: i32, time: u64) -> Id {
        if let Some(process) = self.processes.get(&pid) {
            return process.id;
        }
        self.new_process(pid, None, time)
    }

    fn new_process(&mut self, pid: i32, parent: Option<Id>, time: u64) -> Id {
        let id = self.processes_seen;
        self.processes_seen += 1;
        let exe = std::fs::read_link(self.scope.root.join(format!("proc/{pid}/exe"))).ok().map(|p| p.to_string_lossy().into_owned());
        let process = Process {
            id,
            pid,
            parent,
            born_ns: time,
            exe,
            modules: BTreeMap::new(),
            unwinder: Unwinder::default(),
            objects: LiveObjects::default(),
            touches: Touches::default(),
            page_sizes: PageSizes::open(pid, self.scope.page_bytes, self.scope.huge_page_bytes),
            policies: Schedule::new(time),
            has_agent: false,
        };
        self.processes.insert(pid, process);
        self.process_ended_row(pid, None);
        id
    }

    /// The live thread of this tid, or the one that had it until after this time; new if neither is known.
    pub fn thread(&mut self, pid: i32, tid: i32, parent_tid: Option<i32>, time: u64) -> Id {
        let parent = parent_tid.and_then(|t| self.threads.get(&t)).map(|t| t.id);
        if let Some(thread) = self.threads.get_mut(&tid)
            && thread.pid == pid
        {
            thread.parent = thread.parent.or(parent.filter(|p| *p != thread.id));
            return thread.id;
        }
        if let Some(id) = self.ended_threads.find(pid, tid, time) {
            return id;
        }
        let process = self.process(pid, time);
        let id = self.threads_seen;
        self.threads_seen += 1;
        let state = ThreadState {
            id,
            pid,
            tid,
            process,
            parent,
            name: None,
            born_ns: time,
            cpu_ns: None,
            omp_number: None,
            user_faults: 0.0,
            faults_read: None,
            cpus: BTreeMap::new(),
            allowed_cpus: None,
            looked: None,
            node_moves: 0,
            waits: 0,
        };
        self.threads.insert(tid, state);
        self.write_thread(tid, None);
        id
    }

    pub(super) fn thread_ended(&mut self, tid: i32, time: u64) {
        self.write_thread(tid, Some(time));
        if let Some(thread) = self.threads.remove(&tid) {
            self.ended_threads.add(tid, EndedThread { id: thread.id, pid: thread.pid, at_ns: time });
        }
    }

    /// A child process: it starts with its parent's objects and pages (copy on write).
    pub(super) fn forked(&mut self, pid: i32, parent_pid: i32, parent_tid: i32, time: u64) {
        let parent = self.process(parent_pid, time);
        self.new_process(pid, Some(parent), time);
        self.thread(pid, pid, Some(parent_tid), time);
        let Some(from) = self.processes.get(&parent_pid) else { return };
        let modules = from.modules.clone();
        let objects = from.objects.inherit(&mut self.objects_seen, time);
        let Some(child) = self.processes.get_mut(&pid) else { return };
        for (start, (end, offset, path)) in &modules {
            child.unwinder.add(&mut self.load, *start, end - start, *offset, path);
        }
        child.modules = modules;
        child.objects = objects;
    }

    pub(super) fn process_ended(&mut self, pid: i32, time: u64) {
        self.write_live_objects(pid);
        self.process_ended_row(pid, Some(time));
        self.processes.remove(&pid);
    }

    pub(super) fn process_ended_row(&mut self, pid: i32, died_ns: Option<u64>) {
        if let Some(p) = self.processes.get(&pid) {
            let row = ProcessRow { id: p.id, pid: p.pid, parent: p.parent, exe: p.exe.clone(), born_ns: p.born_ns, died_ns };
            self.sink.write(|w| w.process(&row));
        }
    }

    /// The process replaced its program: memory, modules and all other threads are gone.
    pub(super) fn executed(&mut self, pid: i32, time: u64) {
        self.process(pid, time);
        self.end_objects(pid, time, |_| true);
        let gone: Vec<i32> = self.threads.values().filter(|t| t.pid == pid && t.tid != pid).map(|t| t.tid).collect();
        for tid in gone {
            self.thread_ended(tid, time);
        }
        let (page_bytes, huge) = (self.scope.page_bytes, self.scope.huge_page_bytes);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.modules.clear();
            self.waiting_statics.retain(|(waiting, ..)| *waiting != pid);
            process.unwinder = Unwinder::default();
            process.touches.clear();
            process.has_agent = false;
            process.page_sizes = PageSizes::open(pid, page_bytes, huge);
            process.policies = Schedule::new(time);
            process.exe =
                std::fs::read_link(self.scope.root.join(format!("proc/{pid}/exe"))).ok().map(|p| p.to_string_lossy().into_owned());
            self.sites.forget_agent_stacks(process.id);
        }
    }

    /// An executable mapping: code to unwind and name, and a module whose static arrays become objects.
    pub(super) fn module(&mut self, pid: i32, time: u64, start: u64, length: u64, file_offset: u64, path: &str) {
        self.process(pid, time);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.modules.insert(start, (start.saturating_add(length), file_offset, path.to_owned()));
        process.unwinder.add(&mut self.load, start, length, file_offset, path);
        if path.starts_with('/') {
            self.files.entry(path.to_owned()).or_insert_with(|| identity(path));
            self.waiting_statics.push_back((pid, time, path.into(), start, file_offset));
        }
    }

    /// Makes objects of the static arrays of up to `modules` modules mapped meanwhile.
    pub fn add_waiting_statics(&mut self, modules: usize) {
        for _ in 0..modules {
            let Some((pid, time, path, start, file_offset)) = self.waiting_statics.pop_front() else { return };
            if self.processes.contains_key(&pid) {
                self.add_statics(pid, time, &path, start, file_offset);
            }
        }
    }

    #[must_use]
    pub fn has_waiting_statics(&self) -> bool {
        !self.waiting_statics.is_empty()
    }

    /// Modules and threads of a process that ran before we came (or when perf events cannot tell).
    pub fn scan_process(&mut self, pid: i32, time: u64) {
        for m in proc::maps::read(&self.scope.root, pid) {
            let known = self.processes.get(&pid).is_some_and(|p| p.modules.contains_key(&m.start));
            if m.executable && !known && m.name.starts_with('/') {
                self.module(pid, time, m.start, m.end - m.start, m.file_offset, &m.name);
            }
        }
        for tid in proc::thread_ids(&self.scope.root, pid) {
            self.thread(pid, tid, Some(pid), time);
        }
    }

    /// Counts the waits that the live threads had since they were last asked; of many threads only some are asked.
    pub fn read_waits(&mut self) {
        const ASKED: usize = 32;
        let root = &self.scope.root;
        let scale = self.threads.len() as f64 / self.threads.len().clamp(1, ASKED) as f64;
        for thread in self.threads.values_mut().take(ASKED) {
            if let Some(status) = proc::status::of_thread(root, thread.pid, thread.tid) {
                self.waits += status.waits.saturating_sub(thread.waits) as f64 * scale;
                thread.waits = status.waits;
                thread.allowed_cpus = status.allowed_cpus;
            }
        }
    }

    /// Reads names, CPU times and fault counts of the live threads.
    pub fn read_threads(&mut self) {
        // SAFETY: sysconf has no preconditions.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1).unsigned_abs();
        let root = &self.scope.root;
        for thread in self.threads.values_mut() {
            let Some(stat) = proc::stat::of_thread(root, thread.pid, thread.tid) else { continue };
            thread.cpu_ns = Some(stat.cpu_ticks * (1_000_000_000 / ticks));
            thread.faults_read = Some((thread.user_faults, stat.minor_faults));
            thread.name = Some(stat.name);
            thread.cpus.entry(stat.cpu).or_default().samples += 1;
            if thread.allowed_cpus.is_none() {
                thread.allowed_cpus = proc::status::of_thread(root, thread.pid, thread.tid).and_then(|status| status.allowed_cpus);
            }
        }
    }

    /// Looks where threads run, on a machine with several nodes. Looks come at equal times, and a thread that used no CPU time since
    /// the last one is not counted. Of many threads only some are looked at, in turn.
    pub fn look_at_threads(&mut self) {
        const LOOKED_AT: usize = 64;
        if self.scope.cpu_nodes.is_empty() || self.threads.is_empty() {
            return;
        }
        let mut tids: Vec<i32> = self.threads.keys().copied().collect();
        tids.sort_unstable();
        let from = self.looked_from % tids.len();
        self.looked_from = from + LOOKED_AT.min(tids.len());
        tids.rotate_left(from);
        for tid in tids.into_iter().take(LOOKED_AT) {
            let Some(thread) = self.threads.get_mut(&tid) else { continue };
            let Some(stat) = proc::stat::of_thread(&self.scope.root, thread.pid, tid) else { continue };
            let Some(&node) = self.scope.cpu_nodes.get(&stat.cpu) else { continue };
            let before = thread.looked.replace((node, stat.cpu_ticks));
            if before.is_some_and(|(_, ticks)| ticks == stat.cpu_ticks) {
                continue;
            }
            let seen = thread.cpus.entry(stat.cpu).or_default();
            (seen.samples, seen.looks) = (seen.samples + 1, seen.looks + 1);
            thread.node_moves += u64::from(before.is_some_and(|(last, _)| last != node));
        }
    }

    pub(super) fn write_thread(&mut self, tid: i32, died_ns: Option<u64>) {
        let Some(t) = self.threads.get(&tid) else { return };
        let row = ThreadRow {
            id: t.id,
            process: t.process,
            tid,
            parent: t.parent,
            name: t.name.clone(),
            born_ns: t.born_ns,
            died_ns,
            cpu_ns: t.cpu_ns,
            omp_number: t.omp_number,
            user_faults: t.faults_read.map(|f| f.0 as u64),
            all_faults: t.faults_read.map(|f| f.1),
            allowed_cpus: t.allowed_cpus.clone(),
            node_moves: t.node_moves,
        };
        let cpus: Vec<(u32, Seen)> = t.cpus.iter().map(|(&c, &n)| (c, n)).collect();
        let id = t.id;
        self.sink.write(|w| {
            w.thread(&row)?;
            cpus.iter().try_for_each(|&(cpu, seen)| w.thread_cpu(id, cpu, seen))
        });
    }
}

/// What tells a file from another that took its name: device, inode, size, time of the last change.
pub(crate) type FileIdentity = (u64, u64, u64, i64, i64);

fn identity(path: &str) -> Option<FileIdentity> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
}

impl Tracker {
    /// Modules that are no longer the files that were mapped: their code must not be named by what is there now.
    #[must_use]
    pub fn replaced_files(&self) -> Vec<String> {
        let mut replaced: Vec<String> =
            self.files.iter().filter(|(path, then)| identity(path) != **then).map(|(path, _)| path.clone()).collect();
        replaced.sort();
        replaced
    }
}
