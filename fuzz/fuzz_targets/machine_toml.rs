//! Descriptions of machines (`--machine FILE.toml`).
#![no_main]

use firsttouch_fuzz::computed;
use firsttouch_predict::machine::MachineModel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match MachineModel::parse(text) {
        Ok(machine) => computed(&machine),
        Err(error) => assert!(!error.place.is_empty() && !error.reason.is_empty(), "{error}"),
    }
});
