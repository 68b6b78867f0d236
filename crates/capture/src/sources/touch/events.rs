//! The page-fault events: one for each period, thread and CPU, inherited by new threads, and one ring a CPU.
//!
//! Each period is an event of its own, because an inherited event cannot be changed once a thread has it. One is enabled at a time. A
//! sample names its event, and so the number of faults it stands for.
//!
//! Each event costs the birth of a thread some 1 to 2 us for each CPU, because the kernel copies it. So only the events of the first
//! periods are open from the start. The others are opened when a storm needs them: on each thread for each CPU, which takes long where there
//! are many of both, so there the first event of storms is open from the start, too.

use super::period::{EARLY, EVENTS, Switch, is_storm, periods};
use crate::perf::records::{PerfRecord, parse};
use crate::perf::refusal::explain;
use crate::perf::ring::PerfRing;
use crate::source::Unavailable;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::perf::{Attributes, Event, WAKE_BYTES, kernel_reports_page_sizes};
use hashbrown::{HashMap, HashSet};
use std::io;
use std::path::Path;

/// Events (a thread and CPU) that are closed and opened again in storms. If there are more, they are switched off and on.
const REOPENED: usize = 256;
/// Up to so many CPUs, no event of storms is open from the start.
const FEW_CPUS: usize = 16;
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
    /// The event that is on.
    on: Option<usize>,
    /// Events that could not be opened again after a storm.
    pub unopened: u64,
}

/// The event that was opened last on the threads of a running program, when that began, and since when it is inherited. Threads that were born in between
/// inherited it for some CPUs, for all, or not at all.
struct Reopened {
    index: usize,
    began_ns: u64,
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
        // Births are reported in all processes that the program starts, and in these in turn: it is told which of them were not recorded.
        // Of a program that runs already, /proc shows the children.
        let sideband = Attributes::sideband().threads_only(mode.threads_only && !mode.on_exec).enable_on_exec(mode.on_exec);
        let mut all = Self {
            sideband: Vec::new(),
            by_period: Vec::new(),
            period_of: HashMap::new(),
            owners: Vec::new(),
            rings: Vec::new(),
            mode,
            reopened: None,
            on: Some(0),
            unopened: 0,
        };
        for &cpu in cpus {
            let opened = open_on(&sideband, tids, cpu, None)?;
            if let Some(owner) = opened.first() {
                all.rings.push(PerfRing::map(owner, RING_PAGES_UNLIMITED).or_else(|_| PerfRing::map(owner, RING_PAGES))?);
                for event in &opened[1..] {
                    event.redirect_to(owner)?;
                }
                all.owners.push((cpu, all.sideband.len()));
                all.sideband.extend(opened);
            }
        }
        if all.owners.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        all.by_period.resize_with(periods().count(), Vec::new);
        for index in 0..all.early() {
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

    /// How many of the first periods have events that are open from the start.
    fn early(&self) -> usize {
        if self.owners.len() <= FEW_CPUS { EARLY - 1 } else { EARLY }
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
            if switch.on.is_none() && self.are_reopened(tids.len()) {
                self.reopened = None;
                self.by_period.iter_mut().for_each(Vec::clear);
            } else {
                self.by_period[self.in_place_of(current)].iter().for_each(|event| drop(event.disable()));
            }
        }
        self.on = switch.on;
        if let Some(next) = switch.on {
            self.switch_on(next, tids);
        }
    }

    /// The event that is used for this one: the first of storms, if this one could not be opened (too many descriptors). Where that is not
    /// open either, no event is on, and `unopened` counts it.
    fn in_place_of(&self, index: usize) -> usize {
        let is_missing = self.by_period[index].is_empty() && is_storm(index);
        if is_missing { EARLY - 1 } else { index }
    }

    /// Opens the event if it is not open, and those of the first periods with it once the storm is over (when no event is closed again
    /// soon).
    fn switch_on(&mut self, next: usize, tids: &[i32]) {
        let was_open = !self.by_period[next].is_empty() || tids.is_empty();
        let began_ns = monotonic_ns();
        if !was_open {
            self.open_on(next, tids);
        }
        let since_ns = monotonic_ns();
        self.by_period[self.in_place_of(next)].iter().for_each(|event| drop(event.enable()));
        if was_open {
            return;
        }
        if !is_storm(next) && next < EVENTS {
            for index in (0..self.by_period.len()).filter(|&index| index != next) {
                self.by_period[index].clear();
                if index < self.early() {
                    self.open_on(index, tids);
                }
            }
        }
        self.reopened = Some(Reopened { index: next, began_ns, since_ns, tids: tids.iter().copied().collect() });
    }

    /// Opens an event on these threads. It is off.
    fn open_on(&mut self, index: usize, tids: &[i32]) {
        match self.open_period(index, tids, false) {
            Ok(events) => self.by_period[index].extend(events),
            Err(_) => self.unopened += 1,
        }
    }

