//! What a profile holds: one struct a table row. Times are CLOCK_MONOTONIC nanoseconds, sizes are bytes.

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
}

/// One kind of evidence: whether it could be had, and if not why and what would help.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// `touch`, `watch`, `resident`, `agent`, ...
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// A sampled first touch of a page.
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
    /// Keys: see [`crate::meta`].
    pub meta: BTreeMap<String, String>,
    pub machine: Machine,
    pub evidence: Vec<Evidence>,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    /// (thread, cpu) -> samples seen there.
    pub thread_cpus: BTreeMap<(Id, u32), u64>,
    pub sites: BTreeMap<Id, Site>,
    pub objects: Vec<Object>,
    pub folded_objects: Vec<FoldedObjects>,
    pub first_touches: Vec<FirstTouch>,
    pub windows: Vec<Window>,
    pub accesses: Vec<Access>,
    pub pages: Vec<Page>,
    pub regions: Vec<Region>,
    pub lost: Vec<Lost>,
}
