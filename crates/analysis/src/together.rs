//! Objects that are judged together, because each of them alone has too few samples, or matters little: the vectors of one class, the fields of
//! one grid.
//!
//! Groups of one process are judged as one if
//! - each has enough first touches, and either at least 3 samples and too few for a verdict of its own, or it is misplaced and has few of the
//!   remote accesses (`findings/rules.rs`); misplaced ones that each suffice for a finding are joined only if there are several of them;
//! - the same threads first touched the same parts of them, relative to their sizes, and either the kernel touched all of them or none;
//! - the samples of each fit the way in which the threads divide all of them: at least three in four are by the owner of their place, and more than
//!   chance gives with a probability of 5 %; where
//!   no place has an owner, there are two samples by thread, and those next to each other are by different threads about as often as chance has
//!   it. Objects that one thread uses alone are judged together only with each other,
//!   and only if chance would show that for fewer than one in a hundred objects that all threads use;
//! - together, the evidence is enough (`not_judged.rs`).
//!
//! The ranges of the groups are scaled to the same length. The verdict is that of each of them.

use crate::NotJudgedReason;
use crate::evidence::{Evidence, Hit, SourceRef};
use crate::findings::{SERIAL, Weight};
use crate::groups::{Group, scaled};
use crate::judge::{JudgeOf, Subject, divided};
use crate::names::ObjectName;
use crate::tasks::Tasks;
use crate::threads::Threads;
use crate::touch_record::BASE_PAGE;
use crate::touch_summary::{Record, TouchSummary};
use firsttouch_model::parallel::both;
use firsttouch_model::rows::{Id, Profile};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The least number of samples of a member.
const LEAST_SAMPLES: usize = 3;
/// So many objects that would each have a small finding of their own have one finding.
const SEVERAL: usize = 4;
/// A set from which members must be taken so often has no common partition.
const MOST_ROUNDS: usize = 8;
/// Members that a name lists.
const NAMED: usize = 3;
/// First touches are compared in so many pieces of the range. Of the pieces known in both groups, there must be `LEAST_PIECES`, and
/// this fraction must agree.
const PIECES: usize = 16;
const LEAST_PIECES: usize = 8;
const AGREEING: f64 = 0.8;
/// At least this fraction of a member's samples must be by the owners of their places.
const FITTING: f64 = 0.75;
/// The least number of samples by thread of a member whose places have no owners.
const SAMPLES_A_WORKER: usize = 2;
/// Samples without regard to the place must fit a member's partition with less than this probability.
const BY_CHANCE: f64 = 0.05;
/// One thread uses an object alone if chance would give samples of one thread only with less than this probability.
const CHANCE: f64 = 0.01;

/// Groups that are judged as one.
#[derive(Debug)]
pub struct Together {
    /// The indices of the groups, that with the most samples first.
    pub members: Vec<usize>,
    pub group: Group,
    pub subject: Subject,
}

impl Together {
    /// The samples of the members by the source of the verdict, at their positions in the common range. They are copies: a set holds none, since all
    /// sets together may have all samples.
    #[must_use]
    pub fn hits(&self, uses: &Evidence) -> Vec<Hit> {
        hits(uses, self.subject.source, &self.members, &self.group)
    }

    /// The ids of the objects besides that of the group `but`.
    #[must_use]
    pub fn ids(&self, profile: &Profile, groups: &[Group], but: usize) -> Vec<Id> {
        let others = self.members.iter().filter(|&&g| g != but);
        others.map(|&g| profile.objects[groups[g].representative].id).collect()
    }

    /// Gives each member the verdict.
    pub fn apply(&self, groups: &[Group], subjects: &mut [Subject]) {
        let is_open = |subject: &&mut Subject| subject.reason.is_some() && self.members.contains(&subject.group);
        for subject in subjects.iter_mut().filter(is_open) {
            subject.reason = None;
            subject.partition = self.subject.partition.scaled(self.group.stride, groups[subject.group].extent());
        }
    }
}

/// `m_x, m_y, m_z and 8 more`.
#[must_use]
pub fn names(members: &[usize], names: &[ObjectName]) -> String {
    // In an order that does not depend on the samples.
    let mut all: Vec<&str> = members.iter().map(|&g| names[g].shown.as_str()).collect();
    all.sort_unstable();
    let named = &all[..all.len().min(NAMED)];
    match (members.len().saturating_sub(NAMED), named) {
        (0, [others @ .., last]) => format!("{} and {last}", others.join(", ")),
        (more, _) => format!("{} and {more} more", named.join(", ")),
    }
}

/// The input.
pub struct Context<'a> {
    pub profile: &'a Profile,
    pub threads: &'a Threads,
    pub uses: &'a Evidence,
    pub groups: &'a [Group],
    pub judge: &'a JudgeOf<'a, 'a>,
    pub tasks: &'a Tasks<'a>,
    /// Whether the code that first touched a group reads its contents from a file.
    pub is_input: &'a dyn Fn(&Subject) -> bool,
    /// By group: how much one matters that is misplaced and has few of the remote accesses.
    pub weights: HashMap<usize, Weight>,
}

