//! The loop of a run.

use super::Session;
use crate::agent::records::{AgentEvent, AgentRecord};
use crate::options::{LiveEffort, Observed};
use crate::source::{Drain, Occasion, UNPOLLED_NS};
use crate::timeline::{Record, Urgency};
use firsttouch_model::rows::metadata::Entry;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::launch::reap;
use firsttouch_system::launch::signals::{Notice, Signals, process_runs, send};
use firsttouch_system::proc::stat::of_process;

/// How often the rings are read, ns. Less and less often while nothing urgent comes (a ring that fills wakes firsttouch), because each
/// look takes the CPU from a thread of the program, and at a barrier from all of them. Many records at once also take less time each.
const TICK_NS: u64 = 10_000_000;
const LONGEST_TICK_NS: u64 = 100_000_000;
/// The same of a live view, which has time, and of ranks: each look of each recorder holds up all of them, and their samples add up.
const LONGEST_SHARED_TICK_NS: u64 = 200_000_000;
/// How often mappings are looked up if no agent reports allocations.
const MAPPINGS_NS: u64 = 200_000_000;
/// For so long, a live view looks them up in each tick.
const FIRST_OBJECTS_NS: u64 = 500_000_000;
/// How often the CPUs are looked up on which the threads run.
const LOOKS_NS: u64 = 100_000_000;
/// How often it is looked up how long the threads waited for a CPU, and how often in a run that takes long already.
const DELAYS_NS: u64 = 300_000_000;
const LATER_DELAYS_NS: u64 = 1_000_000_000;
/// Where the kernel does not report mappings and threads, the process is looked at in the first ticks, and then so seldom that looks take
/// 0.25 % of a CPU. (A stack in unknown code is looked up at once, and the agent reports threads.)
const FIRST_SCANS_NS: u64 = 100_000_000;
const SCAN_PAUSE_PER_COST: u64 = 400;
const LONGEST_SCAN_PAUSE_NS: u64 = 200_000_000;
/// How long the agent may take to announce itself.
const AGENT_NS: u64 = 10 * TICK_NS;
/// Faults of a quiet program within a tick, from which on the rings are read more often.
const MANY: usize = 8;
/// How often the profile is written, and how often in a run that takes this long already.
const FLUSH_NS: u64 = 500_000_000;
const LATER_FLUSH_NS: u64 = 1_000_000_000;
const LATER_NS: u64 = 3_000_000_000;
/// How often for tuning: each page waits in its wrong place until then.
const TUNING_FLUSH_NS: u64 = 250_000_000;
/// How often old samples are removed from a live profile: each time passes over all of them.
const FORGET_NS: u64 = 10_000_000_000;
/// A live recorder of a process that ran before has time: it looks so much less often, and asks this often, ns, whether the process runs. The recorders of
/// a view have more time than the one of `tune`: what they find is shown every 2 s.
const LIVE_FACTOR: u64 = 5;
const VIEW_FACTOR: u64 = 2 * LIVE_FACTOR;
const LIVE_RUNS_NS: u64 = 500_000_000;
const VIEW_RUNS_NS: u64 = 2 * LIVE_RUNS_NS;
/// The same of the rings and of the profile, for a view that has shown its first figures.
const LONGEST_VIEW_TICK_NS: u64 = 2 * LONGEST_SHARED_TICK_NS;
const VIEW_FLUSH_NS: u64 = 2_000_000_000;
/// Live objects that are written before the rings are read again, and for how long they are written at once, ns: what is left is written by the
/// next flush, or at the end.
const WRITTEN_AT_ONCE: usize = 4096;
const WRITING_NS: u64 = FLUSH_NS / 4;
/// Kernel records that are taken before the rings are read again.
const BATCH: usize = 200;

