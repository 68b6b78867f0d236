//! Lines of /proc/PID/numa_maps.
#![no_main]

use firsttouch_fuzz::mutate;
use firsttouch_system::proc::numa_maps;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|text: &str| {
    for mapping in text.lines().filter_map(numa_maps::parse) {
        assert!(mapping.page_bytes.is_none_or(u64::is_power_of_two) && !mapping.policy.is_empty());
    }
});
