//! The same object over all ranks: those with the same variable, allocated at the same place by the same call.

use super::{ObjectAcrossRanks, OverRanks, RankView};
use crate::{Analysis, Interval, ObjectView};
use firsttouch_model::rows::ObjectKind;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// An outlier differs from the median by so many times the median difference of all, and by at least this much.
const FAR: f64 = 3.0;
const LEAST_DIFFERENCE: f64 = 0.05;

/// What the objects of several ranks have in common if they are one to the programmer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kin {
    kind: ObjectKind,
    call: Option<String>,
    name: String,
    ordinal: usize,
    /// File and line, or module and offset, of the allocation.
    place: Option<(String, u64)>,
}

/// The key of each object, by id, by which the objects of several ranks are matched. Objects of one rank that have the same name are numbered in their
/// order.
#[must_use]
pub fn kin(analysis: &Analysis) -> HashMap<i64, Kin> {
    let mut order: Vec<&ObjectView> = analysis.objects.iter().collect();
    order.sort_by_key(|object| (object.ordinal, object.id));
    let mut seen: HashMap<(usize, Kin), usize> = HashMap::new();
    let mut all = HashMap::new();
    for object in order {
        let part = analysis.ranks.partition_point(|rank| rank.process <= object.process);
        let kin = Kin::of(object);
        let ordinal = seen.entry((part, kin.clone())).or_default();
        all.insert(object.id, Kin { ordinal: *ordinal, ..kin });
        *ordinal += 1;
    }
    all
}

impl Kin {
    fn of(object: &ObjectView) -> Self {
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let place = object.allocated_at.as_ref().and_then(|place| match (&place.file, place.line) {
            (Some(file), Some(line)) => Some((base(file), u64::from(line))),
            _ => place.module.as_ref().zip(place.offset).map(|(module, offset)| (base(module), offset)),
        });
        Self { kind: object.kind, call: object.call.clone(), name: object.name.clone(), ordinal: 0, place }
    }
}

/// The objects that at least two ranks have, in the order of the analysis.
#[must_use]
pub fn across_ranks(analysis: &Analysis) -> Vec<ObjectAcrossRanks> {
    let kin_of = kin(analysis);
    let mut kin: BTreeMap<&Kin, Vec<usize>> = BTreeMap::new();
    for (index, object) in analysis.objects.iter().enumerate().filter(|(_, object)| object.shared_by.is_none()) {
        kin.entry(&kin_of[&object.id]).or_default().push(index);
    }
    let mut sets: Vec<Vec<usize>> = kin.into_values().filter(|indices| indices.len() > 1).collect();
    sets.sort();
    let of_objects = shares_of_objects(analysis);
    sets.iter().filter_map(|indices| one(analysis, indices, &of_objects)).collect()
}

/// A figure of an object of a rank, with its interval.
type Value<'a> = dyn Fn(&ObjectView, &RankView) -> Option<(f64, Interval)> + 'a;

fn one(analysis: &Analysis, indices: &[usize], of_objects: &HashMap<i64, f64>) -> Option<ObjectAcrossRanks> {
    let mut members: Vec<(&ObjectView, &RankView)> =
        indices.iter().filter_map(|&index| Some((&analysis.objects[index], analysis.rank_of(analysis.objects[index].process)?))).collect();
    members.sort_by_key(|(object, rank)| (rank.rank, object.id));
    let (first, _) = members.first()?;
    let ranks: Vec<u32> = members.iter().filter_map(|(_, rank)| rank.rank).collect();
    let figures = |value: &Value<'_>| {
        let all = members.iter().filter_map(|(object, rank)| Some((rank.rank, value(object, rank)?)));
        over_ranks(&all.collect::<Vec<_>>())
    };
    let exact = |value: f64| (value, [value, value]);
    Some(ObjectAcrossRanks {
        name: first.name.clone(),
        allocated_at: first.allocated_at.clone(),
        objects: members.iter().map(|(object, _)| object.id).collect(),
        ranks,
        bytes: figures(&|object, _| Some(exact(object.total_bytes as f64)))?,
        access_share: figures(&|object, rank| {
            let of_rank = rank.access_share?.max(of_objects.get(&rank.process).copied().unwrap_or(0.0));
            let [low, high] = object.access_share_interval.filter(|_| of_rank > 0.0)?;
            Some((object.access_share? / of_rank, [low / of_rank, (high / of_rank).min(1.0)]))
        }),
        remote_fraction: figures(&|object, _| object.remote_fraction.zip(object.remote_interval)),
        judged: members.iter().filter(|(object, _)| object.judged).count(),
    })
}

