//! What to track: fixed at the start of a run, but for `may_hint`.

use hashbrown::HashMap;
use std::path::PathBuf;

pub struct Scope {
    pub root: PathBuf,
    /// The process that was started or attached to.
    pub root_pid: i32,
    /// Child processes are profiled too.
    pub follow: bool,
    /// Allocations below this many bytes are not recorded.
    pub min_size: u64,
    pub page_bytes: u64,
    pub huge_page_bytes: u64,
    /// Node of each CPU, on a machine with several nodes; else empty.
    pub cpu_nodes: HashMap<u32, u32>,
    /// The kernel may mark pages to catch accesses to them (NUMA balancing).
    pub may_hint: bool,
    /// Objects of all processes come from /proc/PID/maps, because the program has no agent.
    pub by_mapping: bool,
    /// The program ran before, and lives on.
    pub is_attached: bool,
}

impl Scope {
    /// A process of a test, on a machine with one node.
    #[cfg(test)]
    pub fn of_test(root: PathBuf, root_pid: i32) -> Self {
        Self {
            root,
            root_pid,
            follow: false,
            min_size: 1,
            page_bytes: 4096,
            huge_page_bytes: 0,
            cpu_nodes: HashMap::new(),
            may_hint: false,
            by_mapping: false,
            is_attached: false,
        }
    }

    /// This process is profiled.
    #[must_use]
    pub fn includes(&self, pid: i32) -> bool {
        self.follow || pid == self.root_pid
    }

    /// The machine has several nodes.
    #[must_use]
    pub fn has_nodes(&self) -> bool {
        !self.cpu_nodes.is_empty()
    }

    /// A fault on a page of this size (0: none was mapped) is a hinting fault of NUMA balancing, not a first touch.
    #[must_use]
    pub fn is_hint(&self, mapped_bytes: Option<u64>) -> bool {
        self.may_hint && mapped_bytes.is_some_and(|bytes| bytes > 0)
    }
}
