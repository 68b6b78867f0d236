//! Expressions for nodes and CPUs, and plans.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod documented;
mod peers;
mod properties;
