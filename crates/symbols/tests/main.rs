//! Names for addresses: in the output of real compilers, and in stacks and source lines of typical programs.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cause;
mod common;
mod malformed;
mod statics;
mod symbolize;
mod variable;
