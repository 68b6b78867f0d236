//! Decoded code around samples, kept by file and offset; code that is in no file (just-in-time compiled) by process and address.

use super::memory::SampledMemory;
use crate::track::processes::LiveProcess;
use firsttouch_decode::{Memory, Walker, X86, X86Plan};
use firsttouch_model::rows::Id;
use hashbrown::HashMap;

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
    /// By instruction, another one in the same loop whose plan is known.
    members: HashMap<(u32, u64), u64>,
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
            self.members.clear();
        }
        if !self.in_files.contains_key(&(file, offset)) {
            let code = self.beside(file, offset, memory).unwrap_or_else(|| self.searched((file, offset), memory, address));
            self.in_files.insert((file, offset), code);
        }
        &self.in_files[&(file, offset)]
    }

    fn searched(&mut self, (file, offset): (u32, u64), memory: &SampledMemory<'_>, address: u64) -> Code {
        let code = Code::at(memory, address);
        if let Some(plan) = &code.plan {
            let in_file = |member: u64| offset.wrapping_add(member.wrapping_sub(plan.start()));
            self.members.extend(X86.members(plan).into_iter().map(|member| ((file, in_file(member)), offset)));
        }
        code
    }

    /// From the plan of another instruction in the same loop.
    fn beside(&self, file: u32, offset: u64, memory: &SampledMemory<'_>) -> Option<Code> {
        let known = *self.members.get(&(file, offset))?;
        let plan = self.in_files.get(&(file, known))?.plan.as_ref()?;
        let plan = X86.plan_beside(plan, plan.start().wrapping_add(offset.wrapping_sub(known)))?;
        Some(Code { plan: Some(plan), follows_system_call: memory.follows_system_call() })
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
