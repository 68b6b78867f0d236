//! From a profile to findings: which objects are on the wrong node of a machine, which threads put them there, and which threads use them.
//!
//! Pure: no I/O. The steps, a module each:
//!
//! | module | question |
//! |---|---|
//! | module | question |
//! |---|---|
//! | `slots.rs` | which slots do threads, and rows of an array, share one after another? |
//! | `threads.rs`, `phases.rs` | on which node does each thread run, and when does a process run serially? |
//! | `groups.rs`, `stacks.rs` | which objects are one to the programmer, and which are stacks? |
//! | `faults.rs` | which page faults placed a page, and which only show that one was used? |
//! | `touches.rs`, `recycled.rs`, `repeated_faults.rs`, `homes.rs`, `residents.rs` | which thread first touched each page, and on which node is it? |
//! | `evidence/`, `estimator.rs` | which threads access an object, how much, and with which uncertainty? Each source of evidence is a folder. |
//! | `partition/` | how do threads divide an object? |
//! | `judge.rs`, `findings/` | is the placement a defect, of which kind, and how is it fixed? |
//! | `traffic.rs` | which traffic would a machine have to carry? |
//! | `unowned_memory.rs` | how much memory belongs to no recorded object, so that the report does not cover it? |
//! | `check_limits.rs` | does the program stay within the limits that a user sets? |
//! | `notes.rs`, `reason.rs` | what is uncertain or not judged, why, and what can the user do about it? |
//! | `report.rs` | the result |

mod analyse;
pub mod check_limits;
mod code_locations;
pub mod diff;
mod estimator;
mod evidence;
mod faults;
mod findings;
mod groups;
mod homes;
mod judge;
mod matrix;
mod names;
mod notes;
mod object_map;
mod partition;
mod phases;
mod reason;
mod recycled;
mod repeated_faults;
mod report;
mod residents;
mod slots;
mod stacks;
mod target;
mod threads;
mod touch_index;
mod touch_record;
mod touch_summary;
mod touches;
mod traffic;
mod unowned_memory;

pub use analyse::analyse;
pub use notes::{Note, Spreading};
pub use partition::PartitionKind;
pub use reason::{Missing, NotJudgedReason};
pub use report::*;
pub use target::{Sources, Target};
pub use unowned_memory::{Unrecorded, UnrecordedCause};
