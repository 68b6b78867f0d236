//! x86-64: instructions are decoded with iced-x86.

mod backward;
mod forward;
mod needs;
mod numbers;
mod origins;
mod path;
mod rest;
mod state;
mod strings;
mod vectors;
mod walker;

pub use path::Plan;
pub use walker::X86;
