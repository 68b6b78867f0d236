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

#[derive(Default)]
pub struct Codes {
    /// Numbers of files, by path.
    files: HashMap<String, u32>,
    in_files: HashMap<(u32, u64), Option<X86Plan>>,
    generated: HashMap<(Id, u64), Generated>,
}

struct Generated {
    bytes: [u8; CHECKED],
    plan: Option<X86Plan>,
}

impl Codes {
    /// The code around an address; `None` where it cannot be read or decoded.
    pub fn plan(&mut self, process: &LiveProcess, memory: &SampledMemory<'_>, address: u64) -> Option<&X86Plan> {
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
        self.in_files.entry((file, offset)).or_insert_with(|| X86.plan(memory, address)).as_ref()
    }

    /// The program may put other code at the same address, so the bytes are compared.
    fn generated(&mut self, process: Id, memory: &SampledMemory<'_>, address: u64) -> Option<&X86Plan> {
        let mut bytes = [0; CHECKED];
        memory.code(address, &mut bytes);
        if self.generated.len() > MOST {
            self.generated.clear();
        }
        let new = || Generated { bytes, plan: X86.plan(memory, address) };
        let kept = self.generated.entry((process, address)).or_insert_with(new);
        if kept.bytes != bytes {
            *kept = new();
        }
        kept.plan.as_ref()
    }
}
