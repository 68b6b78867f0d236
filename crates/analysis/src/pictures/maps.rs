//! The map of an object in up to 256 pieces: first toucher, user, node, remote share and lines of each.

use super::{CloseMap, Majority, PageMap, Part, Piece};
use crate::estimator::Design;
use crate::evidence::Hit;
use crate::groups::Group;
use crate::homes::Home;
use crate::source_code::CodeLocations;
use crate::threads::Threads;
use crate::touch_record::BASE_PAGE;
use crate::touch_summary::{TouchSummary, final_home};
use crate::touches::ObjectTouches;
use crate::views::interval;
use crate::{CodeLocation, Interval};
use firsttouch_model::Estimate;
use firsttouch_model::rows::Id;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// The largest number of pieces, and that of the report's own map. A piece is at least a page.
const PIECES: u64 = 256;
const LEAST_PIECES: u64 = 32;
/// More pieces than those of the report have so many samples on average: of fewer, most would show nothing.
const SAMPLES: u64 = 4;
/// The largest number of parts of all pieces. With less than two parts of a piece, nothing more is to be seen.
const PARTS: u64 = 4096;
/// A piece belongs to a thread or node with at least this share of its evidence, as in the report's own map.
const MAJORITY: f64 = 0.6;

/// Makes the maps of objects.
pub(crate) struct MapBuilder<'a> {
    pub threads: &'a Threads,
    pub places: &'a CodeLocations<'a>,
    pub touches: &'a HashMap<usize, ObjectTouches>,
    pub design: &'a Design,
}

/// The evidence in a piece.
#[derive(Default)]
struct Votes {
    touchers: BTreeMap<usize, f64>,
    touch_sites: BTreeMap<Option<Id>, f64>,
    users: BTreeMap<usize, f64>,
    use_sites: BTreeMap<Option<Id>, f64>,
    homes: BTreeMap<usize, f64>,
    accesses: f64,
    /// Accesses with a known home, those of them that are remote, and the sum of the squares of what samples stand for.
    known: f64,
    remote: f64,
    squares: f64,
    samples: u64,
}

impl MapBuilder<'_> {
    /// The map of a group; `None` if neither accesses nor first touches were seen.
    pub fn map(&self, object: i64, group: &Group, hits: &[Hit], touch: &TouchSummary) -> Option<PageMap> {
        if hits.is_empty() && touch.placed.is_empty() {
            return None;
        }
        let extent = group.extent();
        let most = (hits.len() as u64 / SAMPLES).clamp(LEAST_PIECES, PIECES);
        let count = (extent / BASE_PAGE).clamp(1, most);
        let piece_bytes = extent.div_ceil(count).max(1);
        let votes = self.votes(count, piece_bytes, hits, touch);
        let all: f64 = votes.iter().map(|votes| votes.accesses).sum();
        let mut lines = Lines { places: self.places, list: Vec::new(), known: HashMap::new() };
        let middle = |index: usize| (index as u64).saturating_mul(piece_bytes).saturating_add(piece_bytes / 2);
        let pieces = votes.iter().enumerate().map(|(index, votes)| {
            let home = || final_home(group, self.touches, self.threads, middle(index));
            votes.piece(all, home, &mut lines)
        });
        let pieces = pieces.collect();
        let close = self.close((count, piece_bytes), group, hits, touch);
        Some(PageMap { object, piece_bytes, lines: lines.list, pieces, close })
    }

    /// The evidence in each of so many pieces.
    fn votes(&self, count: u64, piece_bytes: u64, hits: &[Hit], touch: &TouchSummary) -> Vec<Votes> {
        let at = |position: u64| usize::try_from((position / piece_bytes).min(count - 1)).unwrap_or(0);
        let mut votes: Vec<Votes> = (0..count).map(|_| Votes::default()).collect();
        for record in &touch.placed {
            let votes = &mut votes[at(record.position)];
            *votes.touchers.entry(record.thread).or_default() += record.pages;
            *votes.touch_sites.entry(record.site).or_default() += record.pages;
        }
        for hit in hits {
            votes[at(hit.position)].count(hit, self.design.weight(hit.draw));
        }
        votes
    }

    /// The pieces in parts: a power of two of each, at least a page, and at most as many as there are samples.
    fn close(&self, (count, piece_bytes): (u64, u64), group: &Group, hits: &[Hit], touch: &TouchSummary) -> Option<CloseMap> {
        let most = (PARTS.min(hits.len() as u64) / count).min(piece_bytes / BASE_PAGE);
        let parts = 1 << most.checked_ilog2().filter(|&log| log > 0)?;
        let part_bytes = piece_bytes.div_ceil(parts);
        let middle = |index: usize| (index as u64).saturating_mul(part_bytes).saturating_add(part_bytes / 2);
        let list = self.votes(count * parts, part_bytes, hits, touch).into_iter().enumerate().map(|(index, votes)| {
            let (toucher, user, home) = votes.majorities(|| final_home(group, self.touches, self.threads, middle(index)));
            let remote = votes.remote();
            Part { toucher, user, home, remote, remote_interval: remote.map(|value| votes.interval(value)), samples: votes.samples }
        });
        Some(CloseMap { parts: usize::try_from(parts).ok()?, part_bytes, list: list.collect() })
    }
}

