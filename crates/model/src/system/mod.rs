//! The state of a running system: counters of its nodes, a process's threads and memory, NUMA balancing. The names of the fields are
//! the keys of the JSON (docs/system.md).

mod balancing;
mod counters;
mod process;

pub use balancing::{Balancing, LEAST_RUNS, Measured, Spread, TimedRun, Tunable, are_apart};
pub use counters::{Counters, NodeCounters, meaning};
pub use process::{ByNode, MappedObject, Mapping, MemoryUse, ProcessMaps, ProcessThreads, Thread};
