//! The processes of the program that outlive its first one.

use super::Session;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::launch::signals::process_runs;
use firsttouch_system::proc;
use firsttouch_system::proc::stat::of_process;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// How long processes that are about to end may take, and how often they are looked at.
const MOMENT_NS: u64 = 100_000_000;
const LOOK: Duration = Duration::from_millis(5);
/// The kernel gives the start of a process in steps of this size, and the time since boot too.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// What was left when the recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Behind {
    pub processes: u64,
    /// CPU time of those that were not recorded, and of their children, clock ticks.
    pub unrecorded_ticks: u64,
}

impl Session<'_> {
    /// The processes of the program, other than the first, that run.
    ///
    /// A process that ends may have started another just before, whose birth nobody has read yet. So if none runs, the births are read after
    /// that was seen: all that the ended ones started are among them.
    pub(super) fn still_running(&mut self) -> BTreeSet<i32> {
        loop {
            let known = self.known();
            let running: BTreeSet<i32> = known.iter().copied().filter(|&pid| process_runs(pid)).collect();
            if !running.is_empty() {
                return running;
            }
            self.drain(monotonic_ns(), false);
            if self.known().is_subset(&known) {
                return running;
            }
        }
    }

    /// Processes, other than the first, whose end was not reported, and what these started (which /proc shows, where nobody reports births).
    fn known(&self) -> BTreeSet<i32> {
        let mut known: BTreeSet<i32> = self.tracker.processes.live.keys().copied().chain(self.tracker.family.alive()).collect();
        if !self.tracker.activity.is_reported {
            // The target's numbers are those of its own PID namespace: an older process with that number is another one.
            // One that has ended may have made the session that a daemon is in.
            let age = Duration::from_nanos(monotonic_ns().saturating_sub(self.start_ns)) + CLOCK_TICK;
            let is_young = |pid: &i32| proc::stat::age(Path::new("/"), *pid).is_none_or(|own| own <= age);
            known.extend(self.sources.children().0.into_iter().filter(is_young));
            known.insert(self.pid);
            known.extend(proc::kin(Path::new("/"), &known));
        }
        known.remove(&self.pid);
        known
    }

    /// Finds what is left behind, when the first process has ended. Processes that are about to end get a moment.
    pub(super) fn look_behind(&mut self) {
        let until = monotonic_ns() + MOMENT_NS;
        let running = loop {
            // A process that was known before and forked since has begun a fork before it ended.
            let before = self.sources.children().1;
            let running = self.still_running();
            let (begun, entered) = self.sources.children().1;
            let are_all_known = self.tracker.activity.is_reported || (before == (begun, entered) && begun == entered);
            if (running.is_empty() && are_all_known) || monotonic_ns() > until {
                break running;
            }
            std::thread::sleep(LOOK);
        };
        let is_recorded = |pid: &i32| self.tracker.processes.live.contains_key(pid);
        let stats = running.iter().filter(|pid| !is_recorded(pid)).filter_map(|&pid| of_process(Path::new("/"), pid));
        let unrecorded_ticks = stats.map(|stat| stat.cpu_ticks.saturating_add(stat.children_ticks)).sum();
        self.behind = Behind { processes: running.len() as u64, unrecorded_ticks };
    }
}
