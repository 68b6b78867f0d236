// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Work on several things at a time: what compiles and what judges profiles. Programs are profiled one at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What `work` makes of each item, in their order. As many items at a time as there are CPUs.
///
/// # Panics
/// If `work` panics.
pub fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let take = || {
        while let Some((at, item)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?))) {
            let result = work(item);
            done.lock().expect("no panic").push((at, result));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(take))));
    let mut done = done.into_inner().expect("no panic");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each item has its result, whichever is done first.
    #[test]
    fn results_are_in_order() {
        let items: Vec<u64> = (0..50).collect();
        let slow_first = |item: &u64| {
            thread::sleep(std::time::Duration::from_micros(50 - item));
            item * 2
        };
        assert_eq!(side_by_side(&items, slow_first), items.iter().map(|item| item * 2).collect::<Vec<u64>>());
        assert_eq!(side_by_side(&[], slow_first), [0; 0]);
    }
}