impl Votes {
    fn count(&mut self, hit: &Hit, weight: f64) {
        let rate = hit.rate().max(f64::MIN_POSITIVE);
        self.samples += 1;
        for by in &hit.by_thread {
            // As in the report's map, each sample counts once: it is about who, not how much.
            *self.users.entry(by.thread).or_default() += by.rate / rate;
            let accesses = weight * by.rate;
            self.accesses += accesses;
            if let Home::Known { node, .. } = hit.home {
                self.known += accesses;
                self.squares += accesses * accesses;
                self.remote += if node == by.node { 0.0 } else { accesses };
            }
        }
        for &(site, of_site) in &hit.sites {
            *self.use_sites.entry(site).or_default() += of_site / rate;
        }
        if let Home::Known { node, .. } = hit.home {
            *self.homes.entry(node as usize).or_default() += 1.0;
        }
    }

    fn piece(&self, all: f64, home: impl Fn() -> Option<(Option<usize>, u32)>, lines: &mut Lines<'_>) -> Piece {
        let (toucher, user, home) = self.majorities(home);
        let remote = self.remote();
        Piece {
            toucher,
            user,
            home,
            remote,
            remote_interval: remote.map(|value| self.interval(value)),
            share: if all > 0.0 { self.accesses / all } else { 0.0 },
            samples: self.samples,
            touched_at: lines.most(&self.touch_sites),
            used_at: lines.most(&self.use_sites),
        }
    }

    /// Who touched first, who uses, and where it lies.
    fn majorities(&self, home: impl Fn() -> Option<(Option<usize>, u32)>) -> (Majority, Majority, Majority) {
        let (mut toucher, mut node) = (majority(&self.touchers), majority(&self.homes));
        if toucher == Majority::Unknown || node == Majority::Unknown {
            // Between records, the nearest ones tell.
            if let Some((thread, of_page)) = home() {
                toucher = if toucher == Majority::Unknown { thread.map_or(toucher, Majority::One) } else { toucher };
                node = if node == Majority::Unknown { Majority::One(of_page as usize) } else { node };
            }
        }
        (toucher, majority(&self.users), node)
    }

    fn remote(&self) -> Option<f64> {
        (self.known > 0.0).then(|| self.remote / self.known)
    }

    /// Samples that stand for different amounts say as little as fewer equal ones (Kish's effective number).
    fn interval(&self, value: f64) -> Interval {
        let effective = if self.squares > 0.0 { (self.known * self.known / self.squares).max(1.0) } else { 1.0 };
        let error = (value * (1.0 - value) / effective).sqrt();
        interval(Estimate::fraction(value, error, (effective as u64).max(1)))
    }
}

fn majority(votes: &BTreeMap<usize, f64>) -> Majority {
    let total: f64 = votes.values().sum();
    match votes.iter().max_by(|a, b| a.1.total_cmp(b.1)) {
        None => Majority::Unknown,
        Some((&who, &most)) if most >= MAJORITY * total => Majority::One(who),
        Some(_) => Majority::Several,
    }
}

/// The lines of a map, each once.
struct Lines<'a> {
    places: &'a CodeLocations<'a>,
    list: Vec<CodeLocation>,
    known: HashMap<Option<Id>, Option<usize>>,
}

impl Lines<'_> {
    /// The index of the line with the most votes.
    fn most(&mut self, sites: &BTreeMap<Option<Id>, f64>) -> Option<usize> {
        let (&site, _) = sites.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        if let Some(known) = self.known.get(&site) {
            return *known;
        }
        let index = self.places.place(site).map(|place| {
            let is_same = |other: &CodeLocation| (&other.file, other.line, &other.function) == (&place.file, place.line, &place.function);
            self.list.iter().position(is_same).unwrap_or_else(|| {
                self.list.push(place);
                self.list.len() - 1
            })
        });
        self.known.insert(site, index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check when a piece belongs to one thread.
    #[test]
    fn a_majority_decides() {
        let votes = |list: &[(usize, f64)]| majority(&list.iter().copied().collect());
        assert_eq!(votes(&[]), Majority::Unknown);
        assert_eq!(votes(&[(3, 1.0)]), Majority::One(3));
        assert_eq!(votes(&[(3, 6.0), (4, 4.0)]), Majority::One(3));
        assert_eq!(votes(&[(3, 5.0), (4, 5.0)]), Majority::Several);
    }

    /// Check that unequal samples give a wider interval than equal ones.
    #[test]
    fn intervals_know_unequal_samples() {
        let width = |squares: f64| {
            let [low, high] = Votes { known: 100.0, remote: 50.0, squares, ..Votes::default() }.interval(0.5);
            assert!(low <= 0.5 && 0.5 <= high);
            high - low
        };
        assert!(width(100.0) < width(1000.0));
    }
}
