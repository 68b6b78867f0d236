//! Judged objects of which part is remote, without a finding: the report says what each of them lacks, so that none is missing.

use super::FEW;
use super::layout::clean;
use super::place::is_internal;
use super::words::{interval, percent, thousands};
use firsttouch_analysis::{Analysis, Finding, ObjectView, more_seconds};
use firsttouch_model::rows::Id;
use std::collections::BTreeSet;

/// Objects named for each cause, those with the most accesses first.
const MOST_NAMED: usize = 3;
/// Remote accesses to an object that are a smaller part of all accesses are no finding.
const WORTH: f64 = 0.02;
/// An interval that begins at most here reaches down to well-placed objects.
const WELL: f64 = 0.05;
/// A wider interval gives no finding.
const WIDEST: f64 = 0.75;

/// Why a judged object of which part is remote has no finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    Accesses,
    Samples,
    Certainty,
}

impl Lack {
    fn of(object: &ObjectView) -> Self {
        let worth = object.access_share.zip(object.remote_fraction).map(|(share, remote)| share * remote);
        match () {
            () if worth.is_some_and(|worth| worth < WORTH) => Self::Accesses,
            () if object.remote_interval.is_some_and(|[low, high]| low <= WELL || high - low > WIDEST) => Self::Samples,
            () => Self::Certainty,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Accesses => "Too few accesses to matter",
            Self::Samples => "Too few samples for a finding",
            Self::Certainty => "Partly remote, but no finding is certain",
        }
    }
}

/// `Too few accesses to matter: A.rowptr (1.1 % of the accesses, 47 % remote [27, 67]).`; `None` if no object is in such a case.
pub fn sentences(analysis: &Analysis) -> Option<String> {
    let misplaced: BTreeSet<Id> = analysis.findings.iter().flat_map(Finding::objects).collect();
    let is_open = |object: &&ObjectView| {
        object.judged
            && !misplaced.contains(&object.id)
            && !is_internal(object)
            && object.remote_fraction.is_some_and(|remote| remote > FEW)
    };
    let mut open: Vec<&ObjectView> = analysis.objects.iter().filter(is_open).collect();
    open.sort_by(|a, b| b.access_share.unwrap_or(0.0).total_cmp(&a.access_share.unwrap_or(0.0)));
    let sentence = |lack: Lack| {
        let of_cause: Vec<&ObjectView> = open.iter().copied().filter(|object| Lack::of(object) == lack).collect();
        let named: Vec<String> = of_cause.iter().take(MOST_NAMED).map(|object| one(object, lack, analysis.wall_s)).collect();
        let more = of_cause.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(", and {} more", thousands(more as u64)) } else { String::new() };
        (!named.is_empty()).then(|| format!("{}: {}{more}.", lack.words(), named.join(", ")))
    };
    let list: Vec<String> = [Lack::Certainty, Lack::Samples, Lack::Accesses].into_iter().filter_map(sentence).collect();
    (!list.is_empty()).then(|| list.join(" "))
}

fn one(object: &ObjectView, lack: Lack, wall_s: f64) -> String {
    let share = object.access_share.map_or(String::new(), |share| format!("{} of the accesses, ", percent(share)));
    let range = object.remote_interval.map_or(String::new(), |range| format!(" {}", interval(range)));
    let remote = object.remote_fraction.zip(object.remote_interval).filter(|_| lack == Lack::Samples);
    let more = remote.and_then(|(value, range)| more_seconds(value, range, wall_s));
    let more = more.map_or(String::new(), |more| format!("; about {more} s more would decide"));
    format!("{} ({share}{} remote{range}{more})", clean(&object.name), percent(object.remote_fraction.unwrap_or(0.0)))
}