/// The first touches of a group, as far as they must be the same in all members.
struct Pattern {
    process: Id,
    by_kernel: bool,
    is_input: bool,
    is_recycled: bool,
    page_bytes: u64,
    /// The thread that touched nearly all of it.
    alone: Option<usize>,
    /// The thread that touched most of each piece.
    pieces: Vec<Option<usize>>,
}

impl Pattern {
    fn of(context: &Context<'_>, subject: &Subject) -> Self {
        let (group, touch) = (&context.groups[subject.group], &subject.touch);
        let mut pages: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); PIECES];
        for &Record { position, worker, pages: number, .. } in &touch.placed {
            let piece = (u128::from(position) * PIECES as u128 / u128::from(group.extent().max(1))) as usize;
            *pages[piece.min(PIECES - 1)].entry(worker).or_default() += number;
        }
        let most = |of: &BTreeMap<usize, f64>| of.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(worker, _)| *worker);
        Self {
            process: context.profile.objects[group.representative].process,
            by_kernel: touch.by_kernel >= 0.5,
            is_input: (context.is_input)(subject),
            is_recycled: touch.recycled >= 0.5,
            page_bytes: touch.page_bytes,
            alone: touch.main_worker().filter(|(_, share)| *share >= SERIAL).map(|(worker, _)| worker),
            pieces: pages.iter().map(most).collect(),
        }
    }

    fn agrees(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.process, one.by_kernel, one.is_input, one.is_recycled, one.page_bytes, one.alone);
        if key(self) != key(other) {
            return false;
        }
        if self.alone.is_some() {
            return true;
        }
        let known: Vec<(usize, usize)> = self.pieces.iter().zip(&other.pieces).filter_map(|(a, b)| a.zip(*b)).collect();
        let agreeing = known.iter().filter(|(a, b)| a == b).count() as f64;
        // The ranges of huge pages that several threads touched cannot be laid over each other.
        self.page_bytes <= BASE_PAGE && known.len() >= LEAST_PIECES && agreeing >= AGREEING * known.len() as f64
    }
}

impl Context<'_> {
    /// All sets of groups that are judged as one.
    #[must_use]
    pub fn find(&self, subjects: &[Subject]) -> Vec<Together> {
        let is_member = |subject: &&Subject| is_known(subject) && (is_short(subject) || self.weights.contains_key(&subject.group));
        let mut alone: Vec<&Subject> = subjects.iter().filter(is_member).collect();
        alone.sort_by_key(|subject| (std::cmp::Reverse(subject.hit_windows), subject.group));
        let mut sets: Vec<(Pattern, Vec<usize>)> = Vec::new();
        for subject in alone {
            let pattern = Pattern::of(self, subject);
            match sets.iter_mut().find(|(other, _)| other.agrees(&pattern)) {
                Some((_, members)) => members.push(subject.group),
                None => sets.push((pattern, vec![subject.group])),
            }
        }
        let matters = |g: &usize| self.weights.get(g) == Some(&Weight::Minor);
        let needs_others = |set: &Together| set.members.len() >= SEVERAL || !set.members.iter().all(matters);
        sets.iter().flat_map(|(_, members)| self.of_one_pattern(members)).filter(needs_others).collect()
    }

    /// Separates the groups that one thread uses alone from the others.
    fn of_one_pattern(&self, members: &[usize]) -> Vec<Together> {
        let team: BTreeSet<usize> = members.iter().flat_map(|&g| self.seen(g)).map(|(_, worker)| worker).collect();
        let mut alone: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut others = Vec::new();
        for &g in members {
            let seen = self.seen(g);
            let workers: BTreeSet<usize> = seen.iter().map(|(_, worker)| *worker).collect();
            let chance = (team.len() as f64).powi(1 - i32::try_from(seen.len()).unwrap_or(i32::MAX));
            match workers.first() {
                Some(worker) if workers.len() == 1 && (chance < CHANCE || team.len() == 1) => alone.entry(*worker).or_default().push(g),
                _ => others.push(g),
            }
        }
        let fitting = self.fitting(others);
        alone.into_values().chain(fitting).filter_map(|members| self.judged(&members)).collect()
    }

    /// The groups whose samples fit the way in which the threads divide all of them.
    fn fitting(&self, mut members: Vec<usize>) -> Option<Vec<usize>> {
        for _ in 0..MOST_ROUNDS {
            let all = self.judged(&members)?;
            let kept: Vec<usize> = members.iter().copied().filter(|&g| self.fits(g, &all)).collect();
            if kept.len() == members.len() {
                return Some(members);
            }
            members = kept;
        }
        None
    }

    fn fits(&self, g: usize, all: &Together) -> bool {
        let partition = &all.subject.partition;
        let seen = self.seen(g);
        let stretch = |position: u64| scaled(position, self.groups[g].extent(), all.group.stride);
        let owned: Vec<bool> = seen.iter().filter_map(|&(position, worker)| Some(partition.owner(stretch(position))? == worker)).collect();
        if owned.is_empty() {
            return has_no_owners(&seen);
        }
        let by_owner = owned.iter().filter(|is_by_owner| **is_by_owner).count();
        let workers = all.subject.users(self.threads).len().max(2);
        by_owner as f64 >= FITTING * seen.len() as f64 && at_least(by_owner, seen.len(), 1.0 / workers as f64) < BY_CHANCE
    }

    /// (position, worker) of each sample, by the source with the most.
    fn seen(&self, g: usize) -> Vec<(u64, usize)> {
        let worker = |hit: &Hit| {
            let most = hit.by_thread.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))?;
            Some((hit.position, self.threads.list[most.thread].worker))
        };
        self.source(&[g]).map_or_else(Vec::new, |source| self.uses.of(source).hits[g].iter().filter_map(worker).collect())
    }

    /// The source with the most samples.
    fn source(&self, members: &[usize]) -> Option<SourceRef> {
        let samples = |source: &SourceRef| members.iter().map(|&g| self.uses.of(*source).hits[g].len()).sum::<usize>();
        self.uses.sources().reduce(|best, next| if samples(&next) > samples(&best) { next } else { best })
    }

    /// The members as one group, if there are several, and together they have enough evidence.
    fn judged(&self, members: &[usize]) -> Option<Together> {
        if members.len() < 2 {
            return None;
        }
        let parts: Vec<&Group> = members.iter().map(|&g| &self.groups[g]).collect();
        let group = Group::together(&parts);
        let (uses, threads, judge_of) = (self.uses, self.threads, self.judge);
        let hits_of = |source: SourceRef| hits(uses, source, members, &group);
        let source = self.source(members)?;
        let hits = hits_of(source);
        let judge = judge_of(source);
        let of_source = |one: SourceRef| if one.index() == source.index() { Cow::Borrowed(&hits[..]) } else { Cow::Owned(hits_of(one)) };
        let (partition, (usage, touch)) = both(
            || divided(judge_of, uses, &of_source, &group, source),
            || (judge.usage(&hits), Arc::new(TouchSummary::new(&group, &uses.touches, threads))),
        );
        let partition = self.tasks.partition(partition, &hits);
        let mut subject = judge.measure(members, &group, &hits, usage, Some(partition), touch);
        let share = self.uses.volumes().and_then(|volumes| self.uses.of(volumes).design.share(members));
        subject.access_share = share.or(subject.access_share);
        subject.time_share = self.uses.time_share(members);
        subject.reason.is_none().then(|| Together { members: members.to_vec(), group, subject })
    }
}