    /// Opens the event that was opened last also on threads that were born before that, and known later; on all of these live threads anew, if one was born
    /// while it was being opened. Threads born after that inherited it.
    pub fn add_threads(&mut self, threads: impl Iterator<Item = (i32, u64)>) {
        let Some(mut reopened) = self.reopened.take() else { return };
        let (known, unknown): (Vec<_>, Vec<_>) = threads.partition(|(tid, _)| reopened.tids.contains(tid));
        let is_open = !self.by_period[reopened.index].is_empty();
        let was_made_meanwhile = is_open && unknown.iter().any(|(_, born_ns)| (reopened.began_ns..reopened.since_ns).contains(born_ns));
        let mut missed: Vec<i32> = unknown.iter().filter(|(_, born_ns)| *born_ns < reopened.began_ns).map(|(tid, _)| *tid).collect();
        reopened.tids.extend(unknown.iter().map(|(tid, _)| *tid));
        if was_made_meanwhile {
            // With an event of its own beside an inherited one, a thread's faults would count twice: open it anew on all.
            self.by_period[reopened.index].clear();
            missed = known.iter().chain(&unknown).map(|(tid, _)| *tid).collect();
            reopened.began_ns = monotonic_ns();
        }
        if !missed.is_empty() {
            match self.open_period(reopened.index, &missed, false) {
                Ok(events) => {
                    if self.on == Some(reopened.index) {
                        events.iter().for_each(|event| drop(event.enable()));
                    }
                    self.by_period[reopened.index].extend(events);
                }
                Err(_) => self.unopened += 1,
            }
        }
        if was_made_meanwhile {
            reopened.since_ns = monotonic_ns();
        }
        self.reopened = Some(reopened);
    }

    /// Descriptors that become readable when a ring fills.
    #[must_use]
    pub fn descriptors(&self) -> Vec<i32> {
        self.owners.iter().map(|&(_, i)| self.sideband[i].descriptor()).collect()
    }

    /// Whether a ring holds so much that it wakes whoever polls it.
    #[must_use]
    pub fn fill(&self) -> bool {
        self.rings.iter().any(|ring| ring.waiting_bytes() >= u64::from(WAKE_BYTES))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Events of the thread that runs the test, on CPU 0. `None` where the kernel refuses them.
    fn of_this_thread() -> Option<(TouchEvents, [i32; 1])> {
        // SAFETY: the call has no arguments and cannot fail.
        let tids = [unsafe { libc::gettid() }];
        TouchEvents::open(Path::new("/"), &tids, &[0], false, false).ok().map(|events| (events, tids))
    }

    fn open(events: &TouchEvents) -> Vec<usize> {
        (0..events.by_period.len()).filter(|&index| !events.by_period[index].is_empty()).collect()
    }

    /// Check that a new thread inherits the events of the first periods only, that a storm opens the one it needs, and that its end leaves
    /// the first ones again.
    #[test]
    fn events_of_long_periods_are_opened_when_a_storm_needs_them() {
        let Some((mut events, tids)) = of_this_thread() else { return };
        let far = EARLY;
        assert!(is_storm(far));
        assert_eq!((open(&events), events.sideband.len()), (vec![0, 1], 1));
        events.switch(Switch { off: Some(0), on: Some(far) }, &tids);
        assert_eq!(open(&events), [0, 1, far]);
        events.switch(Switch { off: Some(far), on: None }, &tids);
        assert_eq!(open(&events), [0usize; 0]);
        events.switch(Switch { off: None, on: Some(far) }, &tids);
        assert_eq!(open(&events), [far]);
        events.switch(Switch { off: Some(far), on: Some(0) }, &tids);
        assert_eq!(open(&events), [0, 1]);
        assert_eq!(events.unopened, 0);
    }

    /// Check that an event is opened later on a thread that was not known, and is on there only if it is on.
    #[test]
    fn a_thread_that_was_not_known_gets_the_event_that_was_opened_last() {
        let Some((mut events, tids)) = of_this_thread() else { return };
        events.switch(Switch { off: Some(0), on: Some(EARLY) }, &tids);
        let (opened, (sender, receiver)) = (events.by_period[EARLY].len(), std::sync::mpsc::channel());
        std::thread::scope(|scope| {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                // SAFETY: the call has no arguments and cannot fail.
                let _ = sender.send(unsafe { libc::gettid() });
                let _ = ended.recv();
            });
            let other = receiver.recv().unwrap_or(0);
            events.add_threads([(tids[0], 0), (other, monotonic_ns())].into_iter());
            assert_eq!(events.by_period[EARLY].len(), opened, "born later, so it inherited the event");
            drop(end);
        });
        let Some((mut again, _)) = of_this_thread() else { return };
        again.switch(Switch { off: Some(0), on: Some(EARLY) }, &[i32::MAX]);
        assert!(again.by_period[EARLY].is_empty() && again.in_place_of(EARLY) == EARLY - 1);
        again.add_threads([(tids[0], 0)].into_iter());
        assert_eq!((again.by_period[EARLY].len(), again.in_place_of(EARLY)), (1, EARLY));
    }
}
