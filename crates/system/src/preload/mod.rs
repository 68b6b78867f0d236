//! Libraries that the loader brings into a program (LD_PRELOAD): whether a program takes them, and the files they lie in.

mod cached;
pub mod target;
pub mod unpack;

pub use cached::cached;
