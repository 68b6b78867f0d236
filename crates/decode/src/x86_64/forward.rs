//! What an instruction computes. An instruction that is not understood makes what it writes unknown: never a wrong value.

use super::numbers::{low_bits, sign_extended};
use super::path::Step;
use super::state::State;
use super::strings::element;
use super::vectors::{self, WIDEST};
use crate::Memory;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Below the stack pointer lies the red zone; above it, so many bytes are taken for the frame of this and of calling functions.
const RED_ZONE: u64 = 128;
const FRAMES: u64 = 16 << 10;

/// The memory that emulated instructions see: what they stored themselves, else the stack as sampled, else data as they are now.
pub struct Data<'a> {
    memory: &'a dyn Memory,
    stack_pointer: u64,
    /// The end of this function's frame, where code keeps a frame pointer.
    frame_end: Option<u64>,
    /// Address, bytes and value, if it is known, of what was stored, in order.
    stores: Vec<(u64, usize, Option<u64>)>,
    /// Added to addresses relative to the instruction pointer.
    pub bias: u64,
}

impl<'a> Data<'a> {
    pub fn new(memory: &'a dyn Memory, stack_pointer: u64, bias: u64) -> Self {
        Self { memory, stack_pointer, frame_end: None, stores: Vec::new(), bias }
    }

    /// Takes rbp for a frame pointer if it points into the stack. Above the saved rbp and the return address begin the frames of callers.
    pub fn with_frame_pointer(mut self, rbp: u64) -> Self {
        let is_in_stack = rbp.wrapping_sub(self.stack_pointer) < FRAMES && rbp.is_multiple_of(8);
        self.frame_end = is_in_stack.then(|| rbp.wrapping_add(16));
        self
    }

    pub fn is_stack(&self, address: u64) -> bool {
        address.wrapping_sub(self.stack_pointer.wrapping_sub(RED_ZONE)) < RED_ZONE + FRAMES
    }

    /// Up to 8 bytes as a number, extended with zeros.
    fn load(&self, address: u64, bytes: usize) -> Option<u64> {
        if bytes == 0 || bytes > 8 {
            return None;
        }
        let overlaps = |store: &&(u64, usize, Option<u64>)| {
            store.0.wrapping_sub(address) < bytes as u64 || address.wrapping_sub(store.0) < store.1 as u64
        };
        if let Some((at, stored, value)) = self.stores.iter().rev().find(overlaps) {
            return value.filter(|_| *at == address && *stored >= bytes).map(|value| value & low_bits(bytes));
        }
        let mut buffer = [0; 8];
        self.read(address, &mut buffer[..bytes]).then(|| u64::from_le_bytes(buffer))
    }

    /// The operand of an instruction in memory, if it lies on the stack, as it was when the sample was taken.
    pub fn on_stack(&self, state: &State, instruction: &Instruction) -> Option<u64> {
        let address = memory_address(state, instruction, self.bias).filter(|address| self.is_stack(*address))?;
        self.load(address, instruction.memory_size().size())
    }

    /// A counter on the stack: each of the two emulated rounds stored it once, with the same step. Returns its value when the sample was taken, and that step.
    pub fn counter_on_stack(&self) -> Option<(u64, i64)> {
        let stored = |address: u64| self.stores.iter().filter(move |store| store.0 == address);
        self.stores.iter().find_map(|&(address, bytes, first)| {
            let mut all = stored(address);
            let (_, second, None) = (all.next()?, all.next()?, all.next()) else { return None };
            if !self.is_stack(address) || second.1 != bytes || !matches!(bytes, 4 | 8) {
                return None;
            }
            let mut buffer = [0; 8];
            let value = self.memory.then(address, &mut buffer[..bytes]).then(|| u64::from_le_bytes(buffer))?;
            let step = |from: u64, to: u64| sign_extended(to.wrapping_sub(from) & low_bits(bytes), bytes).cast_signed();
            let (one, two) = (step(value, first?), step(first?, second.2?));
            (one == two && one != 0).then_some((value, one))
        })
    }

    fn load_vector(&self, address: u64, bytes: usize) -> Option<[u8; WIDEST]> {
        let overlaps = |store: &(u64, usize, Option<u64>)| {
            store.0.wrapping_sub(address) < bytes as u64 || address.wrapping_sub(store.0) < store.1 as u64
        };
        let mut buffer = [0; WIDEST];
        let part = buffer.get_mut(..bytes).filter(|_| !self.stores.iter().any(overlaps))?;
        self.read(address, part).then_some(buffer)
    }

    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        // This function's part of the stack has changed since the sample was taken. Data of its callers are like other data: what points to
        // arrays (descriptors, captured variables) hardly changes.
        let is_of_callers = self.frame_end.is_some_and(|end| address >= end);
        self.memory.then(address, buffer) || ((!self.is_stack(address) || is_of_callers) && self.memory.now(address, buffer))
    }

    fn store(&mut self, address: Option<u64>, bytes: usize, value: Option<u64>) {
        // A store to an unknown address is taken for one to other data than what is loaded here: compilers keep spilled registers and
        // indices in places of their own.
        if let Some(address) = address {
            self.stores.push((address, bytes, value.filter(|_| bytes <= 8)));
        }
    }
}

