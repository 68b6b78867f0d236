//! Measures one group: how much it is used, by which threads, in which partition, and how much of that is remote. `not_judged.rs` decides
//! whether the evidence is enough to judge it.
//!
//! The remote fraction and the matrix **count** every group larger than the cache, judged or not, if homes are known: leaving out groups
//! with few hits would bias the result towards memory that is used a lot.

use crate::estimator::Design;
use crate::even_use::{remote_anywhere, remote_in_pages};
use crate::evidence::{ByThread, Evidence, Hit, SourceRef, largest_part};
use crate::findings::SERIAL;
use crate::groups::Group;
use crate::homes::Home;
use crate::kinds_of_threads::are_of_several_kinds;
use crate::loops_apart::are_apart;
use crate::partition::{MIN_UNITS, Partition, PartitionKind, Sample, Sight, Unit, classify, thinned, turns};
use crate::per_thread::PerThread;
use crate::residents::Residents;
use crate::threads::Threads;
use crate::touch_record::BASE_PAGE;
use crate::touch_summary::TouchSummary;
use crate::written_in_use::{Told, is_written};
use crate::{NotJudgedReason, Target};
use firsttouch_model::Estimate;
use firsttouch_model::rows::{ObjectKind, Profile};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who makes less than this part of the accesses to a group does not use it: a final check of the results.
const LITTLE_USED: f64 = 0.1;

/// The measurements of one group.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The group, or the first of several that are judged together.
    pub group: usize,
    /// The source of the figures on its use.
    pub source: SourceRef,
    /// The number of accesses, according to the source.
    pub accesses: f64,
    pub access_share: Option<Estimate>,
    /// CPU time at it / CPU time at all recorded objects, if a source knows that.
    pub time_share: Option<Estimate>,
    pub partition: Partition,
    /// How many times the workers take turns over the range.
    pub turns: Option<u64>,
    /// By thread index: the share of accesses, and the number of traps.
    pub used_by: PerThread<Option<Estimate>>,
    pub traps: PerThread<u64>,
    pub touch: Arc<TouchSummary>,
    /// The remote fraction of the accesses with a known home.
    pub remote: Option<Estimate>,
    /// The same with the uncertainty that more samples make smaller only.
    pub by_samples: Option<Estimate>,
    /// How much of it may be wrong, because it is not known how fast loops go.
    pub speed_error: f64,
    /// How much of it may be wrong, because homes are guessed.
    pub home_error: f64,
    /// This is the remote fraction wherever its pages are, because the threads of all nodes use it alike (`even_use.rs`).
    pub is_same_anywhere: bool,
    /// The pages are on the nodes of the threads whose parts they are: the accesses that are remote are by others, and stay so.
    pub is_at_users: bool,
    /// Its accesses go to all nodes alike, those to neighbouring places too: to spread its pages changes nothing.
    pub is_spread: bool,
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

    /// Workers that make more than stray accesses.
    #[must_use]
    pub fn users(&self, threads: &Threads) -> Vec<usize> {
        let mut workers: BTreeMap<usize, f64> = BTreeMap::new();
        for (thread, share) in self.used_by.counting(|share| share.is_some_and(|share| share.value != 0.0)) {
            *workers.entry(threads.list[thread].worker).or_default() += share.map_or(0.0, |s| s.value);
        }
        acting(&workers)
    }
}

/// A thread with less than the first fraction of the largest share is not counted: single stray accesses are not use. Up to the second one, threads are
/// not counted if all of them together have less than `STRAYS` of the sum.
const STRAY: [f64; 2] = [0.02, 0.05];
const STRAYS: f64 = 0.05;

/// The threads that count among shares: the same for the first touch and for the use, and in the rows of a report.
pub fn acting(shares: &BTreeMap<usize, f64>) -> Vec<usize> {
    acting_of(shares.iter().map(|(worker, share)| (*worker, *share)))
}

/// The same of shares in any order.
#[must_use]
pub fn acting_of(shares: impl Iterator<Item = (usize, f64)> + Clone) -> Vec<usize> {
    let (largest, sum) =
        shares.clone().fold((0.0, 0.0), |(largest, sum): (f64, f64), (_, share)| (largest.max(share), sum + share.max(0.0)));
    let strays: f64 = shares.clone().map(|(_, share)| share.max(0.0)).filter(|share| *share < STRAY[1] * largest).sum();
    let least = STRAY[usize::from(strays < STRAYS * sum)] * largest;
    shares.filter(|(_, share)| *share > 0.0 && *share >= least).map(|(thread, _)| thread).collect()
}

