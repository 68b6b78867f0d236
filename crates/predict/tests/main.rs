//! Machines, programs and the model.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod fit;
mod import;
mod machines;
mod program;
mod properties;
