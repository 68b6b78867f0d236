//! The bytes of a profile file: opens, judges and reports it.
#![no_main]

use firsttouch_fuzz::{Scratch, judged};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let file = Scratch::new("damaged.ftp", input);
    match firsttouch_profile::open(file.path()) {
        Ok(profile) => judged(&profile),
        Err(error) => assert!(format!("{error:#}").contains("damaged.ftp")),
    }
});
