//! Access evidence from debug-register watchpoints. The estimator and its variance: docs/estimator.md.
//!
//! Time is cut into rounds. For each round and process up to four addresses are drawn (`design`), watched on all threads
//! (`slots`), and the hits are turned into rates (`rate`). How long a round lasts and which objects are drawn depends on
//! earlier rounds only (`pace`), so that every window stays an unbiased sample.

pub mod design;
pub mod hot;
pub mod pace;
mod passes;
pub mod rate;
pub mod rounds;
pub mod slots;

/// Debug registers a thread has (x86: DR0-DR3; aarch64 has at least four watchpoint registers on server parts).
pub const SLOTS: usize = 4;
