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
    /// What part of the object was present before the program mapped it, of [`SharedMemory::ALL_PRESENT`]. `None`: not known.
    pub present: Option<u32>,
}

impl SharedMemory {
    /// All of the object was present.
    pub const ALL_PRESENT: u32 = 10_000;
}

/// The memory policy of the mappings that an object lies in, from /proc/PID/numa_maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The policy in the kernel's words: `default`, `interleave:0-1`, `bind:0`, `prefer:1`. If parts of the object have different ones, the bytes and
    /// the policy of each in turn: `8192 bytes bind:0; 4096 bytes bind:1`.
    pub policy: String,
    /// When it was last read.
    pub time_ns: u64,
}

/// Where a memory policy puts a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// On the node of the thread that touches it first.
    FirstTouch,
    /// On this node, whoever touches it.
    Node(u32),
    /// On one of several nodes: the policy does not say which.
    Several,
}

/// Parts of an object with different policies that are named one by one.
const MOST_PARTS: usize = 64;
/// Parts that are shown to people one by one.
const MOST_SHOWN: usize = 3;
/// The policy of an object with more parts.
const MANY_POLICIES: &str = "different policies in more than 64 parts";

impl Policy {
    /// The words for an object whose parts, in the order of their addresses, have these policies: bytes and the kernel's words.
    #[must_use]
    pub fn of_parts(parts: &[(u64, &str)]) -> String {
        let mut merged: Vec<(u64, &str)> = Vec::new();
        for &(bytes, policy) in parts {
            match merged.last_mut() {
                Some(last) if last.1 == policy => last.0 += bytes,
                _ => merged.push((bytes, policy)),
            }
        }
        match &merged[..] {
            [] => String::new(),
            [(_, policy)] => (*policy).to_owned(),
            more if more.len() > MOST_PARTS => MANY_POLICIES.to_owned(),
            more => more.iter().map(|(bytes, policy)| format!("{bytes} bytes {policy}")).collect::<Vec<_>>().join("; "),
        }
    }

    /// For people: of many parts, their number and the different policies.
    #[must_use]
    pub fn in_words(&self) -> String {
        let parts: Vec<&str> = self.policy.split("; ").map(|part| part.split_once(" bytes ").map_or(part, |(_, policy)| policy)).collect();
        if parts.len() <= MOST_SHOWN {
            return self.policy.clone();
        }
        let different: std::collections::BTreeSet<&str> = parts.iter().copied().collect();
        format!("{} in {} parts", different.into_iter().collect::<Vec<_>>().join(" and "), parts.len())
    }

    /// Whether a page goes to the node of the thread that touches it first.
    #[must_use]
    pub fn is_first_touch(&self) -> bool {
        is_first_touch(&self.policy)
    }

    /// Whether pages go to the nodes in turn, in all parts of the object.
    #[must_use]
    pub fn is_interleaved(&self) -> bool {
        self.policy.contains("interleave") && !self.policy.contains(';')
    }

    /// Where the policy puts the page number `page` (its address divided by its size), which lies at `offset` bytes of the object.
    #[must_use]
    pub fn placing(&self, offset: u64, page: u64) -> Placing {
        let words = self.part(offset);
        if is_first_touch(words) {
            return Placing::FirstTouch;
        }
        let Some((mode, nodes)) = words.rsplit_once(':') else { return Placing::Several };
        let nodes: Vec<u32> = crate::cpu_list::parse(nodes).unwrap_or_default().into_iter().collect();
        match nodes[..] {
            // Flags follow the mode: `bind=static`. Relative nodes are not the ones that are named.
            _ if mode.contains("relative") || nodes.is_empty() => Placing::Several,
            [node] => Placing::Node(node),
            _ if mode.starts_with("interleave") => Placing::Node(nodes[(page % nodes.len() as u64) as usize]),
            _ => Placing::Several,
        }
    }

    /// The policy of the part in which `offset` lies.
    fn part(&self, offset: u64) -> &str {
        let mut end = 0u64;
        for part in self.policy.split("; ") {
            let Some((bytes, policy)) = part.split_once(" bytes ") else { return &self.policy };
            end = end.saturating_add(bytes.parse().unwrap_or(0));
            if offset < end {
                return policy;
            }
        }
        MANY_POLICIES
    }
}

fn is_first_touch(words: &str) -> bool {
    matches!(words, "default" | "local")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check where policies put pages, in one part and in several, and that words which say nothing of one node give none.
    #[test]
    fn policies_place_pages() {
        let of = |words: &str, offset: u64, page: u64| Policy { policy: words.to_owned(), time_ns: 0 }.placing(offset, page);
        assert_eq!(of("default", 0, 0), Placing::FirstTouch);
        assert_eq!((of("bind:1", 0, 7), of("prefer=static:3", 0, 7), of("prefer (many):2", 0, 0)), {
            (Placing::Node(1), Placing::Node(3), Placing::Node(2))
        });
        assert_eq!((of("interleave:0,2", 0, 4), of("interleave=static:0,2", 0, 5)), (Placing::Node(0), Placing::Node(2)));
        for several in ["bind:0-1", "weighted interleave:0-1", "bind=relative:0", "bind", "", "bind:x", "prefer (many):0-1"] {
            assert_eq!(of(several, 0, 0), Placing::Several, "{several}");
        }
        let parts = Policy::of_parts(&[(8192, "bind:0"), (4096, "bind:1"), (4096, "bind:1"), (4096, "default")]);
        assert_eq!(parts, "8192 bytes bind:0; 8192 bytes bind:1; 4096 bytes default");
        assert_eq!((of(&parts, 8191, 1), of(&parts, 8192, 2)), (Placing::Node(0), Placing::Node(1)));
        assert_eq!((of(&parts, 16384, 4), of(&parts, 99999, 24)), (Placing::FirstTouch, Placing::Several));
        assert_eq!(Policy::of_parts(&[(1, "default"), (9, "default")]), "default");
        let four = Policy::of_parts(&[(1, "bind:0"), (2, "bind:1"), (3, "bind:0"), (4, "bind:1")]);
        let shown = [parts, four].map(|policy| Policy { policy, time_ns: 0 }.in_words());
        assert_eq!(shown, ["8192 bytes bind:0; 8192 bytes bind:1; 4096 bytes default", "bind:0 and bind:1 in 4 parts"]);
        let many: Vec<(u64, &str)> = (0..65).map(|i| (4096, if i % 2 == 0 { "bind:0" } else { "bind:1" })).collect();
        let many = Policy { policy: Policy::of_parts(&many), time_ns: 0 };
        assert!(!many.is_first_touch() && !many.is_interleaved() && many.placing(0, 0) == Placing::Several);
        let mixed = Policy { policy: Policy::of_parts(&[(4096, "interleave:0-1"), (4096, "default")]), time_ns: 0 };
        assert!(!mixed.is_interleaved() && !mixed.is_first_touch());
    }
}