/// Carries the state over one instruction.
pub fn step(state: &mut State, step: &Step, data: &mut Data<'_>) {
    let instruction = &step.instruction;
    match instruction.flow_control() {
        FlowControl::Call | FlowControl::IndirectCall => state.call(),
        _ => execute(state, step, data),
    }
    state.forget(step.forget);
    if step.forget_vectors {
        state.vectors.forget_all();
    }
}

fn execute(state: &mut State, step: &Step, data: &mut Data<'_>) {
    let instruction = &step.instruction;
    if instruction.is_string_instruction() {
        return string(state, step, data);
    }
    let address = memory_address(state, instruction, data.bias);
    let bytes = instruction.memory_size().size();
    if instruction.op_count() > 0 && instruction.op_register(0).is_vector_register() && instruction.op_kind(0) == OpKind::Register {
        let load = |needed| data.load_vector(address?, needed);
        let value = if step.is_needed { vectors::result(instruction, &state.vectors, load) } else { None };
        return state.vectors.set(instruction.op_register(0), value);
    }
    let in_memory = if step.is_needed && reads_memory(instruction) { address.and_then(|address| data.load(address, bytes)) } else { None };
    if instruction.mnemonic() == Mnemonic::Push {
        let value = operand(state, instruction, 0, in_memory);
        let top = state.stack_pointer().map(|top| top.wrapping_sub(instruction.stack_pointer_increment().unsigned_abs().into()));
        state.set(Register::RSP, top);
        return data.store(top, 8, value);
    }
    if instruction.mnemonic() == Mnemonic::Pop && instruction.op_kind(0) == OpKind::Register {
        let value = state.stack_pointer().and_then(|top| data.load(top, instruction.op_register(0).size()));
        state.set(instruction.op_register(0), value);
        if instruction.op_register(0) != Register::RSP {
            move_stack_pointer(state, instruction);
        }
        return;
    }
    match compute(state, instruction, in_memory, data.bias) {
        Effect::Nothing => {}
        Effect::Value(value) => match instruction.op_kind(0) {
            OpKind::Register if instruction.op_register(0).is_gpr() => state.set(instruction.op_register(0), value),
            OpKind::Memory => data.store(address, bytes, value),
            _ => forget_writes(state, step),
        },
        Effect::Register(register, value) => state.set(register, value),
        Effect::Unknown => {
            if (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory) && step.writes_memory {
                data.store(address, bytes, None);
            }
            forget_writes(state, step);
            state.vectors.forget(step.vector_writes);
            move_stack_pointer(state, instruction);
        }
    }
}

/// One element of a string instruction: the pointers step over it (the direction flag is clear in compiled code), a repetition counts down.
fn string(state: &mut State, step: &Step, data: &mut Data<'_>) {
    let instruction = &step.instruction;
    let bytes = element(instruction);
    let pointers = [Register::RSI, Register::RDI].map(|register| (register, state.get(register)));
    let count = state.get(Register::RCX);
    if step.writes_memory {
        data.store(pointers[1].1, bytes, None);
    }
    state.forget(step.writes);
    for (register, pointer) in pointers {
        if step.writes >> register.number() & 1 == 1 {
            state.set(register, pointer.map(|pointer| pointer.wrapping_add(bytes as u64)));
        }
    }
    if instruction.has_rep_prefix() || instruction.has_repne_prefix() {
        state.set(Register::RCX, count.map(|count| count.wrapping_sub(1)));
    }
}

fn forget_writes(state: &mut State, step: &Step) {
    let stack = state.stack_pointer();
    state.forget(step.writes);
    // What an instruction adds to the stack pointer is known, and applied by its caller.
    if step.instruction.stack_pointer_increment() != 0 {
        state.set(Register::RSP, stack);
    }
}

fn move_stack_pointer(state: &mut State, instruction: &Instruction) {
    let increment = i64::from(instruction.stack_pointer_increment());
    if increment != 0 {
        let moved = state.stack_pointer().map(|top| top.wrapping_add_signed(increment));
        state.set(Register::RSP, moved);
    }
}

enum Effect {
    /// Only flags change.
    Nothing,
    /// Of the first operand.
    Value(Option<u64>),
    Register(Register, Option<u64>),
    Unknown,
}

