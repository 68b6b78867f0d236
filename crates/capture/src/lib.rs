//! Capture: runs or attaches to a program, records first touches, accesses, page nodes and allocations into a profile.
//!
//! `kernel` holds the system calls, `agent` the library inside the target, `track` the live picture of the target, `watch` the
//! watchpoint sampler, `session` the loop that joins them.

pub mod agent;
mod command;
pub mod kernel;
pub mod permissions;
mod placement;
pub mod procfs;
pub mod program;
mod session;
mod sink;
pub mod symbolize;
mod touch;
pub mod track;
pub mod unwind;
pub mod watch;

pub use command::{Commands, Ran};
pub use kernel::process::{LaunchError, become_program};
pub use placement::{explain_refusal, sample_nodes};
pub use session::{Options, Outcome, Summary, profile};
