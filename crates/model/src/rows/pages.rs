//! Where pages are.

use super::Id;

/// [`Page::node`] of a page that is present, on a node that the kernel does not say (-1 = EPERM).
pub const UNKNOWN_NODE: i32 = -1;

/// The kernel's answer on where a page is.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub process: Id,
    pub object: Option<Id>,
    pub address: u64,
    pub time_ns: u64,
    /// The node, or a negative errno (-2 = ENOENT: not present; [`UNKNOWN_NODE`]).
    pub node: i32,
    /// 4096, or the huge page's size if the kernel reports it; 0 if unknown.
    pub page_bytes: u64,
}

impl Page {
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.node >= 0 || self.node == UNKNOWN_NODE
    }
}
