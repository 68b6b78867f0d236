//! One recommendation for each finding: what its fix in the source gains on this machine, what a plan does with its objects, and whether
//! either is worth it. Reports, `check` and `plan` show these recommendations, and a plan is made from them, so that they cannot contradict
//! each other.
//!
//! | a finding is | if |
//! |---|---|
//! | worthwhile | its fix gains, by itself and beside the placements of the other findings, or a plan places one of its objects |
//! | without prediction | the model predicts nothing for its fix: the evidence does not suffice, or the fix does not move memory |
//! | not worth repairing | its fix, and everything that a plan could do, gains nothing or costs time |
//!
//! On an assumed machine (`virtual:N`), whose speeds are those of the catalogue's median machine, a fix that gains nothing counts as
//! worthwhile; only what costs time does not.

mod words;

use crate::identify::Unplaceable;
use crate::propose::{Proposal, Proposals, Undivided};
use crate::{Origin, Policy};
use firsttouch_analysis::{Analysis, Finding};
use firsttouch_model::finding::{FindingKind, FixKind};
use firsttouch_predict::forecast::{Decision, Expected, FindingGains};
use firsttouch_predict::program::{Caps, LEAST_GAIN, Left};
use std::cmp::Ordering;

/// A fix beside other repairs may cost at most this.
const LEAST_BESIDE: f64 = 0.99;
/// On an assumed machine, a repair may cost this much, by itself or beside others: its speeds say nothing more precise.
const ASSUMED_COST: f64 = 1.05;
/// Gains are compared in steps of this size: the model is not more precise.
const STEP: f64 = 0.01;

/// The recommendations for the findings of an analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recommendations {
    /// What is worth it first, by gain, then by remote share.
    pub list: Vec<Recommendation>,
    /// The machine.
    pub machine: String,
    /// Whether only the machine's nodes are known, so that its speeds are those of a median machine.
    pub is_assumed: bool,
    /// Whether the program moves so little memory that latency may decide, which is not predicted.
    pub is_by_bandwidth_only: bool,
    /// Why nothing could be predicted.
    pub not_predictable: Option<String>,
}

/// The recommendation for one finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The index of the finding in the analysis.
    pub finding: usize,
    pub kind: FindingKind,
    pub fix_kind: FixKind,
    pub worth: Worth,
    /// The gain of the fix in the source by itself; `None` if it is not known.
    pub of_fix: Option<Expected>,
    /// Whether the fix in the source is worth it on this machine; also if its gain is not known.
    pub is_fix_worth: bool,
    /// Whether it is worth it to interleave its memory on this machine, by a plan or by numactl; also if its gain is not known.
    pub is_interleaving_worth: bool,
    /// The gain of what a plan does with its objects, by itself; `None` if it places none of them.
    pub of_plan: Option<Expected>,
    /// What a plan does with each of its objects.
    pub objects: Vec<ObjectAdvice>,
    /// What it gains to interleave all memory of the program, where a plan places nothing.
    pub spread_all: SpreadAll,
}

/// What `firsttouch run --interleave all` gains.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum SpreadAll {
    /// It is not known, or a plan places memory, which is better.
    #[default]
    Open,
    InVain,
    /// The figure, if the machine's speeds are known.
    Gains(Option<Expected>),
}

/// Whether a finding is worth repairing on a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Worth {
    Worthwhile,
    /// No gain is known.
    NotPredicted,
    NoGain,
    /// The time with the fix / the time as it is.
    Costs(f64),
    /// By itself it gains this; beside the placements of the other findings it costs time.
    OnlyAlone(f64),
}

/// What a plan does with an object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectAdvice {
    pub object: i64,
    pub name: String,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Place(Place),
    LeaveAlone(LeftAlone),
}

/// How a plan places an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub policy: Policy,
    /// The gain of this placement by itself.
    pub gain: Option<Expected>,
    /// Why each thread's part does not go to the node of that thread, if parts have owners.
    pub undivided: Option<Undivided>,
    pub origin: Origin,
    /// What the plan says about the object and the finding.
    pub reason: String,
}

/// Why a plan leaves an object alone.
#[derive(Clone, Debug, PartialEq)]
pub enum LeftAlone {
    Unplaceable(Unplaceable),
    /// The policy, the time with it / the time as it is, and why it is the only one.
    Slower(&'static str, f64, Option<Undivided>),
    Together,
    NoGain,
    /// Its predicted gain may be none: it is within the error of the prediction.
    Uncertain,
    NotPredictable(String),
}

impl Worth {
    /// Whether the finding should be repaired on this machine.
    #[must_use]
    pub fn is_worth(self) -> bool {
        matches!(self, Self::Worthwhile | Self::NotPredicted)
    }

    /// Its name in the JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worthwhile => "worthwhile",
            Self::NotPredicted => "not-predicted",
            Self::NoGain => "no-gain",
            Self::Costs(_) => "costs-time",
            Self::OnlyAlone(_) => "only-alone",
        }
    }
}

impl LeftAlone {
    /// Whether the model decided that.
    #[must_use]
    pub fn is_predicted(&self) -> bool {
        matches!(self, Self::Slower(..) | Self::Together | Self::NoGain | Self::Uncertain)
    }
}

