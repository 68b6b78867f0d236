//! Measurements with the bundled kernels: one kernel (`bench`), all pairs of nodes (`map`), the published experiments (`reproduce`), the program of
//! `demo`, and a user's program in several placements (`quick_test`).
//!
//! | module | what it measures |
//! |---|---|
//! | `bench/` | one bundled kernel in this process |
//! | `map/` | bandwidth and latency: `all_pairs.rs` the tables and curves, `one_pair.rs` one figure |
//! | `reproduce/` | the published experiments, a file each; `effect.rs` whether the published effect appears here |
//! | `quick_test.rs` | a user's program in four placements (`run --quick-test`) |
//! | `demo_program.rs` | the program of `demo` |
//! | `host.rs`, `kernels.rs`, `statistics.rs` | the machine; kernels in processes of their own; statistics of repetitions |
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
