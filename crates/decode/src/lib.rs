//! From the registers of a timer sample to the addresses that the code around it accesses.
//!
//! A sample holds the user registers before the instruction at the instruction pointer. The pointer itself stands behind the load that
//! the processor waits for, so the operand there is the wrong one to count. What is exact is the loop around it: [`Walker::plan`]
//! decodes the innermost loop that contains the pointer, and [`Walker::walk`] carries the registers one round forward by emulation, and
//! backward by undoing constant steps. So every memory operand of the loop gets the address that it has in this round or the next.
//!
//! | module | question |
//! |---|---|
//! | `walk.rs` | what does a walk tell, on any processor? |
//! | `x86_64/path.rs` | which instructions are the loop, and which come before it? |
//! | `x86_64/state.rs` | which registers are known? |
//! | `x86_64/forward.rs` | what does an instruction compute? |
//! | `x86_64/backward.rs` | what were the registers before it? |
//! | `x86_64/vectors.rs` | which indices does a gather read? |
//! | `x86_64/walker.rs` | which addresses do the operands have? |
//!
//! Pure: code and data come through [`Memory`]. Other processors are other implementations of [`Walker`].

mod walk;
mod x86_64;

pub use walk::{Access, Induction, Loop, Memory, Operand, Reach, Registers, Walk, Walker};
pub use x86_64::{Plan as X86Plan, X86};
