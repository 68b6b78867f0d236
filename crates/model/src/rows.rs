//! What a profile holds: one struct a table row. Times are CLOCK_MONOTONIC nanoseconds, sizes are bytes.

use crate::evidence::EvidenceSource;
use crate::metadata::Metadata;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Row identifiers are the table's primary keys.
pub type Id = i64;

/// The machine the profile was taken on (not the one it is judged on).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub hostname: String,
    pub kernel: String,
    /// CPUs of each node, by node number.
    pub node_cpus: BTreeMap<u32, Vec<u32>>,
    pub page_bytes: u64,
    /// Size of a transparent huge page; 0 when the kernel has none.
    pub huge_page_bytes: u64,
    /// `always`, `madvise`, `never`, or empty when unknown.
    pub transparent_huge_pages: String,
    /// Private (level 2) cache of one core; 0 when unknown.
    pub private_cache_bytes: u64,
    /// Last-level cache of one package; 0 when unknown.
    pub shared_cache_bytes: u64,
    /// kernel.numa_balancing as read at the start, or later if it was switched on then: bit 0 balances, bit 1 promotes hot pages of
    /// slow tiers. 0: off, or the kernel has none.
    pub numa_balancing: u64,
    /// Memory tier of each node (a lower number is faster); empty where the kernel does not tell.
    pub node_tiers: BTreeMap<u32, u32>,
}

impl Machine {
    /// Whether the kernel may have marked pages to catch accesses to them: hinting faults then look like first touches.
    #[must_use]
    pub fn may_hint(&self) -> bool {
        self.node_cpus.len() >= 2 && self.numa_balancing != 0
    }
}

/// One kind of evidence: whether it could be had, and if not why and what would help.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// `touch`, `watch`, `hint`, `resident`, `agent`, ...
    pub source: String,
    pub available: bool,
    pub samples: u64,
    /// Empty when all went well; else what was not seen, why, and what to do about it.
    pub detail: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub id: Id,
    pub pid: i32,
    pub parent: Option<Id>,
    pub exe: Option<String>,
    pub born_ns: u64,
    pub died_ns: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// In order of birth over all processes; 0 is the main thread of the program.
    pub id: Id,
    pub process: Id,
    pub tid: i32,
    pub parent: Option<Id>,
    pub name: Option<String>,
    pub born_ns: u64,
    pub died_ns: Option<u64>,
    /// CPU time used, where it could be read.
    pub cpu_ns: Option<u64>,
    /// The thread's number in its OpenMP team, where OMPT told.
    pub omp_number: Option<u32>,
    /// Page faults taken in user mode (first touches by the program), estimated from the samples.
    pub user_faults: Option<u64>,
    /// All minor page faults of the thread, the kernel's on its behalf included.
    pub all_faults: Option<u64>,
    /// CPUs it may run on, as the kernel lists them (`0-3,8`), at the last look.
    pub allowed_cpus: Option<String>,
    /// Times it was seen on another node than at the look before.
    pub node_moves: u64,
}

/// How often a thread was seen on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// At sampled faults, and looks.
    pub samples: u64,
    /// At looks at equal times, while it had used CPU time since the one before.
    pub looks: u64,
}

/// A call stack, leaf first.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    pub id: Id,
    pub process: Id,
    pub frames: Vec<Frame>,
}

/// One frame. Before symbolisation only `address`, `module` and `offset` are known. Inlined functions are frames of their
/// own (`inlined`), innermost first, that share the address of the function they were inlined into.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Absolute code address. Leaf of a page fault: the faulting instruction; leaf of a watch hit: the instruction AFTER
    /// the access; callers: return addresses.
    pub address: u64,
    /// Path of the ELF file.
    pub module: Option<String>,
    /// Offset into that file.
    pub offset: Option<u64>,
    pub inlined: bool,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// Allocated through the malloc family.
    Heap,
    /// Anonymous memory the program mapped itself.
    Anonymous,
    /// A static or global array (ELF symbol).
    Static,
    /// A thread's stack.
    Stack,
    /// A mapped file.
    File,
    /// A mapping seen only in /proc/PID/maps (no agent).
    Mapping,
}

impl ObjectKind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Anonymous => "anonymous",
            Self::Static => "static",
            Self::Stack => "stack",
            Self::File => "file",
            Self::Mapping => "mapping",
        }
    }

    /// The inverse of [`ObjectKind::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Heap, Self::Anonymous, Self::Static, Self::Stack, Self::File, Self::Mapping].into_iter().find(|k| k.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub id: Id,
    pub process: Id,
    pub kind: ObjectKind,
    /// The call that made it: `malloc`, `calloc`, `realloc`, `aligned`, `mmap`, `mremap`.
    pub call: Option<String>,
    /// The variable as the programmer knows it, a symbol, or a mapping's name.
    pub name: Option<String>,
    pub address: u64,
    pub bytes: u64,
    pub born_ns: u64,
    pub died_ns: Option<u64>,
    /// Where it was allocated; the leaf frame is the call into the allocator.
    pub site: Option<Id>,
    pub thread: Option<Id>,
}

/// Objects that came and went without any evidence on them, summed by site and size.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedObjects {
    pub site: Id,
    pub call: String,
    pub bytes: u64,
    pub count: u64,
    /// Sum over the objects of (bytes / 8) x lifetime since watching started, ns: the exposure that watch windows sample.
    pub word_ns: f64,
}

