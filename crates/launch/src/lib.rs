//! Starts a program for `firsttouch run`: the lists, expressions and plans of the command line become a placement on this machine. This
//! process applies it to itself, then executes the program.
//!
//! | module | what it does |
//! |---|---|
//! | `resolve.rs` | from options to a placement on this machine |
//! | `apply.rs` | sets it: CPUs, memory policy |
//! | `pin.rs` | `--pin`: OpenMP's variables, or the preloaded pin library |
//! | `openmp_allocators.rs` | `--openmp-allocators`: the preloaded library that places what OpenMP's allocators return |
//! | `planned.rs`, `handover.rs` | `--plan`: finds the plan's sites in the files that will run, and passes the plan to the preloaded library |

mod apply;
mod error;
mod handover;
mod openmp_allocators;
mod pin;
mod planned;
mod resolve;

pub use apply::{Refusals, apply};
pub use error::{Error, ErrorKind};
pub use openmp_allocators::preload as preload_openmp_allocators;
pub use pin::{Pinning, preload as preload_pinning};
pub use planned::{Prepared, explain, prepare};
pub use resolve::{PolicyRequest, Request, home_node, policy, resolve};

type Result<T> = std::result::Result<T, Error>;
