//! Tests in the guest with CPUs on three nodes (two, one and one), a fourth node that has only memory, and unequal distances; and tests that one
//! guest suffices for, because this one has time left when the other goes on.

mod bench;
mod shared_folder;
mod slow_tier;

use firsttouch_guests::json;
use firsttouch_oracles::{list, numbers};

/// Check that the guest is the machine that its tests assume.
#[test]
fn is_the_machine_meant() {
    let topology = json(&["topology"]);
    let cpus: Vec<Vec<u32>> = list(&topology, "nodes").iter().map(|node| numbers(&node["cpus"])).collect();
    assert_eq!(cpus, [vec![0, 1], vec![2], vec![3], vec![]]);
    let distances: Vec<Vec<u32>> = list(&topology["distances"], "matrix").iter().map(numbers).collect();
    assert_eq!(distances, [[10, 16, 21, 31], [16, 10, 21, 28], [21, 21, 10, 17], [31, 28, 17, 10]]);
}
