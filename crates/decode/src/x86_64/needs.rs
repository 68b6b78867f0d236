//! Which loads matter: those whose values can reach an address. Reading the memory of another process costs a system call, and most values that a
//! loop loads are only computed with.

use super::path::Step;

/// Marks the steps whose values are needed. In a loop, values also reach addresses of the next round.
pub fn mark(ahead: &mut [Step]) {
    let (mut general, mut vector) = (0u16, 0u32);
    loop {
        let before = (general, vector);
        for step in ahead.iter_mut().rev() {
            // Spilled registers come back.
            let is_spill = step.writes_memory && step.vector_reads == 0;
            step.is_needed = step.writes & general != 0 || step.vector_writes & vector != 0 || is_spill;
            if step.is_needed {
                general |= step.reads;
                vector |= step.vector_reads;
            }
            for operand in &step.operands {
                for register in [operand.base, operand.index] {
                    let full = register.full_register();
                    if full.is_gpr() {
                        general |= 1 << full.number();
                    } else if full.is_vector_register() {
                        vector |= 1 << full.number();
                    }
                }
            }
        }
        if (general, vector) == before {
            return;
        }
    }
}
