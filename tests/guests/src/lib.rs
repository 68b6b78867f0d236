// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared code of the tests in guests. `scripts/test-guests` boots each guest once and runs its tests in it, one after another, as root.
//! The guest sees the host's files read-only, except `/tmp` and the target directory.
//!
//! ```text
//! blocks    profile a program that divides an array into blocks
//! commands  run firsttouch and other tools       nodes     this guest's nodes, and a node with little free memory
//! programs  start a test program, and end it     settings  change a file of the kernel, and restore it
//! sampled   tests whose outcome depends on samples
//! ```

#![allow(clippy::unwrap_used, reason = "this crate is a part of tests")]

mod blocks;
mod commands;
mod nodes;
mod programs;
mod sampled;
mod settings;

pub use blocks::{Blocks, balancing_fast, balancing_off, figure, finding, findings, parts};
pub use commands::{firsttouch, guest, json, json_of, json_under, said, tool};
pub use nodes::{FullNode, Node, first_two_with_cpus, mib_of, nodes};
pub use programs::{Waiting, guest_program};
pub use sampled::sampled;
pub use settings::{Group, Setting, read_number};
