//! Sliding windows over counters that only grow.

use std::collections::VecDeque;

/// The window that figures are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Window {
    /// 1 s.
    Short,
    /// 10 s.
    #[default]
    Medium,
    /// 60 s.
    Long,
}

impl Window {
    pub const ALL: [Self; 3] = [Self::Short, Self::Medium, Self::Long];

    #[must_use]
    pub fn seconds(self) -> u32 {
        match self {
            Self::Short => 1,
            Self::Medium => 10,
            Self::Long => 60,
        }
    }

    #[must_use]
    pub fn ns(self) -> u64 {
        u64::from(self.seconds()) * 1_000_000_000
    }

    /// The next one; after the last, the first.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Short => Self::Medium,
            Self::Medium => Self::Long,
            Self::Long => Self::Short,
        }
    }
}

/// Readings of a window at most: more often than each half second, they replace each other.
const MOST: usize = 128;

/// A counter, read again and again. Readings older than the longest window are dropped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counter {
    /// (time in ns, value), ascending.
    readings: VecDeque<(u64, u64)>,
}

impl Counter {
    /// Adds a reading. A counter that went backwards begins anew.
    pub fn read(&mut self, now_ns: u64, value: u64) {
        if self.readings.back().is_some_and(|(_, last)| *last > value) {
            self.readings.clear();
        }
        if self.readings.back().is_some_and(|(last, _)| *last >= now_ns) {
            return;
        }
        self.readings.push_back((now_ns, value));
        // One reading lies before the window, so that the whole window is covered.
        while self.readings.len() > MOST || self.readings.get(1).is_some_and(|(time, _)| now_ns.saturating_sub(*time) >= Window::Long.ns())
        {
            self.readings.pop_front();
        }
    }

    /// Growth a second over the window until the last reading: from the last reading before the window, or the oldest one. `None` with fewer than
    /// two readings.
    #[must_use]
    pub fn rate(&self, window: Window) -> Option<f64> {
        let (until, last) = *self.readings.back()?;
        let from = until.saturating_sub(window.ns());
        let before = self.readings.iter().take(self.readings.len() - 1);
        let (since, first) = before.clone().rev().find(|(time, _)| *time <= from).or_else(|| before.clone().next()).copied()?;
        Some((last - first) as f64 * 1e9 / (until - since) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Check rates over each window, of a counter that grows by 1 a second and then by 5.
    #[test]
    fn rates_are_those_of_the_window() {
        let mut counter = Counter::default();
        assert_eq!(counter.rate(Window::Short), None);
        counter.read(S, 0);
        assert_eq!(counter.rate(Window::Long), None);
        let mut value = 0;
        for second in 2..=101 {
            value += if second <= 91 { 1 } else { 5 };
            counter.read(second * S, value);
        }
        assert_eq!(counter.rate(Window::Short), Some(5.0));
        assert_eq!(counter.rate(Window::Medium), Some(5.0));
        assert_eq!(counter.rate(Window::Long), Some((50.0 + 50.0) / 60.0));
    }

    /// Check that a window shorter than the time between two readings has the rate between these.
    #[test]
    fn rare_readings_are_enough() {
        let mut counter = Counter::default();
        counter.read(0, 7);
        counter.read(5 * S, 17);
        assert_eq!(counter.rate(Window::Short), Some(2.0));
        assert_eq!(counter.rate(Window::Long), Some(2.0));
    }

    /// Check that memory is bounded, and that a counter that was reset and a clock that stands still give no wrong rates.
    #[test]
    fn readings_are_bounded() {
        let mut counter = Counter::default();
        for tick in 0..10_000 {
            counter.read(tick * S / 10, tick);
        }
        assert!(counter.readings.len() <= MOST);
        assert!((counter.rate(Window::Long).unwrap_or(0.0) - 10.0).abs() < 1e-9);
        counter.read(1000 * S, 3);
        assert_eq!(counter.rate(Window::Medium), None);
        counter.read(1000 * S, 9);
        assert_eq!(counter.rate(Window::Medium), None);
        counter.read(1001 * S, 5);
        assert_eq!(counter.rate(Window::Medium), Some(2.0));
    }
}
