//! Readers of the system on recorded, constructed and damaged machines, and on this one.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod bandwidth;
mod damaged;
mod imported;
mod machines;
mod recorded;
mod system;
mod tree;
