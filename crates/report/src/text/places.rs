//! Threads that follow each other, as those that are created anew for every step, in the places that they take: a report numbers places then.

use firsttouch_analysis::{Analysis, ObjectMap, ObjectView, ThreadView};
use firsttouch_model::rows::Id;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// With so many threads for each place, threads follow each other.
const FOLLOWERS: usize = 4;

/// The place of each thread; `None` where each thread has its own.
pub struct Places(Vec<usize>);

impl Places {
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let place_of = |thread: &ThreadView| (thread.turn(), thread.slot);
        // Processes come in the order of their first threads, and each has places of its own, or those of the processes whose turn it takes.
        let mut order: HashMap<Id, usize> = HashMap::new();
        for thread in &analysis.threads {
            let next = order.len();
            order.entry(thread.turn()).or_insert(next);
            if order.len() * FOLLOWERS > analysis.threads.len() {
                return None;
            }
        }
        let all: BTreeSet<_> = analysis.threads.iter().map(|thread| (order[&thread.turn()], place_of(thread))).collect();
        let numbers: BTreeMap<_, usize> = all.iter().enumerate().map(|(number, (_, place))| (*place, number)).collect();
        let follow = analysis.threads.len() > FOLLOWERS * numbers.len();
        follow.then(|| Self(analysis.threads.iter().map(|thread| numbers[&place_of(thread)]).collect()))
    }

    pub fn count(&self) -> usize {
        self.0.iter().collect::<BTreeSet<_>>().len()
    }

    fn sums(&self, shares: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.0.iter().max().map_or(0, |most| most + 1)];
        shares.iter().zip(&self.0).for_each(|(share, place)| sums[*place] += share);
        sums
    }

    /// The object with places instead of threads.
    pub fn view(&self, object: &ObjectView) -> ObjectView {
        let place = |thread: i64| {
            let place = usize::try_from(thread).ok().and_then(|thread| self.0.get(thread));
            place.and_then(|place| i64::try_from(*place).ok()).unwrap_or(thread)
        };
        let mut view = object.clone();
        view.used_by_thread = self.sums(&object.used_by_thread.to_vec()).into();
        view.first_touch.by_thread = self.sums(&object.first_touch.by_thread.to_vec()).into();
        let alone = view.first_touch.at.iter_mut().filter_map(|at| at.alone.as_mut());
        alone.for_each(|thread| *thread = self.0.get(*thread).copied().unwrap_or(*thread));
        view.map = ObjectMap { users: object.map.users.iter().map(|thread| place(*thread)).collect(), homes: object.map.homes.clone() };
        view
    }
}
