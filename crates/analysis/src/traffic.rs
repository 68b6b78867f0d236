//! The memory traffic of the program: bytes by worker, place and node, sample by sample. A watched word is 8 bytes, and every access to it
//! counts as 8 bytes moved: the effect of caches is not observed (docs/model.md).
//!
//! Objects that fit in a core's cache cause no traffic. The shares of accesses between objects come from the windows, if any were hit.
//! Hinting faults show only threads and places, and are scaled to the traffic that the windows saw on the object.

use crate::computing::computing;
use crate::evidence::{Evidence, Hit};
use crate::groups::Group;
use crate::homes::Home;
use crate::judge::Subject;
use crate::names::ObjectName;
use crate::partition::{Divided, Partition};
use crate::phases::Phases;
use crate::threads::Threads;
use crate::{PartitionKind, Target};
use firsttouch_model::rows::{Id, Profile};
use firsttouch_model::traffic::{Division, Member, ObjectTraffic, Parts, Traffic, TrafficSample, Work, Worker};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a watched word.
const WORD: f64 = 8.0;
/// A worker with less than this fraction of the largest share of an object counts as a stray access, not as a user.
const STRAY: f64 = 0.1;
/// A thread with less than this fraction of an object's accesses does not use it.
const USER: f64 = 0.01;
/// Traffic is compared between this many parts of an object's range; a difference of more than `FAR` standard errors counts.
const PARTS: usize = 4;
const FAR: f64 = 2.5;
/// Shares that are 0 or 1 are equal up to this.
const ROUNDING: f64 = 1e-9;
/// Of many 95 % intervals, this fraction may miss the true value.
const MISSES: f64 = 0.1;
/// Objects of a group that are listed.
const MOST_MEMBERS: usize = 4096;

/// The traffic to all groups that are larger than a core's cache.
pub fn traffic(
    profile: &Profile,
    target: &Target,
    threads: &Threads,
    uses: &Evidence,
    groups: &[Group],
    subjects: &[Subject],
    names: &[ObjectName],
) -> Traffic {
    let (workers, worker_of) = workers(profile, threads);
    let builder = Builder { threads, uses, workers: &workers, worker_of: &worker_of, phases: Phases::new(profile) };
    let teams = teams(threads, subjects);
    let (mut objects, mut all, mut unknown, mut guessed) = (Vec::new(), 0.0, 0.0, 0.0);
    for subject in subjects.iter().filter(|subject| subject.counts && subject.hit_windows > 0) {
        let group = &groups[subject.group];
        let object = &profile.objects[group.representative];
        let (mut samples, lost) = builder.samples(subject, group, object.process);
        samples.sort_by_key(|sample| sample.serial);
        let team = samples.partition_point(|sample| !sample.serial);
        let (parallel, serial) = samples.split_at_mut(team);
        level(parallel, &workers);
        level(serial, &workers);
        let seen: f64 = samples.iter().map(TrafficSample::volume).sum();
        all += seen + lost;
        unknown += lost;
        guessed += (seen + lost) * builder.guessed(subject);
        if seen > 0.0 {
            objects.push(ObjectTraffic {
                id: object.id,
                name: names[subject.group].shown.clone(),
                bytes: group.extent(),
                division: division(subject.partition.kind),
                work: work(&subject.partition),
                has_fine_parts: subject.partition.fine.is_some(),
                // If some use is serial, the shares of all use do not describe the team.
                even: if team == samples.len() { builder.even(subject) } else { Vec::new() },
                rows: group.rows,
                members: members(profile, group),
                parts: builder.parts(
                    subject,
                    group,
                    object.process,
                    threads.beside(object.process).next().and_then(|(_, thread)| teams.get(&thread.team)),
                ),
                samples,
            });
        }
    }
    let team: BTreeSet<usize> = objects
        .iter()
        .flat_map(|object| object.of_team())
        .flat_map(|s| &s.bytes)
        .map(|(worker, _)| *worker)
        .filter(|w| !workers[*w].idle)
        .collect();
    // Shares that differ by their intervals are not equal, however few samples hold both.
    let is_open = |object: &&mut ObjectTraffic| object.even.is_empty() && object.samples.iter().any(|sample| sample.serial);
    for object in objects.iter_mut().filter(is_open).filter(|object| is_even(object.of_team(), &team)) {
        let sampled: BTreeSet<usize> = object.of_team().flat_map(|sample| &sample.bytes).map(|(worker, _)| *worker).collect();
        object.even = sampled.into_iter().filter(|worker| team.contains(worker)).collect();
    }
    let computing = computing(profile, target, threads, groups, subjects, &builder.phases);
    let part = |bytes: f64| if all > 0.0 { bytes / all } else { 0.0 };
    Traffic { workers, objects, unknown: part(unknown), computing, guessed: part(guessed) }
}

