//! Walks of arbitrary code: the code, the registers, a stack and data. Each walk ends, names addresses within its loop's own operands, and
//! gives the same answer twice.
#![no_main]

use firsttouch_decode::{Memory, Registers, Walker, X86};
use firsttouch_fuzz::mutate;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const CODE: u64 = 0x40_0000;
const REGISTERS: usize = 8 * 16;
const STACK: usize = 128;

struct Process<'a> {
    code: &'a [u8],
    stack: &'a [u8],
    stack_pointer: u64,
}

fn copy(from: &[u8], start: u64, address: u64, to: &mut [u8]) -> usize {
    let Some(from) = address.checked_sub(start).and_then(|at| from.get(usize::try_from(at).ok()?..)) else { return 0 };
    let count = from.len().min(to.len());
    to[..count].copy_from_slice(&from[..count]);
    count
}

impl Memory for Process<'_> {
    fn code(&self, address: u64, bytes: &mut [u8]) -> usize {
        copy(self.code, CODE, address, bytes)
    }

    fn then(&self, address: u64, bytes: &mut [u8]) -> bool {
        copy(self.stack, self.stack_pointer, address, bytes) == bytes.len()
    }

    fn now(&self, address: u64, bytes: &mut [u8]) -> bool {
        copy(self.code, CODE, address, bytes) == bytes.len()
    }
}

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::code(data, size, most, seed, 1 + REGISTERS + STACK) });

fuzz_target!(|input: &[u8]| {
    let Some((head, code)) = input.split_at_checked(1 + REGISTERS + STACK) else { return };
    let mut general = [0; 16];
    for (value, bytes) in general.iter_mut().zip(head[1..=REGISTERS].chunks_exact(8)) {
        *value = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    }
    let process = Process { code, stack: &head[1 + REGISTERS..], stack_pointer: general[4] };
    let start = CODE + u64::from(head[0]);
    let Some(plan) = X86.plan(&process, start) else { return };
    let registers = Registers { instruction_pointer: start, general };
    let walk = X86.walk(&plan, &registers, &process);
    assert_eq!(walk, X86.walk(&plan, &registers, &process));
    assert!(walk.operands.iter().all(|operand| walk.around.is_some() || operand.stride.is_none()));
});
