//! Which part of the accesses that were seen a report judges.

use crate::NotJudgedReason;
use crate::evidence::Evidence;
use crate::judge::Subject;
use firsttouch_model::evidence::EvidenceSource;
use serde::{Deserialize, Serialize};

/// An all-clear needs at least this part of the accesses to recorded objects on those that were judged, or that stay in a core's cache.
const LEAST_COVERED: f64 = 0.5;
/// This part of all counts as nearly all.
const NEARLY: f64 = 0.95;

/// Shares of all accesses that the source saw after the initialisation; their sum is 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// On judged objects.
    pub judged: f64,
    /// On objects that fit in a core's cache, and lines of larger ones that stay there, so that their node hardly matters.
    pub cached: f64,
    /// On objects that were not judged for another reason.
    pub not_judged: f64,
    /// On memory of no recorded object, other than stacks; null if the source does not see those.
    pub elsewhere: Option<f64>,
    pub evidence: EvidenceSource,
}

impl Coverage {
    /// `None` if no accesses were seen.
    #[must_use]
    pub fn of(uses: &Evidence, subjects: &[Subject]) -> Option<Self> {
        let source = uses.volumes()?;
        let sampled = uses.of(source);
        let (mut judged, mut cached, mut not_judged) = (0.0, 0.0, 0.0);
        for subject in subjects {
            let sum = match &subject.reason {
                None => &mut judged,
                Some(reason) if Self::is_cached(reason) => &mut cached,
                Some(_) => &mut not_judged,
            };
            *sum += sampled.design.accesses(subject.group);
        }
        cached += sampled.cached;
        let all = judged + cached + not_judged + sampled.elsewhere.unwrap_or(0.0);
        (all > 0.0 && all.is_finite()).then(|| Self {
            judged: judged / all,
            cached: cached / all,
            not_judged: not_judged / all,
            elsewhere: sampled.elsewhere.map(|elsewhere| elsewhere / all),
            evidence: source.name(),
        })
    }

    /// Whether an object was not judged because it stays in a core's cache, where its node hardly matters.
    #[must_use]
    pub fn is_cached(reason: &NotJudgedReason) -> bool {
        matches!(
            reason,
            NotJudgedReason::Cached { .. } | NotJudgedReason::TouchedPartCached { .. } | NotJudgedReason::UsedPartCached { .. }
        )
    }

    /// Whether nearly all accesses to recorded objects are to those that fit in a core's cache.
    #[must_use]
    pub fn is_nearly_cached(&self) -> bool {
        self.cached > 0.0 && self.cached >= NEARLY * (self.judged + self.cached + self.not_judged)
    }

    /// Whether the judged part is too small for an all-clear. Memory of no recorded object does not count: most of it is in blocks too small
    /// to be recorded, which stay in a cache; where it is large, `unowned_memory.rs` rules out an all-clear.
    #[must_use]
    pub fn is_too_small(&self) -> bool {
        let covered = self.judged + self.cached;
        covered < LEAST_COVERED * (covered + self.not_judged)
    }
}
