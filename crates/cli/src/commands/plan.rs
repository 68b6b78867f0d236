//! `firsttouch plan`

use crate::arguments::Plan as Arguments;
use crate::exit;
use crate::output::{is_stdout, messages, print_json, replace};
use crate::profile_name::named_or_newest;
use crate::request::analysis_request;
use anyhow::Result;
use firsttouch_pipeline::AnalysedProfile;
use firsttouch_report::{PlanJson, plan_in_source_text, plan_text};
use std::path::Path;

pub fn run(arguments: &Arguments) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    let profile = named_or_newest(arguments.profile.as_deref(), "plan")?;
    let analysed = AnalysedProfile::open(&profile, &request)?;
    let planned = analysed.plan(&profile.display().to_string())?;
    let output = arguments.output.as_deref();
    if arguments.source {
        replace(output.unwrap_or(Path::new("-")), &plan_in_source_text(&analysed.analysis, &analysed.recommendations()?))?;
        if analysed.analysis.findings.is_empty() {
            messages(&plan_text(&planned, &analysed.analysis, None));
        }
        return Ok(exit::DONE);
    }
    if arguments.json {
        if let Some(path) = output.filter(|path| !is_stdout(path)) {
            replace(path, &planned.plan.to_string())?;
        }
        print_json(&PlanJson::new(&planned).of(&analysed.analysis))?;
    } else {
        replace(output.unwrap_or(Path::new("-")), &planned.plan.to_string())?;
    }
    messages(&plan_text(&planned, &analysed.analysis, output.filter(|path| !is_stdout(path))));
    Ok(exit::DONE)
}
