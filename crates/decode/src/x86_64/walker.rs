//! The addresses of the operands around a sample.

use super::backward::undo;
use super::forward::{self, Data};
use super::needs;
use super::origins::Origins;
use super::path::{self, MemoryOperand, Plan, Step};
use super::rest;
use super::state::State;
use super::strings::is_repeated;
use super::vectors::indices;
use crate::{Access, Induction, Loop, Memory, Operand, Reach, Registers, Walk, Walker};
use iced_x86::Register;

/// x86-64 under the System V ABI.
#[derive(Clone, Copy, Debug, Default)]
pub struct X86;

impl Walker for X86 {
    type Plan = Plan;

    fn plan(&self, memory: &dyn Memory, instruction_pointer: u64) -> Option<Plan> {
        let mut plan = path::plan(memory, instruction_pointer)?;
        needs::mark(&mut plan.ahead);
        Some(plan)
    }

    fn members(&self, plan: &Plan) -> Vec<u64> {
        plan.members().collect()
    }

    fn plan_beside(&self, plan: &Plan, instruction_pointer: u64) -> Option<Plan> {
        plan.beside(instruction_pointer)
    }

    fn walk(&self, plan: &Plan, registers: &Registers, memory: &dyn Memory) -> Walk {
        let bias = registers.instruction_pointer.wrapping_sub(plan.start);
        let mut data = Data::new(memory, registers.general[4], bias);
        if plan.has_frame_pointer() {
            data = data.with_frame_pointer(registers.general[5]);
        }
        let start = State::new(registers);
        let (mut state, mut origins) = (start.clone(), Origins::default());
        let (mut found, first) = round(plan, &mut state, &mut data, &mut origins);
        if !plan.is_loop {
            return straight(plan, found, start, &data);
        }
        let once = state.clone();
        let (next, second) = round(plan, &mut state, &mut data, &mut origins);
        for (one, other) in found.iter_mut().zip(next) {
            one.followed_by(other);
        }
        behind_in_loop(plan, &mut found, start.clone(), &data);
        let mut walk = Walk::default();
        found.into_iter().for_each(|one| one.add_to(&mut walk));
        let progress = Progress::of(&start, &once, &state, &origins, &data);
        let is_waiting = plan.has_pause
            || (progress.induction.is_none()
                && !walk.operands.is_empty()
                && walk.unknown == 0
                && walk.operands.iter().all(|one| one.stride == Some(0) && one.access == Access::Read));
        // This round's comparison is over, so the emulation meets that of the next round first.
        let is_past = plan.comparison.is_some_and(|comparison| comparison < plan.start);
        walk.around = Some(Loop {
            end: plan.end.wrapping_add(bias),
            entry: progress.entry,
            induction: progress.induction,
            left: first.zip(second).and_then(|(first, second)| rest::rounds_left(first, second)).map(|left| left + u64::from(is_past)),
            is_waiting,
        });
        walk
    }
}

/// The operands of an instruction's memory accesses: one for a scalar access, one for each lane of a gather.
#[derive(Default)]
struct Found {
    operands: Vec<Operand>,
    unknown: u32,
    unknown_gathers: u32,
    /// The address of the instruction.
    instruction: u64,
}

impl Found {
    fn of(step: &Step, state: &State, data: &Data<'_>, reach: Reach) -> Self {
        let instruction = step.instruction.ip().wrapping_add(data.bias);
        let mut found = Self { instruction, ..Self::default() };
        if step.is_inner {
            return found;
        }
        for operand in &step.operands {
            let before = found.operands.len();
            found.operands.extend(addresses(operand, state, data).into_iter().map(|address| Operand {
                instruction,
                address,
                bytes: operand.bytes,
                access: operand.access,
                reach,
                stride: None,
                is_fixed: operand.base == Register::None && operand.index == Register::None,
                is_stack: operand.base == Register::RSP || data.is_stack(address),
                is_repeated: is_repeated(&step.instruction),
            }));
            if found.operands.len() == before {
                found.unknown += 1;
                found.unknown_gathers += u32::from(operand.lanes.is_some());
            }
        }
        found
    }

    fn is_better_than(&self, other: &Self) -> bool {
        self.unknown < other.unknown
    }

    /// Whether it reads other memory than the stack and what the code itself has the address of.
    fn reads_data(&self) -> bool {
        let is_data = |one: &Operand| one.access != Access::Write && !one.is_stack && !one.is_fixed;
        self.unknown > 0 || self.operands.iter().any(is_data)
    }

    /// Takes in the next round: the strides, and the addresses where this round has none.
    fn followed_by(&mut self, next: Self) {
        if next.is_better_than(self) {
            *self = next;
        } else if self.unknown == next.unknown && self.operands.len() == next.operands.len() {
            for (now, then) in self.operands.iter_mut().zip(&next.operands) {
                now.stride = Some(then.address.wrapping_sub(now.address).cast_signed());
            }
        }
    }

