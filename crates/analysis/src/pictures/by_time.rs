//! Accesses by stretch of time, object, thread, nodes and piece of the map: what views show of a part of the run.

use super::PageMap;
use super::time::Clock;
use crate::evidence::{Evidence, Hit, SourceRef};
use crate::groups::Group;
use crate::homes::Home;
use crate::judge::Subject;
use firsttouch_model::rows::{Id, Profile};
use hashbrown::HashMap;

/// The figures of a report that accesses count in. Usually all of them come from one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountsIn {
    /// The objects' shares of the accesses.
    pub shares: bool,
    /// The object's remote part, the parts of its threads, and its map.
    pub object: bool,
    /// The remote part of the run, and accesses by nodes.
    pub matrix: bool,
}

/// What accesses have in common. All of it together gives each access to one sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Accessed {
    /// The object's id in the report; `None` if it has none.
    pub object: Option<Id>,
    pub counts_in: CountsIn,
    /// The index of the thread, and the node that it ran on.
    pub thread: usize,
    pub node: usize,
    /// The node of the page, if it is known.
    pub home: Option<usize>,
    /// The piece of the object's map.
    pub piece: usize,
    /// The stretch of the timeline.
    pub bin: usize,
}

/// Estimated accesses of a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimedAccesses {
    pub of: Accessed,
    /// As the report's figures weigh them. Only those that count in the same figure can be compared.
    pub accesses: f64,
    /// Samples behind them; several threads share one sample of a watched address.
    pub samples: f64,
}

/// What the sums are made from.
pub(crate) struct Timed<'a> {
    pub profile: &'a Profile,
    pub uses: &'a Evidence,
    pub groups: &'a [Group],
    pub subjects: &'a [Subject],
    pub maps: &'a [PageMap],
    pub nodes: usize,
    /// The source of the run's remote part.
    pub source: Option<SourceRef>,
}

impl Timed<'_> {
    /// The sums, in order; none without times.
    pub fn sums(&self) -> Vec<TimedAccesses> {
        let Some(clock) = Clock::of(self.profile) else { return Vec::new() };
        let maps: HashMap<Id, &PageMap> = self.maps.iter().map(|map| (map.object, map)).collect();
        let mut subjects: Vec<Option<&Subject>> = vec![None; self.groups.len()];
        self.subjects.iter().for_each(|subject| subjects[subject.group] = Some(subject));
        let mut sums = HashMap::new();
        for (index, (group, subject)) in self.groups.iter().zip(&subjects).enumerate() {
            let object = subject.map(|_| self.profile.objects[group.representative].id);
            let map = object.and_then(|id| maps.get(&id).copied());
            for source in self.uses.sources() {
                let counts_in = CountsIn {
                    shares: self.uses.volumes() == Some(source),
                    object: subject.is_some_and(|subject| subject.source == source),
                    matrix: self.source == Some(source) && subject.is_some_and(|subject| subject.counts),
                };
                if counts_in != CountsIn::default() {
                    let sampled = self.uses.of(source);
                    let of = Accessed { object, counts_in, ..Accessed::default() };
                    for hit in &sampled.hits[index] {
                        self.add(&mut sums, hit, sampled.design.weight(hit.draw), (of, map, clock));
                    }
                }
            }
        }
        let mut list: Vec<TimedAccesses> =
            sums.into_iter().map(|(of, (accesses, samples))| TimedAccesses { of, accesses, samples }).collect();
        list.sort_unstable_by_key(|one| one.of);
        list
    }

    fn add(&self, sums: &mut HashMap<Accessed, (f64, f64)>, hit: &Hit, weight: f64, (of, map, clock): (Accessed, Option<&PageMap>, Clock)) {
        let last = self.nodes.max(1) - 1;
        let home = match hit.home {
            Home::Known { node, .. } => Some((node as usize).min(last)),
            Home::Untouched | Home::Unknown => None,
        };
        let rate = hit.rate().max(f64::MIN_POSITIVE);
        for by in &hit.by_thread {
            let of = Accessed {
                counts_in: CountsIn { matrix: of.counts_in.matrix && home.is_some(), ..of.counts_in },
                thread: by.thread,
                node: (by.node as usize).min(last),
                home,
                piece: map.map_or(0, |map| map.piece_at(hit.position)),
                bin: clock.bin(hit.start / 2 + hit.end / 2),
                ..of
            };
            let sum = sums.entry(of).or_insert((0.0, 0.0));
            sum.0 += weight * by.rate;
            sum.1 += by.rate / rate;
        }
    }
}
