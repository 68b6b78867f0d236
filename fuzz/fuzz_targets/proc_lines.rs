//! Lines of /proc that the profiler reads: maps, and stat of threads.
#![no_main]

use firsttouch_fuzz::mutate;
use firsttouch_system::proc::{maps, stat};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|text: &str| {
    for line in text.lines() {
        if let Some(mapping) = maps::parse(line) {
            assert!(mapping.start < mapping.end);
        }
        let _ = stat::parse(line);
    }
});
