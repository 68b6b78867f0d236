//! Converts arguments of a command to requests of the libraries, and an analysed profile to the context of its report.

use crate::arguments::{Distribution, Judge};
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest, Result};
use firsttouch_report::Context;
use std::path::Path;

/// The requested machine and pinning.
///
/// # Errors
/// When they are invalid or do not fit each other: a usage error.
pub fn analysis_request(arguments: &Judge) -> Result<AnalysisRequest> {
    let request = AnalysisRequest::parse(arguments.machine.as_deref(), arguments.pin.as_deref())?;
    let request = if arguments.place_all_threads { request.placing_all_threads() } else { request };
    let distribution = arguments.distribution.map(|distribution| match distribution {
        Distribution::Block => firsttouch_pipeline::Distribution::Block,
        Distribution::Cyclic => firsttouch_pipeline::Distribution::Cyclic,
    });
    Ok(request.placing_ranks(arguments.ranks_per_node, distribution))
}

/// The context of the text report on a profile.
pub fn report_context(analysed: &AnalysedProfile, profile: &Path, heading: bool, verbose: bool) -> Context {
    Context {
        profile: profile.display().to_string(),
        options: analysed.options.clone(),
        recorded_nodes: analysed.recorded_nodes(),
        heading,
        more: true,
        verbose,
        prefix: if heading { "" } else { "firsttouch: " },
    }
}