impl Session<'_> {
    /// The loop. Returns the program's status when it ended, `None` when the time was up (or an attached program was left).
    pub(super) fn run(&mut self, signals: &Signals, is_child: bool) -> Option<i32> {
        let deadline = self.options.duration.map(|d| self.start_ns + u64::try_from(d.as_nanos()).unwrap_or(u64::MAX / 2));
        let (mut next_tick, mut next_flush) = (self.start_ns, self.start_ns + FLUSH_NS / 4);
        let (mut rings, mut are_polled) = (self.sources.descriptors(), true);
        let shortest_ns = TICK_NS * self.patience();
        let is_one_of_many = self.options.recorders_here() > 1;
        let mut next_asked_ns = self.start_ns;
        let mut tick_ns = shortest_ns;
        let mut ended = None;
        loop {
            let now = monotonic_ns();
            // The kernel says when a child ends; asking it again and again takes longer than reading a ring.
            // (It says nothing of the children of the program that `--wait` waits for.)
            let mut may_have_ended = now >= next_flush || ended.is_some();
            self.end_ns = now;
            // A tick that is due soon is done now if a source acts now: one wake-up less.
            if now >= next_tick || (now >= self.next_act_ns && now + tick_ns / 2 >= next_tick) {
                let quiet = self.tick(now);
                let longest_ns = match () {
                    () if self.is_settled_view(now) => LONGEST_VIEW_TICK_NS,
                    () if self.is_patient() || is_one_of_many => LONGEST_SHARED_TICK_NS,
                    () => LONGEST_TICK_NS,
                };
                tick_ns = if quiet { (tick_ns * 2).min(longest_ns) } else { shortest_ns };
                next_tick = self.tick_after(monotonic_ns(), tick_ns);
            }
            if now >= self.next_act_ns {
                // Before a source closes windows on objects, it must know which of the objects died.
                self.drain(now, false);
                self.act(Occasion::Due, now);
            }
            if now >= next_flush {
                self.flush(now);
                let is_early = now.saturating_sub(self.start_ns) <= LATER_NS;
                next_flush = monotonic_ns()
                    + match () {
                        () if self.is_for_tuning() => TUNING_FLUSH_NS,
                        () if is_early => FLUSH_NS,
                        () if self.is_settled_view(now) => VIEW_FLUSH_NS,
                        () => LATER_FLUSH_NS,
                    };
            }
            if deadline.is_some_and(|d| now >= d) {
                if ended.is_some() {
                    self.look_behind();
                }
                return ended;
            }
            let wake = next_tick.min(self.next_act_ns).min(next_flush).min(deadline.unwrap_or(u64::MAX));
            if std::mem::replace(&mut are_polled, self.sources.are_polled()) != are_polled {
                rings = self.sources.descriptors();
            }
            match self.wait(signals, wake, &mut rings, are_polled) {
                Some(Notice::Child) => may_have_ended = true,
                Some(Notice::Forward(signal) | Notice::Terminal(signal)) if ended.is_some() => {
                    if matches!(signal, libc::SIGINT | libc::SIGQUIT | libc::SIGTERM | libc::SIGHUP) {
                        self.look_behind();
                        return ended;
                    }
                }
                Some(Notice::Forward(signal)) if is_child => send(self.pid, signal),
                Some(Notice::Forward(signal) | Notice::Terminal(signal))
                    if !is_child && !matches!(signal, libc::SIGWINCH | libc::SIGCONT) =>
                {
                    return None;
                }
                Some(_) => {}
                None if monotonic_ns() < wake => {
                    // A ring fills: page faults, most likely.
                    self.drain(monotonic_ns(), false);
                    next_tick = next_tick.min(self.last_tick_ns + TICK_NS);
                    self.act(Occasion::RingFilled, monotonic_ns());
                }
                None => {}
            }
            if is_child {
                if may_have_ended && ended.is_none() {
                    // Only until it is reaped does the kernel know what the process used.
                    let stat = of_process(&self.tracker.scope.root, self.pid);
                    if let Some(end) = reap(self.pid) {
                        ended = Some(end.status);
                        (self.last_stat, self.signal) = (stat, end.signal);
                    }
                }
                if may_have_ended && ended.is_some() && (!self.options.wait || self.still_running().is_empty()) {
                    self.end_ns = monotonic_ns();
                    self.look_behind();
                    if self.options.wait && self.behind.processes > 0 {
                        continue;
                    }
                    if self.options.follow && self.behind.processes > 0 {
                        // Recorded until now.
                        self.end_ns = monotonic_ns();
                    }
                    return ended;
                }
            } else if !self.is_patient() || now >= next_asked_ns {
                if !process_runs(self.pid) {
                    self.look_behind();
                    return None;
                }
                next_asked_ns = now + if self.is_settled_view(now) { VIEW_RUNS_NS } else { LIVE_RUNS_NS };
            }
        }
    }

    /// The recorders of the ranks of a host tick at the same times: ranks wait for each other, and so wait once, not once for each recorder.
    fn tick_after(&self, now: u64, tick_ns: u64) -> u64 {
        let next = now + tick_ns;
        if self.options.recorders_here() > 1 { next.next_multiple_of(tick_ns) } else { next }
    }

    /// Waits for a signal, for a ring that fills, or until `wake`.
    fn wait(&self, signals: &Signals, wake: u64, rings: &mut Vec<i32>, are_polled: bool) -> Option<Notice> {
        loop {
            let now = monotonic_ns();
            let until = if are_polled { wake } else { wake.min(now + UNPOLLED_NS) };
            let notice = signals.wait(until.saturating_sub(now), rings);
            let waits = notice.is_none() && until < wake && monotonic_ns() >= until && !self.sources.fill();
            if !waits {
                return notice;
            }
        }
    }

    pub(super) fn act(&mut self, occasion: Occasion, now: u64) {
        self.next_act_ns = self.sources.act(occasion, now, &mut self.tracker);
    }

    /// Takes what the rings hold. Returns whether nothing urgent came and nothing waits.
    fn tick(&mut self, now: u64) -> bool {
        let before = std::mem::replace(&mut self.last_tick_ns, now);
        self.drain(now, true);
        if !self.tracker.activity.is_reported && now >= self.next_scan_ns {
            self.tracker.scan_process(self.pid, now);
            let ended = monotonic_ns();
            let is_young = now.saturating_sub(self.start_ns) < FIRST_SCANS_NS;
            let pause_ns = (SCAN_PAUSE_PER_COST * ended.saturating_sub(now)).min(LONGEST_SCAN_PAUSE_NS);
            self.next_scan_ns = if is_young { now } else { ended + pause_ns };
        }
        let is_due = |every_ns: u64| now.saturating_sub(self.start_ns) / every_ns != before.saturating_sub(self.start_ns) / every_ns;
        if is_due(LOOKS_NS * self.patience()) {
            self.tracker.look_up_cpus();
        }
        self.bandwidth.read(&mut self.tracker, now, false);
        let is_later = now.saturating_sub(self.start_ns) > LATER_NS;
        if is_due(if is_later { LATER_DELAYS_NS * self.patience() } else { DELAYS_NS }) {
            self.tracker.look_up_delays();
        }
        if is_due(MAPPINGS_NS * self.patience()) || self.seeks_objects(now) {
            // Also a process that the program started may be without the agent: its loader ignores LD_PRELOAD after a change of the user.
            let age_ns = if self.tracker.scope.by_mapping { 0 } else { AGENT_NS };
            self.tracker.refresh_mappings(now, age_ns);
        }
        self.tracker.find_hidden_mappings(now);
        // Symbol tables take milliseconds to read: only if few records wait, or at the end.
        if self.timeline.len() < BATCH {
            self.tracker.add_waiting_statics(1);
        }
        self.act(Occasion::Tick, now);
        let activity = &self.tracker.activity;
        let is_quiet = activity.is_reported && !activity.in_storm && self.timeline.is_empty();
        let came = std::mem::take(&mut self.urgent) + std::mem::take(&mut self.pressing) / MANY;
        came == 0 && is_quiet && !self.tracker.has_waiting_statics()
    }

    /// Takes what the rings hold, in order of time ([`crate::timeline::Timeline`]).
    pub(super) fn drain(&mut self, now: u64, is_tick: bool) {
        let horizon = if now == u64::MAX { now } else { monotonic_ns() };
        let mut is_first = true;
        loop {
            let elapsed_s = horizon.min(monotonic_ns()).saturating_sub(self.start_ns) as f64 / 1e9;
            let drain = Drain { now, elapsed_s, is_tick: is_tick && is_first, is_first };
            self.sources.drain(&drain, &mut self.tracker, &mut self.timeline);
            is_first = false;
            self.take_batch(horizon);
            if !self.timeline.is_ready(horizon) {
                break;
            }
        }
        while let Some(record) = self.timeline.next_of_agent(horizon) {
            self.take(record);
        }
        self.sources.act(Occasion::Drained, now, &mut self.tracker);
    }

    /// Takes the next kernel records, and the agent's records before them.
    fn take_batch(&mut self, horizon: u64) {
        let began = monotonic_ns();
        let (mut users, mut kernel_records, mut records) = (Vec::<usize>::new(), 0, 0u64);
        while kernel_records < BATCH
            && let Some(record) = self.timeline.next(horizon)
        {
            kernel_records += usize::from(!matches!(record, Record::Agent(_)));
            records += 1;
            users.extend(self.take(record));
        }
        let ns = monotonic_ns().saturating_sub(began) / records.max(1);
        users.into_iter().for_each(|user| self.sources.charge(user, ns));
    }

    /// Returns the source that used the record.
    fn take(&mut self, record: Record) -> Option<usize> {
        match record.urgency(self.tracker.activity.in_burst) {
            Urgency::Soon => self.urgent += 1,
            Urgency::IfMany => self.pressing += 1,
            Urgency::None => {}
        }
        match record {
            Record::Fault(_) | Record::Tick(_) => self.sources.take(&record, &mut self.tracker),
            Record::Task(event) => {
                self.tracker.task(event);
                None
            }
            Record::Agent(AgentRecord { event: AgentEvent::Tick(_), .. }) => self.sources.take(&record, &mut self.tracker),
            Record::Agent(record) => {
                self.tracker.agent(record);
                None
            }
        }
    }

    /// Writes the live objects. A program that allocates faster than they are written does not wait: its records would be lost.
    fn write_live_objects(&mut self, now: u64) {
        let pids: Vec<i32> = self.tracker.processes.live.keys().copied().collect();
        for pid in pids {
            let mut next = Some(0);
            while let Some(address) = next {
                next = self.tracker.write_some_live_objects(pid, address, WRITTEN_AT_ONCE);
                if next.is_some() {
                    self.drain(monotonic_ns(), false);
                    if monotonic_ns() > now + WRITING_NS {
                        return;
                    }
                }
            }
        }
    }

    /// Whether new mappings are looked for in each tick. A live view has no watchpoints that wait for objects: only in its beginning.
    fn seeks_objects(&self, now: u64) -> bool {
        if self.options.live.is_some() { now.saturating_sub(self.start_ns) < FIRST_OBJECTS_NS } else { !self.tracker.activity.is_sampled }
    }

    fn is_for_tuning(&self) -> bool {
        self.options.live.is_some_and(|live| live.effort == LiveEffort::Tuning)
    }

    /// Whether it records a process that ran before, for a live view.
    fn is_patient(&self) -> bool {
        self.options.live.is_some() && self.options.pid.is_some()
    }

    /// How much less often than usual the recorder looks.
    fn patience(&self) -> u64 {
        match () {
            () if self.is_settled_view(self.end_ns) => VIEW_FACTOR,
            () if self.is_patient() => LIVE_FACTOR,
            () => 1,
        }
    }

    /// Whether it records for a view, a process that ran before, and has done so for a while.
    fn is_settled_view(&self, now: u64) -> bool {
        self.is_patient() && !self.is_for_tuning() && now.saturating_sub(self.start_ns) > LATER_NS
    }

    /// Reads the threads' names and CPU times, two files of each thread. A live view reads CPU times itself, so that only new threads are of interest.
    fn read_threads(&mut self, now: u64) {
        let since = now.saturating_sub(self.start_ns);
        if !self.is_patient() || since <= LATER_NS || now >= self.next_threads_ns {
            self.next_threads_ns = now + LATER_FLUSH_NS * LIVE_FACTOR;
            self.tracker.read_threads();
        }
    }

    /// Removes the samples that a live profile no longer keeps.
    fn forget(&mut self, now: u64) {
        let Some(live) = self.options.live.filter(|_| now >= self.next_forget_ns) else { return };
        self.next_forget_ns = now + FORGET_NS;
        let kept_ns = u64::try_from(live.kept.as_nanos()).unwrap_or(u64::MAX);
        self.tracker.sink.write(|w| w.forget_samples(now.saturating_sub(kept_ns)));
    }

    fn flush(&mut self, now: u64) {
        self.read_threads(now);
        self.act(Occasion::Flush, now);
        while self.tracker.read_policies(now) {
            self.drain(monotonic_ns(), false);
        }
        // Views read the machine's counters themselves, once for all of them.
        if self.options.live.is_none() {
            self.counters.read(&mut self.tracker, now, false);
            self.tracker.read_swap();
        }
        self.tracker.find_all_shared_memory();
        self.write_live_objects(now);
        self.tracker.sink.write(|w| w.meta(Entry::EndNs(now)));
        self.forget(now);
        let accounts = self.write_evidence();
        self.tracker.sink.flush();
        if let Some(observed) = &self.options.observed {
            let samples = |name| accounts.iter().find(|one| one.name == name).map_or(0, |one| one.account.samples);
            observed(Some(&Observed {
                profile: &self.file,
                elapsed_s: now.saturating_sub(self.start_ns) as f64 / 1e9,
                threads: self.tracker.threads.count(),
                accesses: samples("sample").saturating_add(samples("watch")),
                first_touches: samples("touch"),
            }));
        }
    }
}
