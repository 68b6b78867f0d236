//! The debug registers: four watchpoints on each watched thread, moved together at every turn of a round.

use super::SLOTS;
use super::hot::{Pair, Pattern, median, pair, pattern};
use super::pace::ArmedCost;
use super::passes::merge;
use super::rate::Watched;
use crate::perf::records::{PerfRecord, Sample, parse};
use crate::perf::ring::PerfRing;
use firsttouch_model::rows::Id;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::perf::{Attributes, Event, Reading, kernel_reports_page_sizes};
use std::io;

/// Bytes of stack a hit carries: enough for the caller of a library routine.
const STACK_BYTES: u32 = 512;
/// Data pages of a thread's ring.
const RING_PAGES: usize = 16;
/// Where a watchpoint rests before its first use: user space, never mapped by the kernel for a program.
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

/// What a slot is to watch, and after how many hits it is enough.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    pub address: u64,
    pub limit: u32,
}

/// What one thread did in one slot of the round that closed.
#[derive(Debug)]
pub struct SlotResult {
    pub address: u64,
    pub armed_ns: u64,
    pub watched: Watched,
    /// Traps the thread took: at least its hits, more where a string instruction passed the word.
    pub traps: u64,
    /// How the thread hit the address, if it did often enough to tell.
    pub pattern: Option<Pattern>,
    /// Its cycles with and without a second watched word.
    pub pair: Option<Pair>,
    /// Samples of the hits, oldest first (some may be lost).
    pub samples: Vec<Sample>,
}

impl SlotResult {
    /// The traps of one pass of a string instruction become one hit. A cut window stays cut: it ended with its last hit.
    fn merge_passes(&mut self) {
        let taken = self.samples.len();
        self.samples = merge(std::mem::take(&mut self.samples));
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
                // A debugger may hold some of the registers: use what is left.
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) && !events.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        // Without a ring (memory lock limit) hits are still counted, only their lines stay unknown.
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
    pub fn turn(&mut self, next: &[Option<Aim>; SLOTS], buffer: &mut Vec<u8>) -> ([Option<SlotResult>; SLOTS], u64, u64) {
        let mut results: [Option<SlotResult>; SLOTS] = [const { None }; SLOTS];
        for (slot, aim) in next.iter().enumerate().take(self.events.len()) {
            results[slot] = self.move_to(slot, aim.map(|aim| aim.address));
        }
        // The thread's CPU time in the round: what the ring owner counted, or the slot that was on for longest.
        let cpu = self.ring.as_ref().map_or(0, |(owner, _)| owner.read().enabled_ns);
        let cpu_ns = cpu.saturating_sub(std::mem::replace(&mut self.cpu_before, cpu));
        let cpu_ns = results.iter().flatten().map(|r| r.watched.exposed_ns).fold(cpu_ns, u64::max);
        for result in results.iter_mut().flatten() {
            result.watched.cpu_ns = cpu_ns;
        }
        // Everything is off now: what the ring holds belongs to the round that closed.
        let lost = self.collect(&mut results, buffer);
        for (slot, aim) in next.iter().enumerate().take(self.events.len()) {
            if let Some(aim) = aim {
                self.arm(slot, aim.address, aim.limit);
            }
        }
        (results, lost, std::mem::take(&mut self.failed))
    }

    /// Switches a slot off, moves it, and says what it saw.
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
        // What is left of an earlier limit cannot be taken back.
        let too_much = self.allowed[slot] > limit;
        if (std::mem::take(&mut self.exhausted[slot]) || too_much) && !self.replace(slot, address) {
            self.failed += 1;
            return;
        }
        // The kernel adds to what is left of the last limit; never leave zero, which would mean "without limit".
        let missing = limit.saturating_sub(self.allowed[slot]);
        let event = &self.events[slot];
        // Taken before: hits may come, and we may lose the CPU, before the call returns.
        let at_ns = monotonic_ns();
        let enabled = if missing > 0 { event.refresh(missing) } else { event.enable() };
        if enabled.is_ok() {
            self.allowed[slot] += missing;
            self.armed[slot] = Some(Armed { address, at_ns, limit: self.allowed[slot] });
        } else {
            self.failed += 1;
        }
    }

    /// Opens a slot anew. An event that the hit limit switched off stays deaf on some kernels (seen on 6.18: the limit stops
    /// the breakpoint's PMU state, and only a reload of the period, on a running thread, starts it again).
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

    /// Sorts the ring's samples to the slots whose address they carry.
    fn collect(&mut self, results: &mut [Option<SlotResult>; SLOTS], buffer: &mut Vec<u8>) -> u64 {
        let Some((_, ring)) = &mut self.ring else { return 0 };
        let mut lost = 0;
        ring.drain(buffer, |kind, misc, body| match parse(kind, misc, body) {
            Some(PerfRecord::Sample(sample)) => {
                if let Some(result) = results.iter_mut().flatten().find(|r| r.address == sample.address) {
                    result.samples.push(*sample);
                }
            }
            Some(PerfRecord::Lost { count }) => lost += count,
            _ => {}
        });
        let mut times: Vec<u64> = results.iter().flatten().flat_map(|r| r.samples.iter().map(|s| s.time)).collect();
        times.sort_unstable();
        for result in results.iter_mut().flatten() {
            result.merge_passes();
            result.pattern = pattern(result, &times);
        }
        find_pairs(results);
        lost
    }
}

