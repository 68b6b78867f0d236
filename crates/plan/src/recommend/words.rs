//! Recommendations in words.

use super::{Action, LeftAlone, ObjectAdvice, Place, Recommendation, Recommendations, SpreadAll, Worth};
use crate::Policy;
use crate::propose::{Proposal, Undivided};
use firsttouch_analysis::Finding;
use firsttouch_model::finding::{FixKind, Remedy};
use firsttouch_model::traffic::Division;
use firsttouch_predict::forecast::Expected;
use firsttouch_predict::program::LEAST_GAIN;
use std::borrow::Cow;
use std::fmt;

/// Objects that are named one by one.
const MOST_NAMED: usize = 3;
/// Where threads move little memory.
const BANDWIDTH_ONLY: &str = "by bandwidth alone (the program computes, or waits for latency, which is not predicted)";
const INTERLEAVED: &str = "its pages go round the nodes";
const BLOCKED: &str = "each thread's part goes to the node of that thread";

impl fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unplaceable(why) => why.fmt(f),
            Self::Slower(policy, ratio, undivided) => {
                if let Some(why) = undivided {
                    write!(f, "its parts cannot go to the nodes of their threads ({why}), and ")?;
                }
                write!(f, "{policy} would take {:.0} % longer on this machine", 100.0 * (ratio - 1.0))
            }
            Self::Together => write!(f, "together with the other entries it is predicted to cost time on this machine"),
            Self::NoGain => write!(f, "no gain is predicted on this machine"),
            Self::Uncertain => write!(f, "its predicted gain is within the error of the prediction on this machine"),
            Self::NotPredictable(why) => f.write_str(why),
        }
    }
}

impl Place {
    /// `each thread's part goes to the node of that thread`.
    #[must_use]
    pub fn how(&self) -> &'static str {
        if matches!(self.policy, Policy::Blocked(_)) { BLOCKED } else { INTERLEAVED }
    }
}

impl Recommendations {
    /// Why the finding is not worth repairing on this machine; `None` if it is.
    #[must_use]
    pub fn why_not(&self, one: &Recommendation) -> Option<String> {
        let assumed = if self.is_assumed { ", at the relative speeds of the catalogue's median machine" } else { "" };
        let why = match one.worth {
            Worth::Worthwhile | Worth::NotPredicted => return None,
            Worth::NoGain => {
                let what = if one.of_fix.is_some_and(|fix| fix.gain >= LEAST_GAIN) {
                    "no certain gain is predicted"
                } else {
                    "no gain is predicted"
                };
                let range = one.of_fix.and_then(|fix| fix.interval).map(|[low, high]| format!(" [{low:.2}, {high:.2}]"));
                let latency = if self.is_by_bandwidth_only { format!(", {BANDWIDTH_ONLY}") } else { String::new() };
                format!("{what}{}{latency}", range.unwrap_or_default())
            }
            Worth::Costs(ratio) => format!("its repair is predicted to take {:.0} % longer", 100.0 * (ratio - 1.0)),
            Worth::OnlyAlone(gain) => {
                format!("beside the other repairs it is predicted to cost time (by itself it would be {gain:.2} times as fast)")
            }
        };
        Some(format!("not worth repairing on {}: {why}{assumed}", self.machine))
    }

    /// What a plan leaves alone, one sentence each.
    #[must_use]
    pub fn left_alone(&self) -> Vec<String> {
        let mut list: Vec<String> = self.not_predictable.iter().map(|why| format!("all of it: {why}")).collect();
        let mut surplus = 0;
        for (one, why) in self.list.iter().flat_map(Recommendation::left_alone) {
            match why {
                LeftAlone::NotPredictable(_) => {}
                LeftAlone::Unplaceable(crate::Unplaceable::Surplus) => surplus += 1,
                why => list.push(format!("{}: {why}", one.name)),
            }
        }
        if surplus > 0 {
            list.push(format!("{surplus} objects more than a plan has room for"));
        }
        list
    }
}

