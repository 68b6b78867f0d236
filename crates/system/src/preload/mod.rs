//! Libraries for LD_PRELOAD: whether a program can load them, and the files they are stored in.

mod cached;
pub mod target;
pub mod unpack;

pub use cached::cached;
