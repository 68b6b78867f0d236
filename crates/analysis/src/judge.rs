//! One group, measured: how much it is used, by whom, in which partition, how much of that is remote, and whether that is
//! enough to judge it.
//!
//! **Judged** is a group that
//! - is larger, as far as alive at once, than a core's private cache;
//! - has at least 16 windows that were hit as use;
//! - has first touches that tell who: 8 records, or one for at least every other page, or the kernel on behalf of a known thread;
//! - has a known home for at least half of its sampled accesses;
//! - has a known partition of use.
//!
//! The remote fraction and the matrix **count** every group larger than the cache, judged or not, as far as homes are known:
//! leaving out those with few hits would leave out the little used, and so be biased.

use crate::estimator::Design;
use crate::evidence::TouchSummary;
use crate::groups::Group;
use crate::homes::Home;
use crate::partition::{MIN_UNITS, Partition, PartitionKind, Sample, Sight, Unit, classify, turns};
use crate::threads::Threads;
use crate::uses::{ByThread, Hit, Source};
use crate::{Missing, NotJudgedReason, Target};
use firsttouch_model::Estimate;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{ObjectKind, Profile};
use std::collections::{BTreeMap, HashMap};

/// All that was measured of one group.
#[derive(Debug)]
pub struct Subject {
    pub group: usize,
    /// What the figures on its use rest on.
    pub source: Source,
    pub access_share: Option<Estimate>,
    pub partition: Partition,
    /// How many times the lanes take turns over the range.
    pub turns: Option<u64>,
    /// By thread index: share of accesses, traps seen.
    pub used_by: Vec<Option<Estimate>>,
    pub traps: Vec<u64>,
    pub touch: TouchSummary,
    /// Of accesses with a known home.
    pub remote: Option<Estimate>,
    /// The same over windows whose home is beyond doubt.
    pub sure: Option<Estimate>,
    /// What would be remote had each page stayed where its first toucher ran.
    pub by_first_touch: Option<Estimate>,
    /// Part of the accesses that go to nodes without CPUs, or of a slower kind than those with.
    pub slow: Option<Estimate>,
    pub hit_windows: usize,
    /// Counts in the remote fraction and the matrix.
    pub counts: bool,
    /// Why not judged.
    pub reason: Option<NotJudgedReason>,
}

impl Subject {
    /// Remote accesses to this group / all sampled accesses.
    #[must_use]
    pub fn remote_share(&self) -> f64 {
        self.access_share.map_or(0.0, |s| s.value) * self.remote.map_or(0.0, |r| r.value)
    }

    /// How many arrays a mapping seems to hold, each used in plain blocks. A mapping is what the kernel knows: allocations that lie
    /// side by side in it look like one, and their blocks look dealt out in turn.
    #[must_use]
    pub fn arrays_in_mapping(&self, kind: ObjectKind) -> Option<u64> {
        let dealt = kind == ObjectKind::Mapping && self.partition.kind == PartitionKind::BlockCyclic;
        self.turns.filter(|&turns| dealt && turns >= 2)
    }

    /// Lanes that make at least 1 % of the accesses.
    #[must_use]
    pub fn users(&self, threads: &Threads) -> Vec<usize> {
        let mut lanes: BTreeMap<usize, f64> = BTreeMap::new();
        for (thread, share) in self.used_by.iter().enumerate() {
            *lanes.entry(threads.list[thread].lane).or_default() += share.map_or(0.0, |s| s.value);
        }
        lanes.into_iter().filter(|(_, share)| *share >= 0.01).map(|(lane, _)| lane).collect()
    }
}

/// What measuring needs.
pub struct Judge<'a> {
    pub profile: &'a Profile,
    pub target: &'a Target,
    pub threads: &'a Threads,
    pub design: &'a Design,
    pub source: Source,
}

/// Samples that a source must have, and the half width of its interval that is good enough.
const ENOUGH: u64 = MIN_UNITS as u64;
const NARROW: f64 = 0.05;

/// Which of two sources a figure rests on. Watchpoints see accesses, hints pages: so hints are taken where windows are too few,
/// or tell little while hints tell more, and do not contradict them.
#[must_use]
pub fn better(watch: Option<Estimate>, hint: Option<Estimate>) -> Source {
    let Some(hint) = hint.filter(|h| h.samples >= ENOUGH) else { return Source::Watch };
    match watch.filter(|w| w.samples >= ENOUGH) {
        None => Source::Hint,
        Some(watch) => {
            let agree = watch.low <= hint.high && hint.low <= watch.high;
            if watch.half_width() > NARROW && agree && hint.half_width() < watch.half_width() { Source::Hint } else { Source::Watch }
        }
    }
}