impl Recommendation {
    /// The fix in words: also another way, if it is worth it on this machine.
    #[must_use]
    pub fn fix<'f>(&self, finding: &'f Finding) -> Cow<'f, str> {
        match finding.fix_otherwise.as_ref().filter(|_| self.is_interleaving_worth) {
            Some(otherwise) => format!("{}; or {otherwise}", finding.fix).into(),
            None => finding.fix.as_str().into(),
        }
    }

    /// What a plan does with the objects: `each thread's part goes to the node of that thread`, `left alone: ...`; where they differ, with
    /// names.
    #[must_use]
    pub fn plan_words(&self) -> String {
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for one in &self.objects {
            let words = match &one.action {
                Action::Place(place) => place.how().to_owned(),
                Action::LeaveAlone(why) => format!("left alone: {why}"),
            };
            match groups.iter_mut().find(|(known, _)| *known == words) {
                Some((_, names)) => names.push(&one.name),
                None => groups.push((words, vec![&one.name])),
            }
        }
        match &groups[..] {
            [] => "no placement of memory removes this".to_owned(),
            [(words, _)] => words.clone(),
            several => several.iter().map(|(words, names)| format!("{}: {words}", named(names))).collect::<Vec<_>>().join("; "),
        }
    }

    /// What the plan does instead of the fix in the source, and why; `None` if both do the same, or neither is worth it.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        if !self.worth.is_worth() || self.objects.is_empty() || self.fix_kind == FixKind::NotMemory {
            return None;
        }
        let Some((_, place)) = self.placed().next() else { return self.only_in_source() };
        let fix = if self.is_fix_worth { self.instead_of_fix(place) } else { Some(self.instead_of_costly_fix()) };
        // Of several objects, a plan may leave some alone.
        let is_part = self.left_alone().next().is_some();
        let all: Vec<String> = fix.into_iter().chain(is_part.then(|| self.plan_words())).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// No plan can place it, the finding is worth repairing, and interleaving all memory of the program gains.
    pub(super) fn is_spreading_advised(&self) -> bool {
        let is_unplaceable = |(_, why): (&ObjectAdvice, &LeftAlone)| matches!(why, LeftAlone::Unplaceable(_));
        self.worth.is_worth() && matches!(self.spread_all, SpreadAll::Gains(_)) && self.left_alone().next().is_some_and(is_unplaceable)
    }

    fn only_in_source(&self) -> Option<String> {
        let (_, why) = self.left_alone().next()?;
        let LeftAlone::Unplaceable(place) = why else {
            return Some(format!("only a change of the source removes this: a plan leaves it alone, because {why}"));
        };
        if matches!(place, crate::Unplaceable::Jvm) {
            return Some("options of the JVM and changes of the source remove this: no plan can place the JVM's own memory".to_owned());
        }
        let cannot = format!("no plan can place it, because {place}");
        Some(match self.spread_all {
            // The fix says so already.
            SpreadAll::Gains(gain) if self.fix_kind == FixKind::Interleave => {
                format!("{cannot}{}", spreading(gain, "to interleave all memory"))
            }
            SpreadAll::Gains(gain) => {
                let command = "firsttouch run --interleave all -- CMD interleaves all memory of the program";
                format!("{cannot}; without a change of the source, {command}{}", spreading(gain, "that"))
            }
            SpreadAll::InVain if self.fix_kind != FixKind::Interleave => format!("only a change of the source removes this: {cannot}"),
            SpreadAll::InVain | SpreadAll::Open => cannot,
        })
    }

    /// Where the fix is worth it, too.
    fn instead_of_fix(&self, place: &Place) -> Option<String> {
        if matches!(place.policy, Policy::Blocked(_)) {
            return None;
        }
        match (self.fix_kind, self.fix_kind.remedy()) {
            (FixKind::FixedParts, _) => Some(
                "fixed parts for each thread are best, in the source; a plan cannot change which thread works on a part, so it interleaves the \
                 pages"
                    .to_owned(),
            ),
            (FixKind::CopyPerNode, _) => {
                Some("a copy a node is best, in the source; a plan cannot copy memory, so it interleaves the pages".to_owned())
            }
            (_, Some(Remedy::ParallelFirstTouch)) => Some(format!("a plan interleaves the pages, because {}", self.why_interleaved(place))),
            _ => None,
        }
    }

    fn why_interleaved(&self, place: &Place) -> String {
        if let Some(why) = place.undivided {
            return why.to_string();
        }
        let faster = self.of_plan.zip(self.of_fix).map(|(plan, fix)| plan.gain / fix.gain).filter(|ratio| *ratio >= LEAST_GAIN);
        match faster {
            Some(ratio) => {
                format!("that is predicted to be {:.0} % faster here than each thread's part on its own node", 100.0 * (ratio - 1.0))
            }
            None => "that is predicted to be faster here, together with its other entries".to_owned(),
        }
    }

    fn instead_of_costly_fix(&self) -> String {
        let cost = match self.of_fix.map(|fix| fix.gain) {
            Some(gain) if gain * LEAST_GAIN <= 1.0 => format!("take {:.0} % longer", 100.0 * (1.0 / gain - 1.0)),
            Some(gain) if gain >= LEAST_GAIN => "cost time beside the other repairs".to_owned(),
            _ => "gain nothing".to_owned(),
        };
        format!("on this machine only the plan is worth it: the fix in the source is predicted to {cost}")
    }
}

