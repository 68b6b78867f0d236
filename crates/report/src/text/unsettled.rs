//! Judged objects of which part is remote, without a finding: the report says what each of them lacks, so that none is missing.

use super::is_well_placed_for_sure;
use super::layout::clean;
use super::place::is_internal;
use super::words::{interval, percent, thousands};
use firsttouch_analysis as analysis;
use firsttouch_analysis::{Analysis, Finding, ObjectView, RemoteShare};
use firsttouch_model::rows::Id;
use std::collections::BTreeSet;

/// Objects named for each cause, those with the most accesses first.
const MOST_NAMED: usize = 3;
/// Remote accesses to an object that are a smaller part of all accesses are no finding.
const WORTH: f64 = 0.02;
/// A share is too uncertain if its upper end is so many times what would matter: a little above it, the object hardly matters either.
const MAY_MATTER: f64 = 2.0;
/// An interval that begins at most here reaches down to well-placed objects.
const WELL: f64 = 0.05;

/// Why a judged object of which part is remote has no finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// Its pages are at their main users: nothing to find.
    Nothing,
    Accesses,
    /// As far as the interval of its share of the accesses reaches, they may matter.
    Share,
    /// With the seconds that a longer run would take.
    Samples(Option<u64>),
    FirstTouches,
    Speeds,
    Agreement,
    Certainty,
}

/// The kinds, in the order of their sentences.
const KINDS: [Lack; 8] =
    [Lack::Nothing, Lack::Certainty, Lack::Samples(None), Lack::FirstTouches, Lack::Speeds, Lack::Agreement, Lack::Share, Lack::Accesses];

impl Lack {
    fn of(object: &ObjectView, wall_s: f64) -> Self {
        // At most, as far as the interval reaches.
        let most = object.remote_interval.map(|[_, high]| high).or(object.remote_fraction);
        let worth = object.access_share.zip(most).map(|(share, remote)| share * remote);
        if worth.is_some_and(|worth| worth < WORTH) {
            let reaches = object.access_share_interval.zip(most).is_some_and(|([_, high], remote)| high * remote >= MAY_MATTER * WORTH);
            return if reaches && !object.is_at_users { Self::Share } else { Self::Accesses };
        }
        if object.is_at_users && object.remote_fraction.is_some_and(|remote| remote > WELL) {
            return Self::Nothing;
        }
        match RemoteShare::of(object).and_then(|share| share.lack(wall_s)) {
            Some(analysis::Lack::Samples { more_s }) => Self::Samples(more_s),
            Some(analysis::Lack::FirstTouches) => Self::FirstTouches,
            Some(analysis::Lack::Agreement) => Self::Agreement,
            Some(analysis::Lack::Speeds) => Self::Speeds,
            // Of the program's share only.
            Some(analysis::Lack::Addresses | analysis::Lack::LastingThreads) => Self::Certainty,
            None if object.remote_interval.is_some_and(|[low, _]| low <= WELL) => Self::Samples(None),
            None => Self::Certainty,
        }
    }

    fn is_as(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Nothing => "On the nodes of the threads that use them most; other threads' accesses are remote wherever the pages are",
            Self::Accesses => "Too few accesses to matter",
            Self::Share => "The share of the accesses is not known well enough for a finding",
            Self::Samples(_) => "Too few samples for a finding",
            Self::FirstTouches => "Too few first touches recorded for a finding (a longer run has no more of them)",
            Self::Speeds => {
                "The speeds of the loops are not known well enough for a finding (a longer run helps only if it shows more of them)"
            }
            Self::Agreement => "The sources of evidence disagree too much for a finding",
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
            && object.remote_fraction.is_some()
            && !is_well_placed_for_sure(object)
    };
    let mut open: Vec<&ObjectView> = analysis.objects.iter().filter(is_open).collect();
    open.sort_by(|a, b| b.access_share.unwrap_or(0.0).total_cmp(&a.access_share.unwrap_or(0.0)));
    let sentence = |lack: Lack| {
        let own = |object: &ObjectView| Lack::of(object, analysis.wall_s);
        let of_cause: Vec<&ObjectView> = open.iter().copied().filter(|object| own(object).is_as(lack)).collect();
        let named: Vec<String> = of_cause.iter().take(MOST_NAMED).map(|object| one(object, own(object))).collect();
        let more = of_cause.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(", and {} more", thousands(more as u64)) } else { String::new() };
        (!named.is_empty()).then(|| format!("{}: {}{more}.", lack.words(), named.join(", ")))
    };
    let list: Vec<String> = KINDS.into_iter().filter_map(sentence).collect();
    (!list.is_empty()).then(|| list.join(" "))
}

fn one(object: &ObjectView, lack: Lack) -> String {
    let range = object.access_share_interval.filter(|_| lack == Lack::Share).map_or(String::new(), |range| format!(" {}", interval(range)));
    let share = object.access_share.map_or(String::new(), |share| format!("{} of the accesses{range}, ", percent(share)));
    let range = object.remote_interval.map_or(String::new(), |range| format!(" {}", interval(range)));
    let more = if let Lack::Samples(Some(more)) = lack { format!("; about {more} s more would decide") } else { String::new() };
    format!("{} ({share}{} remote{range}{more})", clean(&object.name), percent(object.remote_fraction.unwrap_or(0.0)))
}
