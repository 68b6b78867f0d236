//! First touches.

use super::Id;

/// A sampled page fault: the first touch of a page, or another access that the kernel caught.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstTouch {
    pub id: Id,
    pub process: Id,
    pub time_ns: u64,
    pub thread: Id,
    pub cpu: u32,
    /// The address of the access that faulted.
    pub address: u64,
    /// The number of faults that this sample represents (the sampling period in force).
    pub weight: f64,
    /// The kernel touched the page on behalf of the thread (a system call such as read).
    pub by_kernel: bool,
    pub site: Option<Id>,
    /// Bytes of the page that was mapped when the access faulted; 0 if no page was mapped. A page was mapped if NUMA balancing had marked
    /// it (a hinting fault), or if it was shared and was written to (zero page, after fork). `None` before Linux 5.11.
    pub mapped_bytes: Option<u64>,
    /// The node of the page right after the fault, or a negative errno (-14 or -2: the zero page). `None` if it was not queried.
    pub node: Option<i32>,
}

/// Pages that were touched first between two looks at which pages are present (where the kernel reports no page faults).
#[derive(Clone, Debug, PartialEq)]
pub struct Appeared {
    pub process: Id,
    /// None of them was there when this look began, or when the memory was allocated.
    pub from_ns: u64,
    /// The end of the look that found them.
    pub to_ns: u64,
    pub address: u64,
    pub bytes: u64,
    /// Size of the pages; 0 if the kernel does not say.
    pub page_bytes: u64,
}

/// The minor page faults that a thread has had so far. A thread without a row at the time of other rows of its process has had no more since.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultCount {
    pub process: Id,
    /// `None`: threads that have ended, and those that firsttouch does not know, together.
    pub thread: Option<Id>,
    pub time_ns: u64,
    pub faults: u64,
}

/// From this time on, until the next such row, a record stands for so many faults: a stretch of time without records says how few pages can have
/// been touched in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPeriod {
    pub time_ns: u64,
    pub faults: u64,
    /// The part of a merged profile whose records these are; `None`: all.
    pub part: Option<Id>,
}