/// A sampled page fault: the first touch of a page, or another access that the kernel caught.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstTouch {
    pub id: Id,
    pub process: Id,
    pub time_ns: u64,
    pub thread: Id,
    pub cpu: u32,
    /// The address whose access faulted.
    pub address: u64,
    /// Faults this sample stands for (the sampling period in force).
    pub weight: f64,
    /// The kernel touched the page on behalf of the thread (a system call such as read).
    pub by_kernel: bool,
    pub site: Option<Id>,
    /// Size of the page that was mapped when the access faulted: 0 for none. A page was there when the kernel's balancing had marked it
    /// (a hinting fault), or when it was shared and written to (zero page, after fork). None where the kernel does not tell
    /// (before Linux 5.11).
    pub mapped_bytes: Option<u64>,
    /// The node of the page right after the fault, or a negative errno (-14 or -2: no page of its own, the zero page). None where it
    /// was not asked.
    pub node: Option<i32>,
}

/// Memory that the program gave back and kept mapped (madvise): its pages are fresh from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    pub process: Id,
    pub time_ns: u64,
    pub address: u64,
    pub bytes: u64,
}

/// The memory policy of the mapping that an object lies in, as /proc/PID/numa_maps has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The kernel's words: `default`, `interleave:0-1`, `bind:0`, `prefer:1`.
    pub policy: String,
    /// When it was last read.
    pub time_ns: u64,
}

/// A counter of the kernel, for the whole system or one node, at the start and at the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    pub name: String,
    pub node: Option<u32>,
    pub at_start: u64,
    pub at_end: u64,
}

impl Counter {
    /// What was counted meanwhile; nothing where the counter was reset.
    #[must_use]
    pub fn growth(&self) -> u64 {
        self.at_end.saturating_sub(self.at_start)
    }
}

/// One watched address over one window of time. Also stored when nobody hit it.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub id: Id,
    /// Windows of one round are held at the same time.
    pub round: u64,
    pub object: Id,
    /// The watched 8-byte word.
    pub address: u64,
    pub start_ns: u64,
    /// How long the window was held.
    pub held_ns: u64,
    /// The stretch of the run the round stands for: from its start to the start of the next.
    pub round_ns: u64,
    /// Expected number of windows on this object in this round, known when the round was drawn.
    pub inclusion: f64,
}

/// Accesses to a window's address by one thread from one place in the code.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub window: Id,
    pub thread: Id,
    pub site: Option<Id>,
    /// Traps taken.
    pub hits: u64,
    /// Accesses in the whole `held_ns`, estimated: equals `hits` unless the window was cut off by the hit limit.
    pub estimate: f64,
    /// Time the thread was watched before the hit limit cut it off (or `held_ns`).
    pub watched_ns: u64,
    pub cut: bool,
    /// Where the thread ran at most of these hits.
    pub cpu: Option<u32>,
}

/// The kernel's answer on where a page is.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub process: Id,
    pub object: Option<Id>,
    pub address: u64,
    pub time_ns: u64,
    /// The node, or a negative errno (-2 = ENOENT: not present).
    pub node: i32,
    /// 4096, or the huge page's size where the kernel tells; 0 when unknown.
    pub page_bytes: u64,
}

/// An OpenMP parallel region (OMPT).
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub id: Id,
    pub process: Id,
    pub begin_ns: u64,
    pub end_ns: Option<u64>,
    pub site: Option<Id>,
    pub team_size: u32,
    pub thread: Option<Id>,
}

/// Evidence that was lost, counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    pub source: String,
    pub reason: String,
    pub count: u64,
}

/// A whole profile in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    pub meta: Metadata,
    pub machine: Machine,
    pub evidence: Vec<Evidence>,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub thread_cpus: BTreeMap<(Id, u32), Seen>,
    pub sites: BTreeMap<Id, Site>,
    pub objects: Vec<Object>,
    pub folded_objects: Vec<FoldedObjects>,
    pub first_touches: Vec<FirstTouch>,
    pub releases: Vec<Release>,
    pub windows: Vec<Window>,
    pub accesses: Vec<Access>,
    pub pages: Vec<Page>,
    /// By object.
    pub policies: BTreeMap<Id, Policy>,
    pub counters: Vec<Counter>,
    pub regions: Vec<Region>,
    pub lost: Vec<Lost>,
}

impl Profile {
    /// What the profile says of one source of evidence.
    #[must_use]
    pub fn evidence_of(&self, source: &EvidenceSource) -> Option<&Evidence> {
        self.evidence.iter().find(|evidence| evidence.source == source.as_str())
    }

    /// Records that a source lost, for all reasons together.
    #[must_use]
    pub fn lost_by(&self, source: &EvidenceSource) -> u64 {
        self.lost.iter().filter(|lost| lost.source == source.as_str()).fold(0, |sum, lost| sum.saturating_add(lost.count))
    }

    /// Growth of a counter of the whole system, or summed over the nodes; none where it was not recorded.
    #[must_use]
    pub fn grown(&self, name: &str) -> Option<u64> {
        let all = self.counters.iter().filter(|c| c.name == name);
        all.map(Counter::growth).fold(None, |sum, growth| Some(sum.unwrap_or(0).saturating_add(growth)))
    }

    /// Growth of a node's counter.
    #[must_use]
    pub fn grown_on(&self, name: &str, node: u32) -> Option<u64> {
        self.counters.iter().find(|c| c.name == name && c.node == Some(node)).map(Counter::growth)
    }
}
