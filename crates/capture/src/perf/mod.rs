//! The rings of perf events, and the records in them.

pub mod records;
pub mod ring;
