//! Work on several CPUs. The results, and their order, are those of one thread. Where the system allows no further thread, this one does all of it.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};

/// More threads than this would wait for memory, or for the largest item.
const MOST: usize = 8;
/// As large as a main thread's: analyses follow call stacks and expressions.
const STACK: usize = 8 << 20;

/// `work` on each item.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let others = items.len().min(available_parallelism().map_or(1, NonZeroUsize::get)).min(MOST).saturating_sub(1);
    if others == 0 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, work(item)));
        }
    };
    let mut done: Vec<(usize, R)> = scope(|scope| {
        let helpers: Vec<_> = (0..others).map_while(|_| Builder::new().stack_size(STACK).spawn_scoped(scope, take).ok()).collect();
        let mut done = take();
        for helper in helpers {
            done.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Both results, computed at the same time.
pub fn both<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    let one = std::sync::Mutex::new(Some(one));
    let take = || one.lock().ok().and_then(|mut one| one.take()).map(|one| one());
    scope(|scope| {
        let helper = Builder::new().stack_size(STACK).spawn_scoped(scope, take);
        let other = other();
        let early = helper.ok().and_then(|helper| helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let one = early.or_else(take).expect("it is taken once");
        (one, other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that results come in the order of the items, whichever thread made them, and that nothing is done twice or left out.
    #[test]
    fn results_are_those_of_one_thread() {
        for count in [0, 1, 2, 1000_u64] {
            let items: Vec<u64> = (0..count).collect();
            let work = |item: &u64| (0..(count - item) * 10).fold(*item, |sum, at| sum.wrapping_add(std::hint::black_box(at)));
            assert_eq!(map(&items, work), items.iter().map(work).collect::<Vec<_>>());
        }
        assert_eq!(both(|| 1, || "2"), (1, "2"));
    }

    /// Check that a panic in a helper is one of the caller.
    #[test]
    #[should_panic(expected = "item 7")]
    fn panics_are_passed_on() {
        map(&[1, 3, 7, 9], |item| assert!(*item != 7, "item {item}"));
    }
}
