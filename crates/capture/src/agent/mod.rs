//! The agent's records, and the ring that it writes them to.

pub mod records;
pub mod ring;
