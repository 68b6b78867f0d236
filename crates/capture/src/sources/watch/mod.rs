//! Access evidence from debug-register watchpoints. The estimator and its variance: docs/estimator.md.
//!
//! Time is cut into rounds. In each round up to four words a process are drawn (`select`, `draw`), watched on all threads
//! (`debug_registers`), and the hits are turned into rates (`windows`, `rate`, `pattern`, `hot`). The length of a round and the objects that are drawn depend
//! on earlier rounds only (`pace`), so that every window stays an unbiased sample.

mod calibrate;
mod debug_registers;
mod draw;
mod guard;
mod hot;
mod pace;
mod pattern;
mod rate;
mod rounds;
mod select;
mod string_instructions;
mod windows;

pub use calibrate::{Calibration, calibrate};

use crate::options::Options;
use crate::perf::refusal::explain;
use crate::source::{Account, NEVER, Occasion, Source, Target, Unavailable};
use crate::track::Tracker;
use crate::track::activity::Activity;
use debug_registers::WatchedThread;
use firsttouch_model::rows::Id;
use firsttouch_model::rows::metadata::Entry;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::debug_exceptions::Policy;
use firsttouch_system::launch::raise_file_limit;
use guard::{Guard, UNGUARDED};
use hashbrown::HashSet;
use rounds::Rounds;
use std::path::Path;

/// How often threads are looked at, and how often their waits are counted at least: while watchpoints are armed each wait costs more in a
/// virtual machine.
const LOOKS_NS: u64 = 100_000_000;
const WAITS_NS: u64 = 400_000_000;
/// The same while watchpoints only check what samples show, and so are armed rarely.
const CHECK_WAITS_NS: u64 = 2_000_000_000;
/// Counting takes at most this part of a CPU.
const WAITS_BUDGET: f64 = 0.0005;
/// A thread must be this old before watchpoints are spent on it: most of a thousand short ones never are.
const MIN_AGE_NS: u64 = 3_000_000;
/// Threads watched at once; each needs five descriptors and a 64 KiB ring.
const WATCHED_THREADS: usize = 512;
/// Descriptors of a thread, and descriptors left for everything else.
const DESCRIPTORS: u64 = 5;
const OTHER_DESCRIPTORS: u64 = 128;
const MANY_THREADS: &str = "threads beyond the limit on watchpoints were not watched";
const FEW_FILES: &str = "threads were not watched, because of the limit on open files: raise it (ulimit -n)";
/// The first round is due this time after the start; until a thread is old enough it is due again and again.
const FIRST_ROUND_NS: u64 = 2_000_000;
const RETRY_NS: u64 = 2_500_000;
const RETRIES_END_NS: u64 = 20_000_000;

pub struct Watch {
    calibration: Option<Calibration>,
    cpus: usize,
    recorders: u32,
    policy: Policy,
    may_rest: bool,
    running: Option<Running>,
    /// Watchpoints could not be set on some thread.
    missing: Option<String>,
}

struct Running {
    rounds: Rounds,
    guard: Guard,
    /// Threads that the guard has refused at least once.
    unguarded: HashSet<Id>,
    may_rest: bool,
    /// Threads that were offered watchpoints, also those that could not take them.
    offered: HashSet<i32>,
    most_threads: usize,
    start_ns: u64,
    next_round_ns: u64,
    next_look_ns: u64,
    next_waits_ns: u64,
    is_sampling: bool,
}

impl Watch {
    /// `calibration`: of [`calibrate`], which takes some 10 ms and so may run while the target is prepared.
    #[must_use]
    pub fn new(calibration: Option<Calibration>, options: &Options) -> Self {
        Self {
            calibration,
            cpus: options.cpus().len(),
            recorders: options.recorders_here(),
            policy: options.watchpoints,
            may_rest: options.watchpoints_may_rest,
            running: None,
            missing: None,
        }
    }
}

