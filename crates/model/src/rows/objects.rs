//! Objects in memory: allocations, releases and policies.

use super::Id;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// Allocated through the malloc family.
    Heap,
    /// Anonymous memory that the program mapped itself.
    Anonymous,
    /// A static or global array (ELF symbol).
    Static,
    /// A thread's stack.
    Stack,
    /// A mapped file.
    File,
    /// A mapping seen only in /proc/PID/maps (no agent).
    Mapping,
    /// Blocks that are too small to be recorded one by one, of one allocation site. The analysis makes these from [`SmallBlock`]s.
    Pool,
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
            Self::Pool => "pool",
        }
    }

    /// The inverse of [`ObjectKind::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Heap, Self::Anonymous, Self::Static, Self::Stack, Self::File, Self::Mapping, Self::Pool]
            .into_iter()
            .find(|k| k.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub id: Id,
    pub process: Id,
    pub kind: ObjectKind,
    /// The call that created it: `malloc`, `calloc`, `realloc`, `aligned`, `mmap`, `mremap`.
    pub call: Option<String>,
    /// The variable in the source, a symbol, or a mapping's name.
    pub name: Option<String>,
    pub address: u64,
    pub bytes: u64,
    pub born_ns: u64,
    pub died_ns: Option<u64>,
    /// Where it was allocated; the leaf frame is the call into the allocator.
    pub site: Option<Id>,
    pub thread: Option<Id>,
}

/// Objects that were freed and have no evidence, summed by site and size.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedObjects {
    pub site: Id,
    pub call: String,
    pub bytes: u64,
    pub count: u64,
    /// The sum over the objects of (bytes / 8) x lifetime since watching started, in words x ns: the exposure from which watchpoint samples
    /// are drawn.
    pub word_ns: f64,
}

/// A sampled allocation below the minimum size. Its release is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct SmallBlock {
    pub process: Id,
    pub thread: Id,
    pub site: Option<Id>,
    /// As that of [`Object`].
    pub call: String,
    pub address: u64,
    pub bytes: u64,
    /// The bytes of allocated blocks that it stands for.
    pub weight: f64,
    pub time_ns: u64,
}

/// Memory that the program released but kept mapped (madvise): its pages are new afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    pub process: Id,
    pub time_ns: u64,
    pub address: u64,
    pub bytes: u64,
}

/// A call in which the kernel touched the pages of a range that were not there, for the calling thread: mmap with MAP_POPULATE, mlock, mlockall,
/// madvise with MADV_POPULATE_WRITE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Population {
    pub process: Id,
    pub thread: Id,
    pub time_ns: u64,
    /// `mmap`, `mlock`, `mlockall` (also munlockall, which ends it), `madvise`.
    pub call: String,
    pub address: u64,
    /// 0 if it touched no memory that was mapped.
    pub bytes: u64,
    /// Of mlockall: whether the kernel touches the pages of later mappings too, as soon as they are mapped.
    pub future: Option<bool>,
    pub site: Option<Id>,
}

/// The memory behind an object that processes can share: objects of the same memory are one, wherever each process has mapped it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// Device and inode as in /proc/PID/maps: `00:01 1234`.
    pub memory: String,
    /// Where the object begins in it, bytes.
    pub offset: u64,
}

/// The memory policy of the mapping that an object lies in, from /proc/PID/numa_maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The policy in the kernel's words: `default`, `interleave:0-1`, `bind:0`, `prefer:1`.
    pub policy: String,
    /// When it was last read.
    pub time_ns: u64,
}

impl Policy {
    /// Whether a page goes to the node of the thread that touches it first.
    #[must_use]
    pub fn is_first_touch(&self) -> bool {
        matches!(self.policy.as_str(), "default" | "local")
    }

    /// Whether pages go to the nodes in turn.
    #[must_use]
    pub fn is_interleaved(&self) -> bool {
        self.policy.contains("interleave")
    }
}
