//! Source lines: the variable an allocation is assigned to, and the construct that touched memory. The first byte selects the call, the
//! second the line.
#![no_main]

use firsttouch_model::rows::Frame;
use firsttouch_symbols::{readable_function, touch_cause, user_frame, variable_near};
use libfuzzer_sys::fuzz_target;

const CALLS: [&str; 8] = ["malloc", "calloc", "realloc", "aligned", "mmap", "mremap", "make_grid", ""];
const FILES: [&str; 4] = ["a.c", "a.cpp", "a.f90", "a.py"];

fuzz_target!(|input: (u8, u8, &str)| {
    let (which, line, text) = input;
    let lines: Vec<&str> = text.lines().collect();
    let call = CALLS[usize::from(which) % CALLS.len()];
    for nth in 0..3 {
        let _ = variable_near(&lines, usize::from(line), call, nth);
    }
    let frame =
        |name: &str, file: &str| Frame { function: Some(name.to_owned()), file: Some(file.to_owned()), line: Some(1), ..Frame::default() };
    let name = lines.first().copied().unwrap_or_default();
    for file in FILES {
        let frames = [frame("memset", ""), frame(name, file), frame("main", file)];
        for stack in [&frames[..], &frames[1..]] {
            let _ = (touch_cause(stack, Some(call), lines.get(usize::from(line)).copied()), user_frame(stack));
        }
    }
    let _ = readable_function(name);
});
