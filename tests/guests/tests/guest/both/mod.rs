//! Tests that hold on any machine with several nodes: each runs in both guests.

mod balancing;
mod bindings;
pub mod doctor;
mod library;
mod migrate;
mod placed;
mod plan;
mod process;
mod profile;
mod run;
mod stat;
mod topology;
mod unprivileged;
