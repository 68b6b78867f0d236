//! Arguments of the command line: `--machine`, `--pin`, sizes, times, processes. The first byte selects which.
#![no_main]

use firsttouch_model::Pin;
use firsttouch_model::quantity::{parse_duration, parse_size};
use firsttouch_system::TargetMachine;
use firsttouch_system::process::Subject;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let mut characters = input.chars();
    let Some(which) = characters.next() else { return };
    let text = characters.as_str();
    match which {
        'm' => match TargetMachine::parse(text) {
            Ok(TargetMachine::Virtual(nodes)) => assert!((1..=64).contains(&nodes)),
            Ok(_) => {}
            Err(error) => assert!(error.to_string().starts_with("cannot use machine '")),
        },
        'p' => match text.parse::<Pin>() {
            Ok(pin) => {
                for nodes in [1, 2, 64] {
                    if pin.check(nodes).is_ok() {
                        for (slot, slots) in [(0, 0), (0, 1), (7, 8), (1023, 1024)] {
                            assert!((pin.node(slot, slots, nodes, 4).0 as usize) < nodes);
                        }
                    }
                }
            }
            Err(error) => assert!(error.offset <= text.len() && error.to_string().ends_with('^')),
        },
        's' => drop(parse_size(text)),
        't' => drop(parse_duration(text).map(|time| assert!(!time.is_zero()))),
        _ => drop(Subject::parse(text)),
    }
});
