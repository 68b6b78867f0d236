//! The memory of a process at a sample, as far as it is known.

use crate::agent::records::Tick;
use crate::track::processes::LiveProcess;
use firsttouch_decode::Memory;
use firsttouch_system::calls::process_memory;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// `syscall`
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// Reads the process itself, and the sample's copy of the stack.
pub struct SampledMemory<'a> {
    pub process: &'a LiveProcess,
    pub tick: &'a Tick,
}

impl SampledMemory<'_> {
    /// The thread was in a system call, or has just returned from one.
    pub fn follows_system_call(&self) -> bool {
        let mut before = [0; SYSTEM_CALL.len()];
        let address = self.tick.instruction_pointer.wrapping_sub(SYSTEM_CALL.len() as u64);
        self.code(address, &mut before) == before.len() && before == SYSTEM_CALL
    }

    /// The bytes in the mapped file, for a process that has ended or may not be read.
    fn in_file(&self, address: u64, bytes: &mut [u8]) -> usize {
        let Some((path, offset)) = self.process.module_at(address) else { return 0 };
        File::open(path).and_then(|file| file.read_at(bytes, offset)).unwrap_or(0)
    }
}

impl Memory for SampledMemory<'_> {
    fn code(&self, address: u64, bytes: &mut [u8]) -> usize {
        match process_memory::read(self.process.pid, address, bytes) {
            0 => self.in_file(address, bytes),
            count => count,
        }
    }

    fn then(&self, address: u64, bytes: &mut [u8]) -> bool {
        let at = address.checked_sub(self.tick.stack_address).and_then(|at| usize::try_from(at).ok());
        let copied = at.and_then(|at| self.tick.stack.get(at..at.checked_add(bytes.len())?));
        copied.map(|copied| bytes.copy_from_slice(copied)).is_some()
    }

    fn now(&self, address: u64, bytes: &mut [u8]) -> bool {
        process_memory::read(self.process.pid, address, bytes) == bytes.len()
    }
}