impl Judge<'_> {
    /// Measures one group.
    #[must_use]
    pub fn measure(&self, index: usize, group: &Group, hits: &[Hit], touch: TouchSummary) -> Subject {
        let whole: Vec<(usize, f64)> = hits.iter().map(|h| (h.draw, h.rate())).collect();
        let mut traps = vec![0u64; self.threads.list.len()];
        let mut parts: Vec<HashMap<usize, f64>> = vec![HashMap::new(); self.threads.list.len()];
        let mut lanes: BTreeMap<usize, f64> = BTreeMap::new();
        for hit in hits {
            for by in &hit.by_thread {
                traps[by.thread] = traps[by.thread].saturating_add(by.hits);
                *parts[by.thread].entry(hit.draw).or_default() += by.rate;
                *lanes.entry(self.threads.list[by.thread].lane).or_default() += by.rate * self.design.weight(hit.draw);
            }
        }
        let used_by =
            if hits.is_empty() { vec![None; parts.len()] } else { parts.iter().map(|part| self.design.part_of(&whole, part)).collect() };
        let mut subject = Subject {
            group: index,
            source: self.source,
            access_share: self.design.share(index),
            turns: turns(&self.units(hits)),
            partition: self.classified(group, hits, lanes),
            used_by,
            traps,
            remote: self.remote(hits.iter().filter(|h| matches!(h.home, Home::Known { .. }))),
            sure: self.remote(hits.iter().filter(|h| matches!(h.home, Home::Known { sure: true, .. }))),
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

    /// The part of the accesses that `counts`, of those of which that is known.
    fn fraction<'h>(&self, hits: impl Iterator<Item = &'h Hit>, counts: impl Fn(Home, &ByThread) -> Option<bool>) -> Option<Estimate> {
        let (mut whole, mut parts) = (Vec::new(), HashMap::new());
        for hit in hits {
            let known: Option<Vec<(f64, bool)>> = hit.by_thread.iter().map(|by| Some((by.rate, counts(hit.home, by)?))).collect();
            let Some(known) = known.filter(|known| !known.is_empty()) else { continue };
            whole.push((hit.draw, hit.rate()));
            parts.insert(hit.draw, known.iter().filter(|(_, counts)| *counts).map(|(rate, _)| rate).sum());
        }
        self.design.part_of(&whole, &parts)
    }

    fn units(&self, hits: &[Hit]) -> Vec<Unit> {
        let unit = |hit: &Hit| {
            let rate = hit.rate().max(f64::MIN_POSITIVE);
            let mut shares: BTreeMap<usize, (f64, u64)> = BTreeMap::new();
            for by in &hit.by_thread {
                let entry = shares.entry(self.threads.list[by.thread].lane).or_default();
                entry.0 += by.rate / rate;
                entry.1 = entry.1.saturating_add(by.hits.max(1));
            }
            Unit {
                position: hit.position,
                shares: shares.iter().map(|(&lane, s)| (lane, s.0)).collect(),
                counts: shares.iter().map(|(&lane, s)| (lane, s.1)).collect(),
                cut: hit.by_thread.iter().any(|by| by.cut),
                round: hit.round,
            }
        };
        hits.iter().map(unit).collect()
    }

    fn classified(&self, group: &Group, hits: &[Hit], weights: BTreeMap<usize, f64>) -> Partition {
        let cpus: usize = self.profile.machine.node_cpus.values().map(Vec::len).sum();
        classify(&Sample {
            units: self.units(hits),
            weights,
            stride: group.stride,
            rows: group.rows,
            cpus: if cpus == 0 { usize::MAX } else { cpus },
            sight: if self.source == Source::Watch { Sight::All } else { Sight::One },
        })
    }

    /// Why the group cannot be judged, and what would help.
    fn reason(&self, group: &Group, hits: &[Hit], subject: &Subject) -> Option<NotJudgedReason> {
        let windows = self.design.windows(subject.group);
        let touch = &subject.touch;
        let (seen, source) = (hits.len() as u64, EvidenceSource::from(self.source));
        if group.extent() <= self.target.private_cache_bytes {
            return Some(NotJudgedReason::Cached { cache_bytes: self.target.private_cache_bytes });
        }
        if self.profile.windows.is_empty() && hits.is_empty() {
            return Some(NotJudgedReason::NoAccessEvidence(self.missing(EvidenceSource::Watch)));
        }
        if hits.is_empty() {
            return Some(match windows {
                0 => NotJudgedReason::NotSampled,
                windows => NotJudgedReason::NoAccess { samples: windows as u64 },
            });
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
            let missing = || if self.profile.meta.is_attached() { Missing::Attached } else { self.missing(EvidenceSource::Touch) };
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

    /// What the evidence says about its own absence.
    fn missing(&self, source: EvidenceSource) -> Missing {
        match self.profile.evidence_of(&source) {
            Some(evidence) if !evidence.detail.is_empty() => Missing::Detail(evidence.detail.clone()),
            Some(evidence) if !evidence.available => Missing::Unavailable(source),
            _ => Missing::Unknown,
        }
    }
}

/// Sum of accesses over the subjects that count, as one source sees them.
#[must_use]
pub fn counted_accesses(design: &Design, subjects: &[Subject]) -> f64 {
    subjects.iter().filter(|s| s.counts).map(|s| design.accesses(s.group)).sum()
}
