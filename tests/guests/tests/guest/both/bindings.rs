//! The interfaces of libfirsttouch: the programs that `bindings/tests/run.sh` has built on the host, where one node is all there is.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_guests::{nodes, said};
use std::process::Command;

/// Check that the interfaces put pages on the nodes of the threads that own them, as the kernel says: both compilers of C++, Rust, Fortran and Python, C being
/// tested by `library`. Each guest runs a part of the suites, because Python takes longest to start, and checks every partition in every language: those that are
/// not here are in `placed`, which profiles them. (`scripts/test-guests --run bindings/tests/in-guest.sh` runs all.)
#[test]
fn pages_are_where_their_threads_are() {
    let on_two = ["masks", "cxx_clang++", "cxx_g++", "rust", "placed_clang++", "placed_g++", "placed_gfortran", "placed_rust"];
    let on_four = ["fortran", "python", "placed_g++"];
    let programs = if nodes().len() == 2 { &on_two[..] } else { &on_four };
    let said = said(Command::new(workspace_root().join("bindings/tests/in-guest.sh")).args(programs));
    assert!(said.contains(&format!("test result: ok. {} passed; 0 failed", programs.len())), "{said}");
}
