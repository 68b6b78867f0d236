//! Tests that hold on any machine with several nodes: each runs in both guests.

mod balancing;
mod bench;
pub mod doctor;
mod migrate;
mod plan;
mod process;
mod profile;
mod run;
mod shared_folder;
mod stat;
mod topology;
mod unprivileged;
