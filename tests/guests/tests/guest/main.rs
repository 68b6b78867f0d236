//! The tests that run inside guests, in one binary. `scripts/test-guests` boots each guest once and runs in it the tests of `both` and of
//! the module with the guest's name.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod both;
mod four;
mod two;
