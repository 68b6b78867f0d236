//! On the machine of the profile: objects whose pages are not where first touch puts them, or whose users have left.
//!
//! Asked of objects that pass the bars, in this order:
//!
//! | finding | rule |
//! |---|---|
//! | `slow-tier` | more than 5 % (lower end) of its accesses go to nodes without CPUs or of a slower tier |
//! | none | an interleave policy, and use that has no owners (`shared`, `irregular`): that is the remedy, taken already |
//! | `policy-mismatch` | its policy is not first touch, and had each page stayed where its first toucher ran, clearly less would be remote |
//! | `node-full` | without such a policy, at least a quarter (lower end 5 %) of the touched pages went to another node than their toucher ran on, and first touch would be clearly better |
//! | none | first touch would be clearly better, but pages were moved away since: the balancing's doing (`program.rs`) |
//! | `unpinned-threads` | use is stable, and at least three quarters (lower end one half) of the touched pages were touched by their own user: what is remote now was local once |
//!
//! Clearly: the interval of what would be remote by first touch lies below that of what is.

use super::{Case, Context};
use crate::PartitionKind;
use firsttouch_model::Estimate;
use firsttouch_model::finding::FindingKind;

/// Part of the accesses to slow nodes that is worth a word.
const SLOW_BAR: f64 = 0.05;
/// Part of the pages displaced when they were touched.
const DISPLACED: f64 = 0.25;
const DISPLACED_BAR: f64 = 0.05;
/// Part of the pages that moved, as an explanation.
const MOVED: f64 = 0.25;
/// Part of the pages touched by their own user.
const OWN: f64 = 0.75;
const OWN_BAR: f64 = 0.5;
/// Records or answers that such parts rest on.
const RECORDS: u64 = 16;

/// What real nodes say of an object.
pub(super) enum Verdict {
    Kind(FindingKind),
    /// Placed as well as can be, or another finding's matter.
    Nothing,
    /// First touch placed it: the other rules hold.
    AsEver,
}

impl Context<'_> {
    pub(super) fn kind_on_real_nodes(&self, case: &Case<'_>) -> Verdict {
        if self.target.virtual_machine {
            return Verdict::AsEver;
        }
        let subject = case.subject;
        if subject.slow.is_some_and(|s| s.low > SLOW_BAR) {
            return Verdict::Kind(FindingKind::SlowTier);
        }
        let policy = self.policy(case);
        let without_owners = matches!(subject.partition.kind, PartitionKind::Shared | PartitionKind::Irregular);
        if without_owners && policy.is_some_and(|p| p.contains("interleave")) {
            return Verdict::Nothing;
        }
        if without_owners || subject.partition.kind == PartitionKind::Unknown {
            return Verdict::AsEver;
        }
        let better = subject.by_first_touch.zip(subject.remote).is_some_and(|(first, real)| first.high < real.low);
        if better && policy.is_some() {
            return Verdict::Kind(FindingKind::PolicyMismatch);
        }
        let enough = |e: Option<Estimate>, value: f64, low: f64| e.is_some_and(|e| e.samples >= RECORDS && e.value >= value && e.low > low);
        if better && enough(subject.touch.displaced, DISPLACED, DISPLACED_BAR) {
            return Verdict::Kind(FindingKind::NodeFull);
        }
        if better && enough(case.moves.part(case.moves.moved), MOVED, 0.0) {
            return Verdict::Nothing;
        }
        if policy.is_none() && !better && enough(self.touched_by_user(case), OWN, OWN_BAR) {
            return Verdict::Kind(FindingKind::UnpinnedThreads);
        }
        Verdict::AsEver
    }

    /// The object's memory policy, where it is not first touch.
    pub(super) fn policy(&self, case: &Case<'_>) -> Option<&str> {
        let policy = self.profile.policies.get(&case.object.id)?.policy.as_str();
        (!self.target.virtual_machine && !matches!(policy, "default" | "local")).then_some(policy)
    }

    /// The part of the touched pages whose first toucher is who uses them.
    pub(super) fn touched_by_user(&self, case: &Case<'_>) -> Option<Estimate> {
        let (mut own, mut all, mut squares) = (0.0, 0.0, 0.0);
        for &(position, lane, pages) in &case.subject.touch.placed {
            let Some(owner) = case.subject.partition.owner(position) else { continue };
            all += pages;
            squares += pages * pages;
            own += if owner == lane { pages } else { 0.0 };
        }
        if all <= 0.0 {
            return None;
        }
        let (value, records) = (own / all, all * all / squares);
        Some(Estimate::fraction(value, (value * (1.0 - value) / records).sqrt(), records as u64))
    }
}
