//! The agent's records, and the ring that it writes them to.

mod memory;
pub mod records;
pub mod ring;
pub mod waker;