/// The input of the measurements.
pub struct Judge<'a> {
    pub profile: &'a Profile,
    pub target: &'a Target,
    pub threads: &'a Threads,
    pub design: &'a Design,
    pub residents: &'a Residents,
    pub source: SourceRef,
    /// By group: it would fit in a core's cache by itself, but does not stay there (`cache.rs`).
    pub pushed_out: &'a [bool],
}

/// Which threads use a group, and from which nodes: the basis on which sources are compared.
#[derive(Debug)]
pub struct Usage {
    /// By thread index: the share of accesses, and the number of traps.
    used_by: PerThread<Option<Estimate>>,
    traps: PerThread<u64>,
    /// The remote fraction of the accesses with a known home, and its interval by chance alone.
    pub remote: Option<Estimate>,
    by_chance: Option<Estimate>,
}

impl Usage {
    /// The figure by which sources are compared: the remote fraction, else the largest share of a thread.
    #[must_use]
    pub fn main(&self) -> Option<Estimate> {
        self.remote.or_else(|| *self.used_by.largest(by_value)?.1)
    }
}

/// How far on either side an interval reaches beyond that of chance.
pub(crate) fn speed_error(all: Estimate, chance: Estimate) -> f64 {
    let beyond = |all: f64, chance: f64| (all * all - chance * chance).max(0.0).sqrt();
    let low = beyond(all.value - all.low, chance.value - chance.low);
    low.max(beyond(all.high - all.value, chance.high - chance.value))
}

fn is_remote(home: Home, by: &ByThread) -> Option<bool> {
    match home {
        Home::Known { node, .. } => Some(by.node != node),
        _ => None,
    }
}

/// The rates of hits for which it is known whether they count, by draw, and the parts of these that do.
fn counted<'h>(hits: impl Iterator<Item = &'h Hit>, counts: impl Fn(Home, &ByThread) -> Option<bool>) -> (Vec<(usize, f64)>, Vec<f64>) {
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    for hit in hits.filter(|hit| !hit.by_thread.is_empty()) {
        let part = hit.by_thread.iter().try_fold(0.0, |sum, by| Some(if counts(hit.home, by)? { sum + by.rate } else { sum }));
        if let Some(part) = part {
            whole.push((hit.draw, hit.rate()));
            parts.push(part);
        }
    }
    (whole, parts)
}

