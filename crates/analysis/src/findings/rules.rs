//! The rules of findings. An object has at most one finding, the first in the order of the table whose rule holds. The whole program may have
//! further ones.
//!
//! **Bars for all findings on objects:**
//! - the object is judged (see `judge.rs`), and no buffer that a library keeps for itself, which the program cannot place;
//! - the 95 % interval of its remote fraction lies above 0.05, and is at most 0.75 wide: a wider one says next to nothing, and where it lies
//!   changes from run to run;
//! - this does not depend on guessed homes: either the interval over only the windows whose home is certain (at least 8) lies above 0.05
//!   too, or the touched pages themselves (at least 16 records) disagree with the users' stable partition, by node, for more than 0.25 of
//!   them at the lower end of the interval;
//! - its remote accesses are at least 2 % of the accesses to all objects larger than a core's cache, and of all accesses seen. Objects with less than 5 % each
//!   count together if they were first touched and are used alike (`together.rs`): forty vectors with 1 % each are one finding.
//!
//! So a well-placed program has no finding, and no program has one on a target with one node.
//!
//! | finding | rule beyond the bars |
//! |---|---|
//! | `slow-tier`, `policy-mismatch`, `node-full`, `unpinned-threads` | on the recorded machine only: first touch is not what placed the pages, or the threads have moved since (`real_nodes.rs`) |
//! | `shared-read` | use is `shared`, by threads on at least two nodes, and not each thread's own allocations only |
//! | `no-stable-partition` | use is `irregular` |
//! | `recycled-memory` | use is stable; at least half of its touched pages were touched under a former owner (`touches.rs`) |
//! | `huge-page-sharing` | use is stable; pages are huge; several workers race for them; the first touches obey the users' partition at the touched address, and the remote pages hold parts of their home's own users (`huge.rs`); or first touches are not known, several threads made them, and each page holds parts of several nodes (`even_use.rs`) |
//! | `io-first-touch` | use is stable; the kernel touched at least half of it (recorded or derived), or the touching code is I/O |
//! | `policy-mismatch` | on any machine: the pages are interleaved, and by first touch one of the other rules would hold that are about first touches |
//! | `serial-first-touch` | use is stable; one worker touched at least 90 % of it |
//! | `mismatched-partition` | use is stable; none of the above: several threads touched it, in another partition |
//!
//! `unpinned-threads` and `balancing-churn` may also be about the whole program (`program.rs`): their object is null.
//!
//! Stable is `single`, `block` or `block-cyclic`. If use is not stable, no first touch would be right, so the use determines the finding,
//! and the message adds who touched the object.

use super::real_nodes::RealNodes;
use super::{Case, Context, huge};
use crate::PartitionKind;
use crate::judge::Subject;
use crate::partition::{MIN_UNITS, SINGLE};
use crate::touch_summary::Record;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::{Estimate, TouchCause};
use hashbrown::{HashMap, HashSet};

/// The lower limit of the remote fraction's interval must exceed this.
pub(crate) const REMOTE_BAR: f64 = 0.05;
/// Up to this, an object is near the bar.
pub(crate) const NEAR_BAR: f64 = 2.0 * REMOTE_BAR;
/// A wider interval of the remote fraction gives no finding.
pub(crate) const WIDEST: f64 = 0.75;
/// The remote accesses to an object must be at least this fraction of the accesses to all objects larger than a core's cache.
pub(crate) const WORTH_BAR: f64 = 0.02;
/// Misplaced objects whose remote accesses are less than this are minor: those of one pattern are one finding.
const MINOR: f64 = 0.05;
/// The least number of windows whose home is certain.
const SURE_WINDOWS: u64 = 8;
/// The least number of records for which first touches are compared with the users' partition. The lower limit of the fraction that
/// disagrees must exceed `DISAGREEMENT_BAR`.
const DISAGREEING_RECORDS: f64 = 16.0;
const DISAGREEMENT_BAR: f64 = 0.25;
/// First touch counts as serial if one worker touched at least this fraction of the pages.
pub(crate) const SERIAL: f64 = 0.90;

/// How much an object matters that is misplaced and has few of the remote accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Too little for a finding of its own.
    Small,
    Minor,
}

