//! The stage after the forecast: a policy for the memory of each misplaced object, identified by the place in the code that allocates it;
//! and the mapping of that plan onto the nodes and program files of a run. Pure: an implementation of [`ProgramFiles`] reads the files.
//!
//! | module | question |
//! |---|---|
//! | `plan.rs`, `site.rs` | what is a plan, and what identifies a place in the code? |
//! | `read.rs`, `check.rs`, `print.rs` | how is a plan stored as TOML? |
//! | `propose.rs`, `identify.rs`, `threads.rs` | which objects can a plan place, and how? |
//! | `recommend/` | which repair of each finding is worth it, in the source and by a plan, and where do they differ? |
//! | `make.rs` | the plan that follows from the recommendations |
//! | `apply.rs` | what does the kernel have to do on these nodes? |
//! | `locate.rs` | where are the plan's sites in the files that will run? |
//! | `table.rs` | in which form does the preloaded library read the plan? |

mod apply;
mod check;
mod identify;
mod locate;
mod make;
mod plan;
mod print;
mod program_files;
mod propose;
mod ranks;
mod read;
mod recommend;
mod site;
mod table;
mod threads;

pub use apply::{AbsentNodes, Applied, KernelPolicy, RunNodes, apply};
pub use check::{EntryFault, PlanFault};
pub use identify::{Origins, Unplaceable};
pub use locate::{Location, is_in, locate};
pub use make::{Outlook, Planned, make};
pub use plan::{
    Blocks, Entry, Gain, MOST_COPIES, MOST_ENTRIES, MOST_FRAMES, MOST_NODES, MOST_PARTS, MOST_THREADS, Origin, Plan, Policy, SCHEMA,
    Threads,
};
pub use program_files::ProgramFiles;
pub use propose::{Proposals, Undivided};
pub use ranks::{MOST_RANKS, RankNodes};
pub use read::{PlanError, PlanErrorKind};
pub use recommend::{Action, LeftAlone, ObjectAdvice, Place, Recommendation, Recommendations, SpreadAll, Worth, recommend};
pub use site::{Frame, Module, Site, file_name, hash};
pub use table::{Code, Found, Identity, Spot, Table, table};

#[cfg(test)]
mod tests;
