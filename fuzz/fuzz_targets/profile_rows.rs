//! A valid database with damaged rows, judged and reported (`fuzz/src/rows.rs`).
#![no_main]

use firsttouch_fuzz::{judged, mutate, profile_of_rows};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|input: &str| {
    let file = profile_of_rows("rows.ftp", input);
    if let Ok(profile) = firsttouch_profile::open(file.path()) {
        judged(&profile);
    }
});
