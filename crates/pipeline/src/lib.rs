//! From a profile file to the result of a command: reads the profile once, finds the requested machine, and runs the stages `analysis ->
//! forecast -> plan` on it.
//!
//! The stages themselves are pure (firsttouch-analysis, firsttouch-predict, firsttouch-plan); this crate reads the files they need.
//!
//! | module | what it does |
//! |---|---|
//! | `profile.rs` | reads a profile, and runs the stages on it; a report has a forecast only if the machine's bandwidths are described |
//! | `saved.rs` | reads a report from JSON or from a profile, for `check` and `diff` |
//! | `plan_file.rs` | reads a plan |
//! | `requested_machine.rs` | finds the machine that the user names: in the catalogue or in a file, whose format it recognises (a description, hwloc's XML, mlc's output); `virtual:N` is firsttouch-system's `machine/target_machine.rs` |
//! | `requested_pin.rs` | the pinning that the user asks for, as the nodes of threads |
//! | `judged_machine.rs` | on which machine is a profile judged, if none is named? |
//! | `pinnable_nodes.rs` | which nodes may `--pin` name? (the node of each thread: `Pin` in firsttouch-model) |
//! | `source_code.rs`, `program_files.rs` | answer questions of analysis and plan from source files and ELF files |
//! | `source_root.rs` | folders with the sources of a program that was built elsewhere |
//! | `unseekable.rs` | copies pipes (`<(COMMAND)`), which can be read only once, and merges the profiles of a directory of ranks |
//! | `window.rs` | the last seconds of a profile that is still written, for `top` |
//! | `profiled_process.rs` | is a running process the one that was profiled? |

mod error;
mod excerpts;
mod judged_machine;
mod one_host;
mod pinnable_nodes;
mod plan_file;
mod profile;
mod profiled_process;
mod program_files;
mod request;
mod requested_machine;
mod requested_pin;
mod saved;
mod source_code;
mod source_root;
mod unseekable;
mod window;

pub use error::{ErrorKind, PipelineError};
pub use firsttouch_analysis::Distribution;
pub use firsttouch_profile::merge;
pub use firsttouch_profile::{Output, is_profile as is_firsttouch_profile, kept as kept_profiles};
pub use plan_file::read_plan;
pub use profile::{AnalysedProfile, is_directory_of_ranks, is_profile, read_profile};
pub use profiled_process::{NotThisProcess, running_process};
pub use program_files::ElfFiles;
pub use request::AnalysisRequest;
pub use requested_machine::{RequestedMachine, described_machine};
pub use saved::{SavedReport, load_report, load_reports};
pub use source_code::FileSources;
pub use source_root::SourceRoot;
pub use unseekable::is_pipe;
pub use window::{LiveNames, analyse_window};

pub type Result<T> = std::result::Result<T, PipelineError>;
