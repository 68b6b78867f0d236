//! Lines that a profile takes from /proc: maps, and the stat of threads.
#![no_main]

use firsttouch_system::procfs::{parse_mapping, parse_thread_stat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for line in text.lines() {
        if let Some(mapping) = parse_mapping(line) {
            assert!(mapping.start < mapping.end);
        }
        let _ = parse_thread_stat(line);
    }
});