impl Recommendation {
    /// The gain of the better of the fix and the plan, without what is not worth it.
    #[must_use]
    pub fn gain(&self) -> Option<Expected> {
        let fix = self.of_fix.filter(|_| self.is_fix_worth || self.of_plan.is_none());
        let both = fix.into_iter().chain(self.of_plan);
        both.reduce(|best, next| if next.gain > best.gain { next } else { best })
    }

    /// Its objects that a plan places.
    pub fn placed(&self) -> impl Iterator<Item = (&ObjectAdvice, &Place)> {
        self.objects.iter().filter_map(|one| match &one.action {
            Action::Place(place) => Some((one, place)),
            Action::LeaveAlone(_) => None,
        })
    }

    /// Whether its memory is predicted to be no faster interleaved than as it is.
    #[must_use]
    pub fn is_interleaving_no_faster(&self) -> bool {
        let is_no_faster = |why: &LeftAlone| matches!(why, LeftAlone::Slower("interleave" | "weighted", ..) | LeftAlone::NoGain);
        self.left_alone().any(|(_, why)| is_no_faster(why))
    }

    /// Its objects that a plan leaves alone.
    pub fn left_alone(&self) -> impl Iterator<Item = (&ObjectAdvice, &LeftAlone)> {
        self.objects.iter().filter_map(|one| match &one.action {
            Action::Place(_) => None,
            Action::LeaveAlone(why) => Some((one, why)),
        })
    }
}

impl Recommendations {
    /// Whether to advise `firsttouch run --interleave all`: no plan can place the memory, and that gains.
    #[must_use]
    pub fn is_spreading_advised(&self) -> bool {
        self.list.iter().any(Recommendation::is_spreading_advised)
    }

    /// Whether a plan places anything.
    #[must_use]
    pub fn has_placed(&self) -> bool {
        self.list.iter().any(|one| one.placed().next().is_some())
    }

    /// The findings in the order of the recommendations, each with its own; those without one last.
    pub fn in_order<'a>(&'a self, findings: &'a [Finding]) -> impl Iterator<Item = (&'a Finding, Option<&'a Recommendation>)> {
        let recommended = self.list.iter().filter_map(|one| Some((findings.get(one.finding)?, Some(one))));
        let others = findings.iter().enumerate().filter(|(index, _)| self.list.iter().all(|one| one.finding != *index));
        recommended.chain(others.map(|(_, finding)| (finding, None)))
    }
}

/// Recommends a repair for each finding. `decision`: the chosen placements, or why the model chose no placement.
#[must_use]
pub fn recommend(analysis: &Analysis, proposals: &Proposals<'_>, decision: Result<&Decision, String>) -> Recommendations {
    let not_predictable = decision.as_ref().err().cloned();
    let decision = decision.ok();
    let is_assumed = decision.is_some_and(|decision| decision.is_assumed);
    let maker = Maker { proposals, decision, not_predictable: not_predictable.as_deref(), is_assumed };
    let mut list: Vec<Recommendation> =
        analysis.findings.iter().enumerate().map(|(index, finding)| maker.recommend(analysis, index, finding)).collect();
    list.sort_by(|a, b| {
        in_order(a, b).then_with(|| {
            let share = |one: &Recommendation| analysis.findings[one.finding].remote_share;
            share(b).total_cmp(&share(a)).then(a.finding.cmp(&b.finding))
        })
    });
    let has_placed = list.iter().any(|one| one.placed().next().is_some());
    if let Some(decision) = decision.filter(|_| !has_placed) {
        list.iter_mut().for_each(|one| one.spread_all = spread_all(decision, one));
    }
    let is_by_bandwidth_only = decision.is_some_and(|decision| decision.caps == Caps::Recorded);
    Recommendations { list, machine: analysis.machine.name.clone(), is_assumed, is_by_bandwidth_only, not_predictable }
}

/// What is worth it comes first, then what gains more.
fn in_order(a: &Recommendation, b: &Recommendation) -> Ordering {
    let steps = |one: &Recommendation| one.gain().map_or(f64::NEG_INFINITY, |expected| (expected.gain / STEP).round());
    let class = |one: &Recommendation| match one.worth {
        Worth::Worthwhile => 0,
        Worth::NotPredicted => 1,
        Worth::NoGain | Worth::Costs(_) | Worth::OnlyAlone(_) => 2,
    };
    class(a).cmp(&class(b)).then(steps(b).total_cmp(&steps(a)))
}

struct Maker<'a> {
    proposals: &'a Proposals<'a>,
    decision: Option<&'a Decision>,
    not_predictable: Option<&'a str>,
    is_assumed: bool,
}

