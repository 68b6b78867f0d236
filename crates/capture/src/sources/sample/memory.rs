//! The memory of a process at a sample, as far as it is known.

use crate::agent::records::Tick;
use crate::track::processes::LiveProcess;
use firsttouch_decode::Memory;
use firsttouch_system::calls::process_memory;
use hashbrown::HashMap;
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// `syscall`
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
/// Code is read in blocks of this size: a decoder asks for one instruction after the other.
const BLOCK: usize = 4096;

/// Reads the process itself, and the sample's copy of the stack.
pub struct SampledMemory<'a> {
    process: &'a LiveProcess,
    tick: &'a Tick,
    /// Blocks of code by address, as far as they could be read.
    blocks: RefCell<HashMap<u64, Vec<u8>>>,
}

impl<'a> SampledMemory<'a> {
    pub fn new(process: &'a LiveProcess, tick: &'a Tick) -> Self {
        Self { process, tick, blocks: RefCell::default() }
    }

    /// The thread was in a system call, or has just returned from one.
    pub fn follows_system_call(&self) -> bool {
        let mut before = [0; SYSTEM_CALL.len()];
        let address = self.tick.instruction_pointer.wrapping_sub(SYSTEM_CALL.len() as u64);
        self.code(address, &mut before) == before.len() && before == SYSTEM_CALL
    }

    /// A block of code: from the process, or from the mapped file if the process has ended, has replaced its program, or may not be read.
    fn block(&self, start: u64) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK];
        let count = match process_memory::read(self.process.pid, start, &mut bytes) {
            0 => self.in_file(start, &mut bytes),
            count => count,
        };
        bytes.truncate(count);
        bytes
    }

    fn in_file(&self, address: u64, bytes: &mut [u8]) -> usize {
        let Some((path, offset)) = self.process.module_at(address) else { return 0 };
        File::open(path).and_then(|file| file.read_at(bytes, offset)).unwrap_or(0)
    }
}

impl Memory for SampledMemory<'_> {
    fn code(&self, address: u64, bytes: &mut [u8]) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let start = at & !(BLOCK as u64 - 1);
            let mut blocks = self.blocks.borrow_mut();
            let block = blocks.entry(start).or_insert_with(|| self.block(start));
            let Some(from) = usize::try_from(at - start).ok().and_then(|from| block.get(from..)).filter(|from| !from.is_empty()) else {
                break;
            };
            let count = from.len().min(bytes.len() - done);
            bytes[done..done + count].copy_from_slice(&from[..count]);
            done += count;
        }
        done
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