/// The samples of groups by a source, at their positions in the range of all.
fn hits(uses: &Evidence, source: SourceRef, members: &[usize], group: &Group) -> Vec<Hit> {
    let own = || members.iter().flat_map(|&g| &uses.of(source).hits[g]);
    let mut hits = Vec::with_capacity(own().count());
    hits.extend(own().map(|hit| Hit { position: group.position(hit.object, hit.offset), ..hit.clone() }));
    hits
}

/// The probability of at least `hits` of `samples` if each hits with probability `p` (binomial distribution).
fn at_least(hits: usize, samples: usize, p: f64) -> f64 {
    // From the probability of none, each next one by its ratio.
    let mut one = (1.0 - p).powi(i32::try_from(samples).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for k in 0..hits {
        below += one;
        one *= (samples - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
    }
    (1.0 - below).max(0.0)
}

/// Whether samples that are next to each other are by different threads about as often as chance has it, and not as seldom as in blocks.
fn has_no_owners(seen: &[(u64, usize)]) -> bool {
    let mut sorted = seen.to_vec();
    sorted.sort_unstable();
    let workers = sorted.iter().map(|(_, worker)| *worker).collect::<BTreeSet<_>>().len();
    let (pairs, borders) = (sorted.len().saturating_sub(1) as f64, workers.saturating_sub(1) as f64);
    let same = sorted.windows(2).filter(|pair| pair[0].1 == pair[1].1).count() as f64;
    let (by_chance, in_blocks) = (pairs / workers.max(1) as f64, pairs - borders);
    workers > 1 && sorted.len() >= SAMPLES_A_WORKER * workers && same < (by_chance + in_blocks) / 2.0
}

/// Whether only the number of samples is missing for a verdict on the group.
fn is_short(subject: &Subject) -> bool {
    let is_short = matches!(subject.reason, Some(NotJudgedReason::TooFewSamples { .. } | NotJudgedReason::UnclearPartition { .. }));
    is_short && subject.hit_windows >= LEAST_SAMPLES
}

/// Whether it is known who touched the group first.
fn is_known(subject: &Subject) -> bool {
    let touch = &subject.touch;
    subject.counts && touch.enough && !touch.kernel_unknown && !touch.placed.is_empty()
}
