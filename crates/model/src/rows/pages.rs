//! Where pages are.

use super::Id;

/// The kernel's answer on where a page is.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub process: Id,
    pub object: Option<Id>,
    pub address: u64,
    pub time_ns: u64,
    /// The node, or a negative errno (-2 = ENOENT: not present).
    pub node: i32,
    /// 4096, or the huge page's size if the kernel reports it; 0 if unknown.
    pub page_bytes: u64,
}
