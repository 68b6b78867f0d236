//! The interfaces of libfirsttouch: the programs that `bindings/tests/run.sh` has built on the host, where one node is all there is.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_guests::said;
use std::process::Command;

/// Check that C++ (GCC and LLVM), Fortran, Rust and Python put pages on the nodes of the threads that own them, as the kernel says.
#[test]
fn pages_are_where_their_threads_are() {
    let programs = ["cxx_g++", "cxx_clang++", "fortran", "rust", "python"];
    let said = said(Command::new(workspace_root().join("bindings/tests/in-guest.sh")).args(programs));
    assert!(said.contains("test result: ok. 5 passed; 0 failed"), "{said}");
}
