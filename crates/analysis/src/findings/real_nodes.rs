//! On the machine of the profile: objects whose pages are not where first touch would put them, or whose users have moved.
//!
//! The rules for objects that pass the bars, in this order:
//!
//! | finding | rule |
//! |---|---|
//! | `slow-tier` | more than 5 % (lower end) of its accesses go to nodes without CPUs or of a slower tier |
//! | none | an interleave policy, and use without owners (`shared`, `irregular`): the remedy is already applied |
//! | `policy-mismatch` | its policy is not first touch, and had each page stayed where its first toucher ran, clearly less would be remote; or at least three quarters (lower end one half) of the touched pages were touched by their own user |
//! | `node-full` | without such a policy, at least a quarter (lower end 5 %) of the touched pages went to another node than their toucher ran on, and first touch would be clearly better |
//! | none | first touch would be clearly better, but the balancing moved pages away since (see `program.rs`) |
//! | `unpinned-threads` | use is stable, at least three quarters (lower end one half) of the touched pages were touched by their own user, and that user now runs elsewhere: of the pages, at least half as large a part as is remote now was touched from a node that their toucher is not on (by how often it was seen on each node) |
//!
//! "Clearly better": the interval of the fraction that would be remote by first touch lies below the interval of the fraction that is
//! remote.

use super::{Case, Context};
use crate::PartitionKind;
use crate::judge::Subject;
use crate::touch_summary::Record;
use firsttouch_model::Estimate;
use firsttouch_model::finding::FindingKind;
use std::collections::BTreeMap;

/// A larger fraction of accesses to slow nodes is reported.
const SLOW_BAR: f64 = 0.05;
/// The least fraction of pages that were placed on another node than their toucher's, and the lower limit it must exceed.
const DISPLACED: f64 = 0.25;
const DISPLACED_BAR: f64 = 0.05;
/// A larger fraction of pages that moved explains the placement.
const MOVED: f64 = 0.25;
/// The least fraction of pages that were touched by their own user, and the lower limit it must exceed.
const OWN: f64 = 0.75;
const OWN_BAR: f64 = 0.5;
/// The least number of records or answers behind such a fraction.
const RECORDS: u64 = 16;

/// The verdict on an object from the kernel's answers on real nodes.
pub(super) enum RealNodes {
    Kind(FindingKind),
    /// The placement is as good as possible, or another finding covers it.
    Nothing,
    /// First touch placed it: the remaining rules apply.
    Default,
}

impl Context<'_> {
    pub(super) fn kind_on_real_nodes(&self, case: &Case<'_>) -> RealNodes {
        let subject = case.subject;
        let (without_owners, policy) = (has_no_owners(case), self.policy(case));
        let better = is_better_by_first_touch(subject);
        if self.target.virtual_machine {
            return match policy {
                Some(_) if without_owners => RealNodes::Nothing,
                Some(_) if better => RealNodes::Kind(FindingKind::PolicyMismatch),
                _ => RealNodes::Default,
            };
        }
        if subject.slow.is_some_and(|s| s.low > SLOW_BAR) {
            return RealNodes::Kind(FindingKind::SlowTier);
        }
        if without_owners && policy.as_ref().is_some_and(|p| p.contains("interleave")) {
            return RealNodes::Nothing;
        }
        if without_owners || subject.partition.kind == PartitionKind::Unknown {
            return RealNodes::Default;
        }
        let enough = |e: Option<Estimate>, value: f64, low: f64| e.is_some_and(|e| e.samples >= RECORDS && e.value >= value && e.low > low);
        // Its users touched their own parts: what is remote is so because of the policy, also where the intervals do not show that it is better
        // by first touch.
        let is_own = || enough(self.touched_by_user(case), OWN, OWN_BAR);
        if policy.is_some() && (better || is_own()) {
            return RealNodes::Kind(FindingKind::PolicyMismatch);
        }
        if better && enough(subject.touch.displaced, DISPLACED, DISPLACED_BAR) {
            return RealNodes::Kind(FindingKind::NodeFull);
        }
        if better && enough(case.moves.part(case.moves.moved), MOVED, 0.0) {
            return RealNodes::Nothing;
        }
        let moved_away = subject.remote.is_some_and(|remote| self.left(case) >= remote.value / 2.0);
        if policy.is_none() && !better && enough(self.touched_by_user(case), OWN, OWN_BAR) && moved_away {
            return RealNodes::Kind(FindingKind::UnpinnedThreads);
        }
        RealNodes::Default
    }

    /// The object's memory policy; `None` if it is first touch, and on a virtual machine if it is not interleaved: no other policy says where
    /// its pages would be there.
    pub(super) fn policy(&self, case: &Case<'_>) -> Option<String> {
        let policy = self.profile.policies.get(&case.object.id).filter(|policy| !policy.is_first_touch())?;
        (!self.target.virtual_machine || policy.is_interleaved()).then(|| policy.in_words())
    }

    /// The fraction of the touched pages that their toucher is far from now: it touched them on another node than it was seen on since. A worker
    /// that was seen nowhere has left nothing.
    fn left(&self, case: &Case<'_>) -> f64 {
        let process = case.object.process;
        let nodes = self.target.nodes;
        let mut seen: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for (_, thread) in self.threads.beside(process) {
            let looks = self.threads.looks(self.profile, thread.id, nodes);
            let sums = seen.entry(thread.worker).or_insert_with(|| vec![0; nodes]);
            sums.iter_mut().zip(looks).for_each(|(sum, looks)| *sum = sum.saturating_add(looks));
        }
        let (mut left, mut all) = (0.0, 0.0);
        for (&(worker, node), pages) in &case.subject.touch.by_place {
            let looks = seen.get(&worker).map_or(&[][..], Vec::as_slice);
            let sum: f64 = looks.iter().map(|&looks| looks as f64).sum();
            let there = looks.get(node as usize).map_or(0.0, |&looks| looks as f64);
            left += if sum > 0.0 { pages * (1.0 - there / sum) } else { 0.0 };
            all += pages;
        }
        if all > 0.0 { left / all } else { 0.0 }
    }

    /// The fraction of the touched pages whose first toucher also uses them.
    pub(super) fn touched_by_user(&self, case: &Case<'_>) -> Option<Estimate> {
        let (mut own, mut all, mut squares) = (0.0, 0.0, 0.0);
        for &Record { position, worker, pages, .. } in &case.subject.touch.placed {
            let Some(owner) = case.subject.partition.owner(position) else { continue };
            all += pages;
            squares += pages * pages;
            own += if owner == worker { pages } else { 0.0 };
        }
        if all <= 0.0 {
            return None;
        }
        let (value, records) = (own / all, all * all / squares);
        Some(Estimate::fraction(value, (value * (1.0 - value) / records).sqrt(), records as u64))
    }
}

/// Whether clearly less would be remote by first touch.
pub(super) fn is_better_by_first_touch(subject: &Subject) -> bool {
    subject.by_first_touch.zip(subject.remote).is_some_and(|(first, now)| first.high < now.low)
}

fn has_no_owners(case: &Case<'_>) -> bool {
    matches!(case.subject.partition.kind, PartitionKind::Shared | PartitionKind::Irregular)
}