impl Context<'_> {
    /// The kind of an object's finding; `None` if no rule holds.
    pub(super) fn kind(&self, case: &Case<'_>) -> Option<FindingKind> {
        let subject = case.subject;
        if case.view.library.is_some() || subject.reason.is_some() || !self.passes_bars(subject) || !self.pool_is_worth(case) {
            return None;
        }
        match self.kind_on_real_nodes(case) {
            RealNodes::Kind(kind) => return Some(kind),
            RealNodes::Nothing => return None,
            RealNodes::Default => {}
        }
        let kind = self.kind_by_first_touch(case)?;
        let is_interleaved = self.policy(case).is_some_and(|policy| policy.contains("interleave"));
        Some(if is_interleaved && is_of_first_touch(kind) { FindingKind::PolicyMismatch } else { kind })
    }

    /// The kind of an object's finding if first touch placed it; `None` if no rule holds.
    pub(super) fn kind_by_first_touch(&self, case: &Case<'_>) -> Option<FindingKind> {
        let subject = case.subject;
        match subject.partition.kind {
            PartitionKind::Unknown => return None,
            // Buffers that each thread allocates for itself only look shared: the memory of one is that of another thread's next one.
            PartitionKind::Shared if self.is_of_allocators(case) => {
                return (subject.touch.recycled >= 0.5).then_some(FindingKind::RecycledMemory);
            }
            PartitionKind::Shared => return self.on_several_nodes(subject).then_some(FindingKind::SharedRead),
            PartitionKind::Irregular => return Some(FindingKind::NoStablePartition),
            PartitionKind::Single | PartitionKind::Block | PartitionKind::BlockCyclic => {}
        }
        // Each thread has parts, and yet it makes no difference where the pages are.
        if subject.is_same_anywhere {
            return Some(FindingKind::HugePageSharing);
        }
        let touch = &subject.touch;
        if touch.recycled >= 0.5 {
            return Some(FindingKind::RecycledMemory);
        }
        let serial = touch.main_worker().is_some_and(|(_, share)| share >= SERIAL);
        if huge::is_huge_page_sharing(case, self.threads) {
            return Some(FindingKind::HugePageSharing);
        }
        if touch.by_kernel >= 0.5 || case.view.first_touch.cause == Some(TouchCause::Io) {
            return Some(FindingKind::IoFirstTouch);
        }
        Some(if serial { FindingKind::SerialFirstTouch } else { FindingKind::MismatchedPartition })
    }

    fn passes_bars(&self, subject: &Subject) -> bool {
        let narrow = subject.remote.is_some_and(|remote| remote.high - remote.low <= WIDEST);
        // The share that the report shows counts what stays in a core's cache too.
        let share = || subject.remote_share() / self.own.share(subject.group);
        let matters = self.remote_part(subject) >= WORTH_BAR && subject.access_share.is_none_or(|_| share() >= WORTH_BAR);
        narrow && matters && self.is_misplaced(subject)
    }

    /// How much an object matters, if it is judged and misplaced.
    #[must_use]
    pub fn weight(&self, subject: &Subject) -> Option<Weight> {
        let part = self.remote_part(subject);
        let is_alone = self.groups[subject.group].pool.is_none();
        (is_alone && subject.reason.is_none() && part < MINOR && self.is_misplaced(subject)).then_some(if part < WORTH_BAR {
            Weight::Small
        } else {
            Weight::Minor
        })
    }

    /// Its remote accesses by the accesses to all objects larger than a core's cache.
    fn remote_part(&self, subject: &Subject) -> f64 {
        let counted = self.own.counted(subject.source, subject.group);
        if counted > 0.0 { subject.remote.map_or(0.0, |r| r.value) * subject.accesses / counted } else { 0.0 }
    }

    /// Whether enough of its accesses are remote, that does not depend on guessed homes, and another placement of its pages would change it.
    fn is_misplaced(&self, subject: &Subject) -> bool {
        let above = |e: Option<Estimate>| e.is_some_and(|e| e.low > REMOTE_BAR);
        let sure = subject.sure.is_some_and(|s| s.samples >= SURE_WINDOWS) && above(subject.sure);
        above(subject.remote) && ((sure && !subject.is_at_users) || self.touches_disagree(subject))
    }

    /// Whether the first toucher and the user of the touched addresses are on different nodes more often than chance explains.
    fn touches_disagree(&self, subject: &Subject) -> bool {
        let process = self.profile.objects[self.groups[subject.group].representative].process;
        let node_of: HashMap<usize, u32> = self.threads.beside(process).map(|(_, t)| (t.worker, t.node)).collect();
        let (mut apart, mut all, mut squares) = (0.0, 0.0, 0.0);
        for &Record { position, worker, pages, .. } in &subject.touch.placed {
            if let Some(owner) = subject.partition.owner(position) {
                all += pages;
                squares += pages * pages;
                apart += if node_of.get(&owner) == node_of.get(&worker) { 0.0 } else { pages };
            }
        }
        if all <= 0.0 {
            return false;
        }
        let (fraction, records) = (apart / all, (all * all / squares).min(subject.hit_windows as f64));
        let error = (fraction * (1.0 - fraction) / records).sqrt();
        records >= DISAGREEING_RECORDS && Estimate::fraction(fraction, error, records as u64).low > DISAGREEMENT_BAR
    }

    /// Whether several threads allocate, and each uses its own allocations only.
    fn is_of_allocators(&self, case: &Case<'_>) -> bool {
        let worker = |thread: usize| self.threads.list[thread].worker;
        let (mut own, mut all, mut allocators) = (0, 0, HashSet::new());
        for hit in case.hits {
            let allocator = self.profile.objects[hit.object].thread.and_then(|id| self.threads.index(id)).map(worker);
            all += hit.by_thread.len();
            own += hit.by_thread.iter().filter(|by| Some(worker(by.thread)) == allocator).count();
            allocators.extend(allocator);
        }
        all >= MIN_UNITS && own as f64 >= SINGLE * all as f64 && allocators.len() > 1
    }

    /// A pool's memory holds blocks of other lines too, and a heap of a hundred lines has pools of all sizes: only one whose remote accesses are
    /// worth it among the accesses to all objects, small ones too, is a finding.
    fn pool_is_worth(&self, case: &Case<'_>) -> bool {
        let share = case.view.access_share.unwrap_or(0.0) * case.subject.remote.map_or(0.0, |remote| remote.value);
        case.group.pool.is_none() || share / self.own.share(case.subject.group) >= WORTH_BAR
    }

    fn on_several_nodes(&self, subject: &Subject) -> bool {
        let used = subject.used_by.counting(|share| share.is_some_and(|share| share.value >= 0.01));
        let mut nodes: Vec<u32> = used.map(|(thread, _)| self.threads.list[thread].node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len() >= 2
    }
}

/// Whether first touch brings the defect about.
pub(super) fn is_of_first_touch(kind: FindingKind) -> bool {
    use FindingKind::{HugePageSharing, IoFirstTouch, MismatchedPartition, RecycledMemory, SerialFirstTouch};
    matches!(kind, SerialFirstTouch | MismatchedPartition | IoFirstTouch | RecycledMemory | HugePageSharing)
}
