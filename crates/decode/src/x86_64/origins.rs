//! What the values of registers are made of, in the rounds of a loop that were emulated.

use super::path::Step;

/// A value that was loaded from other memory than the stack.
const DATA: u32 = 1 << 16;

/// Of each register: the registers at the start, by bits of their numbers, and [`DATA`].
#[derive(Clone, Debug)]
pub struct Origins([u32; 16]);

impl Default for Origins {
    fn default() -> Self {
        Self(std::array::from_fn(|number| 1 << number))
    }
}

impl Origins {
    /// Goes on over one instruction, which reads data or does not.
    pub fn follow(&mut self, step: &Step, reads_data: bool) {
        let of = |mask: u16| (0..16).filter(move |number| mask >> number & 1 == 1);
        let sum = of(step.reads).fold(if reads_data { DATA } else { 0 }, |sum, number| sum | self.0[number]);
        of(step.writes).for_each(|number| self.0[number] = sum);
    }

    /// Whether a register's value is made of the one that it had at the start.
    pub fn is_own(&self, number: u8) -> bool {
        self.0.get(usize::from(number)).is_some_and(|origins| origins >> number & 1 == 1)
    }

    /// Whether its value is made of what was loaded from an array.
    pub fn is_of_data(&self, number: u8) -> bool {
        self.0.get(usize::from(number)).is_some_and(|origins| origins & DATA != 0)
    }
}
