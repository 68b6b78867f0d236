//! The interfaces of libfirsttouch: the programs that `bindings/tests/run.sh` has built on the host, where one node is all there is.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_guests::{nodes, said};
use std::process::Command;

/// Check that the interfaces put pages on the nodes of the threads that own them, as the kernel says. Each guest runs some of them. (`scripts/test-guests --run
/// bindings/tests/in-guest.sh` runs all: Python takes 20 s to start in a guest.)
#[test]
fn pages_are_where_their_threads_are() {
    let programs = if nodes().len() == 2 { ["cxx_clang++"] } else { ["fortran"] };
    let said = said(Command::new(workspace_root().join("bindings/tests/in-guest.sh")).args(programs));
    assert!(said.contains("test result: ok. 1 passed; 0 failed"), "{said}");
}
