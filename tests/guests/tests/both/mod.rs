//! Tests that hold on any machine with several nodes: each runs in both guests.

mod balancing;
pub mod doctor;
mod process;
mod profile;
mod stat;
mod topology;
mod unprivileged;
