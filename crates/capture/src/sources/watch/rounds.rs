//! Rounds: arms all threads on the words drawn, then collects their hits.

use super::calibrate::Calibration;
use super::debug_registers::{ArmRequest, SLOTS, SlotResult, WatchedThread};
use super::pace::Pace;
use super::select::{Selector, Slots, Watchpoint, live_bytes};
use super::windows::{Round, Windows};
use crate::random::Random;
use crate::track::Tracker;
use firsttouch_model::rows::Id;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::launch::signals::process_exists;
use hashbrown::HashMap;

/// Part of the rounds that are longer than the others, and by how much.
const LONG_ROUNDS: f64 = 0.03;
const LONG_ROUND: f64 = 5.0;
/// Length of the other rounds relative to the one that `Pace` asks for: uniform from .0 to .0 + .1.
const UNEVEN: (f64, f64) = (0.7, 0.6);

/// The first rest in a burst of faults. It ends with the burst, or grows, ns.
const BURST_REST_NS: u64 = 20_000_000;

/// The user is told of rests that take more than this part of the run.
const REST_NAMED: f64 = 0.5;

/// Hits after which a hot address is left.
const HOT_LIMIT: u32 = 8;

/// The rounds of a run.
pub struct Rounds {
    pub threads: Vec<WatchedThread>,
    pub pace: Pace,
    pub windows: Windows,
    selector: Selector,
    random: Random,
    round: Round,
    /// Length of the running round, relative to the one that `Pace` asked for.
    stretch: f64,
    /// Rest that follows the armed part of this round.
    rest_ns: u64,
    running: HashMap<i32, Slots>,
    /// Nothing is armed until the next round, and because of waits not before this time.
    resting: Option<u64>,
    /// When the rest began that is not over, and the length of those that are, ns.
    rest_began: Option<u64>,
    rested_ns: u64,
    started_ns: u64,
    cpus: usize,
}

impl Rounds {
    #[must_use]
    pub fn new(seed: u64, calibration: Calibration, cpus: usize, recorders: u32) -> Self {
        let now = monotonic_ns();
        Self {
            threads: Vec::new(),
            pace: Pace::new(now, calibration.armed, recorders),
            windows: Windows::new(calibration.trap_ns),
            selector: Selector::default(),
            random: Random::new(seed),
            round: Round { number: 0, start_ns: now },
            stretch: 1.0,
            rest_ns: 0,
            running: HashMap::new(),
            resting: None,
            rest_began: None,
            rested_ns: 0,
            started_ns: now,
            cpus,
        }
    }

    /// Continues: an armed round ends (and rests, if it must), then the next one starts. Returns when to call again.
    pub fn turn(&mut self, tracker: &mut Tracker) -> u64 {
        let now = monotonic_ns();
        if self.rest_ns > 0 && !self.running.is_empty() {
            return self.rest(tracker, now, self.rest_ns);
        }
        self.rested_ns += self.rest_began.take().map_or(0, |began| now.saturating_sub(began));
        // Some rounds, chosen at random, are much longer: they show how threads share an address over several sweeps. The length of
        // the others varies too, so that they do not synchronise with the program's sweeps.
        let stretch = if self.random.unit() < LONG_ROUNDS { LONG_ROUND } else { UNEVEN.0 + UNEVEN.1 * self.random.unit() };
        let alive = live_bytes(tracker);
        let round_ns = self.pace.round_ns(now, &alive) * stretch;
        let (armed, rest) = self.pace.divide(round_ns);
        let known = (&self.pace, &self.windows.hot);
        let next = self.selector.draw(tracker, known, &mut self.random, round_ns, self.pace.all_accesses(&alive));
        self.switch(tracker, next);
        self.finish_round(tracker, now);
        self.stretch = stretch;
        self.round = Round { number: self.round.number + 1, start_ns: now };
        self.rest_ns = rest as u64;
        self.resting = None;
        let armed_at = monotonic_ns();
        self.query_pages(tracker, armed_at);
        armed_at + armed as u64
    }

    /// Arms nothing for `rest_ns`. Returns when to call again.
    fn rest(&mut self, tracker: &mut Tracker, now: u64, rest_ns: u64) -> u64 {
        let armed = now.saturating_sub(self.round.start_ns) as f64;
        let least = self.pace.wait_rest(armed).max(self.pace.check_rest(armed)) as u64;
        self.switch(tracker, HashMap::new());
        self.resting = Some(now + least);
        self.rest_began.get_or_insert(now);
        now + rest_ns
    }

    /// On a burst of page faults, disarms if faults are expensive while armed. Returns when to call `turn` again.
    pub fn rest_in_burst(&mut self, tracker: &mut Tracker) -> Option<u64> {
        if self.running.is_empty() || !self.pace.disarms_in_bursts() {
            return None;
        }
        let now = monotonic_ns();
        Some(self.rest(tracker, now, self.rest_ns.max(BURST_REST_NS)))
    }

