//! Counters of nodes and of the system, before and after (the input's halves, separated by a line `%`), and the settings of balancing.
#![no_main]

use firsttouch_fuzz::{Tree, mutate};
use firsttouch_report::{Span, StatJson, Style, balancing_text, stat_text};
use firsttouch_system::{balancing, counters};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|input: &[u8]| {
    let middle = input.windows(2).position(|bytes| bytes == b"%\n");
    let (before, after) = middle.map_or((input, &[][..]), |place| (&input[..place], &input[place + 2..]));
    let style = Style { width: 80, colour: false };
    let read = |input| {
        let tree = Tree::new(&[], input);
        assert!(!balancing_text(&balancing::read(tree.path()), style).is_empty());
        counters::read(tree.path())
    };
    let grown = read(after).since(&read(before));
    let span = Span::Interval { wall_s: 1.0 };
    assert!(!stat_text(&grown, &span, style).is_empty());
    serde_json::to_string(&StatJson::new(&grown, &span)).expect("JSON");
});
