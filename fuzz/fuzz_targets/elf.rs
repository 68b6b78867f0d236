//! An ELF file with its DWARF: functions and lines, static objects, names. The first 16 bytes are two offsets to resolve.
#![no_main]

use firsttouch_fuzz::{Scratch, mutate};
use firsttouch_symbols::{Symbolizer, readable_function, static_objects};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

/// Bytes before the file.
const OFFSETS: usize = 16;

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::section(data, size, most, seed, OFFSETS) });

fuzz_target!(|input: &[u8]| {
    let Some((offsets, file)) = input.split_at_checked(OFFSETS) else { return };
    let file = Scratch::new("module", file);
    let mut symbolizer = Symbolizer::with_debug_roots(Vec::new());
    for offset in offsets.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes"))) {
        for place in symbolizer.resolve(file.path(), offset) {
            let _ = place.function.as_deref().map(readable_function);
        }
    }
    let _ = (symbolizer.has_line_info(file.path()), symbolizer.is_stripped(file.path()));
    if let Ok(statics) = static_objects(file.path(), 1) {
        for object in &statics.objects {
            let _ = (object.member_at(0), object.member_at(object.bytes), statics.declared_at(object.address));
        }
        let _ = (statics.bias(0x5555_5555_4000, 0), statics.bias(u64::MAX, u64::MAX));
    }
});
