//! Tests for the guest with two nodes.

mod dgemv;
