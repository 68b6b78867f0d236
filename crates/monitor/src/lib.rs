//! Live data of this machine: one model that all readers share (`top`, its logs, records and replays).
//!
//! | module | what it does |
//! |---|---|
//! | `snapshot.rs` | the model: what is known at one time. Its fields are the keys of the JSON `firsttouch.top/1` |
//! | `monitor.rs` | takes a snapshot each tick from what follows, over the window that is asked for |
//! | `window.rs` | sliding windows (1, 10, 60 s) over counters |
//! | `pace.rs` | the cost budget: what costs time is done seldom enough |
//! | `program.rs` | the processes of a program that was started here |
//! | `facts/` | what the kernel says: nodes, processes, threads, memory by node |
//! | `sampling/` | what samples of addresses say: which processes are sampled, by recorders in processes of their own; their rows, through the analysis of a report |
//! | `tuning/` | placement while a program runs: what the recorder of one program sees becomes moves of its pages (firsttouch-tune decides) |
//! | `recording/` | snapshots in a file, and back |

mod facts;
mod monitor;
mod pace;
mod program;
pub mod recording;
mod sampling;
mod snapshot;
pub mod tuning;
mod window;

pub use monitor::{Focus, Monitor, Request};
pub use pace::Pace;
pub use sampling::{Launch, RecorderCommand};
pub use snapshot::{
    Cost, Detail, JudgedMachine, LEAST_SAMPLES, MappedMemory, NodeRow, ObjectRow, ProcessRow, Remote, SCHEMA, Snapshot, SystemRow,
    ThreadRow, WIDE,
};
pub use window::Window;
