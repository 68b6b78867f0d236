//! hwloc's XML (`--machine FILE.xml`), including bandwidths.
#![no_main]

use firsttouch_fuzz::{computed, mutate, rendered, sound};
use firsttouch_predict::machine::import;
use firsttouch_system::hwloc;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|text: &str| {
    match hwloc::read_with_figures(text) {
        Ok((topology, figures)) => {
            sound(&topology);
            rendered(&topology);
            match import::pairs("file", &topology, &figures) {
                Ok(Some(found)) => computed(&found.machine),
                Ok(None) => {}
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        Err(error) => assert!(!format!("{error:#}").is_empty()),
    }
});
