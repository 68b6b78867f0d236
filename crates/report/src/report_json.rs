//! The JSON of `firsttouch report`: the contract `firsttouch.report/1` (DESIGN.md, section 7). It combines an analysis with its forecast.

use firsttouch_analysis::{
    Analysis, Coverage, CrossCheck, EvidenceView, Figure, Finding, FixEdit, Interval, KernelView, LostView, MachineView, NotJudged, Note,
    ObjectView, REPORT_SCHEMA, ThreadView, VerdictView,
};
use firsttouch_model::TouchCause;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::{FindingKind, Severity};
use firsttouch_model::prediction::Prediction;
use firsttouch_predict::forecast::Forecast;
use serde::Serialize;
use std::collections::BTreeMap;

/// The contents of a report. [`Analysis`] documents each key.
#[derive(Serialize)]
pub struct ReportJson<'a> {
    pub schema: &'static str,
    pub command: &'a [String],
    pub exit_code: Option<i32>,
    pub wall_s: f64,
    pub machine: &'a MachineView,
    pub verdict: VerdictView,
    pub threads: &'a [ThreadView],
    pub evidence: &'a [EvidenceView],
    pub remote_fraction: Option<f64>,
    pub remote_interval: Option<Interval>,
    pub remote_samples: u64,
    pub remote_evidence: &'a Option<EvidenceSource>,
    pub cross_checks: &'a [CrossCheck],
    pub matrix: &'a [Vec<f64>],
    /// Null without a description of the machine.
    pub prediction: Option<Prediction>,
    pub objects: &'a [ObjectView],
    pub findings: Vec<FindingJson<'a>>,
    pub not_judged: &'a [NotJudged],
    /// Shares of the accesses seen; null without evidence.
    pub coverage: &'a Option<Coverage>,
    pub kernel: &'a Option<KernelView>,
    pub notes: &'a [Note],
    pub lost: &'a [LostView],
}

#[derive(Serialize)]
pub struct FindingJson<'a> {
    pub id: FindingKind,
    pub object: Option<i64>,
    pub together: &'a [i64],
    pub object_name: &'a str,
    pub severity: Severity,
    pub message: &'a str,
    pub fix: &'a str,
    pub fix_edits: &'a [FixEdit],
    /// Time as it is / time after the fix of this object alone; null without a description of the machine.
    pub predicted_gain: Option<f64>,
    pub predicted_gain_interval: Option<Interval>,
    pub cause: Option<TouchCause>,
    pub remote_fraction: f64,
    pub interval: Interval,
    pub remote_share: f64,
    pub figures: &'a BTreeMap<String, Figure>,
}

impl<'a> ReportJson<'a> {
    #[must_use]
    pub fn new(analysis: &'a Analysis, forecast: Option<&Forecast>) -> Self {
        Self {
            schema: REPORT_SCHEMA,
            command: &analysis.command,
            exit_code: analysis.exit_code,
            wall_s: analysis.wall_s,
            machine: &analysis.machine,
            verdict: analysis.verdict_view(),
            threads: &analysis.threads,
            evidence: &analysis.evidence,
            remote_fraction: analysis.remote_fraction,
            remote_interval: analysis.remote_interval,
            remote_samples: analysis.remote_samples,
            remote_evidence: &analysis.remote_evidence,
            cross_checks: &analysis.cross_checks,
            matrix: &analysis.matrix,
            prediction: forecast.and_then(Forecast::prediction),
            objects: &analysis.objects,
            findings: FindingJson::all(analysis, forecast),
            not_judged: &analysis.not_judged,
            coverage: &analysis.coverage,
            kernel: &analysis.kernel,
            notes: &analysis.notes,
            lost: &analysis.lost,
        }
    }
}

impl<'a> FindingJson<'a> {
    /// The findings of an analysis, each with the predicted gain of its remedy.
    #[must_use]
    pub fn all(analysis: &'a Analysis, forecast: Option<&Forecast>) -> Vec<Self> {
        analysis.findings.iter().map(|finding| Self::new(finding, forecast)).collect()
    }

    fn new(finding: &'a Finding, forecast: Option<&Forecast>) -> Self {
        let gain = forecast.and_then(|forecast| forecast.gain(finding.object));
        Self {
            id: finding.kind,
            object: finding.object,
            together: &finding.together,
            object_name: &finding.object_name,
            severity: finding.severity,
            message: &finding.message,
            fix: &finding.fix,
            fix_edits: &finding.fix_edits,
            predicted_gain: gain.map(|gain| gain.gain),
            predicted_gain_interval: gain.map(|gain| gain.interval),
            cause: finding.cause,
            remote_fraction: finding.remote_fraction,
            interval: finding.interval,
            remote_share: finding.remote_share,
            figures: &finding.figures,
        }
    }
}
