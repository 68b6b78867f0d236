//! The agent's ring. The profiled program can write anything into the file, from the counters to the end. The input replaces the
//! counters in the header, and the slots.
#![no_main]

use firsttouch_capture::agent::ring::AgentRing;
use libfuzzer_sys::fuzz_target;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

const HEAD: u64 = 64;
const SLOTS: u64 = 4096;
const SLOT_BYTES: usize = 64;
const CAPACITY: usize = 64;

fuzz_target!(|input: &[u8]| {
    // The input: a byte of flags, 8 bytes each for head, lost and tail, then the slots. Bit 0 of the flags keeps the input's sequence
    // numbers, bit 1 keeps its head.
    let Some((header, slots)) = input.split_at_checked(25) else { return };
    let ring = AgentRing::create(CAPACITY, 1, false).expect("a ring");
    let file = OpenOptions::new().write(true).open(ring.path()).expect("the ring's file");
    let write = |bytes: &[u8], at: u64| file.write_all_at(bytes, at).expect("the ring has room");
    for (number, slot) in (0..CAPACITY as u32).zip(slots.chunks(SLOT_BYTES)) {
        let at = SLOTS + u64::from(number) * SLOT_BYTES as u64;
        write(slot, at);
        if header[0] & 1 == 0 {
            write(&(number + 1).to_le_bytes(), at);
        }
    }
    let head =
        if header[0] & 2 == 0 { (slots.len().div_ceil(SLOT_BYTES) as u64).to_le_bytes() } else { header[1..9].try_into().expect("8") };
    write(&head, HEAD);
    write(&header[9..17], HEAD + 8);
    write(&header[17..25], HEAD + 64);
    // The time advances with each call, so that the reader gives up on slots that are never published.
    for second in 0..8 {
        ring.drain(second * 2_000_000_000, drop);
    }
    let _ = (ring.lost(), ring.silent(), ring.attached());
});