/// Unknown figures come first.
fn by_value(a: &Option<Estimate>, b: &Option<Estimate>) -> Ordering {
    let value = |one: &Option<Estimate>| one.map(|one| one.value);
    match (value(a), value(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

impl Judge<'_> {
    /// Which threads use a group, and from which nodes.
    #[must_use]
    pub fn usage(&self, hits: &[Hit]) -> Usage {
        // By thread: the number of traps, and (hit, rate).
        let mut parts: BTreeMap<usize, (u64, Vec<(usize, f64)>)> = BTreeMap::new();
        for (at, hit) in hits.iter().enumerate() {
            for by in &hit.by_thread {
                let part = parts.entry(by.thread).or_default();
                part.0 = part.0.saturating_add(by.hits);
                part.1.push((at, by.rate));
            }
        }
        let whole = self.design.whole(hits.iter().map(|h| (h.draw, h.rate())).collect());
        let mut part = vec![0.0; hits.len()];
        // The same for all threads that do not use the group.
        let unused = if hits.is_empty() { None } else { whole.part(&part) };
        let share = |own: &[(usize, f64)]| {
            own.iter().for_each(|&(at, rate)| part[at] += rate);
            let share = whole.part(&part);
            own.iter().for_each(|&(at, _)| part[at] = 0.0);
            share
        };
        let threads = self.threads.list.len();
        let traps = PerThread::new(threads, 0, parts.iter().map(|(&thread, part)| (thread, part.0)));
        let shares: Vec<Option<Estimate>> = parts.values().map(|(_, own)| own.as_slice()).map(share).collect();
        let used_by = PerThread::new(threads, unused, parts.keys().copied().zip(shares));
        let (remote, by_chance) = self.remote_and_chance(hits.iter()).unzip();
        Usage { used_by, traps, remote, by_chance }
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
        let partition = self.classified(group, hits, workers);
        let may_be_mixed = matches!(partition.kind, PartitionKind::BlockCyclic | PartitionKind::Irregular) && group.processes() == 1;
        if may_be_mixed && are_apart(self.profile, self.threads, hits) {
            return Partition::of_loops_apart(hits.iter().map(|hit| self.unit(hit)));
        }
        partition
    }

    /// Few records of huge pages, all by a worker that does not use the group (the main thread filled it), are enough: where a user made them, others
    /// may have touched their parts without a record.
    fn with_records_of_an_outsider(&self, touch: Arc<TouchSummary>, usage: &Usage) -> Arc<TouchSummary> {
        let Some((toucher, _)) = touch.main_worker().filter(|_| touch.is_of_one && !touch.enough) else { return touch };
        let shares = usage.used_by.counting(|share| share.is_some_and(|share| share.value > 0.0));
        let own = shares.filter(|(thread, _)| self.threads.list[*thread].worker == toucher);
        let used: f64 = own.filter_map(|(_, share)| Some(share.as_ref()?.value)).sum();
        if used < LITTLE_USED { Arc::new(TouchSummary { enough: true, ..(*touch).clone() }) } else { touch }
    }

    /// Measures one group with known usage, and with its partition if another source knows it better. `indices`: its index, or those of the
    /// groups that it consists of.
    #[must_use]
    pub fn measure(
        &self,
        indices: &[usize],
        group: &Group,
        hits: &[Hit],
        usage: Usage,
        partition: Option<Partition>,
        touch: Arc<TouchSummary>,
    ) -> Subject {
        let partition = partition.unwrap_or_else(|| self.partition(group, hits));
        let touch = self.with_records_of_an_outsider(touch, &usage);
        let anywhere = if touch.enough || !self.target.virtual_machine || touch.kernel_unknown {
            None
        } else {
            remote_anywhere(partition.kind, hits, self.design, self.threads, self.target.nodes)
                .or_else(|| self.remote_in_huge_pages(group, hits, partition.kind, &touch))
        };
        // Far from all records, a home is a guess, even if all records agree.
        let beyond = if self.target.virtual_machine { self.beyond(hits, &touch) } else { self.beyond(hits, &touch).min(self.unsure(hits)) };
        let has_parts = partition.kind == PartitionKind::BlockCyclic && touch.partition.kind != PartitionKind::BlockCyclic;
        let guessed = if has_parts { touch.error_in_parts } else { touch.home_error };
        let home_error = f64::max(guessed + touch.missing_error.min(self.unsure(hits)), beyond).min(1.0);
        let mut subject = Subject {
            group: indices.first().copied().unwrap_or_default(),
            source: self.source,
            accesses: indices.iter().map(|&index| self.design.accesses(index)).sum(),
            access_share: self.design.share(indices),
            time_share: None,
            turns: if partition.kind == PartitionKind::BlockCyclic { turns(hits.iter().map(|hit| self.unit(hit))) } else { None },
            partition,
            used_by: usage.used_by,
            traps: usage.traps,
            remote: anywhere.or_else(|| usage.remote.map(|remote| remote.widened(home_error))),
            by_samples: anywhere.or(usage.by_chance),
            speed_error: if anywhere.is_some() {
                0.0
            } else {
                usage.remote.zip(usage.by_chance).map_or(0.0, |(all, chance)| speed_error(all, chance))
            },
            home_error,
            is_same_anywhere: anywhere.is_some(),
            sure: anywhere.or_else(|| {
                self.remote(hits.iter().filter(|h| matches!(h.home, Home::Known { sure: true, .. })))
                    .map(|remote| remote.widened(touch.home_error))
            }),
            by_first_touch: self.fraction(hits.iter(), |home, by| match home {
                Home::Known { first: Some(first), .. } => Some(by.node != first),
                _ => None,
            }),
            slow: self.fraction(hits.iter(), |home, _| match home {
                Home::Known { node, .. } => Some(self.target.slow_nodes.contains(&node)),
                _ => None,
            }),
            is_at_users: false,
            is_spread: self.is_spread(hits),
            touch,
            hit_windows: hits.len(),
            counts: !self.is_cached(group, indices) && self.cached_part(group, hits).is_none() && !self.is_file(group),
            reason: None,
        };
        subject.is_at_users = anywhere.is_none() && self.is_at_users(hits, &subject.partition);
        subject.reason = self.reason(group, indices, hits, &subject);
        if matches!(subject.reason, Some(NotJudgedReason::InTurn { .. })) {
            // All or nothing of it may be remote.
            subject.remote = subject.remote.map(|remote| remote.widened(1.0));
        }
        subject
    }

    /// The part of the accesses with a known home whose home is not certain.
    fn unsure(&self, hits: &[Hit]) -> f64 {
        let (mut unsure, mut all) = (0.0, 0.0);
        for hit in hits {
            if let Home::Known { sure, .. } = hit.home {
                let accesses = self.design.weight(hit.draw) * hit.rate();
                all += accesses;
                unsure += if sure { 0.0 } else { accesses };
            }
        }
        if all > 0.0 { unsure / all } else { 0.0 }
    }

    /// The remote fraction wherever its pages are, if they are huge and hold parts of threads of several nodes. Several threads must have touched
    /// them: what one thread touched is misplaced for that reason first.
    fn remote_in_huge_pages(&self, group: &Group, hits: &[Hit], kind: PartitionKind, touch: &TouchSummary) -> Option<Estimate> {
        let [member] = group.members[..] else { return None };
        let object = &self.profile.objects[member];
        if touch.page_bytes <= BASE_PAGE || largest_part(self.profile, object)? >= SERIAL {
            return None;
        }
        remote_in_pages(kind, hits, self.design, self.threads, self.target.nodes, (object.address, touch.page_bytes))
    }

    /// The remote fraction over windows with a known home.
    pub fn remote<'h>(&self, hits: impl Iterator<Item = &'h Hit>) -> Option<Estimate> {
        self.fraction(hits, is_remote)
    }

    /// The same, and its interval by chance alone.
    pub fn remote_and_chance<'h>(&self, hits: impl Iterator<Item = &'h Hit>) -> Option<(Estimate, Estimate)> {
        let (whole, parts) = counted(hits, is_remote);
        self.design.whole(whole).part_and_chance(&parts)
    }

    /// The fraction of the accesses for which `counts` is true, over those for which it is known.
    fn fraction<'h>(&self, hits: impl Iterator<Item = &'h Hit>, counts: impl Fn(Home, &ByThread) -> Option<bool>) -> Option<Estimate> {
        let (whole, parts) = counted(hits, counts);
        self.design.part_of(whole, &parts)
    }

    fn unit(&self, hit: &Hit) -> Unit {
        let rate = hit.rate().max(f64::MIN_POSITIVE);
        let held = hit.end.saturating_sub(hit.start).max(1) as f64;
        let mut running: BTreeMap<usize, f64> = BTreeMap::new();
        let mut shares: BTreeMap<usize, (f64, u64)> = BTreeMap::new();
        for by in &hit.by_thread {
            let entry = shares.entry(self.threads.list[by.thread].worker).or_default();
            entry.0 += by.rate / rate;
            entry.1 = entry.1.saturating_add(by.hits.max(1));
            if let Some(cpu_ns) = by.cpu_ns {
                *running.entry(self.threads.list[by.thread].worker).or_default() += cpu_ns as f64 / held;
            }
        }
        Unit {
            position: hit.position,
            shares: shares.iter().map(|(&worker, s)| (worker, s.0)).collect(),
            counts: shares.iter().map(|(&worker, s)| (worker, s.1)).collect(),
            rate: hit.rate(),
            cut: hit.by_thread.iter().any(|by| by.cut),
            round: hit.round,
            running: running.into_iter().collect(),
        }
    }

    fn classified(&self, group: &Group, hits: &[Hit], weights: BTreeMap<usize, f64>) -> Partition {
        let cpus: usize = self.profile.machine.node_cpus.values().map(Vec::len).sum();
        classify(&Sample {
            units: thinned(hits.iter(), hits.len()).map(|hit| self.unit(hit)).collect(),
            weights,
            stride: group.stride,
            rows: group.rows,
            cpus: if cpus == 0 { usize::MAX } else { cpus },
            sight: sight(self.source, group),
        })
    }
}

