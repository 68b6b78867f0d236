//! Threads: births, deaths, where they run and how often they wait.

use super::scope::Scope;
use crate::sink::Sink;
use firsttouch_model::rows::{Id, Seen, Thread};
use firsttouch_system::proc;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// A live thread is written again when its CPU time has grown by this part (1 / `GROWN_PART`) and this time, ns: the longer it runs, the more rarely.
const GROWN_PART: u64 = 10;
const GROWN_NS: u64 = 20_000_000;

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
    /// As it was last written.
    written_cpu_ns: u64,
    pub omp_number: Option<u32>,
    /// The agent has no timer for it.
    pub has_no_timer: bool,
    pub user_faults: f64,
    /// (user faults, all faults) read at the same moment.
    pub faults_read: Option<(f64, u64)>,
    pub cpus: BTreeMap<u32, Seen>,
    pub allowed_cpus: Option<String>,
    /// Node and CPU time when it was last looked up.
    last_seen: Option<(u32, u64)>,
    pub node_moves: u64,
    /// Waits counted so far.
    pub waits: u64,
}

/// A thread that has ended. Records of it may still come: the agent's wait behind one whose writer was interrupted.
struct EndedThread {
    id: Id,
    pid: i32,
    at_ns: u64,
}

/// Threads that ended in the last seconds, by tid.
#[derive(Default)]
struct EndedThreads {
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
        let maps = [&self.latest, &self.before];
        maps.iter().filter_map(|map| map.get(&tid)).find(|ended| ended.pid == pid && time <= ended.at_ns).map(|ended| ended.id)
    }
}

#[derive(Default)]
pub struct Threads {
    /// By tid.
    pub live: HashMap<i32, ThreadState>,
    ended: EndedThreads,
    seen: i64,
    /// The first of the threads, in order of their tids, to look up next.
    next_looked_up: usize,
}

