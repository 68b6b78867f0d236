//! Stacks by the unwind tables of a file: a sample (registers and stack), where the file is mapped, and the file.
#![no_main]

use firsttouch_capture::perf::records::Sample;
use firsttouch_capture::unwind::{TableStore, Unwinder};
use firsttouch_fuzz::Scratch;
use libfuzzer_sys::fuzz_target;

const WORDS: usize = 12;
const STACK: usize = 256;

fuzz_target!(|input: &[u8]| {
    let Some((head, file)) = input.split_at_checked(8 * WORDS + STACK) else { return };
    let word = |index: usize| u64::from_le_bytes(head[8 * index..8 * index + 8].try_into().expect("8 bytes"));
    let file = Scratch::new("module", file);
    let (mut store, mut unwinder) = (TableStore::default(), Unwinder::default());
    let path = file.path().to_str().expect("text");
    unwinder.add(&mut store, word(0), word(1), word(2), path);
    let sample = Sample { ip: word(3), registers: (4..10).map(word).collect(), stack: head[8 * WORDS..].to_vec(), ..Sample::default() };
    let stack = unwinder.stack(&sample);
    assert!((1..=24).contains(&stack.len()));
});