fn compute(state: &State, instruction: &Instruction, in_memory: Option<u64>, bias: u64) -> Effect {
    use Mnemonic as M;
    let value = |index: u32| operand(state, instruction, index, in_memory);
    let size = |index: u32| match instruction.op_kind(index) {
        OpKind::Register => instruction.op_register(index).size(),
        _ => instruction.memory_size().size(),
    };
    let (first, second) = (value(0), value(1));
    let count = |bits: Option<u64>| bits.map(|bits| bits as u32 & if size(0) == 8 { 63 } else { 31 });
    let with = |function: fn(u64, u64) -> u64| Effect::Value(first.zip(second).map(|(a, b)| function(a, b)));
    let is_same = || instruction.op_kind(1) == OpKind::Register && instruction.op_register(0) == instruction.op_register(1);
    match instruction.mnemonic() {
        M::Cmp | M::Test | M::Bt | M::Nop | M::Endbr64 | M::Pause | M::Lfence | M::Sfence | M::Mfence | M::Vzeroupper => Effect::Nothing,
        _ if instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near() => Effect::Nothing,
        M::Prefetcht0 | M::Prefetcht1 | M::Prefetcht2 | M::Prefetchnta | M::Prefetchw => Effect::Nothing,
        M::Mov | M::Movzx => Effect::Value(second),
        M::Movsx | M::Movsxd => Effect::Value(second.map(|value| sign_extended(value, size(1)))),
        M::Lea => Effect::Value(effective(state, instruction, bias)),
        M::Xor | M::Sub if is_same() => Effect::Value(Some(0)),
        M::Add => with(u64::wrapping_add),
        M::Sub => with(u64::wrapping_sub),
        M::And => with(|a, b| a & b),
        M::Or => with(|a, b| a | b),
        M::Xor => with(|a, b| a ^ b),
        M::Andn => Effect::Value(second.zip(value(2)).map(|(a, b)| !a & b)),
        M::Inc => Effect::Value(first.map(|value| value.wrapping_add(1))),
        M::Dec => Effect::Value(first.map(|value| value.wrapping_sub(1))),
        M::Neg => Effect::Value(first.map(u64::wrapping_neg)),
        M::Not => Effect::Value(first.map(|value| !value)),
        M::Shl => Effect::Value(first.zip(count(second)).map(|(value, by)| value << by)),
        M::Shr => Effect::Value(first.zip(count(second)).map(|(value, by)| value >> by)),
        M::Sar => Effect::Value(first.zip(count(second)).map(|(value, by)| arithmetic_shift(value, size(0), by))),
        M::Shlx => Effect::Value(second.zip(count(value(2))).map(|(value, by)| value << by)),
        M::Shrx => Effect::Value(second.zip(count(value(2))).map(|(value, by)| value >> by)),
        M::Sarx => Effect::Value(second.zip(count(value(2))).map(|(value, by)| arithmetic_shift(value, size(0), by))),
        M::Imul if instruction.op_count() == 2 => with(u64::wrapping_mul),
        M::Imul if instruction.op_count() == 3 => Effect::Value(second.zip(value(2)).map(|(a, b)| a.wrapping_mul(b))),
        M::Cdqe => Effect::Register(Register::RAX, state.get(Register::EAX).map(|value| sign_extended(value, 4))),
        M::Cwde => Effect::Register(Register::EAX, state.get(Register::AX).map(|value| sign_extended(value, 2))),
        M::Cqo => Effect::Register(Register::RDX, state.get(Register::RAX).map(|value| (value >> 63).wrapping_neg())),
        M::Cdq => Effect::Register(Register::EDX, state.get(Register::EAX).map(|value| (value >> 31).wrapping_neg())),
        _ => Effect::Unknown,
    }
}

fn arithmetic_shift(value: u64, bytes: usize, by: u32) -> u64 {
    (sign_extended(value, bytes).cast_signed() >> by).cast_unsigned()
}

fn operand(state: &State, instruction: &Instruction, index: u32, in_memory: Option<u64>) -> Option<u64> {
    match instruction.try_op_kind(index).ok().filter(|_| index < instruction.op_count())? {
        OpKind::Register => state.get(instruction.op_register(index)),
        OpKind::Memory => in_memory,
        _ => instruction.try_immediate(index).ok(),
    }
}

/// Whether the first operand's old value, or another operand, is read from memory.
fn reads_memory(instruction: &Instruction) -> bool {
    let is_memory = |index: u32| index < instruction.op_count() && instruction.op_kind(index) == OpKind::Memory;
    (1..instruction.op_count()).any(is_memory) || (is_memory(0) && instruction.mnemonic() != Mnemonic::Mov)
}

/// What the addressing form of the instruction adds up to.
fn effective(state: &State, instruction: &Instruction, bias: u64) -> Option<u64> {
    let displacement = instruction.memory_displacement64().wrapping_add(if instruction.is_ip_rel_memory_operand() { bias } else { 0 });
    sum(state, instruction.memory_base(), instruction.memory_index(), instruction.memory_index_scale(), displacement)
}

/// The address of the memory operand; `None` where it has none, where a register is not known, and for segments of threads.
fn memory_address(state: &State, instruction: &Instruction, bias: u64) -> Option<u64> {
    if !(0..instruction.op_count()).any(|index| instruction.op_kind(index) == OpKind::Memory)
        || matches!(instruction.memory_segment(), Register::FS | Register::GS)
    {
        return None;
    }
    effective(state, instruction, bias)
}

/// base + index * scale + displacement. Of addresses relative to the instruction pointer, the displacement is the whole address.
pub fn sum(state: &State, base: Register, index: Register, scale: u32, displacement: u64) -> Option<u64> {
    let part = |register: Register| match register {
        Register::None | Register::RIP | Register::EIP => Some(0),
        register => state.get(register),
    };
    Some(part(base)?.wrapping_add(part(index)?.wrapping_mul(scale.into())).wrapping_add(displacement))
}
