//! A program's file, as `profile` and `doctor` examine it: whether it can load the agent, and its OpenMP runtime.
#![no_main]

use firsttouch_fuzz::Scratch;
use firsttouch_system::preload::accepts_agent::accepts_agent;
use firsttouch_system::program::look_at;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let file = Scratch::new("program", input);
    let _ = accepts_agent(file.path());
    let program = look_at(file.path());
    assert!(program.path.ends_with("/program"));
});
