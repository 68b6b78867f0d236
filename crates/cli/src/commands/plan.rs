//! `firsttouch plan`

use crate::arguments::Plan as Arguments;
use crate::output::{is_stdout, message, print_json, write};
use crate::request::analysis_request;
use anyhow::Result;
use firsttouch_analysis::Analysis;
use firsttouch_pipeline::AnalysedProfile;
use firsttouch_plan::{Gain, Planned};
use serde_json::{Value, json};
use std::path::Path;

pub fn run(arguments: &Arguments) -> Result<u8> {
    let analysed = AnalysedProfile::open(&arguments.profile, &analysis_request(&arguments.judge)?)?;
    let planned = analysed.plan(&arguments.profile.display().to_string())?;
    let output = arguments.output.as_deref();
    if arguments.json {
        if let Some(path) = output.filter(|path| !is_stdout(path)) {
            write(path, &planned.plan.to_string())?;
        }
        print_json(&planned_json(&planned))?;
    } else {
        write(output.unwrap_or(Path::new("-")), &planned.plan.to_string())?;
    }
    message(&summary(&planned, &analysed.analysis, output));
    Ok(0)
}

/// What was planned, in a few lines.
pub fn summary(planned: &Planned, analysis: &Analysis, output: Option<&Path>) -> String {
    let plan = &planned.plan;
    let mut lines = Vec::new();
    let to = output.filter(|path| !is_stdout(path)).map(|path| format!(" -> {}", path.display())).unwrap_or_default();
    if plan.is_empty() {
        let is_well_placed = analysis.findings.is_empty() && analysis.objects.iter().any(|object| object.judged);
        let why = if is_well_placed { "the program is well placed" } else { "there is no finding that a placement of memory would remove" };
        lines.push(format!("nothing to place on {}: {why}{to}", plan.judged_on));
    } else {
        let names: Vec<String> =
            plan.entries.iter().map(|entry| format!("{} ({}): {}", entry.what, entry.at, entry.policy.name())).collect();
        lines.push(format!("plan for {}: {}{to}", plan.judged_on, names.join(", ")));
        if let (Some(gain), Some(outlook)) = (plan.gain, &planned.outlook) {
            let numbers =
                if outlook.is_assumed { ", whose bandwidths are taken to compare as on the median machine of the catalogue" } else { "" };
            lines.push(format!(
                "predicted: {:.2} times as fast [{:.2}, {:.2}] on {}{numbers}; remote accesses {:.0} % -> {:.0} %",
                gain.value,
                gain.low,
                gain.high,
                plan.judged_on,
                100.0 * outlook.remote_before,
                100.0 * outlook.remote_after
            ));
        }
    }
    lines.extend(plan.left_alone.iter().map(|sentence| format!("left alone: {sentence}")));
    lines.join("\n")
}

/// What was planned, as JSON.
pub fn planned_json(planned: &Planned) -> Value {
    let gain = |gain: Option<Gain>| gain.map(|gain| json!({"value": gain.value, "interval": [gain.low, gain.high]}));
    let entries: Vec<Value> = planned
        .plan
        .entries
        .iter()
        .map(|entry| {
            json!({"what": entry.what, "at": entry.at, "bytes": entry.bytes, "policy": entry.policy.name(),
                   "small_pages": entry.small_pages, "reason": entry.reason, "predicted_gain": gain(entry.gain)})
        })
        .collect();
    let outlook = planned.outlook.as_ref().map(|outlook| {
        json!({"assumed": outlook.is_assumed, "time_ratio": outlook.time_ratio,
               "remote_before": outlook.remote_before, "remote_after": outlook.remote_after})
    });
    json!({"schema": "firsttouch.planned/1", "machine": planned.plan.judged_on, "entries": entries, "left_alone": planned.plan.left_alone,
           "threads": planned.plan.threads.count, "predicted_gain": gain(planned.plan.gain), "outlook": outlook})
}
