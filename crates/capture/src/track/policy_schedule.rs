//! When the memory policies of a process are read.
//!
//! The kernel walks a process's page tables to write /proc/PID/numa_maps, some 10 ns a page. So it is read rarely: reading takes at
//! most half a percent of the CPU time of one CPU.

use firsttouch_system::proc::numa_maps::NumaMapping;

/// Delay of the first reading after a process was first seen. Later readings follow at growing intervals.
const FIRST_NS: u64 = 200_000_000;
const GROWTH: f64 = 1.5;
/// Time between readings, as a multiple of the CPU time that the last one took.
const RARELY: u64 = 200;

/// When a process's policies are read next.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub(super) next_ns: u64,
    pause_ns: u64,
    /// Objects whose policy was the default when it was read first.
    pub(super) usual: u32,
    /// What was read, and the address of the object to go on with.
    pub(super) reading: Option<(Vec<NumaMapping>, u64)>,
}

impl Schedule {
    #[must_use]
    pub fn new(born_ns: u64) -> Self {
        Self { next_ns: born_ns.saturating_add(FIRST_NS), pause_ns: FIRST_NS, usual: 0, reading: None }
    }

    /// A reading was made that took so much CPU time.
    pub(super) fn done(&mut self, now: u64, took_ns: u64) {
        self.pause_ns = ((self.pause_ns as f64 * GROWTH) as u64).max(took_ns.saturating_mul(RARELY));
        self.next_ns = now.saturating_add(self.pause_ns);
    }
}
