//! The loop of a run.

use super::Session;
use crate::agent::ring::AgentRecord;
use crate::perf::records::PerfRecord;
use crate::touch::TouchEvents;
use crate::watch::slots::WatchedThread;
use firsttouch_model::metadata::Entry;
use firsttouch_system::clock::monotonic_ns;
use firsttouch_system::launch::reap;
use firsttouch_system::launch::signals::{Notice, Signals, process_runs, send};
use std::collections::VecDeque;

/// How often the rings are looked after, ns: less and less often while nothing comes (a ring that fills wakes us), since each
/// look takes the CPU away from a thread of the program, and at a barrier from all of them.
const TICK_NS: u64 = 10_000_000;
const LONGEST_TICK_NS: u64 = 40_000_000;
/// How often waits are counted: with watchpoints armed each costs more in a virtual machine.
const WAITS_NS: u64 = 100_000_000;
/// How often mappings are looked up where no agent tells of allocations.
const MAPPINGS_NS: u64 = 200_000_000;
const FLUSH_NS: u64 = 500_000_000;
/// Records gone through before the rings are looked after again.
const BATCH: usize = 200;
/// A thread must be this old before watchpoints are spent on it: most of a thousand short ones never are.
const WATCH_AGE_NS: u64 = 3_000_000;
/// Threads watched at once; each needs five descriptors and a 64 KiB ring.
const WATCHED_THREADS: usize = 512;