/// The share of each rank's own objects, by its first process. The shares of objects and of ranks may be from different samples, so that one object may seem to
/// have more than its rank.
fn shares_of_objects(analysis: &Analysis) -> HashMap<i64, f64> {
    let mut shares: HashMap<i64, f64> = HashMap::new();
    for object in analysis.objects.iter().filter(|object| object.shared_by.is_none()) {
        if let Some(rank) = analysis.rank_of(object.process) {
            *shares.entry(rank.process).or_default() += object.access_share.unwrap_or(0.0);
        }
    }
    shares
}

/// Least, middle and largest figure, and the rank that differs; `None` without figures.
pub(super) fn over_ranks(figures: &[(Option<u32>, (f64, Interval))]) -> Option<OverRanks> {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get((values.len().checked_sub(1)?) / 2).copied()
    };
    let values: Vec<f64> = figures.iter().map(|(_, (value, _))| *value).collect();
    let middle = median(values.clone())?;
    let usual = median(values.iter().map(|value| (value - middle).abs()).collect())?;
    let scale = if middle > 1.0 { middle } else { 1.0 };
    let differs = |(_, (value, [low, high])): &&(Option<u32>, (f64, Interval))| {
        let apart = (value - middle).abs();
        apart > FAR * usual && apart > LEAST_DIFFERENCE * scale && (*low > middle || *high < middle)
    };
    let outlier = figures.iter().filter(differs).max_by(|a, b| (a.1.0 - middle).abs().total_cmp(&(b.1.0 - middle).abs()));
    Some(OverRanks {
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        median: middle,
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        outlier: outlier.filter(|_| figures.len() > 2).and_then(|(rank, _)| *rank),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the rank that differs is named only if the others agree and its interval excludes their median.
    #[test]
    fn outliers_differ_from_the_others() {
        let over = |values: &[(f64, f64)]| {
            let figures: Vec<_> =
                values.iter().zip(0..).map(|((value, half), rank)| (Some(rank), (*value, [value - half, value + half]))).collect();
            over_ranks(&figures)
        };
        let some = |min, median, max, outlier| Some(OverRanks { min, median, max, outlier });
        assert_eq!(over(&[]), None);
        assert_eq!(over(&[(0.5, 0.02), (0.52, 0.02), (0.0, 0.02), (0.51, 0.02)]), some(0.0, 0.5, 0.52, Some(2)));
        assert_eq!(over(&[(0.5, 0.02), (0.52, 0.02), (0.0, 0.6), (0.51, 0.02)]), some(0.0, 0.5, 0.52, None), "chance explains it");
        assert_eq!(over(&[(0.1, 0.0), (0.3, 0.0), (0.5, 0.0), (0.7, 0.0)]), some(0.1, 0.3, 0.7, None), "all differ");
        assert_eq!(over(&[(0.0, 0.0), (1.0, 0.0)]), some(0.0, 0.0, 1.0, None), "two ranks");
        assert_eq!(over(&[(1e6, 0.0), (1e6, 0.0), (1.01e6, 0.0)]), some(1e6, 1e6, 1.01e6, None), "one percent of bytes");
        assert_eq!(over(&[(1e6, 0.0), (1e6, 0.0), (2e6, 0.0)]), some(1e6, 1e6, 2e6, Some(2)));
    }
}