/// Of two words that a thread hit in turn, one watched for fewer hits.
fn find_pairs(results: &mut [Option<SlotResult>; SLOTS]) {
    let times: [Option<Vec<u64>>; SLOTS] =
        std::array::from_fn(|slot| results[slot].as_ref().map(|r| r.samples.iter().map(|sample| sample.time).collect()));
    let was_left = |slot: usize| results[slot].as_ref().is_some_and(|r| r.watched.cut());
    let found: [Option<Pair>; SLOTS] = std::array::from_fn(|slot| {
        let others = (0..SLOTS).filter(|&other| other != slot && was_left(other));
        others.filter_map(|other| pair(times[slot].as_deref()?, times[other].as_deref()?)).next()
    });
    for (result, found) in results.iter_mut().zip(found) {
        let Some(result) = result else { continue };
        result.pair = found;
        // Two paces in one window, each of them even.
        if let (Some(pattern), Some(pair)) = (&mut result.pattern, found) {
            pattern.regular = pair.regular;
        }
    }
}

/// What watching costs on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// ns of one watchpoint trap.
    pub trap_ns: f64,
    pub armed: ArmedCost,
}

/// Measures what watching costs; none where no watchpoint can be set.
#[must_use]
pub fn calibrate() -> Option<Calibration> {
    let trap_ns = calibrate_trap_ns()?;
    Some(Calibration { trap_ns, armed: calibrate_armed(trap_ns) })
}

/// The cost of one watchpoint trap on this machine, ns: the median over hits on a variable of our own.
fn calibrate_trap_ns() -> Option<f64> {
    let mut cell = Box::new(0u64);
    let address = std::ptr::from_mut::<u64>(&mut cell) as u64;
    let attr = Attributes::watchpoint(address, STACK_BYTES);
    let event = Event::open(&attr, 0, -1).ok()?;
    let _ring = PerfRing::map(&event, RING_PAGES).ok();
    let hit = |cell: &mut u64| {
        let start = monotonic_ns();
        for _ in 0..4 {
            // SAFETY: a live, aligned variable; volatile so that every store happens.
            unsafe { std::ptr::from_mut(cell).write_volatile(start) };
        }
        (monotonic_ns() - start) as f64 / 4.0
    };
    let bare = median(&(0..32).map(|_| hit(&mut cell)).collect::<Vec<f64>>());
    event.enable().ok()?;
    let watched = median(&(0..16).map(|_| hit(&mut cell)).collect::<Vec<f64>>());
    Some((watched - bare).max(0.0))
}

/// What armed watchpoints add to a page fault on this machine, ns: the fastest of several bursts with and without. A wait
/// (two context switches) is taken to cost half a trap: measured 4.7 us against 9.8 us on a virtual machine.
fn calibrate_armed(trap_ns: f64) -> ArmedCost {
    let cell = Box::new([0u64; SLOTS * 8]);
    let bare = fault_ns();
    let address = cell.as_ptr() as u64;
    let attr = Attributes::watchpoint(address, STACK_BYTES);
    let events: Vec<Event> = (0..SLOTS as u64).filter_map(|i| Event::open(&attr.at(address + 64 * i), 0, -1).ok()).collect();
    for event in &events {
        let _ = event.enable();
    }
    let armed = fault_ns();
    ArmedCost { fault_ns: (armed - bare).max(0.0), wait_ns: trap_ns / 2.0 }
}

/// Time of one first touch, ns.
fn fault_ns() -> f64 {
    const PAGES: usize = 64;
    let page = 4096;
    let mut fastest = f64::INFINITY;
    for _ in 0..5 {
        // SAFETY: a fresh private mapping of our own, touched within its bounds and unmapped once.
        unsafe {
            let base = libc::mmap(
                std::ptr::null_mut(),
                PAGES * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if base == libc::MAP_FAILED {
                return 0.0;
            }
            libc::madvise(base, PAGES * page, libc::MADV_NOHUGEPAGE);
            let start = monotonic_ns();
            for i in 0..PAGES {
                base.cast::<u8>().add(i * page).write_volatile(1);
            }
            fastest = fastest.min((monotonic_ns() - start) as f64 / PAGES as f64);
            libc::munmap(base, PAGES * page);
        }
    }
    fastest
}
