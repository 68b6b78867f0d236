//! A plan: where the memory of a program goes, by the place in the code that allocates it. docs/plan.md describes the file.
//!
//! Nodes are logical, 0 to `nodes` - 1: a run maps them onto the nodes it finds. Memory that is divided among threads names threads, and
//! the pinning of the threads gives the nodes, so that one plan works with any number of nodes.

use crate::{Module, RankNodes, Site};
use firsttouch_model::Pin;
use firsttouch_model::shown::make_one_line;

pub const SCHEMA: &str = "firsttouch.plan/1";

/// Limits on the numbers of entries, parts, frames, copies of a call, threads and nodes. No plan that firsttouch makes exceeds them.
pub const MOST_ENTRIES: usize = 1024;
pub const MOST_PARTS: usize = 4096;
pub const MOST_FRAMES: usize = 256;
pub const MOST_COPIES: usize = 256;
pub const MOST_THREADS: u32 = 65_536;
pub const MOST_NODES: u32 = 1024;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub made_from: String,
    /// The machine that the profile was judged on.
    pub judged_on: String,
    pub command: Vec<String>,
    /// The number of logical nodes.
    pub nodes: u32,
    /// Allocations with fewer bytes are left alone.
    pub least_bytes: u64,
    /// The gain of all entries together.
    pub gain: Option<Gain>,
    pub threads: Threads,
    pub modules: Vec<Module>,
    pub entries: Vec<Entry>,
    /// The nodes of the ranks of a job; `None` if the profile is of no job.
    pub ranks: Option<RankNodes>,
    /// Objects that were considered and not planned, one sentence each.
    pub left_alone: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Threads {
    /// The number of threads to which the parts' thread numbers refer.
    pub count: u32,
    /// Threads that did nothing, ascending: they are not pinned, and the others share the places.
    pub idle: Vec<u32>,
    /// `None` if threads are not pinned.
    pub pin: Option<Pin>,
}

impl Threads {
    /// The number of threads that take places.
    #[must_use]
    pub fn placed(&self) -> u32 {
        self.count.saturating_sub(u32::try_from(self.idle.len()).unwrap_or(u32::MAX)).max(1)
    }

    /// The place of a thread among those that take places. An idle thread has that of the next one.
    #[must_use]
    pub fn place(&self, thread: u32) -> u32 {
        let idle = self.idle.partition_point(|idle| *idle < thread);
        thread.saturating_sub(u32::try_from(idle).unwrap_or(u32::MAX)).min(self.placed() - 1)
    }

    #[must_use]
    pub fn is_idle(&self, thread: u32) -> bool {
        self.idle.binary_search(&thread).is_ok()
    }
}

/// Time as it is / time under the plan, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The variable's name in the report.
    pub what: String,
    /// The file and line of the allocation or declaration.
    pub at: String,
    /// Its size when it was profiled, bytes.
    pub bytes: u64,
    pub policy: Policy,
    /// Whether to use base pages, because an interleaved object has too few huge ones.
    pub small_pages: bool,
    pub reason: String,
    pub gain: Option<Gain>,
    pub origin: Origin,
}

/// The memory that an entry is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// Memory that this call allocates.
    Site(Site),
    /// A static array, by its name in the symbol table.
    Symbol { module: String, name: String },
}

/// Where pages go. An empty list of nodes means all nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    Bind(Vec<u32>),
    Preferred(u32),
    Interleave(Vec<u32>),
    Weighted(Vec<u32>),
    Blocked(Blocks),
    Leave,
}

impl Policy {
    /// The policy's name in the file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bind(_) => "bind",
            Self::Preferred(_) => "preferred",
            Self::Interleave(_) => "interleave",
            Self::Weighted(_) => "weighted",
            Self::Blocked(_) => "blocked",
            Self::Leave => "leave",
        }
    }
}

/// Each part on the node of its thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks {
    /// The thread of each part, in the order of addresses.
    pub threads: Vec<u32>,
    /// Where each part ends, as a fraction of the period or the object; empty for equal parts.
    pub until: Vec<f64>,
    /// The parts repeat after this many bytes.
    pub period_bytes: Option<f64>,
    /// This many successive allocations make up the whole that is divided.
    pub rows: u32,
}

impl Blocks {
    /// (end as a fraction, thread) of each part.
    pub fn parts(&self) -> impl Iterator<Item = (f64, u32)> + '_ {
        let count = self.threads.len().max(1) as f64;
        let end = move |part: usize| self.until.get(part).copied().unwrap_or((part + 1) as f64 / count);
        self.threads.iter().enumerate().map(move |(part, thread)| (end(part), *thread))
    }
}

impl Plan {
    /// Whether the plan places nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(|entry| entry.policy == Policy::Leave)
    }

    /// Replaces what could control a terminal, or begin a line, in every text: a plan may come from anywhere.
    pub fn make_names_safe(&mut self) {
        [&mut self.made_from, &mut self.judged_on].into_iter().chain(&mut self.command).chain(&mut self.left_alone).for_each(make_one_line);
        self.modules.iter_mut().flat_map(|module| [&mut module.name, &mut module.path, &mut module.build_id]).for_each(make_one_line);
        self.entries.iter_mut().for_each(Entry::make_names_safe);
    }
}

impl Entry {
    fn make_names_safe(&mut self) {
        [&mut self.what, &mut self.at, &mut self.reason].into_iter().for_each(make_one_line);
        match &mut self.origin {
            Origin::Symbol { module, name } => [module, name].into_iter().for_each(make_one_line),
            Origin::Site(site) => {
                make_one_line(&mut site.call);
                site.frames.iter_mut().flat_map(|frame| [&mut frame.module, &mut frame.function, &mut frame.file]).for_each(make_one_line);
            }
        }
    }
}
