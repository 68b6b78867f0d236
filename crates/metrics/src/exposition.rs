//! The samples of a scrape, and the limit on their number.

use crate::catalogue::{ALL, Metric};
use std::collections::BTreeMap;

/// A value: counts and bytes are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Whole(value as u64)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Whole(u64::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

/// A sample: the values of the metric's labels, in their order, and its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub labels: Vec<String>,
    pub value: Value,
}

/// The samples of a metric.
#[derive(Clone, Debug)]
pub struct Family {
    pub metric: &'static Metric,
    pub samples: Vec<Sample>,
}

/// Samples that belong together: all of a node, of a control group, or of a process.
#[derive(Clone, Debug, Default)]
pub struct Batch(Vec<(&'static Metric, Sample)>);

impl Batch {
    /// Adds a sample. `labels`: the values of the metric's labels, in their order.
    pub fn add(&mut self, metric: &'static Metric, labels: &[&str], value: impl Into<Value>) {
        debug_assert_eq!(labels.len(), metric.labels.len(), "{}", metric.name);
        let value = value.into();
        if let Value::Real(real) = value
            && !real.is_finite()
        {
            return;
        }
        self.0.push((metric, Sample { labels: labels.iter().map(|label| (*label).to_owned()).collect(), value }));
    }

    /// As [`Batch::add`], if the value is known.
    pub fn add_known(&mut self, metric: &'static Metric, labels: &[&str], value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.add(metric, labels, value);
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The samples of a scrape.
#[derive(Clone, Debug)]
pub struct Exposition {
    families: Vec<Family>,
    limit: usize,
    series: usize,
    dropped: BTreeMap<&'static str, usize>,
    /// What could not be read, and what would help.
    pub doubts: Vec<String>,
}

impl Exposition {
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { families: Vec::new(), limit, series: 0, dropped: BTreeMap::new(), doubts: Vec::new() }
    }

    /// Takes a batch whole, or leaves it out whole if there would be more series than the limit: sums over the nodes of a group that is half there would be wrong.
    pub fn take(&mut self, collector: &'static str, batch: Batch) {
        let dropped = self.dropped.entry(collector).or_default();
        if self.series + batch.len() > self.limit {
            *dropped += batch.len();
            return;
        }
        self.series += batch.len();
        self.take_always(batch);
    }

    /// Takes samples that do not count: those about the exporter itself.
    pub fn take_always(&mut self, batch: Batch) {
        for (metric, sample) in batch.0 {
            match self.families.iter_mut().find(|family| std::ptr::eq(family.metric, metric)) {
                Some(family) => family.samples.push(sample),
                None => self.families.push(Family { metric, samples: vec![sample] }),
            }
        }
    }

    /// Series that were left out, more by the caller's count.
    pub fn drop_more(&mut self, collector: &'static str, series: usize) {
        *self.dropped.entry(collector).or_default() += series;
    }

    #[must_use]
    pub fn series(&self) -> usize {
        self.series
    }

    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Series that were left out, by collector.
    #[must_use]
    pub fn dropped(&self) -> &BTreeMap<&'static str, usize> {
        &self.dropped
    }

    /// The families in the order of the catalogue.
    pub fn families(&self) -> impl Iterator<Item = &Family> {
        ALL.iter().filter_map(|metric| self.families.iter().find(|family| std::ptr::eq(family.metric, *metric)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{BUILD, CGROUP_OUTSIDE, NODE_CPUS, PROCESS_REMOTE};

    fn batch(of: usize, name: &str) -> Batch {
        let mut batch = Batch::default();
        (0..of).for_each(|_| batch.add(&CGROUP_OUTSIDE, &[name], 1_u64));
        batch
    }

    /// Check that batches are taken whole, that smaller ones still find room, and that what is left out is counted.
    #[test]
    fn the_limit_keeps_batches_whole() {
        let mut exposition = Exposition::new(10);
        exposition.take("cgroups", batch(6, "/a"));
        exposition.take("cgroups", batch(5, "/b"));
        exposition.take("cgroups", batch(4, "/c"));
        exposition.take("memory", batch(1, "/d"));
        assert_eq!((exposition.series(), exposition.dropped()["cgroups"], exposition.dropped()["memory"]), (10, 5, 1));
        let mut own = Batch::default();
        own.add(&BUILD, &["1"], 1_u64);
        exposition.take_always(own);
        let families: Vec<(&str, usize)> = exposition.families().map(|family| (family.metric.name, family.samples.len())).collect();
        assert_eq!(families, [("firsttouch_cgroup_memory_outside_cpuset_bytes", 10), ("firsttouch_build", 1)]);
    }

    /// Check that what is not a number is not a sample.
    #[test]
    fn only_numbers_are_samples() {
        let mut batch = Batch::default();
        batch.add(&PROCESS_REMOTE, &["1", "a"], f64::NAN);
        batch.add(&PROCESS_REMOTE, &["1", "a"], f64::INFINITY);
        batch.add_known(&NODE_CPUS, &["0"], None::<u64>);
        assert!(batch.is_empty());
    }
}
