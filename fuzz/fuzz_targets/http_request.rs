//! Requests to `serve-metrics`: any bytes are a request, the beginning of one, or refused; what follows a request does not change it.
#![no_main]

use firsttouch_fuzz::mutate;
use firsttouch_metrics::http::{Parsed, parse};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|input: &[u8]| {
    match parse(input) {
        Parsed::Request(request, length) => {
            assert!(length > 0 && length <= input.len());
            assert_eq!(parse(&input[..length]), Parsed::Request(request, length));
            assert_eq!(parse(&input[..length - 1]), Parsed::Incomplete);
        }
        Parsed::Incomplete => assert!(input.len() < 8_192),
        Parsed::Refused(_) => {}
    }
});