impl Threads {
    /// Threads seen so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.seen.unsigned_abs()
    }

    pub(super) fn get_mut(&mut self, pid: i32, tid: i32) -> Option<&mut ThreadState> {
        self.live.get_mut(&tid).filter(|thread| thread.pid == pid)
    }

    /// The live thread of this tid, or the one that had it until after this time. Learns the parent.
    pub(super) fn find(&mut self, pid: i32, tid: i32, parent_tid: Option<i32>, time: u64) -> Option<Id> {
        let parent = self.parent(parent_tid);
        if let Some(thread) = self.get_mut(pid, tid) {
            thread.parent = thread.parent.or(parent.filter(|p| *p != thread.id));
            return Some(thread.id);
        }
        self.ended.find(pid, tid, time)
    }

    /// The thread itself says when it began; it may have been found before.
    pub(super) fn began(&mut self, pid: i32, tid: i32, time: u64) {
        if let Some(thread) = self.get_mut(pid, tid) {
            thread.born_ns = thread.born_ns.min(time);
        }
    }

    fn parent(&self, tid: Option<i32>) -> Option<Id> {
        tid.and_then(|tid| self.live.get(&tid)).map(|thread| thread.id)
    }

    pub(super) fn add(&mut self, pid: i32, tid: i32, parent_tid: Option<i32>, process: Id, time: u64, sink: &mut Sink) -> Id {
        let parent = self.parent(parent_tid);
        let id = self.seen;
        self.seen += 1;
        let state = ThreadState {
            id,
            pid,
            tid,
            process,
            parent,
            name: None,
            born_ns: time,
            cpu_ns: None,
            written_cpu_ns: 0,
            omp_number: None,
            has_no_timer: false,
            user_faults: 0.0,
            faults_read: None,
            cpus: BTreeMap::new(),
            allowed_cpus: None,
            last_seen: None,
            node_moves: 0,
            waits: 0,
        };
        state.write(None, sink);
        self.live.insert(tid, state);
        id
    }

    pub(super) fn end(&mut self, tid: i32, time: u64, sink: &mut Sink) {
        if let Some(thread) = self.live.remove(&tid) {
            thread.write(Some(time), sink);
            self.ended.add(tid, EndedThread { id: thread.id, pid: thread.pid, at_ns: time });
        }
    }

    /// The process replaced its program: all its other threads are gone.
    pub(super) fn end_others(&mut self, pid: i32, time: u64, sink: &mut Sink) {
        let gone: Vec<i32> = self.live.values().filter(|t| t.pid == pid && t.tid != pid).map(|t| t.tid).collect();
        for tid in gone {
            self.end(tid, time, sink);
        }
        if let Some(thread) = self.get_mut(pid, pid) {
            thread.has_no_timer = false;
        }
    }

    /// Counts the waits that the live threads had since the last call. Of many threads only some are read, and stand for all.
    pub(super) fn read_waits(&mut self, scope: &Scope) -> f64 {
        const READ: usize = 32;
        let scale = self.live.len() as f64 / self.live.len().clamp(1, READ) as f64;
        let mut waits = 0.0;
        for thread in self.live.values_mut().take(READ) {
            if let Some(status) = proc::status::of_thread(&scope.root, thread.pid, thread.tid) {
                waits += status.waits.saturating_sub(thread.waits) as f64 * scale;
                thread.waits = status.waits;
                thread.allowed_cpus = status.allowed_cpus;
            }
        }
        waits
    }

    /// Reads names, CPU times and fault counts of the live threads. Writes those whose CPU time grew by much: who reads the profile while it is written (`top`,
    /// `tune`), or after firsttouch was killed, takes a thread without a known CPU time for one that works.
    pub(super) fn read_stats(&mut self, scope: &Scope, sink: &mut Sink) {
        let ticks = firsttouch_system::calls::sysconf::ticks_per_s();
        for thread in self.live.values_mut() {
            let Some(stat) = proc::stat::of_thread(&scope.root, thread.pid, thread.tid) else { continue };
            // The scheduler's figure is exact; ticks of 10 ms make a helper thread of 15 ms look like one of 20.
            let exact = proc::schedstat::of_thread(&scope.root, thread.pid, thread.tid).map(|stat| stat.ran_ns).filter(|ns| *ns > 0);
            thread.cpu_ns = Some(exact.unwrap_or(stat.cpu_ticks * (1_000_000_000 / ticks)));
            thread.faults_read = Some((thread.user_faults, stat.minor_faults));
            thread.name = Some(stat.name);
            thread.cpus.entry(stat.cpu).or_default().samples += 1;
            if thread.allowed_cpus.is_none() {
                thread.allowed_cpus = proc::status::of_thread(&scope.root, thread.pid, thread.tid).and_then(|status| status.allowed_cpus);
            }
            let (cpu_ns, written_ns) = (thread.cpu_ns.unwrap_or(0), thread.written_cpu_ns);
            if written_ns == 0 || cpu_ns > written_ns + written_ns / GROWN_PART + GROWN_NS {
                thread.written_cpu_ns = cpu_ns.max(1);
                thread.write(None, sink);
            }
        }
    }

    /// Looks up where threads run, on a machine with several nodes. A thread that used no CPU time since it was last looked up is
    /// not counted, so that equal intervals weigh CPU time. Of many threads some are looked up, in turn.
    pub(super) fn look_up_cpus(&mut self, scope: &Scope) {
        const LOOKED_UP: usize = 64;
        if !scope.has_nodes() || self.live.is_empty() {
            return;
        }
        let mut tids: Vec<i32> = self.live.keys().copied().collect();
        tids.sort_unstable();
        let from = self.next_looked_up % tids.len();
        self.next_looked_up = from + LOOKED_UP.min(tids.len());
        tids.rotate_left(from);
        for tid in tids.into_iter().take(LOOKED_UP) {
            let Some(thread) = self.live.get_mut(&tid) else { continue };
            let Some(stat) = proc::stat::of_thread(&scope.root, thread.pid, tid) else { continue };
            let Some(&node) = scope.cpu_nodes.get(&stat.cpu) else { continue };
            let before = thread.last_seen.replace((node, stat.cpu_ticks));
            if before.is_some_and(|(_, ticks)| ticks == stat.cpu_ticks) {
                continue;
            }
            let seen = thread.cpus.entry(stat.cpu).or_default();
            (seen.samples, seen.looks) = (seen.samples + 1, seen.looks + 1);
            thread.node_moves += u64::from(before.is_some_and(|(last, _)| last != node));
        }
    }

    /// Writes the live threads again, with what was learned of them since their birth.
    pub(super) fn write_live(&self, sink: &mut Sink) {
        for thread in self.live.values() {
            thread.write(None, sink);
        }
    }
}

impl ThreadState {
    fn write(&self, died_ns: Option<u64>, sink: &mut Sink) {
        let row = Thread {
            id: self.id,
            process: self.process,
            tid: self.tid,
            parent: self.parent,
            name: self.name.clone(),
            born_ns: self.born_ns,
            died_ns,
            cpu_ns: self.cpu_ns,
            omp_number: self.omp_number,
            user_faults: self.faults_read.map(|f| f.0 as u64),
            all_faults: self.faults_read.map(|f| f.1),
            allowed_cpus: self.allowed_cpus.clone(),
            node_moves: self.node_moves,
        };
        sink.write(|w| {
            w.thread(&row)?;
            self.cpus.iter().try_for_each(|(&cpu, &seen)| w.thread_cpu(self.id, cpu, seen))
        });
    }
}
