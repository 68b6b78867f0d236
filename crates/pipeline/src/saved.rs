//! Loads a report from a file: the output of `firsttouch report --json`, or a profile, which is judged now.

use crate::unseekable::Readable;
use crate::{AnalysedProfile, AnalysisRequest, ErrorKind, PipelineError, Result, is_profile};
use firsttouch_analysis::{Analysis, Assessed, REPORT_SCHEMA};
use firsttouch_model::parallel::both;
use firsttouch_model::prediction::Prediction;
use firsttouch_model::shown::make_one_line;
use firsttouch_profile::merge::is_directory;
use firsttouch_system::read_bounded;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// The largest report, bytes: that of 100,000 objects is a ninth of it.
const MOST_BYTES: u64 = 1 << 30;

/// Profiles with more shares (threads times objects) are read one after the other.
const AT_ONCE: u64 = 200_000;

/// An analysis with its prediction.
pub struct SavedReport {
    pub analysis: Analysis,
    pub prediction: Option<Prediction>,
}

impl SavedReport {
    #[must_use]
    pub fn assessed(&self) -> Assessed<'_> {
        Assessed { analysis: &self.analysis, prediction: self.prediction.as_ref() }
    }
}

/// The keys of a report that are not part of the analysis.
#[derive(Deserialize)]
struct Head {
    schema: String,
    prediction: Option<Prediction>,
}

/// Analyses a profile, or those of the ranks in a directory, or reads an earlier report.
///
/// # Errors
/// When the file is neither, or a report with another schema.
pub fn load_report(path: &Path, request: &AnalysisRequest) -> Result<SavedReport> {
    let cannot = || format!("cannot use {}", path.display());
    if is_directory(path) {
        return judged(AnalysedProfile::open(path, request)?);
    }
    let readable = Readable::of(path).map_err(|error| PipelineError::because(ErrorKind::Report, cannot(), error))?;
    if is_profile(readable.path()) {
        return judged(AnalysedProfile::open_readable(&readable, path, request)?);
    }
    let text = read_bounded(readable.path(), MOST_BYTES).map_err(|error| PipelineError::because(ErrorKind::Report, cannot(), error))?;
    let neither = |error: serde_json::Error| {
        let why =
            PipelineError::because(ErrorKind::Report, "neither a profile nor a report as 'firsttouch report --json' writes it", error);
        PipelineError::because(ErrorKind::Report, cannot(), why)
    };
    let mut report: Value = serde_json::from_slice(&text).map_err(neither)?;
    make_names_safe(&mut report);
    let head = Head::deserialize(&report).map_err(neither)?;
    let analysis: Analysis = serde_json::from_value(report).map_err(neither)?;
    if head.schema != REPORT_SCHEMA {
        let why = PipelineError::new(ErrorKind::Report, format!("its schema is '{}', expected '{REPORT_SCHEMA}'", head.schema));
        return Err(PipelineError::because(ErrorKind::Report, cannot(), why));
    }
    Ok(SavedReport { analysis, prediction: head.prediction })
}

fn judged(analysed: AnalysedProfile) -> Result<SavedReport> {
    let prediction = analysed.report_forecast()?.and_then(firsttouch_predict::forecast::Forecast::prediction);
    Ok(SavedReport { analysis: analysed.analysis, prediction })
}

/// Two of them: at the same time, unless their analyses would together hold much memory.
///
/// # Errors
/// As [`load_report`], of the first first.
pub fn load_reports(first: &Path, second: &Path, request: &AnalysisRequest) -> Result<(SavedReport, SavedReport)> {
    let is_small = |path: &Path| is_profile(path) && firsttouch_profile::shares(path).is_ok_and(|shares| shares <= AT_ONCE);
    if !(is_small(first) && is_small(second)) {
        return Ok((load_report(first, request)?, load_report(second, request)?));
    }
    let (first, second) = both(|| load_report(first, request), || load_report(second, request));
    Ok((first?, second?))
}

/// Replaces what could control a terminal, or begin a line, in every text: a report may come from anywhere.
fn make_names_safe(value: &mut Value) {
    match value {
        Value::String(text) => make_one_line(text),
        Value::Array(values) => values.iter_mut().for_each(make_names_safe),
        Value::Object(values) => values.values_mut().for_each(make_names_safe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
