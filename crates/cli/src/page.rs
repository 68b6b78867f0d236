//! The report with pictures: a file of its own (`--html`).

use crate::output::{is_stdout, message, replace};
use anyhow::Result;
use firsttouch_analysis::pictures::Pictures;
use firsttouch_pipeline::AnalysedProfile;
use firsttouch_report::{Context, Cost, Page, html};
use std::path::Path;

/// Writes the page of a profile that was analysed with pictures.
///
/// # Errors
/// When the model fails, or the file cannot be written.
pub fn write_page(file: &Path, analysed: &AnalysedProfile, context: &Context) -> Result<()> {
    let none = Pictures::default();
    let recommendations = analysed.recommendations()?;
    let meta = &analysed.profile.meta;
    let page = Page {
        analysis: &analysed.analysis,
        forecast: analysed.report_forecast()?,
        recommendations: &recommendations,
        context,
        pictures: analysed.pictures.as_ref().unwrap_or(&none),
        excerpts: &analysed.excerpts,
        cost: Cost {
            profiler_cpu_s: meta.profiler_cpu_ns.map(|ns| ns as f64 / 1e9),
            program_cpu_s: Some(meta.threads_ran_ns.max(meta.own_cpu_ns.unwrap_or(0)) as f64 / 1e9),
            recorded_by: meta.tool_version.as_deref(),
        },
    };
    replace(file, &html(&page))
}

/// Says where a page is.
pub fn tell_where(file: &Path) {
    if !is_stdout(file) {
        message(&format!("the report with pictures is {}", file.display()));
    }
}
