//! The agent's side of the capture: the library handed to the target, and the ring it writes to.

pub mod ring;
