//! Evidence of accesses: who accesses an object, where in it, from which node, and on which node the page was.
//!
//! Each source is a folder here and an entry in [`SOURCES`]. It implements [`Source`]: it turns rows of the profile into samples (draws of
//! a sampling design, and hits), and states what its figures count. The rest is common to all sources: the node of a sampled page
//! (`sample_home.rs`), the choice of the source for a figure ([`Evidence::best`]), and the reports.

mod appeared;
mod hint;
mod read;
mod sample;
mod sample_home;
mod watch;

#[cfg(test)]
mod tests;

pub use appeared::{largest_part, touches_of_appeared};
pub use read::{Reader, Samples};
pub use sample::{by_sample as accesses_by_sample, derived_touches};

use crate::estimator::{Design, Draw};
use crate::few::Few;
use crate::homes::Home;
use crate::partition::{MIN_UNITS, Sight};
use crate::subjects::differ;
use crate::touch_summary::TouchSummary;
use crate::touches::ObjectTouches;
use crate::{Missing, NotJudgedReason};
use firsttouch_model::Estimate;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Id, Profile};
use hashbrown::HashMap;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

/// All sources, the most trusted first. A later source is used where it is more precise and does not contradict the earlier ones.
pub const SOURCES: &[&dyn Source] = &[&sample::TimerSamples, &watch::Watch, &hint::Hint];

/// What the figures of a source count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Accesses: objects can be compared with each other.
    Accesses,
    /// Pages that are accessed at all: only shares within one object are meaningful.
    Pages,
}

/// A source of evidence of accesses.
pub trait Source: Debug + Sync {
    /// Its name in profiles and reports.
    fn name(&self) -> EvidenceSource;

    /// The samples in the source's own rows. Called before first touches are read; those of the objects sampled here are always read.
    fn read(&self, _reader: &Reader<'_>) -> Samples {
        Samples::default()
    }

    /// The samples among the recorded page faults, after they have been separated from first touches.
    fn read_faults(&self, _reader: &Reader<'_>, _touches: &HashMap<usize, ObjectTouches>) -> Samples {
        Samples::default()
    }

    /// The sampling design: what each draw stands for.
    fn design(&self, reader: &Reader<'_>, draws: Vec<Draw>) -> Design;

    fn counts(&self) -> Counts;

    /// Whether the source also sees accesses that initialise memory. Those samples are left out.
    fn sees_initialisation(&self) -> bool;

    /// Which of the threads that use an address one sample shows.
    fn sight(&self) -> Sight;

    /// The unit of the samples after a number in a sentence: `samples`, `hinting faults`.
    fn unit(&self, count: u64) -> &'static str;

    /// Whether the profile was recorded by a version of firsttouch, and on a machine, that has this source. Sources that were not recorded are
    /// not read, so that the reasons for missing evidence come from the others.
    fn is_recorded(&self, _profile: &Profile) -> bool {
        true
    }

    /// Whether the profile contains any draws of the source.
    fn has_draws(&self, profile: &Profile) -> bool;

    /// Why an object with this number of draws has no hit.
    fn unseen(&self, profile: &Profile, draws: u64) -> NotJudgedReason {
        match draws {
            _ if !self.has_draws(profile) => NotJudgedReason::NoAccessEvidence(missing(profile, self.name())),
            0 => NotJudgedReason::NotSampled,
            samples => NotJudgedReason::NoAccess { samples },
        }
    }
}

/// An index into the sources of an analysis.
#[derive(Clone, Copy, Debug)]
pub struct SourceRef {
    index: usize,
    source: &'static dyn Source,
}

impl SourceRef {
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}

impl PartialEq for SourceRef {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl Deref for SourceRef {
    type Target = dyn Source;

    fn deref(&self) -> &Self::Target {
        self.source
    }
}

/// Accesses by one thread in one sample.
#[derive(Clone, Copy, Debug)]
pub struct ByThread {
    pub thread: usize,
    /// Accesses per ns.
    pub rate: f64,
    /// Number of traps.
    pub hits: u64,
    /// The hit limit ended the observation early.
    pub cut: bool,
    /// CPU time that the thread had while the sample was taken, if that is known.
    pub cpu_ns: Option<u64>,
    /// The node that the thread ran on.
    pub node: u32,
}

/// A draw with accesses.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Index of the draw in the [`Design`].
    pub draw: usize,
    /// Object index.
    pub object: usize,
    pub offset: u64,
    /// Position in the group's logical range, bytes.
    pub position: u64,
    pub start: u64,
    pub end: u64,
    /// Samples of one round were taken at the same time.
    pub round: u64,
    pub by_thread: Few<ByThread>,
    /// Whether it writes, if the source can tell.
    pub writes: Option<bool>,
    /// Whether a loop passes over the memory with a constant stride, if the source can tell.
    pub strided: Option<bool>,
    /// Accesses per ns, by site.
    pub sites: Few<(Option<Id>, f64)>,
    /// The node of the page. A source may set it to [`Home::Untouched`]; the rest is found later.
    pub home: Home,
}

impl Hit {
    /// Accesses per ns by all threads.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.by_thread.iter().map(|t| t.rate).sum()
    }
}

