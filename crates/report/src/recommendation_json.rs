//! The recommendation for a finding as JSON, in reports, `check` and `plan`.

use firsttouch_analysis::Interval;
use firsttouch_model::finding::FindingKind;
use firsttouch_plan::{ObjectAdvice, Recommendation, Recommendations};
use firsttouch_predict::forecast::Expected;
use serde::Serialize;

/// Gains are time as it is / time after the change; null if they are not known. Their intervals are known only on machines whose bandwidths are
/// described, and in plans.
#[derive(Clone, Debug, Serialize)]
pub struct RecommendationJson<'a> {
    /// `worthwhile`, `not-predicted`, `no-gain`, `costs-time` or `only-alone`.
    pub worth: &'static str,
    /// Why it is not worth repairing on this machine; null if it is.
    pub why_not: Option<String>,
    /// The gain of the better of the fix and the plan.
    pub gain: Option<f64>,
    pub gain_interval: Option<Interval>,
    /// Whether the machine's speeds are assumed: those of the catalogue's median machine.
    pub assumed: bool,
    pub fix: FixJson,
    pub plan: PlanJson<'a>,
    /// What a plan does instead of the fix, and why; null if both do the same, or neither is worth it.
    pub difference: Option<String>,
}

/// The fix in the source.
#[derive(Clone, Debug, Serialize)]
pub struct FixJson {
    pub worth: bool,
    pub gain: Option<f64>,
    pub gain_interval: Option<Interval>,
}

/// What a plan does.
#[derive(Clone, Debug, Serialize)]
pub struct PlanJson<'a> {
    pub gain: Option<f64>,
    pub gain_interval: Option<Interval>,
    pub words: String,
    pub objects: Vec<ObjectJson<'a>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ObjectJson<'a> {
    pub object: i64,
    pub name: &'a str,
    /// `blocked` or `interleave`; null if the plan leaves it alone.
    pub policy: Option<&'static str>,
    /// Why the plan leaves it alone.
    pub left_alone: Option<String>,
}

impl<'a> RecommendationJson<'a> {
    #[must_use]
    pub fn new(all: &Recommendations, one: &'a Recommendation) -> Self {
        let gain = |expected: Option<Expected>| expected.map(|expected| expected.gain);
        let interval = |expected: Option<Expected>| expected.and_then(|expected| expected.interval);
        let object = |advice: &'a ObjectAdvice| ObjectJson {
            object: advice.object,
            name: &advice.name,
            policy: advice.policy(),
            left_alone: advice.left_alone().map(ToString::to_string),
        };
        Self {
            worth: one.worth.as_str(),
            why_not: all.why_not(one),
            gain: gain(one.gain()),
            gain_interval: interval(one.gain()),
            assumed: all.is_assumed,
            fix: FixJson { worth: one.is_fix_worth, gain: gain(one.of_fix), gain_interval: interval(one.of_fix) },
            plan: PlanJson {
                gain: gain(one.of_plan),
                gain_interval: interval(one.of_plan),
                words: one.plan_words(),
                objects: one.objects.iter().map(object).collect(),
            },
            difference: one.difference(),
        }
    }
}

/// The recommendation for a finding, where the finding itself is not shown.
#[derive(Clone, Debug, Serialize)]
pub struct FindingRecommendationJson<'a> {
    pub finding: FindingKind,
    /// The finding's first object; null if it is about the threads or the whole program.
    pub object: Option<i64>,
    #[serde(flatten)]
    pub recommendation: RecommendationJson<'a>,
}

impl<'a> FindingRecommendationJson<'a> {
    /// All of them, in their order.
    #[must_use]
    pub fn all(recommendations: &'a Recommendations) -> Vec<Self> {
        let one = |one: &'a Recommendation| Self {
            finding: one.kind,
            object: one.objects.first().map(|object| object.object),
            recommendation: RecommendationJson::new(recommendations, one),
        };
        recommendations.list.iter().map(one).collect()
    }
}
