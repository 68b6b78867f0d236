//! Measures one group: how much it is used, by which threads, in which partition, and how much of that is remote. Decides whether the
//! evidence is enough to judge it.
//!
//! A group is **judged** if it
//! - is larger than a core's private cache, counting the memory alive at the same time;
//! - has at least 16 windows with hits that count as use;
//! - has first touches that identify the toucher: 8 records, or one for at least every second page, or the kernel on behalf of a known
//!   thread;
//! - has a known home for at least half of its sampled accesses;
//! - has a known partition of use.
//!
//! The remote fraction and the matrix **count** every group larger than the cache, judged or not, if homes are known: leaving out groups
//! with few hits would bias the result towards memory that is used a lot.

use crate::estimator::Design;
use crate::evidence::{ByThread, Hit, SourceRef, missing};
use crate::groups::Group;
use crate::homes::Home;
use crate::partition::{MIN_UNITS, Partition, PartitionKind, Sample, Unit, classify, thinning, turns};
use crate::threads::Threads;
use crate::touch_summary::TouchSummary;
use crate::{Missing, NotJudgedReason, Target};
use firsttouch_model::Estimate;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{ObjectKind, Profile};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The measurements of one group.
#[derive(Debug)]
pub struct Subject {
    pub group: usize,
    /// The source of the figures on its use.
    pub source: SourceRef,
    pub access_share: Option<Estimate>,
    pub partition: Partition,
    /// How many times the workers take turns over the range.
    pub turns: Option<u64>,
    /// By thread index: the share of accesses, and the number of traps.
    pub used_by: Vec<Option<Estimate>>,
    pub traps: Vec<u64>,
    pub touch: Rc<TouchSummary>,
    /// The remote fraction of the accesses with a known home.
    pub remote: Option<Estimate>,
    /// The remote fraction over only the windows whose home is certain.
    pub sure: Option<Estimate>,
    /// The fraction that would be remote if each page had stayed where its first toucher ran.
    pub by_first_touch: Option<Estimate>,
    /// The fraction of the accesses that go to nodes without CPUs, or to memory of a slower kind than that of nodes with CPUs.
    pub slow: Option<Estimate>,
    pub hit_windows: usize,
    /// Whether it counts in the remote fraction and the matrix.
    pub counts: bool,
    /// Why it is not judged.
    pub reason: Option<NotJudgedReason>,
}

impl Subject {
    /// Remote accesses to this group divided by all sampled accesses.
    #[must_use]
    pub fn remote_share(&self) -> f64 {
        self.access_share.map_or(0.0, |s| s.value) * self.remote.map_or(0.0, |r| r.value)
    }

    /// The number of arrays that a mapping seems to hold, each used in plain blocks. The kernel reports mappings only: several allocations
    /// side by side in one look like one object whose blocks are dealt out in turn.
    #[must_use]
    pub fn arrays_in_mapping(&self, kind: ObjectKind) -> Option<u64> {
        let dealt = kind == ObjectKind::Mapping && self.partition.kind == PartitionKind::BlockCyclic;
        self.turns.filter(|&turns| dealt && turns >= 2)
    }

    /// Workers that make at least 1 % of the accesses.
    #[must_use]
    pub fn users(&self, threads: &Threads) -> Vec<usize> {
        let mut workers: BTreeMap<usize, f64> = BTreeMap::new();
        for (thread, share) in self.used_by.iter().enumerate() {
            *workers.entry(threads.list[thread].worker).or_default() += share.map_or(0.0, |s| s.value);
        }
        workers.into_iter().filter(|(_, share)| *share >= 0.01).map(|(worker, _)| worker).collect()
    }
}

/// The input of the measurements.
pub struct Judge<'a> {
    pub profile: &'a Profile,
    pub target: &'a Target,
    pub threads: &'a Threads,
    pub design: &'a Design,
    pub source: SourceRef,
}

