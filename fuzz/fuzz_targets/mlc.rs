//! The output of Intel's Memory Latency Checker (`--machine FILE`).
#![no_main]

use firsttouch_fuzz::{computed, mutate};
use firsttouch_predict::machine::import;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|text: &str| {
    let _ = import::is_mlc(text);
    match import::mlc("file", text) {
        Ok(machine) => computed(&machine),
        Err(error) => assert!(!error.place.is_empty() && !error.reason.is_empty(), "{error}"),
    }
});