impl Maker<'_> {
    fn recommend(&self, analysis: &Analysis, index: usize, finding: &Finding) -> Recommendation {
        let name = |id: i64| analysis.objects.iter().find(|object| object.id == id).map_or(&finding.object_name, |object| &object.name);
        let advice = |id: i64| ObjectAdvice { object: id, name: name(id).clone(), action: self.action(id, finding) };
        let objects: Vec<ObjectAdvice> = finding.objects().map(advice).collect();
        let gains = finding.object.and_then(|first| self.decision?.findings.get(&first).copied());
        let of_plan = gains.and_then(|gains| gains.placed);
        let is_interleaving_worth = is_interleaving_worth(&objects, gains);
        let is_interleaved = finding.fix_kind == FixKind::Interleave;
        let is_fix_worth = gains.is_none_or(|gains| self.is_fix_worth(gains)) && (is_interleaving_worth || !is_interleaved);
        let worth = match gains {
            None => Worth::NotPredicted,
            Some(_) if is_fix_worth || of_plan.is_some() => Worth::Worthwhile,
            Some(gains) if gains.remedy.gain >= LEAST_GAIN && gains.beside_others < self.least_beside() => {
                Worth::OnlyAlone(gains.remedy.gain)
            }
            Some(gains) if gains.remedy.gain * self.least_cost() <= 1.0 => Worth::Costs(1.0 / gains.remedy.gain),
            // On an assumed machine this is something that costs time beside the others.
            Some(gains) if gains.beside_others < self.least_beside() => Worth::Costs(1.0 / gains.beside_others),
            Some(_) => Worth::NoGain,
        };
        let of_fix = gains.map(|gains| gains.remedy);
        let (kind, fix_kind) = (finding.kind, finding.fix_kind);
        Recommendation {
            finding: index,
            kind,
            fix_kind,
            worth,
            of_fix,
            is_fix_worth,
            is_interleaving_worth,
            of_plan,
            objects,
            spread_all: SpreadAll::Open,
        }
    }

    /// A repair that takes this many times as long costs time.
    fn least_cost(&self) -> f64 {
        if self.is_assumed { ASSUMED_COST } else { LEAST_GAIN }
    }

    fn least_beside(&self) -> f64 {
        if self.is_assumed { 1.0 / ASSUMED_COST } else { LEAST_BESIDE }
    }

    fn is_fix_worth(&self, gains: FindingGains) -> bool {
        let least = if self.is_assumed { 1.0 / ASSUMED_COST } else { LEAST_GAIN };
        gains.remedy.gain >= least && gains.beside_others >= self.least_beside()
    }

    fn action(&self, id: i64, finding: &Finding) -> Action {
        let id = self.proposals.alike.get(&id).copied().unwrap_or(id);
        if let Some((_, why)) = self.proposals.left_alone.iter().find(|(object, _)| *object == id) {
            return Action::LeaveAlone(LeftAlone::Unplaceable(why.clone()));
        }
        let Some(one) = self.proposals.list.iter().find(|one| one.view.id == id) else {
            return Action::LeaveAlone(LeftAlone::Unplaceable(Unplaceable::NoRemedy(finding.kind)));
        };
        let Some(decision) = self.decision else {
            return Action::LeaveAlone(LeftAlone::NotPredictable(self.not_predictable.unwrap_or_default().to_owned()));
        };
        if let Some(placement) = decision.choice.placements.get(&id) {
            let policy = one.policy(*placement);
            let reason = words::reason(one, &policy);
            let gain = decision.objects.get(&id).copied();
            return Action::Place(Place { policy, gain, undivided: one.undivided, origin: one.origin.clone(), reason });
        }
        let left = decision.choice.left.iter().find(|(object, _)| *object == id).map(|(_, why)| *why);
        Action::LeaveAlone(left_alone(one, left))
    }
}

fn left_alone(one: &Proposal<'_>, left: Option<Left>) -> LeftAlone {
    match left {
        Some(Left::Slower(option, ratio)) => LeftAlone::Slower(one.policy(option).name(), ratio, one.undivided),
        Some(Left::Together) => LeftAlone::Together,
        Some(Left::NoGain(gain)) if gain >= LEAST_GAIN => LeftAlone::Uncertain,
        Some(Left::NoGain(_)) | None => LeftAlone::NoGain,
    }
}

/// It gains something certain, and also by the memory of this finding alone.
fn spread_all(decision: &Decision, one: &Recommendation) -> SpreadAll {
    let all = decision.interleaved;
    let own = one.objects.first().and_then(|first| decision.findings.get(&first.object)).map_or(1.0, |gains| gains.interleaved);
    let is_certain = all.interval.is_none_or(|[low, _]| low > 1.0);
    if all.gain < LEAST_GAIN || own < LEAST_GAIN || !is_certain {
        return SpreadAll::InVain;
    }
    SpreadAll::Gains(Some(all).filter(|_| !decision.is_assumed))
}

/// A plan interleaves it, or would if a run could recognise it. What the plan leaves alone for its cost, numactl must not be advised for.
fn is_interleaving_worth(objects: &[ObjectAdvice], gains: Option<FindingGains>) -> bool {
    let mut left = objects.iter().filter_map(ObjectAdvice::left_alone);
    let is_placed = || objects.iter().any(|one| one.policy().is_some());
    gains.is_none_or(|gains| !left.any(LeftAlone::is_predicted) && (is_placed() || gains.interleaved >= LEAST_GAIN))
}
