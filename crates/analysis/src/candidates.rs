//! Objects that were filled by one thread and are used by others, with too few samples for a verdict, or for one that is certain. Together they
//! may matter.

use crate::NotJudgedReason;
use crate::findings::{REMOTE_BAR, SERIAL};
use crate::groups::Group;
use crate::judge::Subject;
use crate::names::ObjectName;
use crate::threads::Threads;
use crate::verdict::WIDEST_INTERVAL;
use firsttouch_model::Estimate;
use firsttouch_model::rows::Profile;

/// Of a candidate, at most this part of the homes is guessed.
const MOST_GUESSED: f64 = 0.25;
/// Objects named in the note, the largest first.
const NAMED: usize = 3;

/// Objects that may be misplaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// The names of the largest ones.
    pub named: Vec<String>,
    /// The number of all of them.
    pub count: usize,
    pub bytes: u64,
}

impl Candidates {
    /// `None` if no object is a candidate. `is_settled`: whether an object has a finding, or a verdict together with others.
    #[must_use]
    pub fn of(
        profile: &Profile,
        threads: &Threads,
        groups: &[Group],
        names: &[ObjectName],
        subjects: &[Subject],
        is_settled: &dyn Fn(&Subject) -> bool,
    ) -> Option<Self> {
        let is_open = |subject: &&Subject| is_candidate(profile, threads, (groups, names), subject) && !is_settled(subject);
        let mut found: Vec<&Subject> = subjects.iter().filter(is_open).collect();
        found.sort_by_key(|subject| std::cmp::Reverse(groups[subject.group].extent()));
        (!found.is_empty()).then(|| Self {
            named: found.iter().take(NAMED).map(|subject| names[subject.group].shown.clone()).collect(),
            count: found.len(),
            bytes: found.iter().map(|subject| groups[subject.group].extent()).fold(0, u64::saturating_add),
        })
    }
}

/// One thread touched nearly all of it first, and a thread on another node was seen to use it.
fn is_candidate(profile: &Profile, threads: &Threads, (groups, names): (&[Group], &[ObjectName]), subject: &Subject) -> bool {
    let has_few = matches!(subject.reason, Some(NotJudgedReason::TooFewSamples { .. } | NotJudgedReason::UnclearPartition { .. }));
    // Judged, but the interval reaches from well placed to misplaced.
    let is_wide = |remote: Estimate| remote.low <= REMOTE_BAR && remote.high - remote.low > WIDEST_INTERVAL;
    let is_uncertain = subject.reason.is_none() && subject.remote.is_some_and(is_wide);
    // Where most homes are guessed, the records do not show who touched all of it, and a longer run has no more of them.
    let is_guessed = !subject.is_same_anywhere && subject.home_error > MOST_GUESSED;
    let has_evidence = subject.counts && subject.touch.enough && !is_guessed;
    if names[subject.group].library.is_some() || !(has_few || is_uncertain) || !has_evidence {
        return false;
    }
    let process = profile.objects[groups[subject.group].representative].process;
    let toucher = subject.touch.main_worker().filter(|(_, share)| *share >= SERIAL).map(|(worker, _)| worker);
    let node = toucher.and_then(|worker| threads.of_worker(process, worker).map(|(_, thread)| thread));
    let mut users = subject.used_by.counting(|share| share.is_some_and(|share| share.value > 0.0));
    node.is_some_and(|toucher| users.any(|(user, _)| threads.list[user].node != toucher.node))
}
