//! Code that a test assembles, and walks over it.

use crate::process::{CODE, Process, STACK};
use firsttouch_decode::{Operand, Registers, Walk, Walker, X86};
use iced_x86::IcedError;
use iced_x86::code_asm::CodeAssembler;

pub const RAX: usize = 0;
pub const RCX: usize = 1;
pub const RDX: usize = 2;
pub const RBX: usize = 3;
pub const RSI: usize = 6;
pub const RDI: usize = 7;

/// Assembled code: each instruction's address.
pub struct Code {
    pub process: Process,
    pub at: Vec<u64>,
}

/// Assembles code at [`CODE`].
pub fn code(build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Code {
    let mut assembler = CodeAssembler::new(64).unwrap();
    build(&mut assembler).unwrap();
    let bytes = assembler.assemble(CODE).unwrap();
    let mut at = Vec::new();
    for instruction in &mut iced_x86::Decoder::with_ip(64, &bytes, CODE, 0) {
        at.push(instruction.ip());
    }
    Code { process: Process { code: bytes, ..Process::default() }, at }
}

impl Code {
    pub fn walk(&self, index: usize, set: &[(usize, u64)]) -> Walk {
        let mut registers = Registers { instruction_pointer: self.at[index], ..Registers::default() };
        registers.general[4] = STACK;
        set.iter().for_each(|(register, value)| registers.general[*register] = *value);
        let plan = X86.plan(&self.process, self.at[index]).expect("there is an instruction");
        let walk = X86.walk(&plan, &registers, &self.process);
        // The plans of other instructions of the same loop lead to the same plan.
        for other in self.at.iter().filter_map(|at| X86.plan(&self.process, *at)) {
            let beside = X86.plan_beside(&other, self.at[index]);
            assert_eq!(beside.is_some(), X86.members(&other).contains(&self.at[index]));
            let again = beside.map(|plan| X86.walk(&plan, &registers, &self.process));
            assert!(again.as_ref().is_none_or(|again| *again == walk), "sampled at {index}: {again:#?} and {walk:#?}");
        }
        walk
    }

    /// Addresses by instruction index.
    pub fn addresses(&self, walk: &Walk) -> Vec<(usize, u64)> {
        let index = |operand: &Operand| self.at.iter().position(|at| *at == operand.instruction).expect("an instruction of the code");
        let mut list: Vec<(usize, u64)> = walk.operands.iter().map(|operand| (index(operand), operand.address)).collect();
        list.sort_unstable();
        list
    }
}
