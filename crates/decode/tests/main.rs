//! Walks over assembled code: loops whose accesses are known by construction, and random loops beside an interpreter of their own.

#![allow(clippy::unwrap_used)]

mod differential;
mod process;
mod walks;
