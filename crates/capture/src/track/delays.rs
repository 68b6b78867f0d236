//! How long the threads waited for a CPU while they could have run: then others had it, or the program has more threads than CPUs. And how long they
//! keep a CPU each time.

use firsttouch_system::proc::schedstat::{SchedStat, of_thread};
use hashbrown::{HashMap, HashSet};
use std::path::Path;

/// Threads that are looked at in one go.
const MOST: usize = 64;
/// From this part of the time in which threads could run, they wait much: the kernel's ticks hit their short phases too seldom.
const MUCH: f64 = 0.2;
/// Of a shorter time it is not said, ns.
const LEAST_NS: u64 = 200_000_000;
/// Threads that keep a CPU for less than this on average give it up often, ns: an event on the clock of a thread, whose timer the kernel starts and stops each time,
/// takes about 3 us of each turn in a virtual machine (four MPI ranks on two CPUs that yield 17,000 times a second each: 9 % of their time).
const SHORT_TURNS_NS: u64 = 500_000;
/// The turns of a thread are not judged over less of its CPU time than this, ns.
const LEAST_OF_ONE_NS: u64 = 100_000_000;

#[derive(Debug, Default)]
pub struct Delays {
    /// By thread id, as last seen.
    of_thread: HashMap<i32, SchedStat>,
    /// By thread id: the figures when its turns were last looked at, and whether they were short at any time.
    turns: HashMap<i32, (SchedStat, bool)>,
    /// Of threads whose id another thread has now.
    of_former: SchedStat,
    next: usize,
    /// The total when it was last asked whether threads wait much.
    before: SchedStat,
    waits_much: bool,
}

impl Delays {
    /// Reads the figures of the next live threads: (process, thread).
    pub fn look_up(&mut self, root: &Path, mut live: Vec<(i32, i32)>) {
        if live.is_empty() {
            return;
        }
        live.sort_unstable();
        // Another thread may get the id of one that ended.
        let ids: HashSet<i32> = live.iter().map(|(_, tid)| *tid).collect();
        self.turns.retain(|tid, _| ids.contains(tid));
        let (count, from) = (live.len(), self.next % live.len());
        live.rotate_left(from);
        self.next = from + MOST.min(count);
        for (pid, tid) in live.into_iter().take(MOST) {
            if let Some(now) = of_thread(root, pid, tid) {
                self.see(tid, now);
            }
        }
        self.judge();
    }

    fn judge(&mut self) {
        let total = self.total();
        let ran_ns = total.ran_ns.saturating_sub(self.before.ran_ns);
        let delayed_ns = total.delayed_ns.saturating_sub(self.before.delayed_ns);
        if ran_ns + delayed_ns >= LEAST_NS {
            self.before = total;
            self.waits_much |= delayed_ns as f64 > MUCH * (ran_ns + delayed_ns) as f64;
        }
    }

    /// Whether the threads waited for CPUs for much of the time in which they could run, at some time until now.
    #[must_use]
    pub fn waits_much(&self) -> bool {
        self.waits_much
    }

    /// Whether the thread gave up its CPU often, at some time until now.
    #[must_use]
    pub fn has_short_turns(&self, tid: i32) -> bool {
        self.turns.get(&tid).is_some_and(|(_, are_short)| *are_short)
    }

    fn see(&mut self, tid: i32, now: SchedStat) {
        let (before, are_short) = self.turns.entry(tid).or_default();
        if before.ran_ns > now.ran_ns {
            (*before, *are_short) = (SchedStat::default(), false);
        }
        let (ran_ns, turns) = (now.ran_ns - before.ran_ns, now.turns.saturating_sub(before.turns));
        if ran_ns >= LEAST_OF_ONE_NS {
            *are_short |= ran_ns / SHORT_TURNS_NS < turns;
            *before = now;
        }
        if let Some(before) = self.of_thread.insert(tid, now).filter(|before| before.ran_ns > now.ran_ns) {
            self.of_former = sum(self.of_former, before);
        }
    }

    /// All threads together.
    #[must_use]
    pub fn total(&self) -> SchedStat {
        self.of_thread.values().copied().fold(self.of_former, sum)
    }
}

fn sum(a: SchedStat, b: SchedStat) -> SchedStat {
    SchedStat {
        ran_ns: a.ran_ns.saturating_add(b.ran_ns),
        delayed_ns: a.delayed_ns.saturating_add(b.delayed_ns),
        turns: a.turns.saturating_add(b.turns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a thread counts once, with its last figures, and that a thread which gets the id of another one counts beside it.
    #[test]
    fn threads_count_once() {
        let mut delays = Delays::default();
        for (tid, ran_ns, delayed_ns) in [(1, 10, 1), (1, 30, 3), (2, 5, 5), (1, 4, 1)] {
            delays.see(tid, SchedStat { ran_ns, delayed_ns, turns: 1 });
        }
        assert_eq!(delays.total(), SchedStat { ran_ns: 39, delayed_ns: 9, turns: 3 });
    }

    /// Check that threads wait much if they do so in one stretch of time, however long they ran alone before, and that one look does not show it.
    #[test]
    fn much_waiting_is_seen_in_time() {
        let mut delays = Delays::default();
        for (ran_ns, delayed_ns, waits_much) in [
            (5_000_000_000, 10_000_000, false),
            (5_050_000_000, 100_000_000, false),
            (5_150_000_000, 200_000_000, true),
            (9_000_000_000, 200_000_000, true),
        ] {
            delays.see(1, SchedStat { ran_ns, delayed_ns, turns: 1 });
            delays.judge();
            assert_eq!(delays.waits_much(), waits_much, "{ran_ns} {delayed_ns}");
        }
    }

    /// Check that a thread has short turns if it gave up its CPU often in one stretch of time, whatever it did before and after, and that another thread
    /// with its id is a new one.
    #[test]
    fn short_turns_are_seen() {
        let mut delays = Delays::default();
        assert!(!delays.has_short_turns(1));
        for (ran_ns, turns, are_short) in [
            (1_000_000_000, 300, false),
            (1_050_000_000, 900, false),
            (1_150_000_000, 1_000, true),
            (9_000_000_000, 1_001, true),
            (130_000_000, 10, false),
        ] {
            delays.see(1, SchedStat { ran_ns, delayed_ns: 0, turns });
            assert_eq!(delays.has_short_turns(1), are_short, "{ran_ns} {turns}");
        }
    }
}
