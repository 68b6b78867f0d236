//! What the registers were before an instruction: constant steps are undone, all else that it writes becomes unknown.

use super::path::Step;
use super::state::State;
use iced_x86::{FlowControl, Mnemonic, OpKind, Register};

/// Carries the state from behind an instruction to before it.
pub fn undo(state: &mut State, step: &Step) {
    state.forget(step.forget);
    state.vectors.forget_all();
    let instruction = &step.instruction;
    if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
        return state.call();
    }
    let stack = state.stack_pointer();
    if let Some((register, difference)) = constant_step(step) {
        let before = state.get(register).map(|value| value.wrapping_sub(difference));
        return state.set(register, before);
    }
    state.forget(step.writes);
    if instruction.stack_pointer_increment() != 0 {
        let before = stack.map(|top| top.wrapping_add_signed(-i64::from(instruction.stack_pointer_increment())));
        state.set(Register::RSP, before);
    }
}

/// The 64-bit register that an instruction changes by a constant, and by how much. (32-bit results lose the upper half.)
fn constant_step(step: &Step) -> Option<(Register, u64)> {
    let instruction = &step.instruction;
    if instruction.op_count() == 0 || instruction.op_kind(0) != OpKind::Register {
        return None;
    }
    let register = instruction.op_register(0);
    if !register.is_gpr64() {
        return None;
    }
    let is_constant = instruction.op_count() == 2 && !matches!(instruction.op_kind(1), OpKind::Register | OpKind::Memory);
    let constant = || instruction.try_immediate(1).ok().filter(|_| is_constant);
    let difference = match instruction.mnemonic() {
        Mnemonic::Add => constant()?,
        Mnemonic::Sub => constant()?.wrapping_neg(),
        Mnemonic::Inc => 1,
        Mnemonic::Dec => u64::MAX,
        Mnemonic::Lea if instruction.memory_base() == register && instruction.memory_index() == Register::None => {
            instruction.memory_displacement64()
        }
        _ => return None,
    };
    Some((register, difference))
}
