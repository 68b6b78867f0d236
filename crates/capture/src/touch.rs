//! First-touch evidence: the page-fault event on every CPU, inherited by new threads, read through one ring a CPU.
//!
//! While the program is quiet every fault is a sample: a few faults can place much memory when pages are huge. A burst of
//! faults wakes us through the ring's watermark, and until it is over only every 31st fault is a sample, or rarer the more
//! samples there are, so that a program that touches terabytes pays next to nothing. Each period is an event of its own (an
//! inherited event cannot be changed once a thread has it), one enabled at a time; a sample's event tells how many faults it
//! stands for. The periods are primes, so that they do not beat with blocked loops.
//!
//! The storm is over with the first tick in which it is quiet, as long as there is attention left; else with the fourth, and
//! then every 31st fault is a sample, which needs no such care: opening and closing stops every CPU for a moment.
//!
//! An open event costs every fault some 60 ns, enabled or not: 3 % of a program that does nothing but fault (measured on a
//! virtual machine, docs/evidence.md). So in long storms the events are closed, and opened in one of eight ticks only, at
//! random; a sample then stands for eight times as many faults.

use crate::perf::records::{PerfRecord, parse};
use crate::perf::ring::PerfRing;
use crate::watch::design::Random;
use firsttouch_system::calls::perf::{Attributes, Event, kernel_reports_page_sizes};
use firsttouch_system::proc;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// Sampling period, and the number of samples after which the next one takes over.
const PERIODS: [(u64, u64); 5] = [(31, 1_500), (251, 6_000), (2_039, 20_000), (16_381, 50_000), (131_071, u64::MAX)];
/// From this one on (an index into the events: the attentive one comes first), the event is on in one of so many ticks.
const STORM: usize = 2;
const STORM_TICKS: u64 = 8;
/// Events (a thread and CPU) that are closed and opened again in storms; where there are more, they are switched off and on.
const REOPENED: usize = 256;
/// Bytes of stack a sample carries: a library routine's frames and its caller's.
const STACK_BYTES: u32 = 1024;
/// The same while every fault is a sample: more of them fit into the ring.
const ATTENTIVE_STACK_BYTES: u32 = 256;
/// Events whose periods are kept in mind: those that may still have records in a ring.
const MOST_WEIGHTS: usize = 16_384;
/// The period while the program is quiet.
const ATTENTIVE: u64 = 1;
/// Samples of a burst after which attention ends, and faults a tick below which it returns.
const BURST_SAMPLES: u64 = 300;
const QUIET_FAULTS: u64 = 100;
/// Ticks without faults, among those in which the event was on, after which a storm is over where attention is used up: a
/// program that frees 1 GiB before it touches the next pauses for one or two.
const QUIET_TICKS: u32 = 4;
/// Attentive samples a run may take: at once, and more a second.
const ATTENTION: u64 = 800;
const ATTENTION_A_SECOND: f64 = 50.0;
/// Data pages of a CPU's ring: what perf_event_mlock_kb (516) allows everybody.
const RING_PAGES: usize = 128;
/// Where there is no such limit (root).
const RING_PAGES_UNLIMITED: usize = 1024;

pub struct TouchEvents {
    /// Sideband events; they own the rings.
    bystanders: Vec<Event>,
    /// Page-fault events by period; the first is the attentive one.
    periods: Vec<Vec<Event>>,
    /// Event id -> faults a sample stands for.
    weights: HashMap<u64, u64>,
    current: usize,
    /// The current event is on.
    pub is_on: bool,
    random: Random,
    /// Samples taken in bursts; attentive ones; attentive ones and faults since the last tick.
    samples: u64,
    attentive: u64,
    burst: u64,
    faults: u64,
    quiet_ticks: u32,
    /// CPUs, and the indices of the bystanders that own their rings.
    owners: Vec<(u32, usize)>,
    manner: Manner,
    /// Events that could not be opened again after a storm.
    pub unopened: u64,
    rings: Vec<PerfRing>,
    buffer: Vec<u8>,
    /// Faults taken in the kernel on a thread's behalf are seen too.
    pub sees_kernel: bool,
    /// Faults on pages that are there are told from first touches.
    pub tells_pages: bool,
}

/// How events are opened: what the kernel allows is found by trying.
#[derive(Clone, Copy)]
struct Manner {
    sees_kernel: bool,
    threads_only: bool,
    tells_pages: bool,
    on_exec: bool,
}