    fn add_to(self, walk: &mut Walk) {
        walk.operands.extend(self.operands);
        walk.unknown += self.unknown;
        walk.unknown_at.extend((0..self.unknown).map(|_| self.instruction));
        walk.unknown_gathers += self.unknown_gathers;
    }
}

/// The addresses of an operand: one, or one for each lane of a gather. Empty if a register is not known.
fn addresses(operand: &MemoryOperand, state: &State, data: &Data<'_>) -> Vec<u64> {
    let bias = if operand.is_relative { data.bias } else { 0 };
    let displacement = operand.displacement.wrapping_add(bias);
    let Some((bytes, lanes)) = operand.lanes else {
        return forward::sum(state, operand.base, operand.index, operand.scale, displacement).into_iter().collect();
    };
    let base = forward::sum(state, operand.base, Register::None, 1, displacement);
    let Some((base, index)) = base.zip(state.vectors.get(operand.index)) else { return Vec::new() };
    indices(index, bytes, lanes).map(|index| base.wrapping_add(index.wrapping_mul(operand.scale.into()))).collect()
}

/// Emulates the instructions ahead once. Also returns what the comparison at the end of the loop compares.
fn round(plan: &Plan, state: &mut State, data: &mut Data<'_>, origins: &mut Origins) -> (Vec<Found>, Option<i64>) {
    let mut distance = None;
    let each = plan.ahead.iter().enumerate().map(|(index, step)| {
        let found = Found::of(step, state, data, if index == 0 { Reach::Here } else { Reach::Ahead });
        origins.follow(step, found.reads_data() || step.is_inner && !step.operands.is_empty());
        if plan.comparison == Some(step.instruction.ip()) {
            let before = state.clone();
            forward::step(state, step, data);
            distance = rest::distance(&step.instruction, &before, state, data);
        } else {
            forward::step(state, step, data);
        }
        found
    });
    (each.collect(), distance)
}

fn straight(plan: &Plan, ahead: Vec<Found>, start: State, data: &Data<'_>) -> Walk {
    let mut walk = Walk::default();
    ahead.into_iter().for_each(|one| one.add_to(&mut walk));
    let mut state = start;
    for step in &plan.behind {
        undo(&mut state, step);
        Found::of(step, &state, data, Reach::Behind).add_to(&mut walk);
    }
    walk
}

/// In a loop, what lies before the sampled instruction has this round's addresses by undoing, and only the next round's by emulation.
fn behind_in_loop(plan: &Plan, found: &mut [Found], start: State, data: &Data<'_>) {
    let mut state = start;
    for (step, ahead) in plan.ahead.iter().zip(found).skip(1).rev() {
        undo(&mut state, step);
        let mut behind = Found::of(step, &state, data, Reach::Behind);
        let comes_before = step.instruction.ip() < plan.start;
        if behind.is_better_than(ahead) || (comes_before && behind.unknown == ahead.unknown) {
            if behind.operands.len() == ahead.operands.len() {
                behind.operands.iter_mut().zip(&ahead.operands).for_each(|(to, from)| to.stride = from.stride);
            }
            *ahead = behind;
        }
    }
}

/// How registers change from round to round.
struct Progress {
    entry: u64,
    induction: Option<Induction>,
}

impl Progress {
    /// Chooses the counter of the loop: first a register that each round computes from its own value, then a counter on the stack (where code without
    /// optimisation keeps it), then a register that each round computes from such a counter. A register that each round loads from an array never counts: the
    /// index of a gather may have the same step in both rounds by chance.
    fn of(start: &State, once: &State, twice: &State, origins: &Origins, data: &Data<'_>) -> Self {
        let (mut entry, mut own, mut made) = (0u64, None, None);
        for number in 0..16u8 {
            let at = |state: &State| state.whole(number.into());
            let (Some(value), Some(first), Some(second)) = (at(start), at(once), at(twice)) else { continue };
            let (one, two) = (first.wrapping_sub(value), second.wrapping_sub(first));
            if one == 0 && two == 0 {
                // Of a register and its number, mixed with what came before (the constant is that of Fibonacci hashing).
                entry = (entry ^ value.rotate_left(number.into())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            } else if one == two {
                let induction = || Induction { register: number, value, step: one.cast_signed() };
                if origins.is_own(number) {
                    own = own.or_else(|| Some(induction()));
                } else if !origins.is_of_data(number) {
                    made = made.or_else(|| Some(induction()));
                }
            }
        }
        let on_stack = || data.counter_on_stack().map(|(value, step)| Induction { register: Induction::ON_STACK, value, step });
        Self { entry, induction: own.or_else(on_stack).or(made) }
    }
}
