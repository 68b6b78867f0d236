//! How `firsttouch run` starts a program: the command line's lists, expressions and plans become a placement on this machine, which this
//! process takes before it becomes the program.

mod apply;
mod error;
mod handover;
mod pin;
mod planned;
mod resolve;

pub use apply::{Refusals, apply};
pub use error::{Error, ErrorKind};
pub use pin::preload as preload_pinning;
pub use planned::{Prepared, explain, prepare};
pub use resolve::{PolicyRequest, Request, home_node, policy, resolve};

type Result<T> = std::result::Result<T, Error>;
