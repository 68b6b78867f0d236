//! Libraries for LD_PRELOAD: whether a program can load them, and the files they are stored in.

pub mod accepts_agent;
pub(crate) mod cached;
pub mod unpack;

pub use cached::cached;