impl TouchEvents {
    /// Opens the events on the given threads (`launch`: one thread that is about to execute its program).
    ///
    /// # Errors
    /// What was not seen, why, and what to do about it, as one sentence.
    pub fn open(root: &Path, tids: &[i32], cpus: &[u32], launch: bool, follow: bool) -> Result<Self, String> {
        let mut refused = None;
        for sees_kernel in [true, false] {
            for threads_only in [!follow, false] {
                let tells_pages = kernel_reports_page_sizes();
                match Self::open_as(tids, cpus, Manner { sees_kernel, threads_only, tells_pages, on_exec: launch }) {
                    Ok(events) => return Ok(events),
                    Err(error) => refused = Some(error),
                }
                if !threads_only {
                    break;
                }
            }
        }
        let error = refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENODEV));
        Err(explain(root, &error))
    }

    fn open_as(tids: &[i32], cpus: &[u32], manner: Manner) -> io::Result<Self> {
        let bystander = Attributes::sideband().threads_only(manner.threads_only).enable_on_exec(manner.on_exec);
        let mut all = Self {
            bystanders: Vec::new(),
            periods: Vec::new(),
            weights: HashMap::new(),
            current: 0,
            is_on: true,
            random: Random::new(firsttouch_system::calls::clock::monotonic_ns()),
            samples: 0,
            attentive: 0,
            burst: 0,
            faults: 0,
            quiet_ticks: 0,
            owners: Vec::new(),
            manner,
            unopened: 0,
            rings: Vec::new(),
            buffer: Vec::new(),
            sees_kernel: manner.sees_kernel,
            tells_pages: manner.tells_pages,
        };
        for &cpu in cpus {
            let opened = open_on(&bystander, tids, cpu, None)?;
            if let Some(owner) = opened.first() {
                all.rings.push(PerfRing::map(owner, RING_PAGES_UNLIMITED).or_else(|_| PerfRing::map(owner, RING_PAGES))?);
                for event in &opened[1..] {
                    event.redirect_to(owner)?;
                }
                all.owners.push((cpu, all.bystanders.len()));
                all.bystanders.extend(opened);
            }
        }
        if all.owners.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        all.periods.resize_with(1 + PERIODS.len(), Vec::new);
        for index in 0..all.periods.len() {
            all.open_period(index, tids, manner.on_exec)?;
        }
        // What is opened later belongs to a program that runs.
        all.manner.on_exec = false;
        if !manner.on_exec {
            for event in all.bystanders.iter().chain(&all.periods[0]) {
                let _ = event.enable();
            }
        }
        Ok(all)
    }

    /// Opens the events of one period on the given threads, off (or, of the attentive one, on once the program starts).
    fn open_period(&mut self, index: usize, tids: &[i32], on_exec: bool) -> io::Result<()> {
        let period = index.checked_sub(1).map_or(ATTENTIVE, |i| PERIODS[i].0);
        let stack = if period == ATTENTIVE { ATTENTIVE_STACK_BYTES } else { STACK_BYTES };
        let attr = Attributes::page_faults(period, stack)
            .exclude_kernel(!self.manner.sees_kernel)
            .threads_only(self.manner.threads_only)
            .with_page_sizes(self.manner.tells_pages)
            .enable_on_exec(on_exec && index == 0);
        let mut events = Vec::new();
        for &(cpu, owner) in &self.owners {
            events.extend(open_on(&attr, tids, cpu, Some(&self.bystanders[owner]))?);
        }
        if self.weights.len() > MOST_WEIGHTS {
            self.weights.clear();
        }
        self.weights.extend(events.iter().map(|e| (e.id(), period)));
        self.periods[index] = events;
        Ok(())
    }

    /// The program is in a long storm of faults: [`TouchEvents::drain`] wants to know its threads.
    #[must_use]
    pub fn in_storm(&self) -> bool {
        self.current >= STORM
    }

    /// Chooses the period for what comes: `seconds` since the start, `ticked` when a quiet tick may end a burst, `tids` the live
    /// threads while a storm is on.
    fn adapt(&mut self, seconds: f64, ticked: bool, tids: &[i32]) {
        let quiet = self.is_on && self.faults < QUIET_FAULTS;
        let wanted = if self.current == 0 {
            if self.burst > BURST_SAMPLES { self.base() } else { 0 }
        } else if ticked && quiet {
            self.quiet_ticks += 1;
            let may = (self.attentive as f64) < ATTENTION as f64 + ATTENTION_A_SECOND * seconds;
            match () {
                () if may => 0,
                () if self.quiet_ticks >= QUIET_TICKS => self.base().min(STORM - 1),
                () => self.current,
            }
        } else if quiet && self.current < STORM {
            self.current
        } else {
            self.base()
        };
        let on = match () {
            () if wanted < STORM => true,
            () if ticked => self.random.word().is_multiple_of(STORM_TICKS),
            () => self.is_on,
        };
        if !quiet && self.is_on {
            self.quiet_ticks = 0;
        }
        if ticked {
            self.burst = 0;
            self.faults = 0;
        }
        if wanted != self.current || on != self.is_on {
            // Off before on: a fault between the two is missed, none is counted twice.
            if self.is_on {
                let closes = !on && !tids.is_empty() && tids.len() * self.owners.len() <= REOPENED;
                for (index, events) in self.periods.iter_mut().enumerate() {
                    if closes {
                        events.clear();
                    } else if index == self.current {
                        events.iter().for_each(|event| drop(event.disable()));
                    }
                }
            }
            self.burst = if wanted == self.current { self.burst } else { 0 };
            (self.current, self.is_on) = (wanted, on);
            if on {
                self.switch_on(tids);
            }
        }
    }

    /// Switches the current period on. Where events were closed, it is opened anew, and all others with it once the storm is over.
    fn switch_on(&mut self, tids: &[i32]) {
        if self.periods[self.current].is_empty() && !tids.is_empty() {
            let all = if self.current < STORM { 0..self.periods.len() } else { self.current..self.current + 1 };
            for index in all {
                self.unopened += u64::from(self.open_period(index, tids, false).is_err());
            }
        }
        for event in &self.periods[self.current] {
            let _ = event.enable();
        }
    }

    /// The period in a burst, by the samples taken in bursts so far.
    fn base(&self) -> usize {
        1 + PERIODS.iter().position(|&(_, until)| self.samples < until).unwrap_or(PERIODS.len() - 1)
    }

    /// Counts a sample of an event; returns the faults it stands for.
    fn sampled(&mut self, event: u64) -> u64 {
        let period = self.weights.get(&event).copied().unwrap_or(1);
        // Periods from STORM on are only open part of the time.
        let weight = if PERIODS.iter().skip(STORM - 1).any(|p| p.0 == period) { period * STORM_TICKS } else { period };
        self.faults += weight;
        if weight == ATTENTIVE {
            self.attentive += 1;
            self.burst += 1;
        } else {
            self.samples += 1;
        }
        weight
    }

    /// A burst of faults is on.
    #[must_use]
    pub fn in_burst(&self) -> bool {
        self.current != 0
    }

    /// Descriptors that become readable when a ring fills.
    #[must_use]
    pub fn descriptors(&self) -> Vec<i32> {
        self.owners.iter().map(|&(_, i)| self.bystanders[i].descriptor()).collect()
    }

    /// Takes every record written up to now, sorted by nothing but the CPUs they come from, with the faults each stands for.
    /// The period adapts at once: whoever goes through the records may need longer than the next burst.
    pub fn drain(&mut self, seconds: f64, ticked: bool, tids: &[i32], mut consume: impl FnMut(PerfRecord, u64)) {
        let mut rings = std::mem::take(&mut self.rings);
        let mut buffer = std::mem::take(&mut self.buffer);
        for ring in &mut rings {
            ring.drain(&mut buffer, |kind, misc, body| {
                if let Some(record) = parse(kind, misc, body) {
                    let weight = if let PerfRecord::Sample(sample) = &record { self.sampled(sample.event) } else { 0 };
                    consume(record, weight);
                }
            });
        }
        (self.rings, self.buffer) = (rings, buffer);
        self.adapt(seconds, ticked, tids);
    }

    pub fn stop(&mut self) {
        for event in self.bystanders.iter().chain(self.periods.iter().flatten()) {
            let _ = event.disable();
        }
    }
}

