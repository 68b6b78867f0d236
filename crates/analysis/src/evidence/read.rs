//! Reads the rows of a profile into the samples of all sources.

use super::sample_home::Others;
use super::watch::misses_threads;
use super::{Evidence, Hit, Sampled, Source};
use crate::Target;
use crate::estimator::{Design, Draw};
use crate::groups::Group;
use crate::homes::Home;
use crate::residents::Residents;
use crate::strata::Strata;
use crate::threads::Threads;
use crate::touch_summary::TouchSummary;
use crate::touches::{ObjectTouches, TouchReader};
use firsttouch_model::rows::{Id, Profile};
use hashbrown::HashMap;
use std::sync::Arc;

/// The number of members of a group whose touches are read; members that were hit come first.
const MEMBERS: usize = 4096;

/// The input of the sources.
pub struct Reader<'a> {
    pub profile: &'a Profile,
    pub threads: &'a Threads,
    pub groups: &'a [Group],
    pub residents: &'a Residents,
    /// Whether the source says that the work at a place in the code goes to whichever thread is free.
    pub(super) goes_to_any_thread: &'a dyn Fn(Id) -> bool,
    /// The number of nodes of the recorded machine; `None` if the profile is judged on another one.
    pub(super) real_nodes: Option<usize>,
    /// Nodes of the machine.
    pub(super) nodes: usize,
    object_of: HashMap<Id, usize>,
    group_of: Vec<usize>,
}

/// The samples of one source while they are being read.
#[derive(Debug, Default)]
pub struct Samples {
    /// The draws. The rate of a draw is set from its hit once the hit is known to count.
    pub draws: Vec<Draw>,
    /// By group, the hits in the order of their draws.
    pub hits: Vec<Vec<Hit>>,
    /// The number of samples found, by group, if not all of them are used.
    pub found: Option<Vec<u64>>,
    /// The number of unusable rows.
    pub refused: u64,
    /// Accesses to memory of no recorded object.
    pub elsewhere: Option<f64>,
    /// Accesses to lines of large objects that stay in a core's cache.
    pub cached: f64,
    /// By draw, the CPU time that it stands for, ns; empty if the source does not know it.
    pub time: Vec<f64>,
    /// The strata that the rounds of the draws are in, if the source knows the time that each stands for.
    pub strata: Option<Strata>,
    /// Accesses in the code that was sampled whose addresses too few samples show, and the CPU time that they would have, ns.
    pub missing: [f64; 2],
}

impl Samples {
    /// An empty list of samples for each of `groups` groups.
    #[must_use]
    pub fn of_groups(groups: usize) -> Self {
        Self { hits: vec![Vec::new(); groups], ..Self::default() }
    }

    /// Appends further samples of the same source.
    fn append(&mut self, other: Self) {
        if self.draws.is_empty() {
            let refused = self.refused + other.refused;
            *self = Self { refused, ..other };
            return;
        }
        let first = self.draws.len();
        // Draws of page faults have no time.
        if !other.draws.is_empty() {
            self.time.clear();
        }
        self.draws.extend(other.draws);
        for (group, hits) in other.hits.into_iter().enumerate() {
            self.hits[group].extend(hits.into_iter().map(|hit| Hit { draw: first + hit.draw, ..hit }));
        }
        self.found = self.found.take().or(other.found);
        self.refused += other.refused;
        self.elsewhere = self.elsewhere.or(other.elsewhere);
        self.cached += other.cached;
    }
}

impl<'a> Reader<'a> {
    #[must_use]
    pub fn new(profile: &'a Profile, target: &Target, threads: &'a Threads, groups: &'a [Group], residents: &'a Residents) -> Self {
        let mut group_of = vec![0; profile.objects.len()];
        for (g, group) in groups.iter().enumerate() {
            group.members.iter().for_each(|&object| group_of[object] = g);
        }
        Self {
            profile,
            threads,
            groups,
            residents,
            goes_to_any_thread: &|_| false,
            nodes: target.nodes.max(1),
            real_nodes: (!target.virtual_machine).then_some(target.nodes.max(1)),
            object_of: profile.objects.iter().enumerate().map(|(i, o)| (o.id, i)).collect(),
            group_of,
        }
    }

