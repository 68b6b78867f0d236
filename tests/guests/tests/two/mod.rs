//! Tests for the guest with two nodes.

mod dgemv;
mod findings;
mod map;
mod reproduce;
