//! Placement while a program runs: a recorder writes a profile of it, the samples of its last seconds and the nodes of their pages go through the analysis of a
//! report, and firsttouch-tune decides which pages move, and moves them.
//!
//! | module | what it does |
//! |---|---|
//! | `watch.rs` | the recorder of one program: its new rows, with the nodes of the sampled pages as the kernel names them now |
//! | `uses.rs` | from a profile and its analysis to sampled accesses by object |
//! | `learnt.rs` | the plan that follows from what was decided |
//! | `session.rs` | looks, decides and moves, until there is a reason to end |

mod learnt;
mod session;
mod uses;
mod watch;

pub use session::{Ended, Session, Wanted};