impl Source for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn probe(&mut self) -> Result<(), Unavailable> {
        if self.policy == Policy::Never {
            return Err("FIRSTTOUCH_WATCHPOINTS=never: no watchpoints are set".into());
        }
        if self.calibration.is_some() {
            return Ok(());
        }
        let error = WatchedThread::open(0, 0, 0).err().unwrap_or_else(|| std::io::Error::from_raw_os_error(libc::ENODEV));
        let reason = if error.raw_os_error() == Some(libc::ENOSPC) {
            "cannot set watchpoints (all debug registers are taken): end the debugger that holds them".to_owned()
        } else {
            explain(Path::new("/"), &error)
        };
        Err(format!("{reason}; continuing without access evidence").into())
    }

    fn start(&mut self, target: &Target<'_>, tracker: &mut Tracker) -> Result<(), Unavailable> {
        let Some(calibration) = self.calibration else { return Ok(()) };
        let start_ns = monotonic_ns();
        let seed = start_ns.rotate_left(17) ^ u64::from(target.pid.unsigned_abs());
        let threads = raise_file_limit().saturating_sub(OTHER_DESCRIPTORS) / DESCRIPTORS;
        self.running = Some(Running {
            rounds: Rounds::new(seed, calibration, self.cpus, self.recorders),
            guard: Guard::new(self.policy),
            unguarded: HashSet::new(),
            may_rest: self.may_rest,
            offered: HashSet::new(),
            most_threads: usize::try_from(threads).unwrap_or(0).min(WATCHED_THREADS),
            start_ns,
            next_round_ns: start_ns + FIRST_ROUND_NS,
            next_look_ns: 0,
            next_waits_ns: 0,
            is_sampling: false,
        });
        tracker.sink.write(|w| w.meta(Entry::TrapNs(calibration.trap_ns)));
        Ok(())
    }

    fn act(&mut self, occasion: Occasion, now: u64, tracker: &mut Tracker) -> u64 {
        let Some(running) = &mut self.running else { return NEVER };
        match occasion {
            Occasion::Tick => {
                running.drop_unguarded(now, tracker);
                if let Some(missing) = running.watch_new_threads(now, tracker) {
                    self.missing.get_or_insert(missing);
                }
                running.observe(now, tracker, self.cpus);
            }
            Occasion::RingFilled if tracker.activity.in_burst => {
                if let Some(next) = running.rounds.rest_in_burst(tracker) {
                    running.next_round_ns = next;
                }
            }
            Occasion::Due if now >= running.next_round_ns => running.turn(now, tracker),
            Occasion::End => {
                running.rounds.stop(tracker);
                tracker.sink.lose("watch", UNGUARDED, running.unguarded.len() as u64);
                running.next_round_ns = NEVER;
            }
            _ => {}
        }
        running.next_round_ns
    }

    fn account(&self, tracker: &Tracker) -> Option<Account> {
        let running = self.running.as_ref()?;
        let rounds = &running.rounds;
        let hits = rounds.windows.hits;
        let available = || Account { detail: rounds.rests().unwrap_or_default(), ..Account::available(hits) };
        let unguarded = || Account { is_warning: tracker.activity.sampling.is_none(), ..Account::missing(hits, UNGUARDED) };
        let account = match &self.missing {
            Some(reason) => Account::missing(hits, reason),
            None if !running.is_sampling && !running.unguarded.is_empty() => unguarded(),
            None => available(),
        };
        Some(Account { target_ns: rounds.pace.cost_ns(), ..account })
    }
}

impl Running {
    /// Ends the watch of threads that can no longer take a SIGTRAP.
    fn drop_unguarded(&mut self, now: u64, tracker: &Tracker) {
        if tracker.activity.handles_traps {
            self.guard.lose();
        }
        let live = &tracker.threads.live;
        self.guard.retain(|tid| live.contains_key(&tid));
        let (guard, offered, unguarded) = (&mut self.guard, &mut self.offered, &mut self.unguarded);
        self.rounds.threads.retain(|watched| {
            let pid = live.get(&watched.tid).map(|thread| thread.pid);
            let stays = pid.is_none_or(|pid| guard.admits(&tracker.scope.root, pid, watched.tid, now));
            if !stays {
                offered.remove(&watched.tid);
                unguarded.insert(watched.thread);
            }
            stays
        });
    }

