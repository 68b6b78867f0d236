//! Processes: their memory, code and unwind tables.

use super::live_objects::LiveObjects;
use super::mappings::HiddenLooks;
use super::policy_schedule::Schedule;
use super::scope::Scope;
use super::small_blocks::HeapRegions;
use super::touched::TouchedPages;
use super::unplaced::Unplaced;
use crate::sink::Sink;
use crate::unwind::{TableStore, Unwinder};
use firsttouch_model::rows::{Id, Process};
use firsttouch_system::calls::page_sizes::PageSizes;
use firsttouch_system::proc;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// A live process.
pub struct LiveProcess {
    pub id: Id,
    pub pid: i32,
    pub parent: Option<Id>,
    pub born_ns: u64,
    pub exe: Option<String>,
    /// Executable mappings: start -> (end, file offset, path).
    pub modules: BTreeMap<u64, (u64, u64, String)>,
    pub unwinder: Unwinder,
    pub objects: LiveObjects,
    pub small_blocks: HeapRegions,
    pub touched: TouchedPages,
    pub unplaced: Unplaced,
    pub page_sizes: PageSizes,
    pub policies: Schedule,
    /// The agent announced itself in the current program.
    pub has_agent: bool,
    /// The agent samples its threads by timers.
    pub has_timers: bool,
    /// When its current program was started.
    pub executed_ns: u64,
    /// When its mappings were last looked up for objects; at first, when its program was started.
    pub mappings_seen_ns: u64,
    /// The search for mappings that the agent did not see.
    pub(super) hidden_looks: HiddenLooks,
    /// When its threads were last listed, because one was new and the kernel reports no births.
    pub threads_listed_ns: u64,
}

impl LiveProcess {
    fn new(id: Id, pid: i32, parent: Option<Id>, time: u64, scope: &Scope) -> Self {
        Self {
            id,
            pid,
            parent,
            born_ns: time,
            exe: exe(scope, pid),
            modules: BTreeMap::new(),
            unwinder: Unwinder::default(),
            objects: LiveObjects::default(),
            small_blocks: HeapRegions::default(),
            touched: TouchedPages::default(),
            unplaced: Unplaced::default(),
            page_sizes: PageSizes::open(pid, scope.page_bytes, scope.huge_page_bytes),
            policies: Schedule::new(time),
            has_agent: false,
            has_timers: false,
            executed_ns: time,
            mappings_seen_ns: time,
            hidden_looks: HiddenLooks::since(time),
            threads_listed_ns: 0,
        }
    }

    /// File and offset of a code address.
    #[must_use]
    pub fn module_at(&self, address: u64) -> Option<(&str, u64)> {
        let (start, (end, file_offset, path)) = self.modules.range(..=address).next_back()?;
        (address < *end).then(|| (path.as_str(), address - start + file_offset))
    }

    /// The process replaced its program: its memory and code are new. Its objects were ended before.
    pub(super) fn replace_program(&mut self, time: u64, scope: &Scope) {
        let objects = std::mem::take(&mut self.objects);
        *self = Self { objects, born_ns: self.born_ns, ..Self::new(self.id, self.pid, self.parent, time, scope) };
    }

    fn write(&self, died_ns: Option<u64>, sink: &mut Sink) {
        let row = Process { id: self.id, pid: self.pid, parent: self.parent, exe: self.exe.clone(), born_ns: self.born_ns, died_ns };
        sink.write(|w| w.process(&row));
    }
}

fn exe(scope: &Scope, pid: i32) -> Option<String> {
    proc::executable(&scope.root, pid).ok().map(|path| path.to_string_lossy().into_owned())
}

#[derive(Default)]
pub struct Processes {
    /// By pid.
    pub live: HashMap<i32, LiveProcess>,
    seen: i64,
    /// Unwind tables, shared by all processes.
    tables: TableStore,
}

impl Processes {
    pub(super) fn add(&mut self, pid: i32, parent: Option<Id>, time: u64, scope: &Scope, sink: &mut Sink) -> Id {
        let id = self.seen;
        self.seen += 1;
        let process = LiveProcess::new(id, pid, parent, time, scope);
        process.write(None, sink);
        self.live.insert(pid, process);
        id
    }

    pub(super) fn end(&mut self, pid: i32, time: u64, sink: &mut Sink) {
        if let Some(process) = self.live.remove(&pid) {
            process.write(Some(time), sink);
        }
    }

    /// An executable mapping: code to unwind and to name.
    pub(super) fn add_module(&mut self, pid: i32, start: u64, length: u64, file_offset: u64, path: &str) {
        let Some(process) = self.live.get_mut(&pid) else { return };
        process.modules.insert(start, (start.saturating_add(length), file_offset, path.to_owned()));
        process.unwinder.add(&mut self.tables, start, length, file_offset, path);
    }

    /// A child has the code that its parent had mapped.
    pub(super) fn inherit_modules(&mut self, parent_pid: i32, pid: i32) {
        let Some(modules) = self.live.get(&parent_pid).map(|parent| parent.modules.clone()) else { return };
        let Some(child) = self.live.get_mut(&pid) else { return };
        for (start, (end, offset, path)) in &modules {
            child.unwinder.add(&mut self.tables, *start, end - start, *offset, path);
        }
        child.modules = modules;
    }

    /// Memory of the live processes that is in swap.
    pub(super) fn swapped_bytes(&self, scope: &Scope) -> u64 {
        self.live.keys().filter_map(|&pid| proc::status::swapped_bytes(&scope.root, pid)).sum()
    }

    pub(super) fn write_live(&self, sink: &mut Sink) {
        for process in self.live.values() {
            process.write(None, sink);
        }
    }
}
