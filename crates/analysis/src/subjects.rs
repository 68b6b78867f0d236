//! Measures every group: with the most informative source, and in the partition that all of the evidence shows.

use crate::diff::Change;
use crate::evidence::{Counts, Evidence, Hit, SourceRef};
use crate::groups::Group;
use crate::in_step::{common, in_step};
use crate::judge::{JudgeOf, Subject, Usage, divided};
use crate::partition::{MIN_UNITS, Partition};
use crate::report::CrossCheck;
use crate::tasks::Tasks;
use crate::views::interval;
use firsttouch_model::Estimate;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::parallel;
use std::borrow::Cow;
use std::sync::Arc;

/// The input.
pub struct Measured<'m, 'j> {
    pub judge: &'m JudgeOf<'m, 'j>,
    pub uses: &'m Evidence,
    pub groups: &'m [Group],
    pub tasks: &'m Tasks<'m>,
}

/// What one source shows of a group.
struct Draft {
    group: usize,
    source: SourceRef,
    usage: Usage,
    partition: Partition,
}

impl Measured<'_, '_> {
    /// The groups of which anything can be said.
    #[must_use]
    pub fn subjects(&self) -> Vec<Subject> {
        let groups: Vec<usize> = (0..self.groups.len()).collect();
        let (judge, uses, all) = (self.judge, self.uses, self.groups);
        let drafts = parallel::map(&groups, |&group| draft(judge, uses, all, group));
        let by_tasks =
            |draft: Draft| Draft { partition: self.tasks.partition(draft.partition, self.hits(draft.source, draft.group)), ..draft };
        let mut drafts: Vec<Draft> = drafts.into_iter().flatten().map(by_tasks).collect();
        self.agree(&mut drafts);
        drafts.into_iter().map(|draft| self.subject(draft)).collect()
    }

    fn hits(&self, source: SourceRef, group: usize) -> &[Hit] {
        &self.uses.of(source).hits[group]
    }

    /// Gives the objects of one statement one partition.
    fn agree(&self, drafts: &mut [Draft]) {
        let Some(source) = self.uses.sources().find(|source| source.name() == EvidenceSource::Sample) else { return };
        let extents: Vec<u64> = self.groups.iter().map(Group::extent).collect();
        for set in in_step(&self.uses.of(source).hits, &extents) {
            let own = || drafts.iter().filter(|draft| set.contains(&draft.group));
            let known: Vec<(&Partition, usize)> = own().map(|one| (&one.partition, self.hits(source, one.group).len())).collect();
            let Some(partition) = common(&known) else { continue };
            let from = own().find(|one| one.partition == *partition).map_or(1, |one| extents[one.group]);
            let partition = partition.clone();
            for draft in drafts.iter_mut().filter(|draft| set.contains(&draft.group)) {
                draft.partition = partition.scaled(from, extents[draft.group]);
            }
        }
    }

    fn subject(&self, draft: Draft) -> Subject {
        let Draft { group: g, source, usage, partition } = draft;
        let own = usage.remote;
        let touch = Arc::clone(&self.uses.summaries[g]);
        let group = &self.groups[g];
        let mut subject = (self.judge)(source).measure(&[g], group, self.hits(source, g), usage, Some(partition), touch);
        let is_comparable = |other: &SourceRef| *other != source && other.counts() == Counts::Accesses && self.uses.sees_threads(*other);
        for other in self.uses.sources().filter(is_comparable) {
            let figure = (self.judge)(other).remote(self.hits(other, g).iter());
            let check = own.zip(figure).and_then(|(own, figure)| cross_check(own, other, figure));
            if let Some(check) = check.filter(|check| !check.agrees && CrossCheck::is_precise(check.interval)) {
                subject.remote = subject.remote.map(|remote| remote.covering(check.interval));
            }
        }
        // One source gives the access share of every object, so that the shares can be compared.
        let share = self.uses.volumes().and_then(|volumes| self.uses.of(volumes).design.share(&[g]));
        Subject { access_share: share.or(subject.access_share), time_share: self.uses.time_share(&[g]), ..subject }
    }
}

/// What the best source shows of a group.
fn draft<'j>(judge: &JudgeOf<'_, 'j>, uses: &Evidence, groups: &[Group], group: usize) -> Option<Draft> {
    let hits = |source: SourceRef| &uses.of(source).hits[group][..];
    let (source, usage) = uses.best(|source| judge(source).usage(hits(source)), Usage::main)?;
    let partition = divided(judge, uses, &|source| Cow::Borrowed(hits(source)), &groups[group], source);
    Some(Draft { group, source, usage, partition })
}

/// The remote fraction by another source, if it has enough samples.
pub fn cross_check(remote: Estimate, source: SourceRef, other: Estimate) -> Option<CrossCheck> {
    (other.samples >= MIN_UNITS as u64).then(|| CrossCheck {
        evidence: source.name(),
        remote_fraction: other.value,
        interval: interval(other),
        samples: other.samples,
        agrees: CrossCheck::is_precise(interval(other)) && !differ(remote, other),
    })
}

/// Whether the difference of two figures is larger than chance explains.
pub fn differ(one: Estimate, other: Estimate) -> bool {
    let figure = |estimate: Estimate| Some((estimate.value, Some(interval(estimate))));
    Change::new(figure(one), figure(other)).significant == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that figures agree only if their difference may be chance, and that intervals with values in common do not suffice.
    #[test]
    fn figures_agree_within_chance() {
        let figure = |value: f64, low: f64, high: f64| Estimate { value, low, high, samples: 100 };
        for (one, other, same) in [
            (figure(0.48, 0.46, 0.5), figure(0.46, 0.4, 0.52), true),
            (figure(0.54, 0.5, 0.59), figure(0.44, 0.37, 0.5), false),
            (figure(0.49, 0.46, 0.51), figure(0.2, 0.1, 0.3), false),
            (figure(0.011, 0.0, 0.1), figure(0.22, 0.06, 0.56), false),
        ] {
            assert_eq!(differ(one, other), !same, "{one:?} {other:?}");
        }
    }
}
