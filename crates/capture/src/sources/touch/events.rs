//! The page-fault events: one for each period, thread and CPU, inherited by new threads, and one ring a CPU.
//!
//! Each period is an event of its own, because an inherited event cannot be changed once a thread has it. One is enabled at a time. A
//! sample names its event, and so the number of faults it stands for.

use super::period::{EVENTS, Switch, is_storm, periods};
use crate::perf::records::{PerfRecord, parse};
use crate::perf::refusal::explain;
use crate::perf::ring::PerfRing;
use crate::source::Unavailable;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::perf::{Attributes, Event, kernel_reports_page_sizes};
use hashbrown::{HashMap, HashSet};
use std::io;
use std::path::Path;

/// Events (a thread and CPU) that are closed and opened again in storms. If there are more, they are switched off and on.
const REOPENED: usize = 256;
/// Bytes of stack a sample carries: a library routine's frames and its caller's.
const STACK_BYTES: u32 = 1024;
/// The same while every fault is a sample: more of them fit into the ring.
const QUIET_STACK_BYTES: u32 = 256;
/// Events whose periods are remembered: those that may still have records in a ring.
const MOST_KNOWN: usize = 16_384;
/// Data pages of a CPU's ring: what perf_event_mlock_kb (516) allows everybody.
const RING_PAGES: usize = 128;
/// Data pages where there is no such limit (root). Each takes time at the start: the kernel clears it.
const RING_PAGES_UNLIMITED: usize = 512;

pub struct TouchEvents {
    /// Events of births, deaths, names and mappings; they own the rings.
    sideband: Vec<Event>,
    /// Page-fault events, in the order of [`periods`].
    by_period: Vec<Vec<Event>>,
    /// Event id -> its period.
    period_of: HashMap<u64, u64>,
    /// CPUs, and the indices of the side-band events that own their rings.
    owners: Vec<(u32, usize)>,
    rings: Vec<PerfRing>,
    mode: Mode,
    reopened: Option<Reopened>,
    /// Events that could not be opened again after a storm.
    pub unopened: u64,
}

/// The event that was opened on the threads of a running program, and since when it is inherited.
struct Reopened {
    index: usize,
    since_ns: u64,
    tids: HashSet<i32>,
}

/// How events are opened. Trying shows what the kernel allows.
#[derive(Clone, Copy)]
struct Mode {
    sees_kernel: bool,
    threads_only: bool,
    tells_pages: bool,
    on_exec: bool,
}

