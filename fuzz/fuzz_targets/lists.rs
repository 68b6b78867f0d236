//! The kernel's lists of CPUs and nodes (`0-3,8`): parses, prints, and parses again.
#![no_main]

use firsttouch_model::topology::format_list;
use firsttouch_system::parse_list;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse_list(text) {
        Ok(list) => {
            assert!(list.is_sorted_by(|a, b| a < b), "{list:?}");
            assert_eq!(parse_list(&format_list(&list)).as_ref(), Ok(&list));
        }
        Err(error) => assert!(error.offset <= text.len() && !error.to_string().is_empty()),
    }
});
