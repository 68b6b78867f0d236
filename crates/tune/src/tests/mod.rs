//! Tuning of simulated programs whose truth is known, on a fake kernel.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod parts;
mod simulated;
mod whole;
