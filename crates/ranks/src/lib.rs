//! Ranks of MPI jobs: where a process stands in its job, the directory that its ranks share, and the program's words in a launcher's command line.
//!
//! | module | what it does |
//! |---|---|
//! | `place.rs` | the place of a process in its job, from environment variables; pure |
//! | `host.rs` | this process as others see it; the key of a job that has no name |
//! | `directory.rs` | the directory of a job: one profile a rank, and who is the last |
//! | `launchers.rs`, `options.rs` | which words of a launcher's command line are programs; the launchers' options; pure |

pub mod directory;
mod host;
mod launchers;
mod options;
mod place;

pub use host::{Process, host_name, key};
pub use launchers::{Programs, is_launcher, programs};
pub use place::{Lookup, place};
