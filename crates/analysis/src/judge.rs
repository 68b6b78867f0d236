//! One group, measured: how much it is used, by whom, in which partition, how much of that is remote, and whether that is
//! enough to judge it.
//!
//! **Judged** is a group that
//! - is larger, as far as alive at once, than a core's private cache;
//! - has at least 16 windows that were hit as use;
//! - has first touches that tell who: 8 records, or one for at least every other page, or the kernel on behalf of a known thread;
//! - has a known home for at least half of its sampled accesses;
//! - has a partition of use that could be told.
//!
//! The remote fraction and the matrix **count** every group larger than the cache, judged or not, as far as homes are known:
//! leaving out those with few hits would leave out the little used, and so be biased.

use crate::Target;
use crate::estimator::Design;
use crate::evidence::TouchSummary;
use crate::groups::Group;
use crate::homes::Home;
use crate::partition::{MIN_UNITS, Partition, PartitionKind, Sample, Sight, Unit, classify, turns};
use crate::threads::Threads;
use crate::uses::{ByThread, Hit, Source};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{ObjectKind, Profile};
use firsttouch_model::{Estimate, format_bytes};
use std::collections::{BTreeMap, HashMap};

/// How the reason of objects begins that are too small to judge.
pub const CACHED: &str = "fits in a core's cache";

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
    pub reason: Option<String>,
}

impl Subject {
    /// Remote accesses to this group / all sampled accesses.
    #[must_use]
    pub fn remote_share(&self) -> f64 {
        self.access_share.map_or(0.0, |s| s.value) * self.remote.map_or(0.0, |r| r.value)
    }

    /// How many arrays a mapping seems to hold, each used in plain blocks. A mapping is what the kernel knows: allocations that lie
    /// side by side in it are not told apart, and their blocks look dealt out in turn.
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
            let told: Option<Vec<(f64, bool)>> = hit.by_thread.iter().map(|by| Some((by.rate, counts(hit.home, by)?))).collect();
            let Some(told) = told.filter(|told| !told.is_empty()) else { continue };
            whole.push((hit.draw, hit.rate()));
            parts.insert(hit.draw, told.iter().filter(|(_, counts)| *counts).map(|(rate, _)| rate).sum());
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
    fn reason(&self, group: &Group, hits: &[Hit], subject: &Subject) -> Option<String> {
        let windows = self.design.windows(subject.group);
        let touch = &subject.touch;
        if group.extent() <= self.target.private_cache_bytes {
            return Some(format!("{CACHED} ({})", format_bytes(self.target.private_cache_bytes)));
        }
        if self.profile.windows.is_empty() && hits.is_empty() {
            return Some(format!("no accesses were sampled{}", self.missing(&EvidenceSource::Watch)));
        }
        if hits.is_empty() {
            return Some(if windows == 0 {
                "no window fell on it: too small a part of the memory, or too short-lived".to_owned()
            } else {
                format!("never hit in {windows} windows")
            });
        }
        if hits.len() < MIN_UNITS {
            return Some(format!("too few samples: {}, {MIN_UNITS} are needed; profile a longer run", self.seen(hits.len())));
        }
        if touch.kernel_unknown {
            return Some(
                "the kernel touched its pages on behalf of several threads (I/O), which cannot be told apart without privilege".to_owned(),
            );
        }
        let known: f64 = hits.iter().filter(|h| matches!(h.home, Home::Known { .. })).map(|h| self.design.weight(h.draw) * h.rate()).sum();
        let observed = !self.target.virtual_machine && subject.remote.is_some();
        if !touch.enough && !observed {
            let attached = self.profile.meta.is_attached();
            let why = if attached { "; firsttouch attached after they were made".to_owned() } else { self.missing(&EvidenceSource::Touch) };
            return Some(match touch.records {
                _ if touch.incomplete => {
                    "records of most of its first touches were lost: profile it again, with less else running".to_owned()
                }
                0 => format!("its first touches were not seen{why}"),
                n => format!("too few first touches seen: {n} records for {} pages{why}", group.extent() / touch.page_bytes.max(1)),
            });
        }
        if known < self.design.accesses(subject.group) / 2.0 {
            return Some("the node of most of its accessed pages is not known".to_owned());
        }
        if subject.partition.kind == PartitionKind::Unknown {
            return Some(format!(
                "too few samples to tell how {} threads divide it: {}",
                subject.users(self.threads).len(),
                self.seen(hits.len())
            ));
        }
        None
    }

    fn seen(&self, samples: usize) -> String {
        match self.source {
            Source::Watch => format!("{samples} windows were hit"),
            Source::Hint => format!("{samples} hinting faults were seen"),
        }
    }

    /// What the evidence says about its own absence.
    fn missing(&self, source: &EvidenceSource) -> String {
        match self.profile.evidence_of(source) {
            Some(e) if !e.detail.is_empty() => format!(": {}", e.detail),
            Some(e) if !e.available => format!(": no {source} evidence on this system"),
            _ => String::new(),
        }
    }
}

/// Sum of accesses over the subjects that count, as one source sees them.
#[must_use]
pub fn counted_accesses(design: &Design, subjects: &[Subject]) -> f64 {
    subjects.iter().filter(|s| s.counts).map(|s| design.accesses(s.group)).sum()
}
