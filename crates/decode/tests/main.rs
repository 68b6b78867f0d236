//! Walks over assembled code: loops whose accesses are known by construction, and random loops that are compared with an interpreter.

#![allow(clippy::unwrap_used)]

mod assembled;
mod differential;
mod process;
mod progress;
mod walks;
