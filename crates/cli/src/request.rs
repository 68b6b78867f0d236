//! From the arguments of a command to the library, and from an analysed profile to what surrounds its report.

use crate::arguments::Judge;
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest, Result};
use firsttouch_report::Context;
use std::path::Path;

/// The machine and the pinning that a command was given.
///
/// # Errors
/// They cannot be understood, or do not fit each other: a wrong command line.
pub fn analysis_request(arguments: &Judge) -> Result<AnalysisRequest> {
    AnalysisRequest::parse(arguments.machine.as_deref(), arguments.pin.as_deref())
}

/// What surrounds the text report on a profile.
pub fn report_context(analysed: &AnalysedProfile, profile: &Path, heading: bool) -> Context {
    Context {
        profile: profile.display().to_string(),
        options: analysed.options.clone(),
        recorded_nodes: analysed.recorded_nodes(),
        heading,
        more: true,
        prefix: if heading { "" } else { "firsttouch: " },
    }
}
