//! From a profile to findings: which objects live on the wrong node of a machine, who put them there and who uses them.
//!
//! Pure: no I/O. The steps, a module each:
//!
//! | module | question |
//! |---|---|
//! | `slots.rs` | which slots do threads, and rows of an array, share one after another? |
//! | `threads.rs`, `phases.rs` | on which node does each thread run, and when does a process run serially? |
//! | `groups.rs`, `stacks.rs` | which objects does the programmer see as one, and which are stacks? |
//! | `faults.rs` | which page faults placed a page, and which only show that one was used? |
//! | `touches.rs`, `generations.rs`, `homes.rs`, `residents.rs` | which thread first touched each page, and on which node is it? |
//! | `evidence/`, `estimator.rs` | which threads access it, how much, with which uncertainty? A source of evidence is a folder there. |
//! | `partition/` | how is it divided among threads? |
//! | `judge.rs`, `findings/` | is that a defect, which one, what helps? |
//! | `traffic.rs` | which traffic would a machine have to carry? |
//! | `unrecorded.rs` | how much memory belongs to no recorded object, so that the report does not cover it? |
//! | `limits.rs` | does it keep the limits that a user sets? |
//! | `notes.rs`, `reason.rs` | what is in doubt or not judged, why, and what helps? |
//! | `report.rs` | the result |

mod analyse;
pub mod diff;
mod estimator;
mod evidence;
mod faults;
mod findings;
mod generations;
mod groups;
mod homes;
mod judge;
pub mod limits;
mod matrix;
mod names;
mod notes;
mod object_map;
mod partition;
mod phases;
mod places;
mod reason;
mod report;
mod residents;
mod slots;
mod stacks;
mod target;
mod threads;
mod touch_index;
mod touch_summary;
mod touches;
mod traffic;
mod unrecorded;

pub use analyse::analyse;
pub use names::variables;
pub use notes::{Note, Spreading};
pub use partition::PartitionKind;
pub use reason::{Missing, NotJudgedReason};
pub use report::*;
pub use target::{Sources, Target};
pub use unrecorded::{Unrecorded, UnrecordedCause};
