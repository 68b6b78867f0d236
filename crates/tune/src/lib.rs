//! Online placement: decides from the sampled accesses of a running program which pages to move, and moves them under a budget.
//!
//! Pure but for the mover, which is a trait: the kernel, or a fake in tests. `firsttouch-monitor` supplies the accesses from live profiles.
//!
//! | module | question |
//! |---|---|
//! | `uses.rs` | what was sampled, of which object, with the node of the thread and that of the page? |
//! | `segments.rs` | which part of an object is used from which node? |
//! | `pattern.rs` | since when is an object used in this way, and how long did earlier ways last? |
//! | `worth.rs` | does a move earn its cost? |
//! | `decide.rs` | which moves follow, and why are other objects left alone? |
//! | `budget.rs` | how many bytes may move now? |
//! | `carry.rs` | moves a piece at a time, asks again where the pages are, and gives up on those that cannot move |
//! | `tuner.rs` | puts these together for one process |
//! | `outcome.rs`, `words.rs` | what was done, as JSON (`firsttouch.tune/1`) and as text |

mod budget;
mod carry;
mod decide;
mod outcome;
mod pattern;
mod segments;
mod tuner;
mod uses;
mod words;
mod worth;

pub use budget::Budget;
pub use carry::{Carried, Carrier};
pub use decide::{Decision, Held};
pub use outcome::{FailedPages, Moved, ObjectOutcome, Outcome, ProcessOutcome, Remote, SCHEMA, ThreadAdvice};
pub use segments::{Segment, Target, segments, taken_over};
pub use tuner::{Settings, Tuner};
pub use uses::{ObjectUses, Use};
pub use words::text;
pub use worth::Distances;

#[cfg(test)]
mod tests;