/// What one sample of a source shows of the users of a group. The windows of a process show its own threads only.
fn sight(source: SourceRef, group: &Group) -> Sight {
    if group.processes() > 1 && source.sight() == Sight::All { Sight::One } else { source.sight() }
}

/// With fewer samples that tell reads from writes, a place that is written may have been missed, and the kind stays open.
const ENOUGH_READS: usize = 50;

/// The measurements by a source. Several threads ask at once.
pub type JudgeOf<'f, 'j> = dyn Fn(SourceRef) -> Judge<'j> + Sync + 'f;

/// The samples of a group by each source.
pub type HitsOf<'a> = dyn Fn(SourceRef) -> Cow<'a, [Hit]> + 'a;

/// How the threads divide a group. Memory that several threads write all the time is not used in full by each of them, whatever its
/// watchpoints suggest: they would overwrite each other's results.
pub fn divided<'j>(judge: &JudgeOf<'_, 'j>, uses: &Evidence, hits: &HitsOf<'_>, group: &Group, source: SourceRef) -> Partition {
    let partition = divided_or_open(judge, uses, hits, group, source);
    let is_written = |source| {
        let design = judge(source).design;
        is_written(&hits(source).iter().filter_map(|hit| Told::of(hit, design)).collect::<Vec<_>>(), group) == Some(true)
    };
    let kind = partition.kind;
    let has_kinds = matches!(kind, PartitionKind::Shared | PartitionKind::Irregular | PartitionKind::Unknown) && {
        let Judge { profile, threads, .. } = judge(source);
        let samples: Vec<Cow<'_, [Hit]>> = uses.sources().map(hits).collect();
        are_of_several_kinds(profile, threads, samples.iter().flat_map(|own| own.iter()))
    };
    // Threads of several kinds that pass memory on wait for each other by design.
    let is_without_owners = matches!(kind, PartitionKind::Shared | PartitionKind::Irregular) || partition.ran_apart && has_kinds;
    let is_overwritten = is_without_owners && uses.sources().any(is_written);
    let mut partition = if is_overwritten { partition.dealt_out_instead() } else { partition };
    partition.between_kinds = has_kinds && matches!(partition.kind, PartitionKind::Irregular | PartitionKind::Unknown);
    partition
}

