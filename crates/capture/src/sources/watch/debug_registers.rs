//! The debug registers: four watchpoints on each watched thread, moved together at every turn of a round.

use super::pattern::{Pair, Pattern, pair, pattern};
use super::rate::Watched;
use super::string_instructions::merge;
use crate::perf::records::{PerfRecord, Sample, parse};
use crate::perf::ring::PerfRing;
use firsttouch_model::rows::Id;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::perf::{Attributes, Event, Reading, kernel_reports_page_sizes};
use std::io;

/// Debug registers of a thread (x86: DR0-DR3; aarch64 server processors have at least four watchpoint registers).
pub const SLOTS: usize = 4;
/// Bytes of stack a hit carries: enough for the caller of a library routine.
pub const STACK_BYTES: u32 = 512;
/// Data pages of a thread's ring.
pub const RING_PAGES: usize = 16;
/// Address of a watchpoint before its first use: in user space, never mapped by the kernel for a program.
const PARKED: u64 = 0x1000;

/// The watchpoints of one thread.
pub struct WatchedThread {
    pub thread: Id,
    pub tid: i32,
    pub process: Id,
    events: Vec<Event>,
    ring: Option<(Event, PerfRing)>,
    attr: Attributes,
    armed: [Option<Armed>; SLOTS],
    /// Overflows the kernel still allows each event before it switches it off.
    allowed: [u32; SLOTS],
    /// The events' readings at arming.
    before: [Reading; SLOTS],
    /// The thread's CPU time at the start of the round, by the ring owner's clock.
    cpu_before: u64,
    /// The hit limit switched the event off.
    exhausted: [bool; SLOTS],
    /// Watchpoints that could not be set in this round.
    failed: u64,
}

#[derive(Clone, Copy)]
struct Armed {
    address: u64,
    at_ns: u64,
    limit: u32,
}

/// What a slot is to watch, and after how many hits the kernel switches it off.
#[derive(Clone, Copy, Debug)]
pub struct ArmRequest {
    pub address: u64,
    pub limit: u32,
}

/// What one thread did in one slot of the round that closed.
#[derive(Debug)]
pub struct SlotResult {
    pub address: u64,
    pub armed_ns: u64,
    pub watched: Watched,
    /// Traps the thread took: its hits, or more if a string instruction passed the word.
    pub traps: u64,
    /// The pattern of the hits in time, if there were enough.
    pub pattern: Option<Pattern>,
    /// Its cycles with and without a second watched word.
    pub pair: Option<Pair>,
    /// Samples of the hits, oldest first (some may be lost).
    pub samples: Vec<Sample>,
}

impl SlotResult {
    /// Drops the hits after a time.
    pub fn end_at(&mut self, time: u64) {
        self.watched.watched_ns = self.watched.watched_ns.min(time.saturating_sub(self.armed_ns));
        if self.samples.len() as u64 == self.watched.hits {
            self.samples.retain(|s| s.time <= time);
            self.watched.hits = self.samples.len() as u64;
        }
    }

    /// Counts the traps of one pass of a string instruction as one hit. A cut window stays cut: it ended with its last hit.
    fn merge_passes(&mut self) {
        let taken = self.samples.len();
        merge(&mut self.samples);
        if self.samples.len() < taken {
            let cut = self.watched.cut();
            // Some samples may be lost; the hits they stand for are merged in the same proportion.
            let hits = (self.watched.hits as f64 * self.samples.len() as f64 / taken as f64).round() as u64;
            self.watched.hits = hits.max(1);
            if cut {
                self.watched.limit = self.watched.hits;
            }
        }
    }
}

