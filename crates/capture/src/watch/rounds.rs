//! Rounds: draws what to watch, arms all threads, and turns what they saw into rows.

use super::SLOTS;
use super::design::{Candidate, Positions, Random, draw_objects, word_at};
use super::hot::{CutPart, Hot};
use super::pace::{ArmedCost, Pace};
use super::rate::accesses;
use super::slots::{Aim, SlotResult, WatchedThread};
use crate::track::Tracker;
use firsttouch_model::metadata::Entry;
use firsttouch_model::rows::{Access, Id, Page, Window};
use firsttouch_system::clock::monotonic_ns;
use firsttouch_system::launch::signals::process_exists;
use firsttouch_system::residency::nodes_of;
use std::collections::{BTreeMap, HashMap};

/// Objects looked at when a round is drawn. Where there are more, a random part stands for all.
const CANDIDATES: usize = 4096;

/// Part of the rounds that are longer than the others, and by how much.
const LONG_ROUNDS: f64 = 0.03;
const LONG_ROUND: f64 = 5.0;
/// Length of the other rounds, as a part of what is due: from .0 to .0 + .1, evenly.
const UNEVEN: (f64, f64) = (0.7, 0.6);

/// The rest that a storm of faults begins with; it ends with the storm, or grows, ns.
const STORM_NS: u64 = 20_000_000;

/// Hits after which a hot address is left.
const HOT_LIMIT: u32 = 8;

/// One slot of the running round in one process.
#[derive(Clone, Copy)]
struct Drawn {
    object: Id,
    /// See [`crate::track::objects::LiveObject::kin`].
    kin: Id,
    start: u64,
    bytes: u64,
    address: u64,
    inclusion: f64,
    /// A second word of a hot object, watched only to learn what a trap costs there.
    companion: bool,
}

/// The watch evidence of a run.
pub struct Rounds {
    pub threads: Vec<WatchedThread>,
    pub pace: Pace,
    pub hits: u64,
    pub windows: u64,
    pub trap_ns: f64,
    hot: Hot,
    random: Random,
    number: u64,
    round_start_ns: u64,
    /// How much longer or shorter than due the running round is.
    stretch: f64,
    /// Rest that follows the armed part of this round.
    rest_ns: u64,
    running: HashMap<i32, [Option<Drawn>; SLOTS]>,
    /// Words within objects, for each kin.
    positions: HashMap<Id, Positions>,
    /// Windows of the round that started last, not written yet.
    closed: Vec<Window>,
    /// Nothing is armed until the next round; waits ask for a rest until then at least.
    resting: Option<u64>,
    buffer: Vec<u8>,
    cpus: usize,
    /// Results of threads that left during the round.
    pub residency: bool,
}

impl Rounds {
    #[must_use]
    pub fn new(seed: u64, trap_ns: f64, cost: ArmedCost, cpus: usize) -> Self {
        let now = monotonic_ns();
        Self {
            threads: Vec::new(),
            pace: Pace::new(now, cost),
            hits: 0,
            windows: 0,
            trap_ns,
            hot: Hot::default(),
            random: Random::new(seed),
            number: 0,
            round_start_ns: now,
            stretch: 1.0,
            rest_ns: 0,
            running: HashMap::new(),
            positions: HashMap::new(),
            closed: Vec::new(),
            resting: None,
            buffer: Vec::new(),
            cpus,
            residency: true,
        }
    }

