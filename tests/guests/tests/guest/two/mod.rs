//! Tests in the guest with two equal nodes of two CPUs each, at distance 21: the usual two-socket machine.

mod dgemv;
mod findings;
mod map;
mod ranks;
mod reproduce;
mod samples;
mod tune;

use crate::both::doctor::{HUGE_PAGES, calm};
use firsttouch_guests::{Setting, firsttouch, json, said};
use firsttouch_oracles::{list, numbers};

/// Check that the guest is the machine that its tests assume.
#[test]
fn is_the_machine_meant() {
    let topology = json(&["topology"]);
    let cpus: Vec<Vec<u32>> = list(&topology, "nodes").iter().map(|node| numbers(&node["cpus"])).collect();
    assert_eq!(cpus, [[0, 1], [2, 3]]);
    let distances: Vec<Vec<u32>> = list(&topology["distances"], "matrix").iter().map(numbers).collect();
    assert_eq!(distances, [[10, 21], [21, 10]]);
    let packages: Vec<Vec<u32>> = list(&topology, "packages").iter().map(|package| numbers(&package["cpus"])).collect();
    assert_eq!(packages, cpus);
}

/// Check that the doctor prints one sentence on a machine where nothing hurts placement, and that no check is skipped.
#[test]
fn nothing_wrong_is_one_sentence() {
    let _rare = Setting::set(HUGE_PAGES, "madvise");
    let text = said(calm(&mut firsttouch().command(["doctor"])));
    let one_sentence = text.trim_end().ends_with('.') && text.matches(". ").count() + text.matches(".\n").count() == 1;
    assert!(text.starts_with("Nothing found that hurts placement (") && one_sentence, "{text}");
    assert!(!text.contains("several nodes"), "{text}");
}