    /// With what the source says: whether the work at a place in the code goes to whichever thread is free.
    #[must_use]
    pub fn with_source(self, goes_to_any_thread: &'a dyn Fn(Id) -> bool) -> Self {
        Self { goes_to_any_thread, ..self }
    }

    /// The indices of the object with this id and of its group.
    #[must_use]
    pub fn object(&self, id: Id) -> Option<(usize, usize)> {
        let &object = self.object_of.get(&id)?;
        Some((object, self.group_of[object]))
    }

    /// Reads all sources.
    pub fn read(&self, sources: &[&'static dyn Source], touches: &mut TouchReader<'_>) -> Evidence {
        let sources: Vec<&'static dyn Source> = sources.iter().copied().filter(|source| source.is_recorded(self.profile)).collect();
        let mut samples: Vec<Samples> = sources.iter().map(|source| source.read(self)).collect();
        let mut evidence = Evidence { watch_misses_threads: misses_threads(self.profile), ..Evidence::default() };
        self.read_touches(&samples, touches, &mut evidence.touches);
        for (source, samples) in sources.iter().zip(&mut samples) {
            samples.append(source.read_faults(self, &evidence.touches));
        }
        let summary = |group| Arc::new(TouchSummary::new(group, &evidence.touches, self.threads));
        evidence.summaries = self.groups.iter().map(summary).collect();
        for (source, samples) in sources.into_iter().zip(samples) {
            let sampled = self.locate(source, samples, &mut evidence);
            evidence.sampled.push(sampled);
        }
        evidence.volumes = evidence.choose_volumes();
        evidence
    }

    /// Reads the touches of the members that were hit, then of other members up to the limit.
    fn read_touches(&self, samples: &[Samples], reader: &mut TouchReader<'_>, touches: &mut HashMap<usize, ObjectTouches>) {
        for (g, group) in self.groups.iter().enumerate() {
            let hit = samples.iter().flat_map(|samples| samples.hits.get(g).into_iter().flatten()).map(|hit| hit.object);
            for object in hit.chain(group.members.iter().copied().take(MEMBERS)) {
                touches.entry(object).or_insert_with(|| reader.read(group, object));
            }
        }
    }

    /// Finds the node of each sample's page. Samples of memory that is still being initialised are left out if the source sees those. Their
    /// draws stay, because the time in which nobody used the memory counts too.
    fn locate(&self, source: &'static dyn Source, samples: Samples, evidence: &mut Evidence) -> Sampled {
        let Samples { mut draws, mut hits, found, refused, elsewhere, cached, time, strata, missing } = samples;
        hits.resize_with(self.groups.len(), Vec::new);
        for (group, hits) in hits.iter_mut().enumerate() {
            let logical = if source.sees_initialisation() { self.logical(group, hits, &evidence.touches) } else { None };
            let others = Others { logical, successors: self.successors(group, hits, &evidence.touches) };
            let mut initialising = 0;
            hits.retain_mut(|hit| {
                if hit.home != Home::Untouched {
                    hit.home = self.home(hit, group, evidence, &others);
                }
                let counts = hit.home != Home::Untouched || !source.sees_initialisation();
                if counts {
                    draws[hit.draw].rate = hit.rate();
                    draws[hit.draw].cut = hit.by_thread.iter().any(|by| by.cut);
                } else {
                    initialising += 1;
                }
                counts
            });
            evidence.initialising += initialising;
            hits.shrink_to_fit();
        }
        draws.shrink_to_fit();
        let strata = strata.map(Arc::new);
        evidence.refused += refused;
        let timed: Vec<Draw> = draws.iter().zip(time).map(|(draw, z)| Draw { z, doubts: [None; 2], ..*draw }).collect();
        let design = |draws, missing| {
            let design = source.design(self, draws).with_missing(missing);
            strata.iter().cloned().fold(design, Design::with_strata)
        };
        let time = (!timed.is_empty()).then(|| design(timed, missing[1]));
        Sampled { source, design: design(draws, missing[0]), time, hits, found, elsewhere, cached }
    }
}
