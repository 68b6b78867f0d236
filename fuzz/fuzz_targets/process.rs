//! A process's folder in /proc: threads (stat, status, sched), memory (numa_maps, smaps, status), and finding a process by name.
#![no_main]

use firsttouch_fuzz::{Tree, mutate};
use firsttouch_report::{MapsJson, MapsText, PsJson, Style, maps_text, ps_text};
use firsttouch_system::process::{Subject, find, maps, threads};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::slice::from_ref;

const ALWAYS: [(&str, &[u8]); 2] =
    [("sys/devices/system/node/node0/cpulist", b"0-1\n"), ("sys/devices/system/node/node1/cpulist", b"2-3\n")];

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|input: &[u8]| {
    let tree = Tree::new(&ALWAYS, input);
    let style = Style { width: 80, colour: false };
    if let Ok(threads) = threads(tree.path(), 7) {
        assert!(!ps_text(from_ref(&threads), style).is_empty());
        serde_json::to_string(&PsJson::new(from_ref(&threads))).expect("JSON");
    }
    if let Ok(maps) = maps(tree.path(), 7) {
        assert!(!maps_text(from_ref(&maps), MapsText { all: true, style }).is_empty());
        serde_json::to_string(&MapsJson::new(from_ref(&maps))).expect("JSON");
    }
    let _ = find(tree.path(), &Subject::parse("solver"), 1);
});