impl Session<'_> {
    /// The loop. Returns the program's status when it ended, none when the time was up (or an attached one was left).
    pub(super) fn run(&mut self, signals: &Signals, ours: bool) -> Option<i32> {
        let deadline = self.options.duration.map(|d| self.start_ns + u64::try_from(d.as_nanos()).unwrap_or(u64::MAX / 2));
        let (mut next_tick, mut next_turn, mut next_flush) = (self.start_ns, self.start_ns + 2_000_000, self.start_ns + FLUSH_NS / 4);
        let rings = self.touch.as_ref().map_or(Vec::new(), TouchEvents::descriptors);
        let mut tick_ns = TICK_NS;
        loop {
            let now = monotonic_ns();
            self.end_ns = now;
            // A tick that is due soon is done with the turn: one wake-up less.
            if now >= next_tick || (now >= next_turn && now + tick_ns / 2 >= next_tick) {
                let quiet = self.tick(now);
                tick_ns = if quiet { (tick_ns * 2).min(LONGEST_TICK_NS) } else { TICK_NS };
                next_tick = monotonic_ns() + tick_ns;
                if self.rounds.as_ref().is_some_and(|rounds| rounds.may_wake(now)) {
                    next_turn = now;
                }
            }
            if now >= next_turn {
                next_turn = self.turn(now);
            }
            if now >= next_flush {
                self.flush(now);
                next_flush = monotonic_ns() + FLUSH_NS;
            }
            if deadline.is_some_and(|d| now >= d) {
                return None;
            }
            let wake = next_tick.min(next_turn).min(next_flush).min(deadline.unwrap_or(u64::MAX));
            match signals.wait(wake.saturating_sub(monotonic_ns()), &rings) {
                Some(Notice::Forward(signal)) if ours => send(self.pid, signal),
                Some(Notice::Forward(signal) | Notice::Terminal(signal)) if !ours && !matches!(signal, libc::SIGWINCH | libc::SIGCONT) => {
                    return None;
                }
                Some(_) => {}
                None if monotonic_ns() < wake => {
                    // A ring fills: page faults, most likely.
                    self.drain(monotonic_ns(), false);
                    next_tick = next_tick.min(now + TICK_NS);
                    if let (Ok(touch), Some(rounds)) = (&self.touch, &mut self.rounds)
                        && touch.in_burst()
                        && let Some(turn) = rounds.storm(&mut self.tracker)
                    {
                        next_turn = turn;
                    }
                }
                None => {}
            }
            if ours {
                if let Some(code) = reap(self.pid) {
                    self.end_ns = monotonic_ns();
                    return Some(code);
                }
            } else if !process_runs(self.pid) {
                return None;
            }
        }
    }

    /// Takes in what the rings hold. Returns whether nothing came and nothing waits.
    fn tick(&mut self, now: u64) -> bool {
        let faults_seen = self.touch.as_ref().is_ok_and(|touch| touch.is_on);
        let before = std::mem::replace(&mut self.last_tick, now);
        self.drain(now, true);
        let has_agent = self.tracker.processes.get(&self.pid).is_some_and(|p| p.has_agent);
        if self.touch.is_err() {
            // Nobody tells us of threads and modules: look.
            self.tracker.scan_process(self.pid, now);
        }
        if self.ring.is_none() || (!has_agent && now.saturating_sub(self.start_ns) > 10 * TICK_NS) {
            let pids: Vec<i32> = self.tracker.processes.values().filter(|p| !p.has_agent).map(|p| p.pid).collect();
            let due = now.saturating_sub(self.start_ns) / MAPPINGS_NS != before.saturating_sub(self.start_ns) / MAPPINGS_NS;
            for pid in pids.into_iter().filter(|_| due || self.watched.is_empty()) {
                self.tracker.refresh_mappings(pid, now);
            }
        }
        // Symbol tables take milliseconds to read: when nothing else waits, or at the end.
        if self.pending.len() < BATCH {
            self.tracker.add_waiting_statics(1);
        }
        self.watch_new_threads(now);
        if let Some(rounds) = &mut self.rounds {
            let cpus = self.tracker.threads.len().min(self.cpu_count);
            if now >= self.next_waits {
                self.tracker.read_waits();
                self.tracker.look_at_threads();
                self.next_waits = now + WAITS_NS;
                rounds.pace.observe_waits(now, self.tracker.waits, cpus);
            }
            if faults_seen {
                rounds.pace.observe(now, self.tracker.touch_weight, cpus, rounds.is_armed());
            } else {
                rounds.pace.skip(now, self.tracker.touch_weight);
            }
        }
        let told = self.touch.as_ref().is_ok_and(|touch| !touch.in_storm());
        std::mem::take(&mut self.taken) == 0 && told && self.pending.is_empty() && !self.tracker.has_waiting_statics()
    }

    /// Takes in what the rings hold, in order of time. What is newer than the start of this drain waits: it may have predecessors
    /// in a ring that was gone through already.
    pub(super) fn drain(&mut self, now: u64, ticked: bool) {
        let horizon = if now == u64::MAX { now } else { monotonic_ns() };
        let mut told = VecDeque::new();
        if let Some(ring) = &mut self.ring {
            ring.drain(now, |record| told.push_back(record));
        }
        self.taken += told.len();
        if let Ok(touch) = &mut self.touch {
            let mut ticked = ticked;
            loop {
                // Going through records takes longer than writing them: look after the rings (and the period) in between.
                let pending = &mut self.pending;
                let seconds = horizon.min(monotonic_ns()).saturating_sub(self.start_ns) as f64 / 1e9;
                let tids: Vec<i32> = if touch.in_storm() { self.tracker.threads.keys().copied().collect() } else { Vec::new() };
                touch.drain(seconds, std::mem::take(&mut ticked), &tids, |record, weight| pending.push((time_of(&record), record, weight)));
                self.pending.sort_by_key(|(time, ..)| *time);
                let ready = self.pending.partition_point(|(time, ..)| *time <= horizon);
                self.taken += ready;
                for (time, record, weight) in self.pending.drain(..ready.min(BATCH)) {
                    while told.front().is_some_and(|t: &AgentRecord| t.time < time)
                        && let Some(earlier) = told.pop_front()
                    {
                        self.tracker.agent(earlier);
                    }
                    self.tracker.perf(record, weight);
                }
                if ready <= BATCH {
                    break;
                }
            }
            self.tracker.lose("touch", "page-fault events could not be opened again after a storm", std::mem::take(&mut touch.unopened));
        }
        for record in told {
            self.tracker.agent(record);
        }
        self.tracker.place_faults();
    }

    fn watch_new_threads(&mut self, now: u64) {
        let Some(rounds) = &mut self.rounds else { return };
        self.watched.retain(|tid| self.tracker.threads.contains_key(tid));
        if self.watched.len() == self.tracker.threads.len() {
            return;
        }
        let room = usize::try_from(self.file_limit.saturating_sub(128) / 5).unwrap_or(0).min(WATCHED_THREADS);
        let mut unwatched: Vec<(i64, i32, i64)> = self
            .tracker
            .threads
            .values()
            .filter(|t| !self.watched.contains(&t.tid) && now.saturating_sub(t.born_ns) >= WATCH_AGE_NS)
            .map(|t| (t.id, t.tid, t.process))
            .collect();
        unwatched.sort_unstable();
        for (id, tid, process) in unwatched {
            self.watched.insert(tid);
            if rounds.threads.len() >= room {
                self.tracker.lose("watch", "threads beyond the limit on watchpoints were not watched", 1);
                continue;
            }
            match WatchedThread::open(id, tid, process) {
                Ok(thread) => rounds.threads.push(thread),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => {
                    self.tracker.lose("watch", "threads whose debug registers are taken by a debugger", 1);
                }
                Err(error) => {
                    self.tracker.lose("watch", "threads on which no watchpoint could be set", 1);
                    self.watch_missing.get_or_insert_with(|| crate::touch::explain(&self.tracker.scope.root, &error));
                }
            }
        }
    }

    fn turn(&mut self, now: u64) -> u64 {
        if self.rounds.as_ref().is_some_and(|r| r.threads.is_empty()) {
            return now + TICK_NS / 4;
        }
        // Deaths of objects must be known before their windows are judged.
        self.drain(now, false);
        let Some(rounds) = &mut self.rounds else { return u64::MAX };
        if !self.watch_started {
            self.watch_started = true;
            self.tracker.watched_from_ns = now;
            self.tracker.sink.write(|w| w.meta(Entry::WatchStartNs(now)));
        }
        rounds.turn(&mut self.tracker)
    }

    fn flush(&mut self, now: u64) {
        self.tracker.read_threads();
        self.sweep_pages(now);
        self.tracker.read_policies(now);
        self.read_counters(now, false);
        self.tracker.read_swap();
        let pids: Vec<i32> = self.tracker.processes.keys().copied().collect();
        for pid in pids {
            self.tracker.write_live_objects(pid);
        }
        self.tracker.sink.write(|w| w.meta(Entry::EndNs(now)));
        self.write_evidence();
        self.tracker.sink.flush();
    }
}

fn time_of(record: &PerfRecord) -> u64 {
    match record {
        PerfRecord::Sample(s) => s.time,
        PerfRecord::Fork { time, .. } | PerfRecord::Exit { time, .. } | PerfRecord::Comm { time, .. } | PerfRecord::Map { time, .. } => {
            *time
        }
        PerfRecord::Lost { .. } | PerfRecord::Throttled => 0,
    }
}
