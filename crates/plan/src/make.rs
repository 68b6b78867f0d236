//! Makes a plan from proposals and a forecast: the placements that the forecast chose, so that no entry costs time.

use crate::plan::{Entry, Gain, Plan, Policy};
use crate::propose::{Proposal, Proposals};
use crate::{Origin, file_name};
use firsttouch_analysis::{Analysis, Finding};
use firsttouch_model::prediction;
use firsttouch_model::rows::Profile;
use firsttouch_model::traffic::Division;
use firsttouch_predict::forecast::{Forecast, ForecastError};
use firsttouch_predict::model::TeamError;
use firsttouch_predict::program::{Choice, Left, Placement};

/// With fewer huge pages than this per node, interleaving spreads an object unevenly.
const HUGE_PAGES_A_NODE: u64 = 16;
const HUGE_PAGE: u64 = 2 << 20;
/// Smaller allocations are left alone, if the profile lacks the minimum size that was recorded.
const LEAST_BYTES: u64 = 64 << 10;
const UNORDERED: &str = "each thread owns a part, but several threads create threads at a time, and which is which changes from run to run";

/// A plan, and the model's prediction for it.
#[derive(Clone, Debug)]
pub struct Planned {
    pub plan: Plan,
    /// `None` if the prediction lacks a basis.
    pub outlook: Option<Outlook>,
}

/// The prediction for a run under a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// Whether only the machine's nodes are known.
    pub is_assumed: bool,
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
        ..Plan::default()
    };
    let forecast = match forecast {
        Ok(forecast) => forecast,
        Err(ForecastError::NotPredictable(why)) => {
            plan.left_alone.push(not_predictable(why));
            return Ok(Planned { plan, outlook: None });
        }
        Err(error) => return Err(error.clone()),
    };
    let choice = &forecast.choice;
    for one in &proposals.list {
        let Some(placement) = choice.placements.get(&one.view.id) else { continue };
        let gain = forecast.chosen_gains.get(&one.view.id).map(|gain| rounded(*gain));
        plan.entries.push(entry(one, *placement, gain, analysis.machine.nodes));
    }
    plan.left_alone = left_alone(proposals, choice);
    plan.modules = proposals.origins.modules(|module| plan.entries.iter().any(|entry| names(&entry.origin, module)));
    plan.gain = (!plan.entries.is_empty()).then(|| rounded(forecast.plan_gain));
    let outlook = Outlook {
        is_assumed: forecast.is_assumed,
        // The same figure as in the report. The model's own figure may differ, because it equalises shares that do not differ
        // significantly.
        remote_before: analysis.remote_fraction.unwrap_or(choice.remote[0]),
        remote_after: choice.remote[1],
        time_ratio: choice.time_ratio,
    };
    Ok(Planned { plan, outlook: Some(outlook) })
}

/// What a plan would do, without its figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Objects, and the reasons for their entries.
    pub placed: Vec<(String, String)>,
    /// A sentence on each object that would be left alone.
    pub left_alone: Vec<String>,
}

/// The objects that a plan with these placements would place or leave alone.
///
/// # Errors
/// When the choice failed for another reason than a missing basis for a prediction.
pub fn outline(proposals: &Proposals<'_>, choice: Result<&Choice, &ForecastError>) -> Result<Outline, ForecastError> {
    let choice = match choice {
        Ok(choice) => choice,
        Err(ForecastError::NotPredictable(why)) => {
            return Ok(Outline { placed: Vec::new(), left_alone: vec![not_predictable(why)] });
        }
        Err(error) => return Err(error.clone()),
    };
    let placed = proposals.list.iter().filter_map(|one| {
        let placement = choice.placements.get(&one.view.id)?;
        Some((one.view.name.clone(), reason(one, &one.policy(*placement))))
    });
    Ok(Outline { placed: placed.collect(), left_alone: left_alone(proposals, choice) })
}

fn not_predictable(why: &TeamError) -> String {
    format!("all of it: {why}")
}

fn names(origin: &Origin, module: &str) -> bool {
    match origin {
        Origin::Symbol { module: own, .. } => own == module,
        Origin::Site(site) => site.frames.iter().any(|frame| frame.module == module),
    }
}

/// Objects that were considered and not planned, one sentence each.
fn left_alone(proposals: &Proposals<'_>, choice: &Choice) -> Vec<String> {
    let mut list: Vec<String> = proposals.left_alone.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    if proposals.surplus > 0 {
        list.push(format!("{} objects more than a plan has room for", proposals.surplus));
    }
    let is_chosen = |one: &Proposal<'_>| choice.placements.contains_key(&one.view.id);
    for one in proposals.list.iter().filter(|one| one.has_unordered_owners && !is_chosen(one)) {
        list.push(format!("{}: {UNORDERED}", one.view.name));
    }
    for (object, why) in &choice.left {
        let Some(one) = proposals.list.iter().find(|one| one.view.id == *object && !one.has_unordered_owners) else { continue };
        list.push(format!("{}: {}", one.view.name, why_left(one, why)));
    }
    list
}

/// Why an object that could be placed is left alone.
fn why_left(one: &Proposal<'_>, why: &Left) -> String {
    match why {
        Left::Slower(option, ratio) => {
            format!("{} would take {:.0} % longer on this machine", one.policy(*option).name(), 100.0 * (ratio - 1.0))
        }
        Left::Together => "together with the other entries it is predicted to cost time on this machine".to_owned(),
    }
}

fn entry(one: &Proposal<'_>, placement: Placement, gain: Option<Gain>, nodes: usize) -> Entry {
    let (view, policy) = (one.view, one.policy(placement));
    let is_interleaved = matches!(policy, Policy::Interleave(_));
    Entry {
        what: view.name.clone(),
        at: view.allocated_at.as_ref().map(file_and_line).unwrap_or_default(),
        bytes: view.bytes,
        reason: reason(one, &policy),
        small_pages: is_interleaved && view.bytes < HUGE_PAGES_A_NODE * HUGE_PAGE * nodes as u64,
        policy,
        gain,
        origin: one.origin.clone(),
    }
}

/// Rounded: further digits would be more precise than the model.
fn rounded(gain: prediction::Gain) -> Gain {
    let [value, low, high] = [gain.gain, gain.interval[0], gain.interval[1]].map(|ratio| (ratio * 1e4).round() / 1e4);
    Gain { value, low, high }
}

fn reason(one: &Proposal<'_>, policy: &Policy) -> String {
    let how = match (policy, one.object.division) {
        (Policy::Blocked(_), _) => "each thread's part goes to the node of that thread",
        _ if one.has_unordered_owners => return format!("{}; {UNORDERED}; its pages go round the nodes", defect(one.finding)),
        (_, Division::Shared) => "all threads use all of it: its pages go round the nodes",
        (_, Division::DealtOut) => "no thread owns a part of it: its pages go round the nodes",
        _ => "its pages go round the nodes",
    };
    format!("{}; {how}", defect(one.finding))
}

fn defect(finding: &Finding) -> String {
    format!("{}: {:.0} % of its accesses are remote", finding.kind, 100.0 * finding.remote_fraction)
}

/// `file:line`; the function if the line is unknown.
fn file_and_line(place: &firsttouch_analysis::CodeLocation) -> String {
    match (place.file.as_deref().map(file_name), place.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => place.function.clone().unwrap_or_default(),
    }
}
