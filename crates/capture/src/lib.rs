//! Capture: runs or attaches to a program, and records first touches, accesses, page nodes and allocations into a profile.
//!
//! `agent` and `perf` read the rings that the agent and the kernel write. `sources` are the kinds of evidence, behind one interface
//! (`source`). `timeline` puts their records in order of time, `track` is the live picture of the target that the records build, and `session`
//! is the loop that joins them.

pub mod agent;
mod error;
mod options;
pub mod perf;
mod random;
mod session;
mod sink;
mod source;
mod sources;
pub mod symbolize;
mod timeline;
mod track;
pub mod unwind;

pub use error::{Error, ErrorKind, Result};
pub use options::Options;
pub use session::{Recording, SourceAccount, Summary, profile};
pub use source::Account;
