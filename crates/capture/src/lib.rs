//! Capture: runs or attaches to a program, and records first touches, accesses, page nodes and allocations into a profile.
//!
//! | module | what it does |
//! |---|---|
//! | `session/` | one run: start or attach, the loop over signals, records and rounds, the account at the end; `members.rs` decides which sources work |
//! | `sources/`, `source.rs` | the kinds of evidence, a folder each, behind one interface: `touch` page faults, `sample` timer samples, `watch` watchpoints, `hint` hinting faults of NUMA balancing, `resident` where pages are, `agent` allocations |
//! | `agent/` | reads the ring that the agent (native/agent) writes |
//! | `perf/` | reads the rings of perf events, and says why the kernel refuses them and what would help (`perf/refusal.rs`) |
//! | `timeline.rs` | puts the records of all rings in order of time |
//! | `track/` | the live picture of the target that the records build |
//! | `track/agent_events.rs`, `track/task_events.rs` | what the agent and the kernel report: allocations; births, deaths, exec |
//! | `track/objects.rs`, `track/live_objects.rs` | objects, and which of them are sampled (no files) |
//! | `track/static_arrays.rs`, `track/mappings.rs` | objects that no event reports: static arrays; without an agent, mappings |
//! | `track/processes.rs`, `track/child_processes.rs`, `track/threads.rs`, `track/scope.rs` | processes, fork and exec, threads, and which of them are recorded (`--follow`) |
//! | `track/policies.rs`, `track/policy_schedule.rs`, `track/residency.rs`, `track/touched.rs` | memory policies, and when they are read; where pages are; sampled first touches |
//! | `track/sites.rs`, `track/modules.rs`, `track/generated_code.rs`, `track/parallel_regions.rs` | call stacks, files of code, generated code, OpenMP regions |
//! | `unwind.rs` | call stacks from registers and stack bytes |
//! | `symbolize.rs` | adds functions and lines to a profile, after the target has ended |
//! | `unobserved.rs` | the profile of a program that nothing could be recorded of |
//! | `sink.rs` | the profile file, which may become full without stopping the target |

pub mod agent;
mod error;
mod generated_names;
mod options;
pub mod perf;
mod random;
mod session;
mod sink;
mod source;
mod sources;
mod symbolize;
mod timeline;
mod track;
mod unobserved;
pub mod unwind;

pub use error::{Error, ErrorKind, Result};
pub use firsttouch_profile::{Created, Output};
pub use options::{Live, LiveEffort, Observed, Observer, Options};
pub use session::{Recording, SourceAccount, prepare, profile};
pub use source::Account;
pub use unobserved::write_unobserved;
