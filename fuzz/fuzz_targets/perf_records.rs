//! Records of perf events: type, misc, length and body each.
#![no_main]

use firsttouch_capture::perf::records::{PerfRecord, parse};
use firsttouch_capture::perf::ticks::parse_tick;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    while let Some((&[kind, misc, more, length], body)) = rest.split_first_chunk::<4>() {
        let (body, next) = body.split_at(usize::from(length).min(body.len()));
        rest = next;
        let misc = u16::from_le_bytes([misc, more]);
        if let Some(PerfRecord::Sample(sample)) = parse(u32::from(kind), misc, body) {
            assert!(sample.stack.len() <= body.len());
        }
        if let Some(tick) = parse_tick(misc, body) {
            assert!(tick.tick.stack.len() <= body.len());
        }
    }
});