/// Samples of one source.
#[derive(Debug)]
pub struct Sampled {
    pub source: &'static dyn Source,
    pub design: Design,
    /// The same draws, each standing for the CPU time at its memory.
    pub time: Option<Design>,
    /// Hits by group.
    pub hits: Vec<Vec<Hit>>,
    /// The number of samples found, by group, if not all of them are used.
    found: Option<Vec<u64>>,
    /// Accesses to memory of no recorded object, in the unit of the design; `None` if the source does not see those.
    pub elsewhere: Option<f64>,
    /// Accesses to lines of large objects that stay in a core's cache, which no hit stands for.
    pub cached: f64,
}

impl Sampled {
    /// The part of all accesses that no hit stands for, because they stay in a core's cache.
    #[must_use]
    pub fn cached_part(&self) -> f64 {
        let counted: f64 = (0..self.hits.len()).map(|group| self.design.accesses(group)).sum();
        if self.cached > 0.0 { self.cached / (self.cached + counted) } else { 0.0 }
    }
}

/// All evidence of accesses.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The samples of each source, the most trusted first.
    sampled: Vec<Sampled>,
    /// See [`Self::volumes`].
    volumes: Option<SourceRef>,
    /// See [`Self::sees_threads`].
    watch_misses_threads: bool,
    /// Touches of the members that were read, by object index.
    pub touches: HashMap<usize, ObjectTouches>,
    /// First touches by group.
    pub summaries: Vec<Arc<TouchSummary>>,
    /// The number of samples left out because their page was not yet touched.
    pub initialising: u64,
    /// The number of rows that refer to an unknown object or thread, or have no usable number.
    pub refused: u64,
}

/// An interval with at most this half width is precise enough: a less trusted source does not replace the figure.
const NARROW: f64 = 0.05;

/// An interval with a larger half width gives no verdict. It cannot contradict one that is less than half as wide.
const VAGUE: f64 = 0.15;

/// Whether a figure of the next source replaces that of a more trusted one: if the trusted source has too few samples, or is less precise
/// and the two agree, or (for a source that counts accesses too) is so imprecise that it gives no verdict.
fn replaces(trusted: Option<Estimate>, next: Option<Estimate>, counts: Counts) -> bool {
    let enough = |figure: &Estimate| figure.samples >= MIN_UNITS as u64;
    let Some(next) = next.filter(enough) else { return false };
    trusted.filter(enough).is_none_or(|trusted| {
        let agree = !differ(trusted, next);
        let is_vague = counts == Counts::Accesses && trusted.half_width() > VAGUE && next.half_width() < trusted.half_width() / 2.0;
        trusted.half_width() > NARROW && (agree || is_vague) && next.half_width() < trusted.half_width()
    })
}

impl Evidence {
    /// The sources, the most trusted first.
    pub fn sources(&self) -> impl Iterator<Item = SourceRef> {
        self.sampled.iter().enumerate().map(|(index, sampled)| SourceRef { index, source: sampled.source })
    }

    /// The number of samples that count, of the sources that also see memory being initialised.
    #[must_use]
    pub fn counted_samples(&self) -> u64 {
        let seen = self.sampled.iter().filter(|sampled| sampled.source.sees_initialisation());
        seen.flat_map(|sampled| &sampled.hits).map(|hits| hits.len() as u64).sum()
    }

    /// The samples of a source of this analysis.
    #[must_use]
    pub fn of(&self, source: SourceRef) -> &Sampled {
        &self.sampled[source.index]
    }

    /// The samples of the source with this name, if it was read.
    #[must_use]
    pub fn named(&self, name: &EvidenceSource) -> Option<&Sampled> {
        self.sampled.iter().find(|sampled| sampled.source.name() == *name)
    }

