//! A recorded touch, and its place in an object.

use firsttouch_model::TouchCause;
use firsttouch_model::rows::Id;

/// Page size if the kernel does not report another, bytes.
pub const BASE_PAGE: u64 = 4096;

/// One sampled first touch by a known thread.
#[derive(Clone, Debug)]
pub struct Touch {
    pub time: u64,
    /// Thread index.
    pub thread: usize,
    /// The page's node: on the recorded machine the node that the kernel reported right after the fault, else the node of the thread.
    pub node: u32,
    /// The node that the thread ran on.
    pub cpu_node: u32,
    pub address: u64,
    /// The number of page faults that the record represents.
    pub weight: f64,
    pub by_kernel: bool,
    pub site: Option<Id>,
    /// Size of the page that was mapped when the access faulted, bytes; 0 if no page was mapped.
    pub mapped: Option<u64>,
    /// Whether the page had a node right after the fault. A read of fresh memory maps the zero page, which has no node.
    pub found: Option<bool>,
    /// The call that made the kernel touch it, for which there is no page fault ([`crate::populated`]).
    pub populated: Option<TouchCause>,
}

/// A touch and its offset in an object.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Offset into the object, bytes.
    pub offset: u64,
    pub touch: Touch,
    /// Made while a former owner had the address.
    pub recycled: bool,
    /// Size of the page it created, bytes.
    pub page_bytes: u64,
}

impl Placed {
    /// Bytes of the pages that it represents.
    #[must_use]
    pub fn covers(&self) -> f64 {
        self.touch.weight * self.page_bytes as f64
    }

    /// The number of base pages that it represents.
    #[must_use]
    pub fn pages(&self) -> f64 {
        self.covers() / BASE_PAGE as f64
    }
}
