//! From a profile to findings: which objects live on the wrong node of a machine, who put them there and who uses them.
//!
//! Pure: no I/O. The steps, a module each:
//!
//! | module | question |
//! |---|---|
//! | [`lanes`](self) (`lanes.rs`) | which places do threads, and rows of an array, share one after another? |
//! | `threads.rs` | on which node does each thread sit? |
//! | `groups.rs`, `stacks.rs` | which objects are one object to the programmer, and which are none? |
//! | `faults.rs` | which page faults placed a page, and which only tell who used one? |
//! | `touches.rs`, `generations.rs`, `homes.rs` | who first touched each page, and so where is it? |
//! | `uses.rs`, `hints.rs`, `estimator.rs` | who accesses it, how much, with which uncertainty? |
//! | `partition/` | how is it divided among threads? |
//! | `judge.rs`, `findings/` | is that a defect, which one, what helps? |
//! | `traffic.rs` | what would a machine have to move? |
//! | `unrecorded.rs` | how much memory belongs to no object, so that silence says nothing of it? |
//! | `limits.rs` | does it keep the limits that a user sets? |
//! | `notes.rs` | what is in doubt, and what helps? |
//! | `report.rs` | the result |

mod analyse;
mod coverage;
pub mod diff;
mod estimator;
mod evidence;
mod faults;
mod findings;
mod generations;
mod groups;
mod hints;
mod homes;
mod judge;
mod lanes;
pub mod limits;
mod matrix;
mod names;
mod notes;
mod partition;
mod phases;
mod places;
mod report;
mod residents;
mod stacks;
mod strip;
mod target;
mod threads;
mod touches;
mod traffic;
mod unrecorded;
mod uses;

pub use analyse::analyse;
pub use names::variables;
pub use partition::PartitionKind;
pub use report::*;
pub use target::{Sources, Target};