/// A source that shows one of the threads at an address cannot tell memory that all threads use in full from memory that is dealt out anew
/// each time. A source that shows all of them can. Tables that are only read, at places without a stride, count as used in full, and so does
/// memory that is only read if no source can tell: either way a copy for each node, or pages in turn on all nodes, are the remedies.
fn divided_or_open<'j>(judge: &JudgeOf<'_, 'j>, uses: &Evidence, hits: &HitsOf<'_>, group: &Group, source: SourceRef) -> Partition {
    let own = judge(source).partition(group, &hits(source));
    if own.ran_apart {
        // Another source may tell that its loops divide it differently.
        let others = uses.sources().filter(|other| *other != source && uses.sees_threads(*other));
        let by_loops = others.map(|other| judge(other).partition(group, &hits(other))).find(|other| other.by_loops);
        return by_loops.unwrap_or(own);
    }
    if own.kind != PartitionKind::Irregular || own.fine.is_some() || own.by_loops {
        return own;
    }
    // Sources have scales of their own: the accesses that a sample stands for are divided by their mean.
    let mut known: Vec<(Told, bool)> = Vec::new();
    for source in uses.sources() {
        let (own, design) = (hits(source), judge(source).design);
        let telling = || own.iter().filter_map(|hit| Told::of(hit, design).zip(hit.strided));
        let mean = telling().map(|(told, _)| told.accesses).sum::<f64>() / telling().count().max(1) as f64;
        let scale = if mean > 0.0 { mean } else { 1.0 };
        known.extend(telling().map(|(told, strided)| (told.scaled(1.0 / scale), strided)));
    }
    let is_read_only = is_written(&known.iter().map(|(told, _)| *told).collect::<Vec<_>>(), group) == Some(false);
    let gathered = known.iter().filter(|(_, strided)| !strided).count();
    if is_read_only && 2 * gathered > known.len() {
        return Partition::shared();
    }
    if sight(source, group) != Sight::One {
        return own;
    }
    let sees = |other: &SourceRef| uses.sees_threads(*other) && sight(*other, group) == Sight::All && hits(*other).len() >= MIN_UNITS;
    let seeing = uses.sources().filter(sees);
    let others: Vec<Partition> = seeing.map(|other| judge(other).partition(group, &hits(other))).collect();
    let tells = |partition: &&Partition| match partition.kind {
        PartitionKind::Shared => true,
        PartitionKind::Irregular => partition.dealt_out || !is_read_only,
        _ => false,
    };
    let clearer = others.iter().find(tells).cloned();
    let is_full = is_read_only && known.len() >= ENOUGH_READS;
    clearer.unwrap_or_else(|| if is_full { Partition::shared_or_dealt_out() } else { own })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that single stray accesses are no use, and that many small parts of an object are.
    #[test]
    fn strays_are_told_from_small_parts() {
        let acting = |shares: &[f64]| acting_of(shares.iter().copied().enumerate());
        assert_eq!(acting(&[0.009, 0.25, 0.25, 0.22, 0.27]), [1, 2, 3, 4]);
        assert_eq!(acting(&[0.5, 0.02, 0.02, 0.001]), [0, 1, 2], "at most a twentieth of all is stray");
        let many = [vec![0.5], vec![0.5 / 31.0; 31]].concat();
        assert_eq!(acting(&many).len(), 32);
        assert_eq!(acting(&[0.0, 0.0]), [0; 0]);
    }
}
