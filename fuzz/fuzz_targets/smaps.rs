//! /proc/PID/smaps.
#![no_main]

use firsttouch_fuzz::mutate;
use firsttouch_system::proc::smaps;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|text: &str| {
    let (mappings, damaged) = smaps::parse(text);
    assert!(mappings.len() + damaged <= text.lines().count());
    for mapping in &mappings {
        assert!(mapping.start < mapping.end && mapping.page_bytes.is_none_or(u64::is_power_of_two));
    }
});
