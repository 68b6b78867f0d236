//! The cost budget: what takes CPU time is done again only when its last time is a small part of the time that has passed.

use firsttouch_system::calls::clock::thread_cpu_ns;

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

#[cfg(test)]
mod tests {
    use super::*;

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
