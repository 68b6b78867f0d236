//! Reports of hand-made results and of recorded machines.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod coverage;
mod export;
mod html;
mod system;
mod text;
mod topology;
