//! How long the threads waited for a CPU while they could have run: then others had it, or the program has more threads than CPUs.

use firsttouch_system::proc::schedstat::{SchedStat, of_thread};
use hashbrown::HashMap;
use std::path::Path;

/// Threads that are looked at in one go.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub struct Delays {
    /// By thread id, as last seen.
    of_thread: HashMap<i32, SchedStat>,
    /// Of threads whose id another thread has now.
    of_former: SchedStat,
    next: usize,
}

impl Delays {
    /// Reads the figures of the next live threads: (process, thread).
    pub fn look_up(&mut self, root: &Path, mut live: Vec<(i32, i32)>) {
        if live.is_empty() {
            return;
        }
        live.sort_unstable();
        let (count, from) = (live.len(), self.next % live.len());
        live.rotate_left(from);
        self.next = from + MOST.min(count);
        for (pid, tid) in live.into_iter().take(MOST) {
            if let Some(now) = of_thread(root, pid, tid) {
                self.see(tid, now);
            }
        }
    }

    fn see(&mut self, tid: i32, now: SchedStat) {
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
    SchedStat { ran_ns: a.ran_ns.saturating_add(b.ran_ns), delayed_ns: a.delayed_ns.saturating_add(b.delayed_ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a thread counts once, with its last figures, and that a thread which gets the id of another one counts beside it.
    #[test]
    fn threads_count_once() {
        let mut delays = Delays::default();
        for (tid, ran_ns, delayed_ns) in [(1, 10, 1), (1, 30, 3), (2, 5, 5), (1, 4, 1)] {
            delays.see(tid, SchedStat { ran_ns, delayed_ns });
        }
        assert_eq!(delays.total(), SchedStat { ran_ns: 39, delayed_ns: 9 });
    }
}