    /// Goes on: an armed round ends (and rests, if it must), then the next one starts. Returns when to call again.
    pub fn turn(&mut self, tracker: &mut Tracker) -> u64 {
        let now = monotonic_ns();
        if self.rest_ns > 0 && !self.running.is_empty() {
            return self.rest(tracker, now, self.rest_ns);
        }
        // Some rounds are much longer, by chance: they show how threads share an address over several sweeps. The others differ
        // too, lest they keep step with the program's sweeps.
        let stretch = if self.random.unit() < LONG_ROUNDS { LONG_ROUND } else { UNEVEN.0 + UNEVEN.1 * self.random.unit() };
        let kin = live(tracker);
        let round_ns = self.pace.round_ns(now, &kin) * stretch;
        let (armed, rest) = self.pace.divide(round_ns);
        let next = self.draw(tracker, round_ns, self.pace.all_accesses(&kin));
        self.switch(tracker, next);
        self.finish_round(tracker, now);
        self.stretch = stretch;
        self.number += 1;
        self.round_start_ns = now;
        self.rest_ns = rest as u64;
        self.resting = None;
        let armed_at = monotonic_ns();
        self.query_pages(tracker, armed_at);
        armed_at + armed as u64
    }

    /// Arms nothing for `rest_ns`. Returns when to call again.
    fn rest(&mut self, tracker: &mut Tracker, now: u64, rest_ns: u64) -> u64 {
        let least = self.pace.wait_rest(now.saturating_sub(self.round_start_ns) as f64) as u64;
        self.switch(tracker, HashMap::new());
        self.resting = Some(now + least);
        now + rest_ns
    }

    /// A storm of page faults begins: an armed round rests at once, where faults are dear. Returns when to call again.
    pub fn storm(&mut self, tracker: &mut Tracker) -> Option<u64> {
        if self.running.is_empty() || !self.pace.shuns_faults() {
            return None;
        }
        let now = monotonic_ns();
        Some(self.rest(tracker, now, self.rest_ns.max(STORM_NS)))
    }

