//! The report with pictures: a file of its own (`--html`).

use crate::output::{is_stdout, message, replace};
use anyhow::Result;
use firsttouch_analysis::pictures::Pictures;
use firsttouch_pipeline::AnalysedProfile;
use firsttouch_plan::Recommendations;
use firsttouch_report::{Context, Cost, Page, html};
use std::path::Path;
use std::sync::LazyLock;

/// Writes the page of a profile that was analysed with pictures.
///
/// # Errors
/// When the model fails, or the file cannot be written.
pub fn write_page(file: &Path, analysed: &AnalysedProfile, context: &Context) -> Result<()> {
    replace(file, &html(&page(analysed, &analysed.recommendations()?, context)?))
}

/// What pictures of a profile are made of.
///
/// # Errors
/// When the model fails.
pub fn page<'a>(analysed: &'a AnalysedProfile, recommendations: &'a Recommendations, context: &'a Context) -> Result<Page<'a>> {
    static NONE: LazyLock<Pictures> = LazyLock::new(Pictures::default);
    let meta = &analysed.profile.meta;
    Ok(Page {
        analysis: &analysed.analysis,
        forecast: analysed.report_forecast()?,
        recommendations,
        context,
        pictures: analysed.pictures.as_ref().unwrap_or(&NONE),
        excerpts: &analysed.excerpts,
        cost: Cost {
            profiler_cpu_s: meta.profiler_cpu_ns.map(|ns| ns as f64 / 1e9),
            program_cpu_s: Some(meta.threads_ran_ns.max(meta.own_cpu_ns.unwrap_or(0)) as f64 / 1e9),
            recorded_by: meta.tool_version.as_deref(),
        },
    })
}

/// Says where a page is.
pub fn tell_where(file: &Path) {
    if !is_stdout(file) {
        message(&format!("the report with pictures is {}", file.display()));
    }
}