/// The objects of a group, the newest ones if they are many.
fn members(profile: &Profile, group: &Group) -> Vec<Member> {
    let all = group.extent().max(1) as f64;
    let member = |&index: &usize| {
        let object = &profile.objects[index];
        let at = |offset: u64| (group.position(index, offset) as f64 / all).clamp(0.0, 1.0);
        Member { object: object.id, range: [at(0), at(object.bytes)] }
    };
    group.members[group.members.len().saturating_sub(MOST_MEMBERS)..].iter().map(member).collect()
}

/// The workers of each team of processes that use any object that counts. Where threads follow each other, a worker is many threads, each with a small
/// share.
fn teams(threads: &Threads, subjects: &[Subject]) -> BTreeMap<Id, BTreeSet<usize>> {
    let mut teams: BTreeMap<Id, BTreeSet<usize>> = BTreeMap::new();
    for subject in subjects.iter().filter(|subject| subject.counts) {
        let mut shares: BTreeMap<(Id, usize), f64> = BTreeMap::new();
        for (index, share) in subject.used_by.counting(|share| share.is_some_and(|share| share.value > 0.0)) {
            let thread = &threads.list[index];
            *shares.entry((thread.team, thread.worker)).or_default() += share.as_ref().map_or(0.0, |share| share.value);
        }
        for ((team, worker), _) in shares.into_iter().filter(|(_, share)| *share >= USER) {
            teams.entry(team).or_default().insert(worker);
        }
    }
    teams
}

fn division(kind: PartitionKind) -> Division {
    match kind {
        PartitionKind::Single | PartitionKind::Block | PartitionKind::BlockCyclic => Division::Owned,
        PartitionKind::Shared => Division::Shared,
        PartitionKind::Irregular | PartitionKind::Unknown => Division::DealtOut,
    }
}

fn work(partition: &Partition) -> Work {
    match partition {
        Partition { of_tasks: true, .. } => Work::OfAnyThread,
        partition if partition.stays_with_kinds() => Work::OfItsThread,
        _ => Work::AsSeen,
    }
}

/// Whether the samples are consistent with equal use of the object by the whole team: Pearson's chi-squared may exceed its mean by at most
/// `FAR` standard deviations.
fn is_even<'a>(samples: impl Iterator<Item = &'a TrafficSample>, team: &BTreeSet<usize>) -> bool {
    let mut counts: BTreeMap<usize, f64> = BTreeMap::new();
    let mut all = 0.0;
    for sample in samples {
        all += 1.0;
        let volume = sample.volume().max(f64::MIN_POSITIVE);
        sample.bytes.iter().for_each(|(worker, bytes)| *counts.entry(*worker).or_default() += bytes / volume);
    }
    let expected = all / team.len().max(1) as f64;
    if expected <= 0.0 {
        return false;
    }
    let mut counts = counts.into_iter().peekable();
    let mut count = |worker: usize| {
        while counts.next_if(|(other, _)| *other < worker).is_some() {}
        counts.next_if(|(other, _)| *other == worker).map_or(0.0, |(_, count)| count)
    };
    let squared: f64 = team.iter().map(|worker| (count(*worker) - expected).powi(2) / expected).sum();
    let degrees = team.len() as f64 - 1.0;
    degrees > 0.0 && squared <= degrees + FAR * (2.0 * degrees).sqrt()
}

/// Assumes even traffic over the object's range unless the samples contradict that. The number of hits on a word in its window depends
/// mostly on when the window was held, and would otherwise look like hot places. In each part of the range, and of the remote accesses, the share of
/// the traffic must be near the share of the samples: what is remote remains what the report says.
fn level(samples: &mut [TrafficSample], workers: &[Worker]) {
    let (mut volumes, mut counts) = ([0.0; PARTS + 1], [0.0; PARTS + 1]);
    let (mut all, mut squares) = (0.0, 0.0);
    for sample in samples.iter() {
        let (volume, part) = (sample.volume(), ((sample.position * PARTS as f64) as usize).min(PARTS - 1));
        let is_remote = |worker: &usize| workers.get(*worker).is_some_and(|worker| worker.node != sample.home);
        let remote: f64 = sample.bytes.iter().filter(|(worker, _)| is_remote(worker)).map(|(_, bytes)| bytes).sum();
        volumes[part] += volume;
        counts[part] += 1.0;
        volumes[PARTS] += remote;
        counts[PARTS] += remote / volume.max(f64::MIN_POSITIVE);
        all += volume;
        squares += volume * volume;
    }
    let (count, effective) = (samples.len() as f64, all * all / squares);
    let near = |part: usize| {
        let (share, expected) = (volumes[part] / all, counts[part] / count);
        (share - expected).abs() <= FAR * (expected * (1.0 - expected) / effective).max(0.0).sqrt() + ROUNDING
    };
    if all > 0.0 && effective.is_finite() && (0..=PARTS).all(near) {
        for sample in samples {
            let volume = sample.volume();
            sample.bytes.iter_mut().for_each(|(_, bytes)| *bytes *= all / count / volume.max(f64::MIN_POSITIVE));
        }
    }
}

