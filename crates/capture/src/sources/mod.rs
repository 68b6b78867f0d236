//! The evidence sources, a folder each. A new one implements [`crate::source::Source`] and is added to the list in `session/start.rs`.

pub mod agent;
pub mod hint;
pub mod resident;
pub mod sample;
pub mod touch;
pub mod watch;