impl TouchEvents {
    /// Opens the events on the given threads (`launch`: one thread that is about to execute its program).
    ///
    /// # Errors
    /// Why events cannot be opened, and the least privileged way to get them.
    pub fn open(root: &Path, tids: &[i32], cpus: &[u32], launch: bool, follow: bool) -> Result<Self, Unavailable> {
        let mut refused = None;
        for sees_kernel in [true, false] {
            for threads_only in [!follow, false] {
                let tells_pages = kernel_reports_page_sizes();
                match Self::open_as(tids, cpus, Mode { sees_kernel, threads_only, tells_pages, on_exec: launch }) {
                    Ok(events) => return Ok(events),
                    Err(error) => refused = Some(error),
                }
                if !threads_only {
                    break;
                }
            }
        }
        let error = refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENODEV));
        Err(explain(root, &error).into())
    }

    fn open_as(tids: &[i32], cpus: &[u32], mode: Mode) -> io::Result<Self> {
        // Of a running program with many threads, these would be many events more; /proc shows its children.
        let mut births = if mode.threads_only && mode.on_exec { births(tids, cpus) } else { HashMap::new() };
        let sideband =
            Attributes::sideband().threads_only(mode.threads_only).enable_on_exec(mode.on_exec).without_births(!births.is_empty());
        let mut all = Self {
            sideband: Vec::new(),
            by_period: Vec::new(),
            period_of: HashMap::new(),
            owners: Vec::new(),
            rings: Vec::new(),
            mode,
            reopened: None,
            unopened: 0,
        };
        for &cpu in cpus {
            let opened = open_on(&sideband, tids, cpu, None)?;
            if let Some(owner) = opened.first() {
                all.rings.push(PerfRing::map(owner, RING_PAGES_UNLIMITED).or_else(|_| PerfRing::map(owner, RING_PAGES))?);
                for event in &opened[1..] {
                    event.redirect_to(owner)?;
                }
                let reporters = births.remove(&cpu).unwrap_or_default();
                for event in &reporters {
                    event.redirect_to(owner)?;
                }
                all.owners.push((cpu, all.sideband.len()));
                all.sideband.extend(opened.into_iter().chain(reporters));
            }
        }
        if all.owners.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        all.by_period.resize_with(periods().count(), Vec::new);
        for index in 0..EVENTS {
            all.by_period[index] = all.open_period(index, tids, mode.on_exec)?;
        }
        // Events that are opened later belong to a program that runs already.
        all.mode.on_exec = false;
        if !mode.on_exec {
            for event in all.sideband.iter().chain(&all.by_period[0]) {
                let _ = event.enable();
            }
        }
        Ok(all)
    }

    /// Opens the events of one period on the given threads. They are off; the first period's are switched on once the program
    /// starts (`on_exec`).
    fn open_period(&mut self, index: usize, tids: &[i32], on_exec: bool) -> io::Result<Vec<Event>> {
        let Some(period) = periods().nth(index) else { return Ok(Vec::new()) };
        let stack = if index == 0 { QUIET_STACK_BYTES } else { STACK_BYTES };
        let attr = Attributes::page_faults(period, stack)
            .exclude_kernel(!self.mode.sees_kernel)
            .threads_only(self.mode.threads_only)
            .with_page_sizes(self.mode.tells_pages)
            .enable_on_exec(on_exec && index == 0);
        let mut events = Vec::new();
        for &(cpu, owner) in &self.owners {
            events.extend(open_on(&attr, tids, cpu, Some(&self.sideband[owner]))?);
        }
        if self.period_of.len() > MOST_KNOWN {
            self.period_of.clear();
        }
        self.period_of.extend(events.iter().map(|e| (e.id(), period)));
        Ok(events)
    }

    /// Faults taken in the kernel on a thread's behalf are seen too.
    #[must_use]
    pub fn sees_kernel(&self) -> bool {
        self.mode.sees_kernel
    }

    /// The period of an event.
    #[must_use]
    pub fn period_of(&self, event: u64) -> u64 {
        self.period_of.get(&event).copied().unwrap_or(1)
    }

    /// Whether the events of so many threads are closed and opened again, rather than switched off and on.
    #[must_use]
    pub fn are_reopened(&self, threads: usize) -> bool {
        threads > 0 && threads * self.owners.len() <= REOPENED
    }

    /// Switches from one event to another. `tids` are the live threads.
    pub fn switch(&mut self, switch: Switch, tids: &[i32]) {
        // Off before on: a fault between the two is missed, and no fault is counted twice.
        if let Some(current) = switch.off {
            self.reopened = None;
            if switch.on.is_none() && self.are_reopened(tids.len()) {
                self.by_period.iter_mut().for_each(Vec::clear);
            } else {
                self.by_period[current].iter().for_each(|event| drop(event.disable()));
            }
        }
        if let Some(next) = switch.on {
            self.switch_on(next, tids);
        }
    }

    /// Opens the event if it was closed, and all others with it once the storm is over (when no event is closed again soon).
    fn switch_on(&mut self, next: usize, tids: &[i32]) {
        let was_open = !self.by_period[next].is_empty() || tids.is_empty();
        let since_ns = monotonic_ns();
        if !was_open {
            self.open_on(next, tids);
        }
        self.by_period[next].iter().for_each(|event| drop(event.enable()));
        if was_open {
            return;
        }
        if !is_storm(next) && next < EVENTS {
            for index in (0..EVENTS).filter(|&index| index != next) {
                self.by_period[index].clear();
                self.open_on(index, tids);
            }
        }
        self.reopened = Some(Reopened { index: next, since_ns, tids: tids.iter().copied().collect() });
    }

    /// Opens an event on these threads. It is off.
    fn open_on(&mut self, index: usize, tids: &[i32]) {
        match self.open_period(index, tids, false) {
            Ok(events) => self.by_period[index].extend(events),
            Err(_) => self.unopened += 1,
        }
    }

    /// Opens the event that is on also on threads that were born before it was opened, and known later. Threads born after that inherited
    /// it.
    pub fn add_threads(&mut self, threads: impl Iterator<Item = (i32, u64)>) {
        let Some(mut reopened) = self.reopened.take() else { return };
        let unknown: Vec<(i32, u64)> = threads.filter(|(tid, _)| !reopened.tids.contains(tid)).collect();
        let missed: Vec<i32> = unknown.iter().filter(|(_, born_ns)| *born_ns < reopened.since_ns).map(|(tid, _)| *tid).collect();
        reopened.tids.extend(unknown.iter().map(|(tid, _)| *tid));
        if !missed.is_empty() {
            match self.open_period(reopened.index, &missed, false) {
                Ok(events) => {
                    events.iter().for_each(|event| drop(event.enable()));
                    self.by_period[reopened.index].extend(events);
                }
                Err(_) => self.unopened += 1,
            }
        }
        self.reopened = Some(reopened);
    }

    /// Descriptors that become readable when a ring fills.
    #[must_use]
    pub fn descriptors(&self) -> Vec<i32> {
        self.owners.iter().map(|&(_, i)| self.sideband[i].descriptor()).collect()
    }

    /// Takes every record written up to now, ring by ring.
    pub fn drain(&mut self, mut consume: impl FnMut(&Self, PerfRecord)) {
        let mut rings = std::mem::take(&mut self.rings);
        for ring in &mut rings {
            ring.drain(|kind, misc, body| {
                if let Some(record) = parse(kind, misc, body) {
                    consume(self, record);
                }
            });
        }
        self.rings = rings;
    }

    pub fn stop(&self) {
        for event in self.sideband.iter().chain(self.by_period.iter().flatten()) {
            let _ = event.disable();
        }
    }
}

/// Events that report births and deaths also in processes that are not recorded, by CPU. All or none: without them, the events of the
/// recorded threads report their own.
fn births(tids: &[i32], cpus: &[u32]) -> HashMap<u32, Vec<Event>> {
    let attr = Attributes::births().enable_on_exec(true);
    let open = |&cpu: &u32| {
        let id = i32::try_from(cpu).unwrap_or(i32::MAX);
        let is_gone = |error: &io::Error| matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV));
        let opened = tids.iter().map(|&tid| Event::open(&attr, tid, id)).filter(|event| !event.as_ref().is_err_and(is_gone));
        Ok((cpu, opened.collect::<io::Result<Vec<Event>>>()?))
    };
    cpus.iter().map(open).collect::<io::Result<HashMap<_, _>>>().unwrap_or_default()
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
            // A thread may end meanwhile, a CPU may be offline.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(events)
}
