//! `firsttouch report`

use crate::arguments::Report;
use crate::output::{message, print, print_json};
use crate::profile_name::newest;
use crate::request::{analysis_request, report_context};
use crate::terminal::style;
use anyhow::Result;
use firsttouch_pipeline::AnalysedProfile;
use firsttouch_report::{ReportJson, text};
use std::path::PathBuf;

pub fn run(arguments: &Report) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    let profile = arguments.profile.clone().map_or_else(newest_here, Ok)?;
    let analysed = AnalysedProfile::open(&profile, &request)?;
    let (forecast, recommendations) = (analysed.report_forecast()?, analysed.recommendations()?);
    if arguments.json {
        print_json(&ReportJson::new(&analysed.analysis, forecast, &recommendations))?;
    } else {
        let context = report_context(&analysed, &profile, true, arguments.verbose);
        print(&text(&analysed.analysis, forecast, &recommendations, &context, style(&std::io::stdout())))?;
    }
    Ok(0)
}

fn newest_here() -> Result<PathBuf> {
    let profile = newest("report")?;
    message(&format!("{} is the newest profile in this directory", profile.display()));
    Ok(profile)
}
