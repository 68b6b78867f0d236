//! `firsttouch report`

use crate::arguments::Report;
use crate::output::{is_stdout, json, message, print, print_json, replace};
use crate::page::{page, tell_where, write_page};
use crate::profile_name::named_or_newest;
use crate::request::{analysis_request, report_context};
use crate::terminal::style;
use anyhow::{Result, anyhow};
use firsttouch_pipeline::AnalysedProfile;
use firsttouch_report::{ReportJson, svg, text, timeline_text, verdict_sentence};
use std::path::Path;

pub fn run(arguments: &Report) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    let request = request.with_sources_in(&arguments.source_root)?;
    let request = if arguments.no_source { request.hiding_source() } else { request };
    let request = if arguments.html.is_some() || arguments.timeline || arguments.svg.is_some() { request.with_pictures() } else { request };
    let profile = named_or_newest(arguments.profile.as_deref(), "report")?;
    let analysed = AnalysedProfile::open(&profile, &request)?;
    if let Some(file) = &arguments.html {
        write_page(file, &analysed, &report_context(&analysed, &profile, true, arguments.verbose))?;
        if !is_stdout(file) {
            message(&verdict_sentence(&analysed.analysis, analysed.report_forecast()?, &analysed.recommendations()?));
        }
        tell_where(file);
        return Ok(0);
    }
    if let Some(view) = &arguments.svg {
        let (recommendations, context) = (analysed.recommendations()?, report_context(&analysed, &profile, true, arguments.verbose));
        let drawn = svg(&page(&analysed, &recommendations, &context)?, view)
            .map_err(|why| anyhow!("cannot draw this view of {}: {why}", profile.display()))?;
        replace(arguments.output.as_deref().unwrap_or(Path::new("-")), &drawn)?;
        return Ok(0);
    }
    if arguments.timeline {
        let timeline = analysed.pictures.as_ref().and_then(|pictures| pictures.timeline.as_ref());
        print(&timeline_text(timeline, style(&std::io::stdout())))?;
        return Ok(0);
    }
    let (forecast, recommendations) = (analysed.report_forecast()?, analysed.recommendations()?);
    if let Some(path) = &arguments.json {
        let report = ReportJson::new(&analysed.analysis, forecast, &recommendations);
        if is_stdout(path) { print_json(&report)? } else { replace(path, &json(&report)?)? }
    } else {
        let context = report_context(&analysed, &profile, true, arguments.verbose);
        print(&text(&analysed.analysis, forecast, &recommendations, &context, style(&std::io::stdout())))?;
    }
    Ok(0)
}
