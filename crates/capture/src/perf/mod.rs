//! perf events: their rings, the records in them, and why the kernel refuses them.

pub mod records;
pub mod refusal;
pub mod ring;
pub mod tick_cost;
pub mod ticks;
