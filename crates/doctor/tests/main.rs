//! The checks on constructed facts and on recorded machines.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod checks;
mod recorded;