    /// How long and why they rested, if that was most of the time.
    #[must_use]
    pub fn rests(&self) -> Option<String> {
        let now = monotonic_ns();
        let rested_ns = self.rested_ns + self.rest_began.map_or(0, |began| now.saturating_sub(began));
        let (rested, all) = (rested_ns as f64 / 1e9, now.saturating_sub(self.started_ns) as f64 / 1e9);
        (rested > all * REST_NAMED).then(|| {
            let reason = if self.pace.is_check() {
                "because samples of registers show the accesses, and watchpoints only check them"
            } else {
                "because page faults and waits take longer while they are armed"
            };
            format!("watchpoints rested for {rested:.1} of {all:.1} s, {reason}")
        })
    }

    /// Watchpoints are armed.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        !self.running.is_empty()
    }

    /// A rest may end, because the burst of faults is over.
    #[must_use]
    pub fn may_wake(&self, now: u64) -> bool {
        self.resting.is_some_and(|least| now >= least) && self.pace.is_calm()
    }

    /// The time that a round of `passed` ns stands for. The length of a round is random and depends on nothing else, so all rounds
    /// may stand for the same time. Weighted by its length, one long round would count as much as five others.
    fn stands_for(&self, passed: u64) -> u64 {
        let mean = LONG_ROUNDS * LONG_ROUND + (1.0 - LONG_ROUNDS) * (UNEVEN.0 + UNEVEN.1 / 2.0);
        (passed as f64 / self.stretch * mean) as u64
    }

    /// The round that started last is over.
    fn finish_round(&mut self, tracker: &mut Tracker, now: u64) {
        let round_ns = self.stands_for(now.saturating_sub(self.round.start_ns));
        self.windows.write(tracker, round_ns);
    }

    /// Ends the running round for good.
    pub fn stop(&mut self, tracker: &mut Tracker) {
        self.switch(tracker, HashMap::new());
        self.finish_round(tracker, monotonic_ns());
        self.windows.finish(tracker);
    }

    /// Moves every watchpoint from the running round to `next`, and closes the windows of the running round.
    fn switch(&mut self, tracker: &mut Tracker, next: HashMap<i32, Slots>) {
        let began = monotonic_ns();
        let limit = self.pace.hit_limit(began, self.cpus);
        let mut results: HashMap<(i32, usize), Vec<(Id, SlotResult)>> = HashMap::new();
        let pid_of: HashMap<Id, i32> = tracker.processes.live.values().map(|p| (p.id, p.pid)).collect();
        for thread in &mut self.threads {
            let Some(&pid) = pid_of.get(&thread.process) else { continue };
            let hot = &self.windows.hot;
            let slots = next.get(&pid).copied().unwrap_or([None; SLOTS]);
            let has_companion = |object| slots.iter().flatten().any(|d| d.is_companion && d.object == object);
            // A hot address is left soon: the longer a thread is slowed down, the longer others wait for it. A companion is left first.
            let request = |d: Watchpoint| {
                let usual = if hot.is_hot(d.group) { HOT_LIMIT.min(limit) } else { limit };
                let limit = if !d.is_companion && has_companion(d.object) { usual + HOT_LIMIT } else { usual };
                ArmRequest { address: d.address, limit: hot.limit(d.group, limit) }
            };
            let requests: [Option<ArmRequest>; SLOTS] = slots.map(|d| d.map(request));
            let (seen, lost, failed) = thread.turn(&requests);
            // A thread that has ended misses nothing.
            let failed = if failed > 0 && process_exists(thread.tid) { failed } else { 0 };
            tracker.sink.lose(
                "watch",
                "watchpoints that could not be set: one thread's accesses to one word were missed for a round",
                failed,
            );
            tracker.sink.lose("watch", "a thread's ring was full: hits counted, lines unknown", lost);
            for (slot, result) in seen.into_iter().enumerate() {
                if let Some(result) = result {
                    results.entry((pid, slot)).or_default().push((thread.thread, result));
                }
            }
        }
        self.pace.armed(monotonic_ns().saturating_sub(began));
        for (pid, slots) in std::mem::replace(&mut self.running, next) {
            for (slot, watchpoint) in slots.iter().enumerate() {
                if let Some(watchpoint) = watchpoint {
                    let seen = results.remove(&(pid, slot)).unwrap_or_default();
                    self.windows.close(tracker, &mut self.pace, self.round, (pid, watchpoint), seen, began);
                }
            }
        }
        self.threads.retain(|t| tracker.threads.live.contains_key(&t.tid));
        tracker.objects.deaths.clear();
    }

    /// Queries where the words of the new round are.
    fn query_pages(&self, tracker: &mut Tracker, now: u64) {
        if tracker.residency.refused.is_some() {
            return;
        }
        for (pid, slots) in &self.running {
            let pages: Vec<(Id, u64)> = slots.iter().flatten().map(|d| (d.object, d.address)).collect();
            let Some(process) = tracker.processes.live.get_mut(pid) else { continue };
            // The sweeps of the source `resident` report a refusal.
            let _ = tracker.residency.query(process, &pages, now, &mut tracker.sink);
        }
    }
}
