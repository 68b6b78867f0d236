//! Profiles written and read back, and files that are not profiles.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod files;
mod foreign;
mod merge;
mod round_trip;
