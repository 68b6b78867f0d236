//! /proc/PID/smaps.
#![no_main]

use firsttouch_system::proc::smaps;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (mappings, damaged) = smaps::parse(text);
    assert!(mappings.len() + damaged <= text.lines().count());
    for mapping in &mappings {
        assert!(mapping.start < mapping.end && mapping.page_bytes.is_none_or(u64::is_power_of_two));
    }
});