    /// Watchpoints are armed.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        !self.running.is_empty()
    }

    /// A rest that was made for a storm of faults may end: it is over.
    #[must_use]
    pub fn may_wake(&self, now: u64) -> bool {
        self.resting.is_some_and(|least| now >= least) && self.pace.is_calm()
    }

    /// The time that a round of `passed` ns stands for. Which rounds are longer or shorter is chance and nothing else, so all of
    /// them may stand for the same time: weighed by its length, one long round would count as much as five others.
    fn stands_for(&self, passed: u64) -> u64 {
        let mean = LONG_ROUNDS * LONG_ROUND + (1.0 - LONG_ROUNDS) * (UNEVEN.0 + UNEVEN.1 / 2.0);
        (passed as f64 / self.stretch * mean) as u64
    }

    /// The round that started last is over: its windows are written with the time they stand for.
    fn finish_round(&mut self, tracker: &mut Tracker, now: u64) {
        let round_ns = self.stands_for(now.saturating_sub(self.round_start_ns));
        for window in self.closed.drain(..) {
            tracker.write_window(&Window { round_ns, ..window });
        }
    }

    /// Ends the running round and arms nothing any more.
    pub fn stop(&mut self, tracker: &mut Tracker) {
        self.switch(tracker, HashMap::new());
        self.finish_round(tracker, monotonic_ns());
        let rest = self.hot.take_waiting();
        self.settle(tracker, rest);
        let error = self.hot.error(self.trap_ns);
        if error > 0.0 {
            tracker.sink.write(|w| w.meta(Entry::HotError(error)));
        }
    }

    /// Moves every watchpoint from the running round to `next`, and takes down what the running round saw.
    fn switch(&mut self, tracker: &mut Tracker, next: HashMap<i32, [Option<Drawn>; SLOTS]>) {
        let began = monotonic_ns();
        let limit = self.pace.hit_limit(began, self.cpus);
        let mut results: HashMap<(i32, usize), Vec<(Id, SlotResult)>> = HashMap::new();
        let pid_of: HashMap<Id, i32> = tracker.processes.values().map(|p| (p.id, p.pid)).collect();
        for thread in &mut self.threads {
            let Some(&pid) = pid_of.get(&thread.process) else { continue };
            let hot = &self.hot;
            let draws = next.get(&pid).copied().unwrap_or([None; SLOTS]);
            let lends = |object| draws.iter().flatten().any(|d| d.companion && d.object == object);
            // A hot address is left soon: the longer a thread is slowed down, the longer others wait for it. A companion is left first.
            let aim = |d: Drawn| {
                let usual = if hot.is_hot(d.kin) { HOT_LIMIT.min(limit) } else { limit };
                let limit = if !d.companion && lends(d.object) { usual + HOT_LIMIT } else { usual };
                Aim { address: d.address, limit: hot.limit(d.kin, limit) }
            };
            let aims: [Option<Aim>; SLOTS] = draws.map(|d| d.map(aim));
            let (slots, lost, failed) = thread.turn(&aims, &mut self.buffer);
            // A thread that ended meanwhile has nothing to miss.
            let failed = if failed > 0 && process_exists(thread.tid) { failed } else { 0 };
            tracker.lose("watch", "watchpoints that could not be set: one thread's accesses to one word were missed for a round", failed);
            tracker.lose("watch", "a thread's ring was full: hits counted, lines unknown", lost);
            for (slot, result) in slots.into_iter().enumerate() {
                if let Some(result) = result {
                    results.entry((pid, slot)).or_default().push((thread.thread, result));
                }
            }
        }
        self.pace.armed(monotonic_ns().saturating_sub(began));
        let running = std::mem::replace(&mut self.running, next);
        for (pid, draws) in running {
            for (slot, drawn) in draws.into_iter().enumerate() {
                if let Some(drawn) = drawn {
                    let seen = results.remove(&(pid, slot)).unwrap_or_default();
                    self.close(tracker, pid, &drawn, seen, began);
                }
            }
        }
        self.threads.retain(|t| tracker.threads.contains_key(&t.tid));
        tracker.deaths.clear();
    }

    /// Draws the words of the next round, for each process on its own. `all`: accesses to everything, a ns.
    fn draw(&mut self, tracker: &mut Tracker, round_ns: f64, all: f64) -> HashMap<i32, [Option<Drawn>; SLOTS]> {
        let page_bytes = tracker.scope.page_bytes;
        let mut draws = HashMap::new();
        for (&pid, process) in &mut tracker.processes {
            let alive = process.objects.by_address.len();
            let keep = if alive > CANDIDATES { CANDIDATES as f64 / alive as f64 } else { 1.0 };
            let mut candidates = Vec::with_capacity(alive.min(CANDIDATES * 2));
            let mut of_kin: HashMap<Id, f64> = HashMap::new();
            let mut kin = Vec::with_capacity(candidates.capacity());
            for (&address, object) in &process.objects.by_address {
                if object.watchable() && (keep >= 1.0 || self.random.unit() < keep) {
                    *of_kin.entry(object.kin()).or_default() += object.bytes as f64 / keep;
                    kin.push(object.kin());
                    candidates.push(Candidate { object: object.id, address, bytes: object.bytes, weight: 0.0 });
                }
            }
            // Kin are drawn together, and among them a byte is as good as any other.
            let weights: HashMap<Id, f64> =
                of_kin.into_iter().map(|(kin, bytes)| (kin, self.pace.weight(kin, bytes as u64, all, round_ns) / bytes)).collect();
            for (candidate, kin) in candidates.iter_mut().zip(&kin) {
                candidate.weight = weights.get(kin).copied().unwrap_or(0.0) * candidate.bytes as f64;
            }
            let mut slots: [Option<Drawn>; SLOTS] = [None; SLOTS];
            for (slot, draw) in draw_objects(&mut self.random, &candidates, SLOTS).into_iter().enumerate() {
                let c = &candidates[draw.candidate];
                let Some(object) = process.objects.by_address.get_mut(&c.address) else { continue };
                let Some(word) = word_at(
                    c.address,
                    c.bytes,
                    self.positions.entry(kin[draw.candidate]).or_insert_with(|| Positions::new(&mut self.random)).advance(),
                ) else {
                    continue;
                };
                object.has_evidence = true;
                let mut address = process.touches.snap(word, c.address, c.bytes, page_bytes);
                if address != word && process.page_sizes.at(address) > page_bytes {
                    address = word; // a huge page has one home: no need to move
                }
                if slots.iter().flatten().any(|d| d.address == address) {
                    continue;
                }
                slots[slot] = Some(Drawn {
                    object: c.object,
                    kin: kin[draw.candidate],
                    start: c.address,
                    bytes: c.bytes,
                    address,
                    inclusion: draw.inclusion * keep,
                    companion: false,
                });
            }
            self.add_companion(&mut slots);
            if slots.iter().any(Option::is_some) {
                draws.insert(pid, slots);
            }
        }
        draws
    }

    /// Half of the time a hot object is drawn, a slot of another object is lent to a second word of it. Which window is lost
    /// does not depend on what it would have seen.
    fn add_companion(&mut self, slots: &mut [Option<Drawn>; SLOTS]) {
        let Some(hot) = slots.iter().flatten().find(|d| self.hot.is_hot(d.kin)).copied() else { return };
        if self.random.unit() < 0.5 || slots.iter().flatten().filter(|d| d.object == hot.object).count() > 1 {
            return;
        }
        // Half an object away: far from the first word in any sweep.
        let offset = (hot.address - hot.start + hot.bytes / 2) % hot.bytes.max(1);
        let address = (hot.start + offset) & !7;
        let lent = (self.random.unit() * SLOTS as f64) as usize;
        let fits = address >= hot.start && address + 8 <= hot.start + hot.bytes;
        if fits && slots[lent].is_none_or(|d| d.address != hot.address) && slots.iter().flatten().all(|d| d.address != address) {
            slots[lent] = Some(Drawn { address, companion: true, ..hot });
        }
    }

    /// One window: rows for it and for every thread that hit it.
    fn close(&mut self, tracker: &mut Tracker, pid: i32, drawn: &Drawn, mut seen: Vec<(Id, SlotResult)>, now: u64) {
        let start = seen.iter().map(|(_, r)| r.armed_ns).min().unwrap_or(self.round_start_ns);
        let mut held = seen.iter().map(|(_, r)| r.watched.watched_ns).max().unwrap_or(now.saturating_sub(start));
        let died = tracker.deaths.get(&drawn.object).copied();
        if let Some(died) = died {
            // Hits after the object's death belong to whoever came next at this address.
            held = held.min(died.saturating_sub(start));
            for (_, result) in &mut seen {
                result.watched.watched_ns = result.watched.watched_ns.min(died.saturating_sub(result.armed_ns));
                if result.samples.len() as u64 == result.watched.hits {
                    result.samples.retain(|s| s.time <= died);
                    result.watched.hits = result.samples.len() as u64;
                }
            }
        }
        for pattern in seen.iter().filter(|(_, r)| r.watched.cut()).filter_map(|(_, r)| r.pattern.as_ref()) {
            self.hot.learn(drawn.kin, pattern);
        }
        for pair in seen.iter().filter_map(|(_, r)| r.pair) {
            self.hot.learn_pair(drawn.kin, pair);
        }
        if held == 0 || drawn.companion {
            return;
        }
        let cut = seen.iter().any(|(_, r)| r.watched.cut());
        self.hot.window(drawn.kin, cut);
        let id = tracker.next_window();
        self.windows += 1;
        let window = Window {
            id,
            round: self.number,
            object: drawn.object,
            address: drawn.address,
            start_ns: start,
            held_ns: held,
            round_ns: 0, // told when the round is over
            inclusion: drawn.inclusion,
        };
        self.closed.push(window);
        let (mut total, mut traps, mut hits) = (0.0, 0, 0);
        for (thread, result) in seen.iter().filter(|(_, r)| r.watched.hits > 0) {
            let estimate = accesses(&result.watched, result.pattern.as_ref(), self.hot.trap_ns(drawn.kin, self.trap_ns));
            total += estimate;
            traps += result.traps;
            hits += result.watched.hits;
            self.hot.passed(drawn.kin, result.watched.hits, result.traps);
            let rows = self.access_rows(tracker, pid, id, *thread, result);
            if cut {
                let part = CutPart { kin: drawn.kin, rows, watched: result.watched, pattern: result.pattern };
                let ripe = self.hot.wait(part);
                self.settle(tracker, ripe);
            } else {
                write_accesses(tracker, &rows, estimate);
            }
        }
        self.hits += hits;
        if died.is_some() && drawn.kin < 0 {
            self.pace.forget(drawn.kin);
            self.hot.forget(drawn.kin);
        } else {
            self.pace.learn(drawn.kin, held, total, traps as f64 * self.trap_ns);
        }
    }

    /// The hits of one thread, divided among the places in the code that made them; the estimates are parts of one.
    fn access_rows(&self, tracker: &mut Tracker, pid: i32, window: Id, thread: Id, result: &SlotResult) -> Vec<Access> {
        let mut by_site: BTreeMap<Option<Id>, u64> = BTreeMap::new();
        let mut cpus: BTreeMap<u32, u64> = BTreeMap::new();
        for sample in &result.samples {
            let site = tracker.processes.get_mut(&pid).map(|process| {
                process.page_sizes.learn(sample.address, sample.page_bytes);
                let stack = process.unwinder.stack(sample);
                tracker.sites.intern(process, &stack, true, &mut tracker.sink)
            });
            *by_site.entry(site).or_default() += 1;
            *cpus.entry(sample.cpu).or_default() += 1;
        }
        if by_site.is_empty() {
            by_site.insert(None, 1);
        }
        let sampled: u64 = by_site.values().sum();
        let cpu = cpus.into_iter().max_by_key(|&(_, count)| count).map(|(cpu, _)| cpu);
        let row = |(site, count): (Option<Id>, u64)| {
            let part = count as f64 / sampled as f64;
            Access {
                window,
                thread,
                site,
                hits: (result.watched.hits as f64 * part).round() as u64,
                estimate: part,
                watched_ns: result.watched.watched_ns,
                cut: result.watched.cut(),
                cpu,
            }
        };
        by_site.into_iter().map(row).collect()
    }

    /// Writes windows that were kept back.
    fn settle(&mut self, tracker: &mut Tracker, parts: Vec<CutPart>) {
        for part in parts {
            let estimate = self.hot.settle(&part, self.trap_ns);
            write_accesses(tracker, &part.rows, estimate);
        }
    }

    /// Asks the kernel where the words of the new round are.
    fn query_pages(&mut self, tracker: &mut Tracker, now: u64) {
        if !self.residency {
            return;
        }
        for (&pid, draws) in &self.running {
            let list: Vec<Drawn> = draws.iter().flatten().copied().collect();
            let addresses: Vec<u64> = list.iter().map(|d| d.address).collect();
            let Ok(nodes) = nodes_of(pid, &addresses) else { continue };
            let Some(process) = tracker.processes.get_mut(&pid) else { continue };
            for (drawn, node) in list.iter().zip(nodes) {
                debug_assert!(drawn.address >= drawn.start && drawn.address < drawn.start + drawn.bytes);
                let page_bytes = if node >= 0 { process.page_sizes.at(drawn.address) } else { 0 };
                let row = Page { process: process.id, object: Some(drawn.object), address: drawn.address, time_ns: now, node, page_bytes };
                tracker.sink.write(|w| w.page(&row));
                tracker.pages_queried += 1;
            }
        }
    }
}

fn write_accesses(tracker: &mut Tracker, rows: &[Access], estimate: f64) {
    for row in rows {
        let row = Access { estimate: row.estimate * estimate, ..row.clone() };
        tracker.sink.write(|w| w.access(&row));
    }
}

/// Bytes alive of each kin.
fn live(tracker: &Tracker) -> HashMap<Id, u64> {
    let mut kin = HashMap::new();
    for process in tracker.processes.values() {
        let alive = process.objects.by_address.len();
        for object in process.objects.by_address.values().filter(|o| o.watchable()).step_by(alive.div_ceil(CANDIDATES).max(1)) {
            *kin.entry(object.kin()).or_default() += object.bytes * alive.div_ceil(CANDIDATES).max(1) as u64;
        }
    }
    kin
}
