//! The interfaces of libfirsttouch: the programs that `bindings/tests/run.sh` has built on the host, where one node is all there is.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_guests::{nodes, said};
use std::process::Command;

/// Check that C++, Fortran and Rust put pages on the nodes of the threads that own them, as the kernel says. With two nodes also C++ of
/// LLVM, and Python, which takes its time to start in a guest.
#[test]
fn pages_are_where_their_threads_are() {
    let programs = ["cxx_g++", "fortran", "rust", "cxx_clang++", "python"];
    let programs = &programs[..if nodes().len() == 2 { 5 } else { 3 }];
    let said = said(Command::new(workspace_root().join("bindings/tests/in-guest.sh")).args(programs));
    assert!(said.contains(&format!("test result: ok. {} passed; 0 failed", programs.len())), "{said}");
}
