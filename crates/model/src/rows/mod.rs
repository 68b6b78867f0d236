//! What a profile holds: one struct for each table row. Times are CLOCK_MONOTONIC nanoseconds, sizes are bytes.
//!
//! These types do not know how they are stored; `firsttouch_profile` reads and writes them.

mod bandwidth;
mod counters;
mod evidence;
mod machine;
pub mod metadata;
mod names;
mod objects;
mod owner;
mod pages;
mod profile;
mod ranks;
mod regions;
mod samples;
mod sites;
mod threads;
mod touches;
mod windows;

pub use bandwidth::Bandwidth;
pub use counters::Counter;
pub use evidence::{Evidence, Lost};
pub use machine::Machine;
pub use objects::{FoldedObjects, Object, ObjectKind, Placing, Policy, Population, Release, SharedMemory, SmallBlock};
pub use owner::Owner;
pub use pages::{Page, UNKNOWN_NODE};
pub use profile::Profile;
pub use ranks::{FirstIds, Host, MOST_COMMANDS, MOST_MISSING_RANKS, Part, RankPlace, in_words, missing_ranks};
pub use regions::Region;
pub use samples::{AccessKind, NO_OBJECT, OperandCount, Progress, PythonLine, SampleState, SampledAccess, SampledLoop, TimerSample};
pub use sites::{Frame, Site, SourceFile};
pub use threads::{Process, Seen, Thread};
pub use touches::{Appeared, FaultCount, FaultPeriod, FirstTouch};
pub use windows::{Access, Window};

/// Row identifiers are the table's primary keys.
pub type Id = i64;
