//! How many rounds are left before a loop ends: by the comparison that its last branch tests.
//!
//! Compilers test at the bottom of a loop whether it goes on. What is compared, less what it is compared with, grows by the same amount in each
//! round and reaches zero, or passes it, in the last one.

use super::forward::Data;
use super::numbers::sign_extended;
use super::path::Step;
use super::state::State;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};

/// The address of the instruction that sets the flags of the last branch of a loop. `None` where that branch is not conditional, and where
/// other code than a comparison or a count sets them.
pub fn comparison(ahead: &[Step], end: u64) -> Option<u64> {
    let at = ahead.iter().position(|step| step.instruction.ip() == end)?;
    if ahead[at].instruction.flow_control() != FlowControl::ConditionalBranch {
        return None;
    }
    let before = (1..ahead.len()).map(|back| &ahead[(at + ahead.len() - back) % ahead.len()]);
    let setter = before.take_while(|step| !step.is_inner).find(|step| step.instruction.rflags_modified() != 0)?;
    let is_distance = matches!(
        setter.instruction.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Sub | Mnemonic::Dec | Mnemonic::Add | Mnemonic::Inc | Mnemonic::Test
    );
    (is_distance && setter.forget == 0).then(|| setter.instruction.ip())
}

/// What the comparison compares, as a distance from zero. `before`, `after`: the registers before and after the instruction.
pub fn distance(instruction: &Instruction, before: &State, after: &State, data: &Data<'_>) -> Option<i64> {
    let bytes = match instruction.op_kind(0) {
        OpKind::Register => instruction.op_register(0).size(),
        _ => instruction.memory_size().size(),
    };
    let value = |index: u32| match instruction.try_op_kind(index).ok()? {
        OpKind::Register => before.get(instruction.op_register(index)),
        OpKind::Memory => data.on_stack(before, instruction),
        _ => instruction.try_immediate(index).ok(),
    };
    let is_register = instruction.op_kind(0) == OpKind::Register;
    let distance = match instruction.mnemonic() {
        Mnemonic::Cmp => value(0)?.wrapping_sub(value(1)?),
        Mnemonic::Test
            if is_register && instruction.op_kind(1) == OpKind::Register && instruction.op_register(0) == instruction.op_register(1) =>
        {
            value(0)?
        }
        Mnemonic::Sub | Mnemonic::Dec | Mnemonic::Add | Mnemonic::Inc if is_register => after.get(instruction.op_register(0))?,
        _ => return None,
    };
    Some(sign_extended(distance, bytes).cast_signed())
}

/// Rounds until the distance is zero, from its values in two successive rounds.
pub fn rounds_left(one: i64, next: i64) -> Option<u64> {
    let step = i128::from(next) - i128::from(one);
    let ends = one == 0 || (step != 0 && (one < 0) == (step > 0));
    if !ends || step == 0 {
        return None;
    }
    u64::try_from(i128::from(one).unsigned_abs() / step.unsigned_abs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check counts up and down, steps that pass zero, and distances that never reach it.
    #[test]
    fn rounds_until_zero() {
        for (one, next, left) in [(-80, -72, Some(10)), (5, 4, Some(5)), (0, 8, Some(0)), (-7, -3, Some(1)), (8, 16, None), (-8, -8, None)]
        {
            assert_eq!(rounds_left(one, next), left, "{one} {next}");
        }
        assert_eq!(rounds_left(i64::MIN, i64::MAX), Some(0));
    }
}