/// Opens an event on each thread for one CPU, all writing to `owner`'s ring.
fn open_on(attr: &Attributes, tids: &[i32], cpu: u32, owner: Option<&Event>) -> io::Result<Vec<Event>> {
    let cpu = i32::try_from(cpu).unwrap_or(i32::MAX);
    let mut events = Vec::with_capacity(tids.len());
    for &tid in tids {
        match Event::open(attr, tid, cpu) {
            Ok(event) => {
                if let Some(owner) = owner {
                    event.redirect_to(owner)?;
                }
                events.push(event);
            }
            // A thread may end while we attach, a CPU may be offline.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(events)
}

/// Why performance events cannot be had, and the least that would help.
#[must_use]
pub fn explain(root: &Path, error: &io::Error) -> String {
    let paranoid = proc::perf_event_paranoid(root);
    match (error.raw_os_error(), paranoid) {
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 2 => format!(
            "cannot open performance events (perf_event_paranoid = {level}): set it to 2 (sysctl kernel.perf_event_paranoid=2) or run with CAP_PERFMON"
        ),
        (Some(libc::EACCES | libc::EPERM), _) => "cannot open performance events (the system call is forbidden, as container profiles do): allow perf_event_open in the seccomp profile or run with CAP_PERFMON".to_owned(),
        (Some(libc::ENOSYS), _) => "cannot open performance events (this kernel or container has no perf_event_open): use a kernel with CONFIG_PERF_EVENTS, or allow the call in the sandbox's seccomp profile".to_owned(),
        (Some(libc::EMFILE), _) => "cannot open performance events (too many open files): raise the limit (ulimit -n)".to_owned(),
        _ => format!("cannot open performance events ({error})"),
    }
}
