//! A guest with CPUs on three nodes, two and one and one, a fourth node of memory alone, and unequal distances.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod both;
mod four;

use firsttouch_guests::json;
use firsttouch_oracles::{list, numbers};

/// Check that the guest is the machine that the tests in it are written for.
#[test]
fn is_the_machine_meant() {
    let topology = json(&["topology"]);
    let cpus: Vec<Vec<u32>> = list(&topology, "nodes").iter().map(|node| numbers(&node["cpus"])).collect();
    assert_eq!(cpus, [vec![0, 1], vec![2], vec![3], vec![]]);
    let distances: Vec<Vec<u32>> = list(&topology["distances"], "matrix").iter().map(numbers).collect();
    assert_eq!(distances, [[10, 16, 21, 31], [16, 10, 21, 28], [21, 21, 10, 17], [31, 28, 17, 10]]);
}
