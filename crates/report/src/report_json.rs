//! The JSON of `firsttouch report`: the contract `firsttouch.report/1` (DESIGN.md, section 7). It combines an analysis with its forecast.

use crate::recommendation_json::RecommendationJson;
use firsttouch_analysis::job::{HostView, ObjectAcrossRanks, RankView};
use firsttouch_analysis::{
    Analysis, CodeLocation, Coverage, CrossCheck, EvidenceView, Figure, Finding, FixEdit, Interval, KernelView, LibraryFix, LostView,
    MachineView, NotJudged, Note, ObjectView, REPORT_SCHEMA, ThreadView, VerdictView,
};
use firsttouch_model::TouchCause;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::{FindingKind, FixKind, Severity};
use firsttouch_model::prediction::Prediction;
use firsttouch_plan::{Recommendation, Recommendations};
use firsttouch_predict::forecast::Forecast;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The contents of a report. [`Analysis`] documents each key.
#[derive(Serialize)]
pub struct ReportJson<'a> {
    pub schema: &'static str,
    pub command: &'a [String],
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
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
    /// What is worth repairing first, by predicted gain.
    pub findings: Vec<FindingJson<'a>>,
    pub not_judged: &'a [NotJudged],
    /// Shares of the accesses seen; null without evidence.
    pub coverage: &'a Option<Coverage>,
    pub kernel: &'a Option<KernelView>,
    pub notes: &'a [Note],
    /// Only if so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    pub lost: &'a [LostView],
    /// Of a job of several ranks, or a profile merged from several; else these are left out.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub hosts: &'a [HostView],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub ranks: &'a [RankView],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub missing_ranks: &'a [u32],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub across_ranks: &'a [ObjectAcrossRanks],
}

#[derive(Serialize)]
pub struct FindingJson<'a> {
    pub id: FindingKind,
    pub object: Option<i64>,
    pub together: &'a [i64],
    pub object_name: &'a str,
    pub severity: Severity,
    pub message: &'a str,
    pub fix: Cow<'a, str>,
    pub fix_edits: &'a [FixEdit],
    pub fix_kind: FixKind,
    /// The object placed by calls of libfirsttouch instead; null where the source does not show how.
    pub library: Option<&'a LibraryFix>,
    /// Time as it is / time after the fix of this object alone; null without a description of the machine.
    pub predicted_gain: Option<f64>,
    pub predicted_gain_interval: Option<Interval>,
    /// The fix and what a plan does, compared; null if the model failed.
    pub recommendation: Option<RecommendationJson<'a>>,
    pub cause: Option<TouchCause>,
    /// The place in the code whose first touches put most of the misplaced pages where they are, for a mismatched partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misplaced_at: Option<&'a CodeLocation>,
    pub remote_fraction: f64,
    pub interval: Interval,
    pub remote_share: f64,
    pub figures: &'a BTreeMap<String, Figure>,
    /// The ranks that have it, and the ids of the same objects in the others of these; only in a job of several ranks.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub ranks: &'a [u32],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub in_ranks: &'a [i64],
}

impl<'a> ReportJson<'a> {
    #[must_use]
    pub fn new(analysis: &'a Analysis, forecast: Option<&Forecast>, recommendations: &'a Recommendations) -> Self {
        Self {
            schema: REPORT_SCHEMA,
            command: &analysis.command,
            exit_code: analysis.exit_code,
            signal: analysis.signal,
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
            findings: FindingJson::all(analysis, recommendations),
            not_judged: &analysis.not_judged,
            coverage: &analysis.coverage,
            kernel: &analysis.kernel,
            notes: &analysis.notes,
            unfinished: analysis.unfinished,
            lost: &analysis.lost,
            hosts: &analysis.hosts,
            ranks: &analysis.ranks,
            missing_ranks: &analysis.missing_ranks,
            across_ranks: &analysis.across_ranks,
        }
    }
}

impl<'a> FindingJson<'a> {
    /// The findings of an analysis in the order of the recommendations, each with its own.
    #[must_use]
    pub fn all(analysis: &'a Analysis, recommendations: &'a Recommendations) -> Vec<Self> {
        recommendations
            .in_order(&analysis.findings)
            .map(|(finding, one)| Self::new(finding, one.map(|one| (recommendations, one))))
            .collect()
    }

    fn new(finding: &'a Finding, recommended: Option<(&'a Recommendations, &'a Recommendation)>) -> Self {
        let described = recommended.filter(|(all, _)| !all.is_assumed).and_then(|(_, one)| one.of_fix);
        let gain = described.and_then(|expected| Some((expected.gain, expected.interval?)));
        Self {
            id: finding.kind,
            object: finding.object,
            together: &finding.together,
            object_name: &finding.object_name,
            severity: finding.severity,
            message: &finding.message,
            fix: recommended.map_or_else(|| finding.fix.as_str().into(), |(_, one)| one.fix(finding)),
            fix_edits: &finding.fix_edits,
            fix_kind: finding.fix_kind,
            library: finding.library.as_ref(),
            predicted_gain: gain.map(|(gain, _)| gain),
            predicted_gain_interval: gain.map(|(_, interval)| interval),
            recommendation: recommended.map(|(all, one)| RecommendationJson::new(all, one)),
            cause: finding.cause,
            misplaced_at: finding.misplaced_at.as_ref(),
            remote_fraction: finding.remote_fraction,
            interval: finding.interval,
            remote_share: finding.remote_share,
            figures: &finding.figures,
            ranks: &finding.ranks,
            in_ranks: &finding.in_ranks,
        }
    }
}
