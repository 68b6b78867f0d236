//! `firsttouch report`

use crate::arguments::Report;
use crate::output::{print, print_json};
use crate::request::{analysis_request, report_context};
use crate::terminal::style;
use anyhow::Result;
use firsttouch_pipeline::AnalysedProfile;
use firsttouch_report::{ReportJson, text};

pub fn run(arguments: &Report) -> Result<u8> {
    let analysed = AnalysedProfile::open(&arguments.profile, &analysis_request(&arguments.judge)?)?;
    let forecast = analysed.report_forecast()?;
    if arguments.json {
        print_json(&ReportJson::new(&analysed.analysis, forecast))?;
    } else {
        let context = report_context(&analysed, &arguments.profile, true);
        print(&text(&analysed.analysis, forecast, &context, style(&std::io::stdout())))?;
    }
    Ok(0)
}