/// Which threads use a group, and from which nodes: the basis on which sources are compared.
#[derive(Debug)]
pub struct Usage {
    /// By thread index: the share of accesses, and the number of traps.
    used_by: Vec<Option<Estimate>>,
    traps: Vec<u64>,
    /// The remote fraction of the accesses with a known home.
    remote: Option<Estimate>,
}

impl Usage {
    /// The figure by which sources are compared: the remote fraction, else the largest share of a thread.
    #[must_use]
    pub fn main(&self) -> Option<Estimate> {
        self.remote.or_else(|| self.used_by.iter().flatten().max_by(|a, b| a.value.total_cmp(&b.value)).copied())
    }
}

impl Judge<'_> {
    /// Which threads use a group, and from which nodes.
    #[must_use]
    pub fn usage(&self, hits: &[Hit]) -> Usage {
        let mut traps = vec![0u64; self.threads.list.len()];
        let mut parts: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.threads.list.len()];
        for (at, hit) in hits.iter().enumerate() {
            for by in &hit.by_thread {
                traps[by.thread] = traps[by.thread].saturating_add(by.hits);
                parts[by.thread].push((at, by.rate));
            }
        }
        let whole: Vec<(usize, f64)> = hits.iter().map(|h| (h.draw, h.rate())).collect();
        let mut part = vec![0.0; hits.len()];
        let share = |own: &Vec<(usize, f64)>| {
            own.iter().for_each(|&(at, rate)| part[at] += rate);
            let share = self.design.part_of(&whole, &part);
            own.iter().for_each(|&(at, _)| part[at] = 0.0);
            share
        };
        let used_by = if hits.is_empty() { vec![None; parts.len()] } else { parts.iter().map(share).collect() };
        Usage { used_by, traps, remote: self.remote(hits.iter()) }
    }

    /// How the threads divide a group.
    #[must_use]
    pub fn partition(&self, group: &Group, hits: &[Hit]) -> Partition {
        let mut workers: BTreeMap<usize, f64> = BTreeMap::new();
        for hit in hits {
            for by in &hit.by_thread {
                *workers.entry(self.threads.list[by.thread].worker).or_default() += by.rate * self.design.weight(hit.draw);
            }
        }
        self.classified(group, hits, workers)
    }

    /// Measures one group with known usage, and with its partition if another source knows it better.
    #[must_use]
    pub fn measure(
        &self,
        index: usize,
        group: &Group,
        hits: &[Hit],
        usage: Usage,
        partition: Option<Partition>,
        touch: Rc<TouchSummary>,
    ) -> Subject {
        let partition = partition.unwrap_or_else(|| self.partition(group, hits));
        let mut subject = Subject {
            group: index,
            source: self.source,
            access_share: self.design.share(index),
            turns: if partition.kind == PartitionKind::BlockCyclic { turns(hits.iter().map(|hit| self.unit(hit))) } else { None },
            partition,
            used_by: usage.used_by,
            traps: usage.traps,
            remote: usage.remote.map(|remote| remote.widened(touch.home_error)),
            sure: self
                .remote(hits.iter().filter(|h| matches!(h.home, Home::Known { sure: true, .. })))
                .map(|remote| remote.widened(touch.home_error)),
            by_first_touch: self.fraction(hits.iter(), |home, by| match home {
                Home::Known { first: Some(first), .. } => Some(by.node != first),
                _ => None,
            }),
            slow: self.fraction(hits.iter(), |home, _| match home {
                Home::Known { node, .. } => Some(self.target.slow_nodes.contains(&node)),
                _ => None,
            }),
            touch,
            hit_windows: hits.len(),
            counts: group.extent() > self.target.private_cache_bytes,
            reason: None,
        };
        subject.reason = self.reason(group, hits, &subject);
        subject
    }

    /// The remote fraction over windows with a known home.
    pub fn remote<'h>(&self, hits: impl Iterator<Item = &'h Hit>) -> Option<Estimate> {
        self.fraction(hits, |home, by| match home {
            Home::Known { node, .. } => Some(by.node != node),
            _ => None,
        })
    }

    /// The fraction of the accesses for which `counts` is true, over those for which it is known.
    fn fraction<'h>(&self, hits: impl Iterator<Item = &'h Hit>, counts: impl Fn(Home, &ByThread) -> Option<bool>) -> Option<Estimate> {
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        for hit in hits.filter(|hit| !hit.by_thread.is_empty()) {
            let part = hit.by_thread.iter().try_fold(0.0, |sum, by| Some(if counts(hit.home, by)? { sum + by.rate } else { sum }));
            if let Some(part) = part {
                whole.push((hit.draw, hit.rate()));
                parts.push(part);
            }
        }
        self.design.part_of(&whole, &parts)
    }

    fn unit(&self, hit: &Hit) -> Unit {
        let rate = hit.rate().max(f64::MIN_POSITIVE);
        let mut shares: BTreeMap<usize, (f64, u64)> = BTreeMap::new();
        for by in &hit.by_thread {
            let entry = shares.entry(self.threads.list[by.thread].worker).or_default();
            entry.0 += by.rate / rate;
            entry.1 = entry.1.saturating_add(by.hits.max(1));
        }
        Unit {
            position: hit.position,
            shares: shares.iter().map(|(&worker, s)| (worker, s.0)).collect(),
            counts: shares.iter().map(|(&worker, s)| (worker, s.1)).collect(),
            cut: hit.by_thread.iter().any(|by| by.cut),
            round: hit.round,
        }
    }

    fn classified(&self, group: &Group, hits: &[Hit], weights: BTreeMap<usize, f64>) -> Partition {
        let cpus: usize = self.profile.machine.node_cpus.values().map(Vec::len).sum();
        classify(&Sample {
            units: hits.iter().step_by(thinning(hits.len())).map(|hit| self.unit(hit)).collect(),
            weights,
            stride: group.stride,
            rows: group.rows,
            cpus: if cpus == 0 { usize::MAX } else { cpus },
            sight: self.source.sight(),
        })
    }

    /// Why the group cannot be judged; `None` if it can.
    fn reason(&self, group: &Group, hits: &[Hit], subject: &Subject) -> Option<NotJudgedReason> {
        let touch = &subject.touch;
        let (seen, source) = (hits.len() as u64, self.source.name());
        if group.extent() <= self.target.private_cache_bytes {
            return Some(NotJudgedReason::Cached { cache_bytes: self.target.private_cache_bytes });
        }
        if hits.is_empty() {
            return Some(self.source.unseen(self.profile, self.design.windows(subject.group) as u64));
        }
        if hits.len() < MIN_UNITS {
            return Some(NotJudgedReason::TooFewSamples { seen, source, needed: MIN_UNITS as u64 });
        }
        if touch.kernel_unknown {
            return Some(NotJudgedReason::KernelTouched);
        }
        let known: f64 = hits.iter().filter(|h| matches!(h.home, Home::Known { .. })).map(|h| self.design.weight(h.draw) * h.rate()).sum();
        let observed = !self.target.virtual_machine && subject.remote.is_some();
        if !touch.enough && !observed {
            let attached = self.profile.meta.is_attached();
            let missing = || if attached { Missing::Attached } else { missing(self.profile, EvidenceSource::Touch) };
            let pages = group.extent() / touch.page_bytes.max(1);
            return Some(match touch.records {
                _ if touch.incomplete => NotJudgedReason::TouchesLost,
                0 => NotJudgedReason::TouchesNotSeen(missing()),
                records => NotJudgedReason::TooFewTouches { records: records as u64, pages, missing: missing() },
            });
        }
        if known < self.design.accesses(subject.group) / 2.0 {
            return Some(NotJudgedReason::UnknownNodes);
        }
        if subject.partition.kind == PartitionKind::Unknown {
            return Some(NotJudgedReason::UnclearPartition { threads: subject.users(self.threads).len(), seen, source });
        }
        None
    }
}

/// The sum of accesses over the groups that count, according to one source.
#[must_use]
pub fn counted_accesses(design: &Design, subjects: &[Subject]) -> f64 {
    subjects.iter().filter(|s| s.counts).map(|s| design.accesses(s.group)).sum()
}
