//! What runtimes write about the code they generate: a perf map or a jitdump, and the function at an address. The first 8 bytes are the
//! address, the rest is the file.
#![no_main]

use firsttouch_fuzz::mutate;
use firsttouch_symbols::jit::{CodePieces, MOST_LINES, MOST_LOOKED_AT, MOST_PIECES, jitdump, perf_map};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|input: &[u8]| {
    let Some((address, file)) = input.split_at_checked(8) else { return };
    let address = u64::from_le_bytes(address.try_into().expect("8 bytes"));
    for parsed in [Some(perf_map::parse(file)), jitdump::parse(file).ok()].into_iter().flatten() {
        assert!(parsed.pieces.len() <= MOST_PIECES);
        assert!(parsed.pieces.iter().map(|piece| piece.lines.len()).sum::<usize>() <= MOST_LINES);
        // Of more functions at one place, the last ones are looked at.
        let is_searched = parsed.pieces.len() <= MOST_LOOKED_AT;
        let inside: Vec<u64> =
            parsed.pieces.iter().take(if is_searched { 100 } else { 0 }).map(|piece| piece.start + piece.bytes - 1).collect();
        let pieces = CodePieces::new(parsed.pieces);
        for known in inside {
            let found = pieces.resolve(known).and_then(|found| found.function).expect("the function itself");
            assert!(!found.is_empty() && !found.contains(char::is_control), "{found:?}");
        }
        let _ = (pieces.resolve(address), pieces.resolve(u64::MAX), pieces.is_empty());
    }
});
