//! First-touch evidence: the page-fault event on every CPU, inherited by new threads, read through one ring a CPU.
//!
//! The sampling period adapts to the target's size: every 31st fault at first, so that a program that touches a few megabytes
//! in a few milliseconds is seen well, and rarer as samples come in, so that one that touches terabytes pays next to nothing.
//! Each period is an event of its own (an inherited event cannot be changed once a thread has it), one enabled at a time; a
//! sample's event tells how many faults it stands for. The periods are primes, so that they do not beat with blocked loops.

use crate::kernel::perf::{Attributes, Event};
use crate::kernel::perf_records::{PerfRecord, parse};
use crate::kernel::perf_ring::PerfRing;
use crate::procfs;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// Sampling period, and the number of samples after which the next one takes over.
const PERIODS: [(u64, u64); 5] = [(31, 6_000), (251, 16_000), (2_039, 40_000), (16_381, 100_000), (131_071, u64::MAX)];
/// Bytes of stack a sample carries: a library routine's frames and its caller's.
const STACK_BYTES: u32 = 1024;
/// Data pages of a CPU's ring: what perf_event_mlock_kb (516) allows everybody.
const RING_PAGES: usize = 128;

pub struct TouchEvents {
    /// Sideband events; they own the rings.
    bystanders: Vec<Event>,
    /// Page-fault events by period.
    periods: Vec<Vec<Event>>,
    /// Event id -> faults a sample stands for.
    weights: HashMap<u64, u64>,
    current: usize,
    rings: Vec<PerfRing>,
    buffer: Vec<u8>,
    /// Faults taken in the kernel on a thread's behalf are seen too.
    pub sees_kernel: bool,
}

/// How events are opened: what the kernel allows is found by trying.
#[derive(Clone, Copy)]
struct Manner {
    sees_kernel: bool,
    threads_only: bool,
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
                match Self::open_as(tids, cpus, Manner { sees_kernel, threads_only, on_exec: launch }) {
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
        let bystander = Attributes::bystander().threads_only(manner.threads_only).enable_on_exec(manner.on_exec);
        let mut all = Self { bystanders: Vec::new(), periods: Vec::new(), weights: HashMap::new(), current: 0, rings: Vec::new(), buffer: Vec::new(), sees_kernel: manner.sees_kernel };
        let mut owners = Vec::new();
        for &cpu in cpus {
            let opened = open_on(&bystander, tids, cpu, None)?;
            if let Some(owner) = opened.first() {
                all.rings.push(PerfRing::map(owner, RING_PAGES)?);
                for event in &opened[1..] {
                    event.redirect_to(owner)?;
                }
                owners.push((cpu, all.bystanders.len()));
                all.bystanders.extend(opened);
            }
        }
        if owners.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        for (index, &(period, _)) in PERIODS.iter().enumerate() {
            let attr = Attributes::page_faults(period, STACK_BYTES)
                .exclude_kernel(!manner.sees_kernel)
                .threads_only(manner.threads_only)
                .enable_on_exec(manner.on_exec && index == 0);
            let mut events = Vec::new();
            for &(cpu, owner) in &owners {
                events.extend(open_on(&attr, tids, cpu, Some(&all.bystanders[owner]))?);
            }
            all.weights.extend(events.iter().map(|e| (e.id(), period)));
            all.periods.push(events);
        }
        if !manner.on_exec {
            for event in all.bystanders.iter().chain(&all.periods[0]) {
                let _ = event.enable();
            }
        }
        Ok(all)
    }

    /// Goes on to the period that fits the number of samples taken so far.
    pub fn adapt(&mut self, samples: u64) {
        while samples > PERIODS[self.current].1 && self.current + 1 < self.periods.len() {
            // Off before on: a fault between the two is missed, none is counted twice.
            for event in &self.periods[self.current] {
                let _ = event.disable();
            }
            self.current += 1;
            for event in &self.periods[self.current] {
                let _ = event.enable();
            }
        }
    }

    /// Faults a sample stands for.
    #[must_use]
    pub fn weight(&self, event: u64) -> u64 {
        self.weights.get(&event).copied().unwrap_or(1)
    }

    /// Takes every record written up to now, sorted by nothing but the CPUs they come from.
    pub fn drain(&mut self, mut consume: impl FnMut(PerfRecord)) {
        let Self { rings, buffer, .. } = self;
        for ring in rings {
            ring.drain(buffer, |kind, misc, body| {
                if let Some(record) = parse(kind, misc, body) {
                    consume(record);
                }
            });
        }
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
    let paranoid = procfs::perf_event_paranoid(root);
    match (error.raw_os_error(), paranoid) {
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 2 => format!(
            "cannot open performance events (perf_event_paranoid = {level}): set it to 2 (sysctl kernel.perf_event_paranoid=2) or run with CAP_PERFMON"
        ),
        (Some(libc::EACCES | libc::EPERM), _) => "cannot open performance events (the system call is forbidden, as container profiles do): allow perf_event_open in the seccomp profile or run with CAP_PERFMON".to_owned(),
        (Some(libc::ENOSYS), _) => "cannot open performance events (this kernel or container has no perf_event_open): use a kernel with CONFIG_PERF_EVENTS".to_owned(),
        (Some(libc::EMFILE), _) => "cannot open performance events (too many open files): raise the limit (ulimit -n)".to_owned(),
        _ => format!("cannot open performance events ({error})"),
    }
}