impl WatchedThread {
    /// Opens four watchpoints on a thread, switched off.
    ///
    /// # Errors
    /// The kernel's reason; ENOSPC when a debugger holds debug registers.
    pub fn open(thread: Id, tid: i32, process: Id) -> io::Result<Self> {
        let attr = Attributes::watchpoint(PARKED, STACK_BYTES).with_page_sizes(kernel_reports_page_sizes());
        let mut events: Vec<Event> = Vec::with_capacity(SLOTS);
        for _ in 0..SLOTS {
            match Event::open(&attr, tid, -1) {
                Ok(event) => events.push(event),
                // A debugger may hold some of the registers: use the others.
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) && !events.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        // Without a ring (memory lock limit) hits are still counted, but their lines are unknown.
        let ring = Event::open(&Attributes::ring_owner(), tid, -1).and_then(|owner| Ok((PerfRing::map(&owner, RING_PAGES)?, owner)));
        let ring = ring.ok().map(|(ring, owner)| (owner, ring));
        if let Some((owner, _)) = &ring {
            owner.enable()?;
            for event in &events {
                event.redirect_to(owner)?;
            }
        }
        Ok(Self {
            thread,
            tid,
            process,
            events,
            ring,
            attr,
            armed: [None; SLOTS],
            allowed: [0; SLOTS],
            before: [Reading::default(); SLOTS],
            cpu_before: 0,
            exhausted: [false; SLOTS],
            failed: 0,
        })
    }

    /// Closes the current round on this thread and opens the next: `next[slot]` is the address to watch.
    /// Returns what each armed slot saw, the records lost, and how many of the next watchpoints could not be set.
    pub fn turn(&mut self, next: &[Option<ArmRequest>; SLOTS]) -> ([Option<SlotResult>; SLOTS], u64, u64) {
        let mut results: [Option<SlotResult>; SLOTS] = [const { None }; SLOTS];
        for (slot, request) in next.iter().enumerate().take(self.events.len()) {
            results[slot] = self.move_to(slot, request.map(|request| request.address));
        }
        // The thread's CPU time in the round: what the ring owner counted, or the slot that was on for longest.
        let cpu = self.ring.as_ref().map_or(0, |(owner, _)| owner.read().enabled_ns);
        let cpu_ns = cpu.saturating_sub(std::mem::replace(&mut self.cpu_before, cpu));
        let cpu_ns = results.iter().flatten().map(|r| r.watched.exposed_ns).fold(cpu_ns, u64::max);
        for result in results.iter_mut().flatten() {
            result.watched.cpu_ns = cpu_ns;
        }
        // All watchpoints are off now, so all records in the ring belong to the round that closed.
        let lost = self.collect(&mut results);
        for (slot, request) in next.iter().enumerate().take(self.events.len()) {
            if let Some(request) = request {
                self.arm(slot, request.address, request.limit);
            }
        }
        (results, lost, std::mem::take(&mut self.failed))
    }

    /// Switches a slot off, moves it, and returns its result.
    fn move_to(&mut self, slot: usize, next: Option<u64>) -> Option<SlotResult> {
        let event = &self.events[slot];
        // Moving switches the watchpoint off (the attributes say `disabled`).
        let moved = next.is_some_and(|address| event.modify(&self.attr.at(address)).is_ok());
        let armed = self.armed[slot].take()?;
        if !moved {
            let _ = event.disable();
        }
        let now = monotonic_ns();
        let reading = event.read();
        let before = std::mem::replace(&mut self.before[slot], reading);
        let hits = reading.count.saturating_sub(before.count);
        let exposed_ns = reading.enabled_ns.saturating_sub(before.enabled_ns);
        self.allowed[slot] = self.allowed[slot].saturating_sub(u32::try_from(hits).unwrap_or(u32::MAX));
        let watched =
            Watched { hits, watched_ns: now.saturating_sub(armed.at_ns), cpu_ns: exposed_ns, exposed_ns, limit: u64::from(armed.limit) };
        self.exhausted[slot] = watched.cut();
        Some(SlotResult {
            address: armed.address,
            armed_ns: armed.at_ns,
            watched,
            traps: hits,
            pattern: None,
            pair: None,
            samples: Vec::new(),
        })
    }

    fn arm(&mut self, slot: usize, address: u64, limit: u32) {
        // The rest of an earlier limit cannot be withdrawn.
        let too_much = self.allowed[slot] > limit;
        if (std::mem::take(&mut self.exhausted[slot]) || too_much) && !self.replace(slot, address) {
            self.failed += 1;
            return;
        }
        // The kernel adds to the rest of the last limit. Never pass zero, which means "without limit".
        let missing = limit.saturating_sub(self.allowed[slot]);
        let event = &self.events[slot];
        // Read before the call: hits may come, or firsttouch may lose the CPU, before it returns.
        let at_ns = monotonic_ns();
        let enabled = if missing > 0 { event.refresh(missing) } else { event.enable() };
        if enabled.is_ok() {
            self.allowed[slot] += missing;
            self.armed[slot] = Some(Armed { address, at_ns, limit: self.allowed[slot] });
        } else {
            self.failed += 1;
        }
    }

    /// Opens a slot again. On some kernels an event that the hit limit switched off reports nothing afterwards (seen on 6.18: the
    /// limit stops the breakpoint's PMU state, and only a reload of the period, on a running thread, starts it again).
    fn replace(&mut self, slot: usize, address: u64) -> bool {
        // The old event must go first: it holds the debug register.
        self.events[slot].release();
        let Ok(event) = Event::open(&self.attr.at(address), self.tid, -1) else { return false };
        if let Some((owner, _)) = &self.ring
            && event.redirect_to(owner).is_err()
        {
            return false;
        }
        self.events[slot] = event;
        self.before[slot] = Reading::default();
        self.allowed[slot] = 0;
        true
    }

    /// Moves the ring's samples to the slots whose address they carry. Returns the records lost.
    fn collect(&mut self, results: &mut [Option<SlotResult>; SLOTS]) -> u64 {
        let Some((_, ring)) = &mut self.ring else { return 0 };
        let mut lost = 0;
        ring.drain(|kind, misc, body| match parse(kind, misc, body) {
            Some(PerfRecord::Sample(sample)) => {
                if let Some(result) = results.iter_mut().flatten().find(|r| r.address == sample.address) {
                    result.samples.push(*sample);
                }
            }
            Some(PerfRecord::Lost { count }) => lost += count,
            _ => {}
        });
        // All traps of the thread, also those that do not count as hits.
        let traps: Vec<u64> = results.iter().flatten().flat_map(|r| r.samples.iter().map(|s| s.time)).collect();
        results.iter_mut().flatten().for_each(SlotResult::merge_passes);
        let times: [Vec<u64>; SLOTS] =
            std::array::from_fn(|slot| results[slot].iter().flat_map(|result| result.samples.iter().map(|sample| sample.time)).collect());
        for (result, times) in results.iter_mut().zip(&times) {
            if let Some(result) = result {
                result.pattern = pattern(times, &traps);
            }
        }
        find_pairs(results, &times);
        lost
    }
}

/// Finds pairs among words that a thread hit in turn, one of them watched for fewer hits.
fn find_pairs(results: &mut [Option<SlotResult>; SLOTS], times: &[Vec<u64>; SLOTS]) {
    let was_cut: [bool; SLOTS] = std::array::from_fn(|slot| results[slot].as_ref().is_some_and(|r| r.watched.cut()));
    for (slot, result) in results.iter_mut().enumerate() {
        let Some(result) = result else { continue };
        let others = (0..SLOTS).filter(|&other| other != slot && was_cut[other]);
        result.pair = others.filter_map(|other| pair(&times[slot], &times[other])).next();
        // Two paces in one window, each of them even.
        if let (Some(pattern), Some(pair)) = (&mut result.pattern, result.pair) {
            pattern.regular = pair.regular;
        }
    }
}
