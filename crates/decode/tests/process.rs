//! A process to sample: code, a stack and data.

use firsttouch_decode::Memory;

pub const CODE: u64 = 0x40_1000;
pub const STACK: u64 = 0x7ffd_0000_1000;

/// Code, the stack as sampled, and data.
#[derive(Default)]
pub struct Process {
    pub code: Vec<u8>,
    pub stack: Vec<u8>,
    pub data: Vec<(u64, Vec<u8>)>,
    pub moved: u64,
}

fn part(start: u64, bytes: &[u8], address: u64, to: &mut [u8]) -> usize {
    let Some(from) = address.checked_sub(start).and_then(|from| bytes.get(usize::try_from(from).ok()?..)) else { return 0 };
    let count = from.len().min(to.len());
    to[..count].copy_from_slice(&from[..count]);
    count
}

impl Memory for Process {
    fn code(&self, address: u64, bytes: &mut [u8]) -> usize {
        part(CODE + self.moved, &self.code, address, bytes)
    }

    fn then(&self, address: u64, bytes: &mut [u8]) -> bool {
        part(STACK, &self.stack, address, bytes) == bytes.len()
    }

    fn now(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.data.iter().any(|(start, data)| part(*start, data, address, bytes) == bytes.len())
    }
}
