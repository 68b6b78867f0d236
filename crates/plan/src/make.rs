//! Makes a plan from the recommendations: the placements that the forecast chose, so that no entry costs time.

use crate::plan::{Entry, Gain, Plan, Policy};
use crate::propose::Proposals;
use crate::recommend::{Place, Recommendation, Recommendations, recommend};
use crate::{Origin, RankNodes, file_name};
use firsttouch_analysis::{Analysis, ObjectView};
use firsttouch_model::prediction;
use firsttouch_model::rows::Profile;
use firsttouch_model::{NodeId, Pin};
use firsttouch_predict::forecast::{Forecast, ForecastError};
use firsttouch_predict::program::Caps;
use std::collections::BTreeSet;

/// With fewer huge pages than this per node, interleaving spreads an object unevenly.
const HUGE_PAGES_A_NODE: u64 = 16;
const HUGE_PAGE: u64 = 2 << 20;
/// Smaller allocations are left alone, if the profile lacks the minimum size that was recorded.
const LEAST_BYTES: u64 = 64 << 10;

/// A plan, and the model's prediction for it.
#[derive(Clone, Debug)]
pub struct Planned {
    pub plan: Plan,
    /// `None` if the prediction lacks a basis.
    pub outlook: Option<Outlook>,
    /// What it was made from.
    pub recommendations: Recommendations,
}

/// The prediction for a run under a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// Whether only the machine's nodes are known.
    pub is_assumed: bool,
    /// What limits a thread besides memory.
    pub caps: Caps,
    pub remote_before: f64,
    pub remote_after: f64,
    /// Time under the plan / time as it is.
    pub time_ratio: f64,
}

/// Plans for the machine of the forecast. `made_from` names the profile.
///
/// # Errors
/// When the forecast failed. If it only lacks a basis for a prediction, the result is an empty plan that says so.
pub fn make(
    profile: &Profile,
    analysis: &Analysis,
    proposals: &Proposals<'_>,
    forecast: Result<&Forecast, &ForecastError>,
    made_from: &str,
) -> Result<Planned, ForecastError> {
    let mut plan = Plan {
        made_from: made_from.to_owned(),
        judged_on: analysis.machine.name.clone(),
        command: analysis.command.clone(),
        nodes: u32::try_from(analysis.machine.nodes.max(1)).unwrap_or(1),
        least_bytes: profile.meta.min_size_bytes.unwrap_or(LEAST_BYTES),
        threads: proposals.numbering.threads.clone(),
        ranks: RankNodes::of(analysis),
        ..Plan::default()
    };
    if let Some(ranks) = &plan.ranks {
        // A run in a rank sees the rank's nodes only.
        plan.nodes = u32::try_from(ranks.most().max(1)).unwrap_or(1);
        plan.threads.pin = plan.threads.pin.take().map(|pin| from_first(pin, plan.nodes));
    }
    let decision = match forecast {
        Ok(forecast) => Ok(&forecast.decision),
        Err(ForecastError::NotPredictable(why)) => Err(why.to_string()),
        Err(error) => return Err(error.clone()),
    };
    let recommendations = recommend(analysis, proposals, decision);
    plan.left_alone = recommendations.left_alone();
    let Ok(forecast) = forecast else { return Ok(Planned { plan, outlook: None, recommendations }) };
    // Two entries for one object would contradict each other.
    let mut known = BTreeSet::new();
    let mut is_new = |id: i64| !proposals.is_alike(id) && known.insert(id);
    for (one, place) in recommendations.list.iter().flat_map(Recommendation::placed).filter(|(one, _)| is_new(one.object)) {
        if let Some(view) = analysis.objects.iter().find(|object| object.id == one.object) {
            let origin = proposals.origins.with_copies(place.origin.clone());
            plan.entries.push(Entry { origin, ..entry(view, place, analysis.machine.nodes) });
        }
    }
    plan.modules = proposals.origins.modules(|module| plan.entries.iter().any(|entry| names(&entry.origin, module)));
    plan.gain = (!plan.entries.is_empty()).then(|| rounded(forecast.plan_gain));
    let outlook = Outlook {
        is_assumed: forecast.is_assumed,
        caps: forecast.caps,
        // The same figure as in the report. The model's own figure may differ, because it equalises shares that do not differ
        // significantly.
        remote_before: analysis.remote_fraction.unwrap_or(forecast.decision.choice.remote[0]),
        remote_after: forecast.decision.choice.remote[1],
        time_ratio: forecast.decision.choice.time_ratio,
    };
    Ok(Planned { plan, outlook: Some(outlook), recommendations })
}

fn names(origin: &Origin, module: &str) -> bool {
    match origin {
        Origin::Symbol { module: own, .. } => own == module,
        Origin::Site(site) => site.frames.iter().any(|frame| frame.module == module),
    }
}

fn entry(view: &ObjectView, place: &Place, nodes: usize) -> Entry {
    let is_interleaved = matches!(place.policy, Policy::Interleave(_));
    let gain = place.gain.and_then(|gain| Some(prediction::Gain { gain: gain.gain, interval: gain.interval? }));
    Entry {
        what: view.name.clone(),
        at: view.allocated_at.as_ref().map(file_and_line).unwrap_or_default(),
        bytes: view.bytes,
        reason: place.reason.clone(),
        small_pages: is_interleaved && view.bytes < HUGE_PAGES_A_NODE * HUGE_PAGE * nodes as u64,
        policy: place.policy.clone(),
        gain: gain.map(rounded),
        origin: place.origin.clone(),
    }
}

/// The nodes of a rank's threads, counted from its first node.
fn from_first(pin: Pin, nodes: u32) -> Pin {
    let Pin::Nodes(list) = pin else { return pin };
    let first = list.iter().map(|node| node.0).min().unwrap_or(0);
    Pin::Nodes(list.iter().map(|node| NodeId((node.0 - first).min(nodes - 1))).collect())
}

/// Rounded: further digits would be more precise than the model.
fn rounded(gain: prediction::Gain) -> Gain {
    let [value, low, high] = [gain.gain, gain.interval[0], gain.interval[1]].map(|ratio| (ratio * 1e4).round() / 1e4);
    Gain { value, low, high }
}

/// `file:line`; the function if the line is unknown.
fn file_and_line(place: &firsttouch_analysis::CodeLocation) -> String {
    match (place.file.as_deref().map(file_name), place.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => place.function.clone().unwrap_or_default(),
    }
}