/// `; that is predicted to be 2.11 times as fast [1.90, 2.40]`; empty without a figure.
fn spreading(gain: Option<Expected>, what: &str) -> String {
    gain.map_or_else(String::new, |one| {
        let range = one.interval.map_or_else(String::new, |[low, high]| format!(" [{low:.2}, {high:.2}]"));
        format!("; {what} is predicted to be {:.2} times as fast{range}", one.gain)
    })
}

/// `m_x, m_y, m_z and 8 more`.
fn named(names: &[&str]) -> String {
    let shown = names.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The reason of an entry in a plan: the defect, and where the memory goes.
pub(super) fn reason(one: &Proposal<'_>, policy: &Policy) -> String {
    let how = match (policy, one.object.division, one.undivided) {
        (Policy::Blocked(_), Division::DealtOut, _) => {
            "the block of it that one of its loops gives each thread goes to the node of that thread".to_owned()
        }
        (Policy::Blocked(_), ..) => BLOCKED.to_owned(),
        (_, _, Some(why @ (Undivided::Unordered | Undivided::AllocatedAtOnce))) => {
            format!("each thread owns a part, but {why}; {INTERLEAVED}")
        }
        (_, Division::Shared, _) => format!("all threads use it all over: {INTERLEAVED}"),
        (_, Division::DealtOut, _) => format!("no thread owns a part of it: {INTERLEAVED}"),
        _ => INTERLEAVED.to_owned(),
    };
    format!("{}; {how}", defect(one.finding))
}

fn defect(finding: &Finding) -> String {
    format!("{}: {:.0} % of its accesses are remote", finding.kind, 100.0 * finding.remote_fraction)
}

impl ObjectAdvice {
    /// The policy by which a plan places it.
    #[must_use]
    pub fn policy(&self) -> Option<&'static str> {
        match &self.action {
            Action::Place(place) => Some(place.policy.name()),
            Action::LeaveAlone(_) => None,
        }
    }

    /// Why a plan leaves it alone.
    #[must_use]
    pub fn left_alone(&self) -> Option<&LeftAlone> {
        match &self.action {
            Action::Place(_) => None,
            Action::LeaveAlone(why) => Some(why),
        }
    }
}
