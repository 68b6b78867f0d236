//! Which registers are known, and their values.

use super::numbers::low_bits;
use super::vectors::Vectors;
use crate::Registers;
use iced_x86::Register;

/// Number of rsp.
const STACK_POINTER: usize = 4;
/// Registers that a called function may change (System V ABI): rax, rcx, rdx, rsi, rdi, r8 to r11.
pub const CALLER_SAVED: u16 = 0b0000_1111_1100_0111;

/// Registers as emulation knows them. A register is known as a whole or not at all.
#[derive(Clone, Debug, Default)]
pub struct State {
    values: [u64; 16],
    known: u16,
    pub vectors: Vectors,
}

impl State {
    pub fn new(registers: &Registers) -> Self {
        Self { values: registers.general, known: u16::MAX, vectors: Vectors::default() }
    }

    pub fn is_known(&self, number: usize) -> bool {
        self.known >> number & 1 == 1
    }

    /// The whole register, if it is known.
    pub fn whole(&self, number: usize) -> Option<u64> {
        self.is_known(number).then(|| self.values[number])
    }

    pub fn stack_pointer(&self) -> Option<u64> {
        self.whole(STACK_POINTER)
    }

    /// The value of a general register or of its low part, extended with zeros.
    pub fn get(&self, register: Register) -> Option<u64> {
        if !register.is_gpr() || is_high_byte(register) {
            return None;
        }
        self.whole(register.full_register().number()).map(|value| value & low_bits(register.size()))
    }

    /// Writes a register or its low part as the processor does: 32-bit writes clear the upper half, smaller ones keep the rest.
    pub fn set(&mut self, register: Register, value: Option<u64>) {
        if !register.is_gpr() {
            return;
        }
        let number = register.full_register().number();
        let bits = low_bits(register.size());
        self.values[number] = match value {
            Some(value) if register.size() >= 4 => value & bits,
            Some(value) if self.is_known(number) && !is_high_byte(register) => self.values[number] & !bits | value & bits,
            _ => return self.forget(1 << number),
        };
        self.known |= 1 << number;
    }

    /// Makes registers unknown, by a mask of their numbers.
    pub fn forget(&mut self, mask: u16) {
        self.known &= !mask;
    }

    /// What a call leaves behind: the stack pointer and the registers that the callee must keep.
    pub fn call(&mut self) {
        self.forget(CALLER_SAVED);
        self.vectors.forget_all();
    }
}

fn is_high_byte(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that parts of registers are read and written as the processor does.
    #[test]
    fn parts_of_registers() {
        let mut state = State::new(&Registers { general: [u64::MAX; 16], ..Registers::default() });
        assert_eq!(state.get(Register::EAX), Some(0xffff_ffff));
        state.set(Register::AX, Some(0x1234));
        assert_eq!(state.get(Register::RAX), Some(0xffff_ffff_ffff_1234));
        state.set(Register::EAX, Some(7));
        assert_eq!(state.get(Register::RAX), Some(7));
        state.set(Register::AH, Some(1));
        assert_eq!(state.get(Register::RAX), None);
        state.set(Register::AL, Some(1));
        assert_eq!(state.get(Register::AL), None, "the rest of the register is not known");
        state.set(Register::R9D, None);
        assert_eq!(state.get(Register::R9), None);
        state.call();
        for (register, is_kept) in [(Register::RBX, true), (Register::RSP, true), (Register::R12, true), (Register::RCX, false)] {
            assert_eq!(state.get(register).is_some(), is_kept, "{register:?}");
        }
    }
}
