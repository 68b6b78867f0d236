//! Capture: runs or attaches to a program, records first touches, accesses, page nodes and allocations into a profile.
//!
//! `agent` and `perf` read the rings that the agent and the kernel write, `track` is the live picture of the target, `watch` the
//! watchpoint sampler, `session` the loop that joins them.

pub mod agent;
pub mod perf;
mod session;
mod sink;
pub mod symbolize;
mod touch;
pub mod track;
pub mod unwind;
pub mod watch;

pub use session::{Options, Outcome, Summary, profile};
