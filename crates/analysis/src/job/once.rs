//! Each finding once: findings of several ranks on the same object of the program, with the same change, become one.
//!
//! Its figures are those of all these ranks together: shares are sums, fractions are means weighted by accesses, and the errors of ranks are
//! independent of each other. Its words are those of the rank with most remote accesses.

use super::{Kin, kin};
use crate::report::{Analysis, Finding, Interval, ObjectView};
use firsttouch_model::finding::{FindingKind, FixKind, Severity};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Makes one finding of those that several ranks have alike, and notes the ranks of each.
pub fn each_once(analysis: &mut Analysis) {
    if analysis.ranks.is_empty() {
        return;
    }
    let found = std::mem::take(&mut analysis.findings);
    let kin = kin(analysis);
    let objects: HashMap<i64, &ObjectView> = analysis.objects.iter().map(|object| (object.id, object)).collect();
    let mut sets: Vec<Vec<Finding>> = Vec::new();
    let mut place: BTreeMap<(FindingKind, &Kin, FixKind), usize> = BTreeMap::new();
    for finding in found {
        let object = finding.object.and_then(|id| objects.get(&id)).filter(|object| object.shared_by.is_none());
        let Some(object) = object else {
            sets.push(vec![finding]);
            continue;
        };
        let at = *place.entry((finding.kind, &kin[&object.id], finding.fix_kind)).or_insert(sets.len());
        match sets.get_mut(at) {
            Some(set) => set.push(finding),
            None => sets.push(vec![finding]),
        }
    }
    let mut findings: Vec<Finding> = sets.into_iter().filter_map(|set| one(analysis, &objects, set)).collect();
    findings.sort_by(|a, b| b.remote_share.total_cmp(&a.remote_share).then(a.object.cmp(&b.object)));
    for rank in 0..analysis.ranks.len() {
        let has = |finding: &&Finding| analysis.ranks[rank].rank.is_some_and(|number| finding.ranks.contains(&number));
        analysis.ranks[rank].findings = findings.iter().filter(|finding| has(finding)).map(|finding| finding.kind).collect();
    }
    analysis.findings = findings;
}

fn one(analysis: &Analysis, objects: &HashMap<i64, &ObjectView>, mut set: Vec<Finding>) -> Option<Finding> {
    set.sort_by(|a, b| b.remote_share.total_cmp(&a.remote_share));
    let rank = |id: i64| analysis.rank_of(objects.get(&id)?.process)?.rank;
    let mut ranks: Vec<u32> = set.iter().flat_map(Finding::objects).filter_map(rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let remote_share = set.iter().map(|finding| finding.remote_share).sum();
    let (remote_fraction, interval) = mean(&set);
    let in_ranks: Vec<i64> = set.iter().skip(1).flat_map(Finding::objects).collect();
    let first = set.into_iter().next()?;
    // The figures in the message are those of one rank.
    let of_first = first.object.and_then(rank).filter(|_| !in_ranks.is_empty());
    let message = of_first.map_or_else(|| first.message.clone(), |number| format!("In rank {number}: {}", first.message));
    let ranks = if first.ranks.is_empty() { ranks } else { first.ranks.clone() };
    Some(Finding { severity: Severity::of(remote_share), remote_share, remote_fraction, interval, in_ranks, ranks, message, ..first })
}

/// The mean of the remote fractions, weighted by accesses, and its interval.
fn mean(set: &[Finding]) -> (f64, Interval) {
    let weight = |finding: &Finding| if finding.remote_fraction > 0.0 { finding.remote_share / finding.remote_fraction } else { 0.0 };
    let all: f64 = set.iter().map(weight).sum();
    if set.len() < 2 || all <= 0.0 {
        return set.first().map_or((0.0, [0.0, 1.0]), |one| (one.remote_fraction, one.interval));
    }
    let part = |finding: &Finding| weight(finding) / all;
    let value: f64 = set.iter().map(|finding| part(finding) * finding.remote_fraction).sum();
    let error = |of: &dyn Fn(&Finding) -> f64| set.iter().map(|finding| (part(finding) * of(finding)).powi(2)).sum::<f64>().sqrt();
    let (below, above) = (error(&|f| f.remote_fraction - f.interval[0]), error(&|f| f.interval[1] - f.remote_fraction));
    (value, [(value - below).max(0.0), (value + above).min(1.0)])
}
