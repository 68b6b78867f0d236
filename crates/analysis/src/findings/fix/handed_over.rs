//! Buffers that go from thread to thread: some fill them, others use them, allocation after allocation. No division of the initialisation helps: who fills
//! them has the data.

use super::super::Case;
use crate::per_thread::PerThread;
use firsttouch_model::rows::Profile;

/// From this number of allocations on, memory is handed over again and again.
const HANDED_OVER: usize = 8;
/// A thread fills or uses the object from this part of what the thread that does most of it does.
const PART: f64 = 0.05;

/// Whether the object is such buffers.
pub(super) fn is_handed_over(profile: &Profile, case: &Case<'_>) -> bool {
    let life = |member: &usize| (profile.objects[*member].born_ns, profile.objects[*member].died_ns);
    is_filled_by_others(&case.view.first_touch.by_thread, &case.view.used_by_thread)
        && follow_each_other(case.group.members.iter().map(life))
}

/// Whether no thread that touched the object's pages first uses them.
fn is_filled_by_others(touched: &PerThread<f64>, used: &PerThread<f64>) -> bool {
    let most = |shares: &PerThread<f64>| shares.iter().copied().fold(0.0, f64::max);
    let (of_touched, of_used) = (PART * most(touched), PART * most(used));
    let mut touchers = touched.counting(|share| *share > 0.0).filter(|(_, share)| **share >= of_touched).peekable();
    of_used > 0.0 && touchers.peek().is_some() && touchers.all(|(thread, _)| used[thread] < of_used)
}

/// Whether allocations follow each other: at most half of them are there at once.
fn follow_each_other(lives: impl Iterator<Item = (u64, Option<u64>)>) -> bool {
    let mut events: Vec<(u64, bool)> = Vec::new();
    let mut all = 0;
    for (born, died) in lives {
        all += 1;
        events.push((born, true));
        events.extend(died.map(|died| (died, false)));
    }
    // Of the same time, a death comes first: the memory is allocated again.
    events.sort_unstable();
    let (mut now, mut most) = (0_usize, 0);
    for (_, is_birth) in events {
        now = if is_birth { now + 1 } else { now.saturating_sub(1) };
        most = most.max(now);
    }
    all >= HANDED_OVER && 2 * most <= all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(list: &[f64]) -> PerThread<f64> {
        PerThread::new(list.len(), 0.0, list.iter().copied().enumerate().filter(|(_, share)| *share > 0.0))
    }

    /// Check that producers and consumers are told from threads that fill the memory for all, themselves among them, however many use it.
    #[test]
    fn who_fills_and_who_uses() {
        let filled = shares(&[0.0, 0.5, 0.5, 0.0, 0.0]);
        assert!(is_filled_by_others(&filled, &shares(&[0.0, 0.0, 0.01, 0.5, 0.49])));
        assert!(!is_filled_by_others(&filled, &shares(&[0.0, 0.0, 0.2, 0.4, 0.4])));
        let all: Vec<f64> = vec![1.0 / 32.0; 32];
        let mut by_two = vec![0.0; 32];
        (by_two[0], by_two[1]) = (0.5, 0.5);
        assert!(!is_filled_by_others(&shares(&by_two), &shares(&all)));
        assert!(!is_filled_by_others(&shares(&[0.0; 5]), &filled) && !is_filled_by_others(&filled, &shares(&[0.0; 5])), "not known");
    }

    /// Check that allocations one after the other are told from arrays that are there together.
    #[test]
    fn allocations_that_follow_each_other() {
        let queue = |count: u64, life: u64| (0..count).map(move |at| (at * 10, Some(at * 10 + life)));
        assert!(follow_each_other(queue(100, 10)) && follow_each_other(queue(100, 400)));
        assert!(!follow_each_other(queue(100, 800)) && !follow_each_other(queue(7, 10)));
        assert!(!follow_each_other((0..16).map(|_| (5, None))) && !follow_each_other([].into_iter()));
    }
}
