//! Decoded code around samples, kept by file and offset; code that is in no file (just-in-time compiled) by process and address.

use super::memory::SampledMemory;
use crate::track::processes::LiveProcess;
use firsttouch_decode::{Memory, Walker, X86, X86Plan};
use firsttouch_model::rows::Id;
use std::collections::HashMap;

/// Plans kept. A plan takes some kilobytes; programs have a few thousand hot addresses.
const MOST: usize = 20_000;
/// Bytes at the sample by which replaced code is recognised.
const CHECKED: usize = 32;

/// What is known of the code at an address.
pub struct Code {
    /// `None` where it cannot be read or decoded.
    pub plan: Option<X86Plan>,
    /// The instruction before it is a system call.
    pub follows_system_call: bool,
}

impl Code {
    fn at(memory: &SampledMemory<'_>, address: u64) -> Self {
        Self { plan: X86.plan(memory, address), follows_system_call: memory.follows_system_call() }
    }
}

#[derive(Default)]
pub struct Codes {
    /// Numbers of files, by path.
    files: HashMap<String, u32>,
    in_files: HashMap<(u32, u64), Code>,
    generated: HashMap<(Id, u64), ([u8; CHECKED], Code)>,
}

impl Codes {
    /// The code around the sampled address.
    pub fn at(&mut self, process: &LiveProcess, memory: &SampledMemory<'_>, address: u64) -> &Code {
        let Some((path, offset)) = process.module_at(address) else { return self.generated(process.id, memory, address) };
        let file = match self.files.get(path) {
            Some(&file) => file,
            None => {
                let next = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
                *self.files.entry(path.to_owned()).or_insert(next)
            }
        };
        if self.in_files.len() > MOST {
            self.in_files.clear();
        }
        self.in_files.entry((file, offset)).or_insert_with(|| Code::at(memory, address))
    }

    /// The program may put other code at the same address, so the bytes are compared.
    fn generated(&mut self, process: Id, memory: &SampledMemory<'_>, address: u64) -> &Code {
        let mut bytes = [0; CHECKED];
        memory.code(address, &mut bytes);
        if self.generated.len() > MOST {
            self.generated.clear();
        }
        let kept = self.generated.entry((process, address)).or_insert_with(|| (bytes, Code::at(memory, address)));
        if kept.0 != bytes {
            *kept = (bytes, Code::at(memory, address));
        }
        &kept.1
    }
}
