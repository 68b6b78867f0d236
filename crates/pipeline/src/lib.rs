//! From a profile file to what a command prints: reads the profile once, finds the machine that was asked for, and runs the stages
//! `analysis -> forecast -> plan` on it.
//!
//! The stages themselves are pure (firsttouch-analysis, firsttouch-predict, firsttouch-plan); the files they ask about are read here.

mod error;
mod files;
mod machine;
mod plan_file;
mod process;
mod profile;
mod request;
mod saved;
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
