//! hwloc's XML (`--machine FILE.xml`).
#![no_main]

use firsttouch_fuzz::{rendered, sound};
use firsttouch_machine::hwloc;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match hwloc::read(text) {
        Ok(topology) => {
            sound(&topology);
            rendered(&topology);
        }
        Err(error) => assert!(!format!("{error:#}").is_empty()),
    }
});
