//! The agent's side of the capture: the library handed to the target, and the ring it writes to.

mod cached;
pub mod ring;
pub mod target;
pub mod unpack;

pub use cached::cached;