    /// Whether a source sees all threads that work: which of them use memory, and how much, cannot be compared with a source that does not.
    #[must_use]
    pub fn sees_threads(&self, source: SourceRef) -> bool {
        !(self.watch_misses_threads && source.name() == EvidenceSource::Watch)
    }

    /// The source to use for a figure, with what it measured: the most trusted source unless a later one replaces it.
    #[must_use]
    pub fn best<T>(&self, measure: impl Fn(SourceRef) -> T, figure: impl Fn(&T) -> Option<Estimate>) -> Option<(SourceRef, T)> {
        let measured = self.sources().filter(|source| self.sees_threads(*source)).map(|source| (source, measure(source)));
        measured.reduce(|best, next| if replaces(figure(&best.1), figure(&next.1), next.0.counts()) { next } else { best })
    }

    /// The source that gives the relative accesses to different objects: the most trusted one that counts accesses and saw any,
    /// unless it is imprecise and a later one is less so, which looked at all objects with a share that matters.
    #[must_use]
    pub fn volumes(&self) -> Option<SourceRef> {
        self.volumes
    }

    /// Looks at the shares of all groups.
    fn choose_volumes(&self) -> Option<SourceRef> {
        let widest = |source: &SourceRef| {
            let design = &self.of(*source).design;
            // Timer samples have no draws without accesses, so groups without any do not compare; `looked_at_all` asks whether one of them matters.
            let accessed = (0..self.summaries.len()).filter(|&group| design.accesses(group) > 0.0);
            accessed.filter_map(|group| design.share(&[group])).map(|share| share.half_width()).fold(0.0, f64::max)
        };
        let counting = self.sources().filter(|source| source.counts() == Counts::Accesses && self.of(*source).design.any());
        counting
            .map(|source| (source, widest(&source)))
            .reduce(|best, next| if best.1 > NARROW && next.1 < best.1 && self.looked_at_all(best.0, next.0) { next } else { best })
            .map(|best| best.0)
    }

    /// The share of some groups together in the CPU time at all recorded objects.
    #[must_use]
    pub fn time_share(&self, groups: &[usize]) -> Option<Estimate> {
        self.sampled.iter().find_map(|sampled| sampled.time.as_ref())?.share(groups)
    }

    /// Whether a figure of this source over all objects covers all that matter. A source that counts accesses covers the objects of which it took samples;
    /// the most trusted of these sources says which objects have a part of the accesses.
    #[must_use]
    pub fn sees_all(&self, source: SourceRef) -> bool {
        let first = self.sources().find(|first| first.counts() == Counts::Accesses && self.of(*first).design.any());
        first.is_none_or(|first| source.counts() != Counts::Accesses || self.looked_at_all(first, source))
    }

    /// Whether a source took samples of all groups that have a share according to another one. No watchpoint is set on small blocks.
    fn looked_at_all(&self, seen: SourceRef, source: SourceRef) -> bool {
        let groups = self.of(seen).hits.len();
        let (seen, source) = (&self.of(seen).design, &self.of(source).design);
        let has_share = |group: usize| seen.windows(group) >= MIN_UNITS && seen.share(&[group]).is_some_and(|share| share.value > NARROW);
        (0..groups).all(|group| !has_share(group) || source.windows(group) > 0)
    }

    /// The number of groups that a source sampled more or less often than their size and lifetime predict.
    #[must_use]
    pub fn mismatched(&self) -> usize {
        (0..self.summaries.len()).filter(|&group| self.sampled.iter().any(|sampled| sampled.design.mismatch(group))).count()
    }
}

impl Sampled {
    /// The number of samples found on a group, including those that were thinned out.
    #[must_use]
    pub fn found(&self, group: usize) -> u64 {
        let drawn = self.design.windows(group) as u64;
        self.found.as_ref().map_or(drawn, |found| found.get(group).copied().unwrap_or(0))
    }

    /// The number of samples found in total, if not all of them are used.
    #[must_use]
    pub fn all_found(&self) -> Option<u64> {
        self.found.as_ref().map(|found| found.iter().sum())
    }
}

/// Why the profile lacks evidence of a source.
pub fn missing(profile: &Profile, source: EvidenceSource) -> Missing {
    match profile.evidence_of(&source) {
        Some(evidence) if !evidence.detail.is_empty() => Missing::Detail(evidence.detail.clone()),
        Some(evidence) if !evidence.available => Missing::Unavailable(source),
        _ => Missing::Unknown,
    }
}