    /// Opens watchpoints on threads that are old enough. Returns why that is impossible on some thread, if it is.
    fn watch_new_threads(&mut self, now: u64, tracker: &mut Tracker) -> Option<String> {
        let threads = &tracker.threads.live;
        self.offered.retain(|tid| threads.contains_key(tid));
        if self.offered.len() == threads.len() {
            return None;
        }
        let mut new: Vec<(i64, i32, i64)> = threads
            .values()
            .filter(|t| !self.offered.contains(&t.tid) && now.saturating_sub(t.born_ns) >= MIN_AGE_NS)
            .map(|t| (t.id, t.tid, t.process))
            .collect();
        new.sort_unstable();
        let had_threads = !self.rounds.threads.is_empty();
        let mut missing = None;
        for (id, tid, process) in new {
            let pid = tracker.threads.live[&tid].pid;
            if !self.guard.admits(&tracker.scope.root, pid, tid, now) {
                self.unguarded.insert(id);
                continue;
            }
            self.unguarded.remove(&id);
            self.offered.insert(tid);
            if self.rounds.threads.len() >= self.most_threads {
                let is_by_files = self.most_threads < WATCHED_THREADS;
                tracker.sink.lose("watch", if is_by_files { FEW_FILES } else { MANY_THREADS }, 1);
                continue;
            }
            match WatchedThread::open(id, tid, process) {
                Ok(thread) => self.rounds.threads.push(thread),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => {
                    tracker.sink.lose("watch", "threads whose debug registers are taken, by a debugger or by another firsttouch", 1);
                }
                Err(error) => {
                    tracker.sink.lose("watch", "threads on which no watchpoint could be set", 1);
                    missing = Some(format!("{}; continuing without access evidence", explain(&tracker.scope.root, &error)));
                }
            }
        }
        tracker.activity.is_sampled = !self.offered.is_empty();
        if !had_threads && !self.rounds.threads.is_empty() {
            self.next_round_ns = self.next_round_ns.min(now);
        }
        missing
    }

    /// Takes the loads that armed watchpoints add to. A rest may end earlier for that.
    fn observe(&mut self, now: u64, tracker: &mut Tracker, cpus: usize) {
        let cpus = tracker.threads.live.len().min(cpus);
        if now >= self.next_waits_ns {
            let began = monotonic_ns();
            tracker.count_waits();
            let took_ns = monotonic_ns().saturating_sub(began) as f64;
            let least_ns = if self.rounds.pace.is_check() { CHECK_WAITS_NS } else { LOOKS_NS };
            self.next_waits_ns = now + ((took_ns / WAITS_BUDGET) as u64).min(WAITS_NS).max(least_ns);
            self.rounds.pace.observe_waits(now, tracker.activity.waits, cpus);
        }
        if self.may_rest && now >= self.next_look_ns {
            self.next_look_ns = now + LOOKS_NS;
            let Activity { computing_samples, rated_samples, .. } = tracker.activity;
            self.rounds.pace.observe_samples(now, computing_samples, rated_samples, self.rounds.windows.hits);
        }
        if tracker.activity.faults_counted {
            self.rounds.pace.observe(now, tracker.activity.faults, cpus, self.rounds.is_armed());
        } else {
            self.rounds.pace.skip(now, tracker.activity.faults);
        }
        if self.rounds.may_wake(now) {
            self.next_round_ns = now;
        }
    }

    fn turn(&mut self, now: u64, tracker: &mut Tracker) {
        if self.rounds.threads.is_empty() {
            // The first thread makes a round due.
            let retries = now.saturating_sub(self.start_ns) < RETRIES_END_NS;
            self.next_round_ns = if retries { now + RETRY_NS } else { NEVER };
            return;
        }
        if !std::mem::replace(&mut self.is_sampling, true) {
            tracker.objects.sampled_from_ns = now;
            tracker.sink.write(|w| w.meta(Entry::WatchStartNs(now)));
        }
        self.next_round_ns = self.rounds.turn(tracker);
    }
}
