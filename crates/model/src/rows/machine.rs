//! The machine that a profile was taken on.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine the profile was taken on (it may be judged on another one).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub hostname: String,
    pub kernel: String,
    /// CPUs of each node, by node number.
    pub node_cpus: BTreeMap<u32, Vec<u32>>,
    pub page_bytes: u64,
    /// Bytes of a transparent huge page; 0 if the kernel has none.
    pub huge_page_bytes: u64,
    /// `always`, `madvise`, `never`, or empty if unknown.
    pub transparent_huge_pages: String,
    /// Bytes of the private (level 2) cache of one core; 0 if unknown.
    pub private_cache_bytes: u64,
    /// Bytes of the last-level cache of one package; 0 if unknown.
    pub shared_cache_bytes: u64,
    /// kernel.numa_balancing as read at the start, or later if it was switched on then: bit 0 balances, bit 1 promotes hot pages of slow
    /// tiers. 0 if it is off or not supported.
    pub numa_balancing: u64,
    /// Memory tier of each node (a lower number is faster); empty if the kernel does not report it.
    pub node_tiers: BTreeMap<u32, u32>,
}

impl Machine {
    /// Whether the kernel may have marked pages to catch accesses to them: hinting faults then resemble first touches.
    #[must_use]
    pub fn may_hint(&self) -> bool {
        self.node_cpus.len() >= 2 && self.numa_balancing != 0
    }
}