/// The workers, and the index of each thread's worker.
fn workers(profile: &Profile, threads: &Threads) -> (Vec<Worker>, Vec<usize>) {
    let cpu_ns: HashMap<Id, Option<u64>> = profile.threads.iter().map(|thread| (thread.id, thread.cpu_ns)).collect();
    let mut places: BTreeMap<(Id, usize), usize> = BTreeMap::new();
    let mut workers: Vec<Worker> = Vec::new();
    let worker_of = threads.list.iter().enumerate().map(|(index, thread)| {
        let worker = *places.entry((thread.team, thread.worker)).or_insert_with(|| {
            workers.push(Worker { threads: Vec::new(), node: thread.node, idle: thread.idle, cpu_s: Some(0.0) });
            workers.len() - 1
        });
        let own = cpu_ns.get(&thread.id).copied().flatten().map(|ns| ns as f64 / 1e9);
        workers[worker].threads.push(index);
        workers[worker].cpu_s = workers[worker].cpu_s.zip(own).map(|(sum, own)| sum + own);
        worker
    });
    let worker_of = worker_of.collect();
    (workers, worker_of)
}

struct Builder<'a> {
    threads: &'a Threads,
    uses: &'a Evidence,
    workers: &'a [Worker],
    worker_of: &'a [usize],
    phases: Phases,
}

