//! Descriptions of machines (`--machine FILE.toml`).
#![no_main]

use firsttouch_fuzz::{computed, mutate};
use firsttouch_predict::machine::MachineModel;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|text: &str| {
    match MachineModel::parse(text) {
        Ok(machine) => computed(&machine),
        Err(error) => assert!(!error.place.is_empty() && !error.reason.is_empty(), "{error}"),
    }
});
