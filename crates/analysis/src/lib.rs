//! From a profile to findings: which objects are on the wrong node of a machine, which threads put them there, and which threads use them.
//!
//! Pure: no I/O. The steps, a module each:
//!
//! | module | question |
//! |---|---|
//! | `analyse.rs` | all steps in their order |
//! | `target.rs` | on which machine is the profile judged, and on which of its nodes is each thread (`--pin`)? |
//! | `slots.rs` | which slots do threads, and rows of an array, share one after another? |
//! | `activity.rs`, `activity/`, `places.rs` | which threads and processes do something, and on which nodes do they take places? |
//! | `threads.rs`, `phases.rs` | which number has each thread, on which node does it run, and when does a process run serially? |
//! | `shared_memory.rs` | which objects of several processes are the same memory? |
//! | `pool.rs`, `pools/` | to which allocating line does memory in small blocks belong? |
//! | `groups.rs` | which objects are one to the programmer? |
//! | `stacks.rs` | which mappings are stacks of threads, and so are not reported? |
//! | `names.rs`, `calls_on_lines.rs`, `instances.rs` | what is an object called: the variable, of several on a line, of several instances? |
//! | `python_package.rs` | which package of Python, or the interpreter, makes an object for itself? |
//! | `source_code.rs` | which lines allocate, touch and use an object? |
//! | `faults.rs` | which page faults placed a page, and which only show that one was used? |
//! | `touches.rs`, `touch_index.rs`, `periods.rs`, `touch_record.rs`, `touch_summary.rs`, `recycled.rs`, `regions_without_frames.rs`, `repeated_faults.rs`, `held_touches.rs` | which thread first touched each page? |
//! | `homes.rs`, `residents.rs` | on which node is each page? |
//! | `evidence/`, `estimator.rs` | which threads access an object, how much, and with which uncertainty? Each source of evidence is a folder. |
//! | `cache.rs` | which objects stay in a core's cache beside the others? |
//! | `partition/` | how do threads divide an object? |
//! | `subjects.rs`, `in_step.rs`, `tasks.rs` | which source shows most of an object? Which objects are used in one way, as one statement's, and which by tasks? |
//! | `judge.rs`, `not_judged.rs` | how remote is an object? Is the evidence enough to judge it, and if not, why? |
//! | `together.rs` | which objects are judged together, because each alone has too few samples? |
//! | `findings/` | is the placement a defect, of which kind (`rules.rs`; `real_nodes.rs` for kinds that need several nodes, `program.rs` for the whole program), and how is it fixed (`fix.rs`)? |
//! | `code/` | may the source be changed without changing what the program computes? |
//! | `object_map.rs`, `matrix.rs` | which thread uses each part of an object; which node accesses which |
//! | `pictures/` | a finer map of each object, and the run over time, if pictures are asked for |
//! | `traffic.rs`, `computing.rs` | which traffic would a machine have to carry; which part of the time does no placement change? |
//! | `misplaced_part.rs` | several arrays are one mapping: who touched the part that lies wrong? |
//! | `candidates.rs` | which objects may be misplaced, with too few samples for a verdict? |
//! | `coverage.rs` | which part of the accesses do the verdicts cover? |
//! | `unowned_memory.rs` | how much memory belongs to no recorded object, so that the report does not cover it? |
//! | `check_limits.rs`, `diff.rs` | does the program stay within the limits that a user sets; what changed between two profiles? |
//! | `verdict.rs` | is the program well placed, misplaced, or not judged, and why? |
//! | `left_behind.rs` | which processes that outlive the program go on with its work? |
//! | `notes.rs` | what did the analysis have to assume, or could not do? (what capture could not see: firsttouch-capture's `perf/refusal.rs`) |
//! | `report.rs`, `views.rs`, `per_thread.rs` | the result |

mod activity;
mod analyse;
mod between_runs;
mod cache;
mod calls_on_lines;
mod candidates;
mod cause;
pub mod check_limits;
mod code;
mod common_part;
mod computing;
mod contention;
mod coverage;
pub mod diff;
mod displaced;
#[cfg(test)]
mod draws;
mod duration;
mod estimator;
mod even_use;
mod evidence;
mod faults;
mod few;
mod findings;
mod groups;
mod held_touches;
mod home_guesses;
mod homes;
mod in_step;
mod in_turn;
mod inherited;
mod instances;
pub mod job;
mod judge;
mod kernel_time;
mod kinds_of_threads;
mod left_behind;
mod lives;
mod loops_apart;
mod matrix;
mod misplaced_part;
mod names;
mod not_judged;
mod notes;
mod object_map;
mod own_accesses;
mod owners;
mod partition;
mod per_thread;
mod periods;
mod phases;
pub mod pictures;
mod placed;
mod places;
mod pool;
mod pools;
mod populated;
mod python_lines;
mod python_package;
mod rank_seats;
mod recycled;
mod regions_without_frames;
mod remote_of_all;
mod repeated_faults;
mod report;
mod residents;
mod shared_memory;
mod shifts;
mod siblings;
mod slots;
mod source_code;
mod spans;
mod stacks;
mod strata;
mod subjects;
mod target;
mod tasks;
mod threads;
mod together;
mod touch_index;
mod touch_record;
mod touch_summary;
mod touches;
mod traffic;
mod turns;
mod unasked;
mod unowned_memory;
mod verdict;
mod views;
mod wavelet;
mod written_in_use;

firsttouch_model::work_counter!();

pub use analyse::{analyse, analyse_with_pictures};
pub use cause::Cause;
pub use coverage::Coverage;
pub use duration::{Lack, RemoteShare};
pub use judge::acting_of;
pub use not_judged::{Missing, NotJudgedReason};
pub use notes::{Note, Spreading};
pub use partition::PartitionKind;
pub use per_thread::PerThread;
pub use report::*;
pub use target::{Distribution, PythonValue, RankLayout, Sources, Target};
pub use unasked::Unasked;
pub use unowned_memory::{Unrecorded, UnrecordedCause};
pub use verdict::{Verdict, VerdictView, Why};