impl Builder<'_> {
    /// The samples with a known home, and the bytes of those without.
    fn samples(&self, subject: &Subject, group: &Group, process: Id) -> (Vec<TrafficSample>, f64) {
        let sampled = self.uses.of(subject.source);
        let hits: &[Hit] = &sampled.hits[subject.group];
        let accesses = |hit: &Hit| sampled.design.weight(hit.draw) * hit.rate();
        // The number of bytes that one unit of this source represents.
        let volumes = self.uses.volumes().filter(|&volumes| volumes != subject.source);
        let compared = volumes.map_or(0.0, |volumes| self.uses.of(volumes).design.accesses(subject.group));
        let seen: f64 = hits.iter().map(accesses).sum();
        let scale = if compared <= 0.0 || seen <= 0.0 { WORD } else { WORD * compared / seen };
        let (mut samples, mut lost) = (Vec::new(), 0.0);
        for hit in hits {
            let Home::Known { node, .. } = hit.home else {
                lost += accesses(hit) * scale;
                continue;
            };
            let mut bytes: BTreeMap<usize, f64> = BTreeMap::new();
            for by in &hit.by_thread {
                *bytes.entry(self.worker_of[by.thread]).or_default() += by.rate * sampled.design.weight(hit.draw) * scale;
            }
            let user = hit.by_thread.first().map_or(process, |by| self.threads.list[by.thread].process);
            let serial = bytes.len() == 1 && self.phases.is_serial(user, hit.start, hit.end);
            samples.push(TrafficSample {
                serial,
                position: (hit.position as f64 / group.extent().max(1) as f64).clamp(0.0, 1.0),
                round: hit.round,
                home: node,
                owner: subject.partition.owner(hit.position).and_then(|worker| self.worker(process, worker)),
                bytes: bytes.into_iter().collect(),
            });
        }
        (samples, lost)
    }

    /// The part of the object's accesses whose number is a guess.
    fn guessed(&self, subject: &Subject) -> f64 {
        let sampled = self.uses.of(subject.source);
        let (mut guessed, mut all) = (0.0, 0.0);
        for hit in sampled.hits[subject.group].iter() {
            let accesses = sampled.design.weight(hit.draw) * hit.rate();
            all += accesses;
            guessed += if sampled.design.is_guess(hit.draw) { accesses } else { 0.0 };
        }
        if all > 0.0 { guessed / all } else { 0.0 }
    }

    /// The owner of each range of the object, if the partition follows a rule.
    fn parts(&self, subject: &Subject, group: &Group, process: Id, team: Option<&BTreeSet<usize>>) -> Option<Parts> {
        let main_worker = |hit: &Hit| {
            let most = hit.by_thread.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))?;
            Some((hit.position, self.threads.list[most.thread].worker))
        };
        let seen: Vec<(u64, usize)> = self.uses.of(subject.source).hits[subject.group].iter().filter_map(main_worker).collect();
        let divided = Divided { extent: group.extent(), rows: group.rows, seen: &seen, team: team? };
        let parts = subject.partition.parts(&divided)?;
        let workers = parts.workers.iter().map(|worker| self.worker(process, *worker)).collect::<Option<Vec<_>>>()?;
        Some(Parts { period_bytes: parts.period_bytes, ends: parts.ends, workers })
    }

    fn worker(&self, process: Id, worker: usize) -> Option<usize> {
        let (thread, _) = self.threads.of_worker(process, worker)?;
        self.worker_of.get(thread).copied()
    }

    /// The threads of all workers that use the object; all threads if none does.
    fn threads_of_users(&self, subject: &Subject) -> Vec<usize> {
        let users = subject.used_by.counting(|share| share.is_some_and(|share| share.value != 0.0));
        let users: BTreeSet<usize> = users.map(|(thread, _)| self.worker_of[thread]).collect();
        if users.is_empty() {
            return (0..subject.used_by.len()).collect();
        }
        users.into_iter().flat_map(|worker| self.workers[worker].threads.iter().copied()).collect()
    }

    /// The users, if the intervals of their shares allow all shares to be equal; else empty.
    fn even(&self, subject: &Subject) -> Vec<usize> {
        // The share of each, and the squares of how far it may be too high and too low: a worker may be many threads that follow each other, and
        // chance does not act on all of them alike.
        let mut workers: BTreeMap<usize, (f64, f64, f64)> = BTreeMap::new();
        for thread in self.threads_of_users(subject) {
            if let Some(share) = subject.used_by[thread] {
                let sum = workers.entry(self.worker_of[thread]).or_default();
                let (below, above) = (share.value - share.low, share.high - share.value);
                *sum = (sum.0 + share.value, sum.1 + below.powi(2), sum.2 + above.powi(2));
            }
        }
        let most = workers.values().map(|(value, ..)| *value).fold(0.0, f64::max);
        // One that did next to nothing has no part of the work, though few samples may allow it.
        workers.retain(|worker, (value, ..)| *value >= STRAY * most && !self.workers[*worker].idle);
        let equal = 1.0 / workers.len().max(1) as f64;
        let may_be_equal = |(value, below, above): &(f64, f64, f64)| value - below.sqrt() <= equal && equal <= value + above.sqrt();
        let misses = workers.values().filter(|share| !may_be_equal(share)).count();
        if workers.len() > 1 && misses as f64 <= MISSES * workers.len() as f64 { workers.into_keys().collect() } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(volume: impl Fn(usize) -> f64, worker: impl Fn(usize) -> usize) -> Vec<TrafficSample> {
        let one = |index: usize| TrafficSample {
            position: (index as f64 + 0.5) / 200.0,
            round: index as u64,
            home: 0,
            owner: None,
            serial: false,
            bytes: vec![(worker(index), volume(index))],
        };
        (0..200).map(one).collect()
    }

    /// Check that bursts are evened out, that hot places and a rarer kind of access are not, and that the sum is unchanged.
    #[test]
    fn bursts_are_levelled() {
        let mut bursts = samples(|index| if index % 7 == 3 { 10.0 } else { 1.0 }, |_| 0);
        let before: f64 = bursts.iter().map(TrafficSample::volume).sum();
        let workers = [0, 1].map(|node| Worker { node, ..Worker::default() });
        level(&mut bursts, &workers);
        assert!(bursts.iter().all(|sample| (sample.volume() - before / 200.0).abs() < 1e-9));
        let mut hot = samples(|index| if index < 50 { 10.0 } else { 1.0 }, |_| 0);
        let kept = hot.clone();
        level(&mut hot, &workers);
        assert_eq!(hot, kept);
        // Remote samples that stand for a tenth of what local ones do, everywhere in the range.
        let mut remote = samples(|index| if index % 2 == 0 { 10.0 } else { 1.0 }, |index| index % 2);
        let kept = remote.clone();
        level(&mut remote, &workers);
        assert_eq!(remote, kept);
    }

    /// Check that even use is recognised, and that use by half of a team is not even.
    #[test]
    fn even_use_is_recognised() {
        let team: BTreeSet<usize> = (0..8).collect();
        assert!(is_even(samples(|_| 1.0, |index| index * 5 % 8).iter(), &team));
        assert!(!is_even(samples(|_| 1.0, |index| index % 4).iter(), &team));
        assert!(is_even(samples(|_| 1.0, |index| index % 4)[..8].iter(), &team), "eight samples cannot tell");
        assert!(!is_even(samples(|_| 1.0, |_| 0).iter(), &BTreeSet::from([0])));
    }
}
