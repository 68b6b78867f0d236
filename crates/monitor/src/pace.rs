//! The cost budget: what takes CPU time is done again only when its last time is a small part of the time that has passed.

use firsttouch_system::calls::clock::{process_cpu_ns, thread_cpu_ns};
use std::collections::BTreeMap;

/// Something that costs CPU time and is done again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// The part of one CPU that it may take.
    share: f64,
    due_ns: u64,
}

impl Pace {
    #[must_use]
    pub fn new(share: f64) -> Self {
        Self { share, due_ns: 0 }
    }

    /// Does it if it is due, and returns what it gave.
    pub fn run<T>(&mut self, now_ns: u64, work: impl FnOnce() -> T) -> Option<T> {
        if !self.is_due(now_ns) {
            return None;
        }
        let before = thread_cpu_ns();
        let result = work();
        self.spend(now_ns, thread_cpu_ns().saturating_sub(before));
        Some(result)
    }

    #[must_use]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// It was done, and took this long.
    pub fn spend(&mut self, now_ns: u64, cost_ns: u64) {
        self.due_ns = self.due_ns.max(now_ns).saturating_add((cost_ns as f64 / self.share) as u64);
    }

    /// The next time counts as due, whatever the last one cost: for what the user asks for.
    pub fn hurry(&mut self) {
        self.due_ns = 0;
    }
}

/// What this process has left of a part of one CPU that is its budget for everything: where reading facts takes little, more is left for analyses.
#[derive(Clone, Copy, Debug)]
pub struct Spare {
    share: f64,
    /// The time and the CPU time of this process at the last update.
    last: Option<(u64, u64)>,
    left_ns: f64,
}

/// What was not used within this time is lost, seconds.
const KEPT_S: f64 = 20.0;

impl Spare {
    #[must_use]
    pub fn new(share: f64) -> Self {
        Self { share, last: None, left_ns: 0.0 }
    }

    /// `cpu_ns`: the CPU time of this process so far.
    pub fn update(&mut self, now_ns: u64, cpu_ns: u64) {
        if let Some((then_ns, before_ns)) = self.last {
            let most = KEPT_S * 1e9 * self.share;
            let earned = now_ns.saturating_sub(then_ns) as f64 * self.share;
            self.left_ns = (self.left_ns + earned - cpu_ns.saturating_sub(before_ns) as f64).clamp(-most, most);
        }
        self.last = Some((now_ns, cpu_ns));
    }

    /// Whether something of this cost fits.
    #[must_use]
    pub fn allows(&self, cost_ns: u64) -> bool {
        self.left_ns >= cost_ns as f64
    }
}

/// When processes are analysed: at a pace, and sooner where this process has CPU time left.
#[derive(Debug)]
pub struct Schedule {
    /// Of the process that is looked at closely, and of all others.
    close: Pace,
    others: Pace,
    spare: Spare,
    /// CPU time of the last analysis of each process, ns.
    cost_ns: BTreeMap<i32, u64>,
}

impl Schedule {
    /// `each`: the parts of one CPU for the process that is looked at closely, and for all others; `all`: for everything that this process does.
    #[must_use]
    pub fn new(each: [f64; 2], all: f64) -> Self {
        let [close, others] = each.map(Pace::new);
        Self { close, others, spare: Spare::new(all), cost_ns: BTreeMap::new() }
    }

    pub fn update(&mut self, now_ns: u64) {
        self.spare.update(now_ns, process_cpu_ns());
    }

    /// All count as due, whatever the last analyses cost.
    pub fn hurry(&mut self) {
        self.close.hurry();
        self.others.hurry();
    }

    /// Analyses a process if it is due. The analysis has threads of its own.
    pub fn run(&mut self, now_ns: u64, pid: i32, is_close: bool, analyse: impl FnOnce()) {
        let fits = self.cost_ns.get(&pid).is_some_and(|cost| self.spare.allows(*cost));
        let pace = if is_close { &mut self.close } else { &mut self.others };
        if !fits && !pace.is_due(now_ns) {
            return;
        }
        let before = process_cpu_ns();
        analyse();
        let after = process_cpu_ns();
        let cost = after.saturating_sub(before);
        if !fits {
            pace.spend(now_ns, cost);
        }
        self.cost_ns.insert(pid, cost);
        self.spare.update(now_ns, after);
    }

    /// Forgets processes that are gone.
    pub fn retain(&mut self, is_kept: impl Fn(i32) -> bool) {
        self.cost_ns.retain(|pid, _| is_kept(*pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that time that nobody used is there for work of its cost, that it is used up, and that it is not saved for ever.
    #[test]
    fn what_is_not_used_is_left() {
        let mut spare = Spare::new(0.005);
        let second = 1_000_000_000;
        spare.update(0, 7_000_000);
        assert!(!spare.allows(1), "nothing is known yet");
        // 0.1 % of 10 s was used: 40 of 50 ms are left.
        spare.update(10 * second, 17_000_000);
        assert!(spare.allows(39_999_000) && !spare.allows(40_001_000));
        spare.update(10 * second, 57_000_000);
        assert!(!spare.allows(1_000));
        spare.update(3_600 * second, 57_000_000);
        assert!(spare.allows(99_000_000) && !spare.allows(101_000_000));
        spare.update(3_600 * second, 10_057_000_000);
        spare.update(3_641 * second, 10_057_000_000);
        assert!(spare.allows(1_000), "a start or a burst is forgotten in time");
    }

    /// Check that work of 10 ms with a budget of 1 % is done once a second, however often it is asked for.
    #[test]
    fn work_keeps_its_budget() {
        let (mut pace, mut done) = (Pace::new(0.01), 0);
        for ms in (0..60_000).step_by(50) {
            let now = ms * 1_000_000;
            if pace.is_due(now) {
                pace.spend(now, 10_000_000);
                done += 1;
            }
        }
        assert_eq!(done, 60);
        assert!(!pace.is_due(59_900_000_000));
        pace.hurry();
        assert!(pace.is_due(0));
    }

    /// Check that work that is not due is not done.
    #[test]
    fn work_waits() {
        let mut pace = Pace::new(0.5);
        assert_eq!(pace.run(1, || 7), Some(7));
        pace.spend(1, 1_000);
        assert_eq!(pace.run(1_000, || 7), None);
    }
}
