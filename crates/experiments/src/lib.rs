//! Measurements with the bundled kernels: one kernel (`bench`), all pairs of nodes (`map`), the published experiments (`reproduce`), the program of
//! `demo`, and a user's program in several placements (`quick_test`).
//!
//! `bench` runs a kernel in this process. All others start `firsttouch run PLACEMENT -- firsttouch bench KERNEL --json` in a process of its
//! own for each run, because the placement of a process is inherited at its start.

pub mod bench;
pub mod demo_program;
mod error;
mod host;
mod kernels;
pub mod map;
pub mod quick_test;
pub mod reproduce;
mod statistics;

pub use error::{Error, ErrorKind};
pub use statistics::Statistics;

/// Receives a line about what is measured next.
pub type Progress<'a> = &'a dyn Fn(&str);

type Result<T> = std::result::Result<T, Error>;
