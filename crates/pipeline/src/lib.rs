//! From a profile file to the result of a command: reads the profile once, finds the requested machine, and runs the stages `analysis ->
//! forecast -> plan` on it.
//!
//! The stages themselves are pure (firsttouch-analysis, firsttouch-predict, firsttouch-plan); this crate reads the files they need.

mod error;
mod files;
mod judged_machine;
mod machine;
mod plan_file;
mod process;
mod profile;
mod request;
mod saved;
mod seats;
mod sources;

pub use error::{ErrorKind, PipelineError};
pub use files::ElfFiles;
pub use machine::{RequestedMachine, described_machine};
pub use plan_file::read_plan;
pub use process::{NotThisProcess, running_process};
pub use profile::{AnalysedProfile, is_profile, read_profile};
pub use request::AnalysisRequest;
pub use saved::{SavedReport, load_report};
pub use sources::FileSources;

pub type Result<T> = std::result::Result<T, PipelineError>;
