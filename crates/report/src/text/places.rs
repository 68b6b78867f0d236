//! Threads that follow each other, as those that are created anew for every step, in the places that they take: a report numbers places then.

use firsttouch_analysis::{Analysis, ObjectMap, ObjectView};
use std::collections::BTreeSet;

/// With so many threads for each place, threads follow each other.
const FOLLOWERS: usize = 4;

/// The place of each thread; `None` where each thread has its own.
pub struct Places(Vec<usize>);

impl Places {
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let first = analysis.threads.first()?;
        let places: Vec<usize> = analysis.threads.iter().map(|thread| thread.slot).collect();
        let is_one_process = analysis.threads.iter().all(|thread| thread.process == first.process);
        let follow = places.len() > FOLLOWERS * places.iter().collect::<BTreeSet<_>>().len();
        (is_one_process && follow).then_some(Self(places))
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
        view.used_by_thread = self.sums(&object.used_by_thread);
        view.first_touch.by_thread = self.sums(&object.first_touch.by_thread);
        view.map = ObjectMap { users: object.map.users.iter().map(|thread| place(*thread)).collect(), homes: object.map.homes.clone() };
        view
    }
}
