//! String instructions.

use iced_x86::Instruction;

/// Whether the instruction repeats itself: it is a loop of its own.
pub fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// Bytes of one element of a string instruction.
pub fn element(instruction: &Instruction) -> usize {
    instruction.memory_size().size().max(1)
}
