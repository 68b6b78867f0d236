//! Samples of a thread's CPU clock, taken by the kernel: the event, its ring and its records.
//!
//! The kernel's timer for it interrupts the CPU and not the program: no signal, no system call that ends early.

use super::records::{PerfRecord, Reader, parse};
use super::ring::PerfRing;
use crate::agent::records::Tick;
use firsttouch_system::calls::perf::{Attributes, Event};
use std::io;

/// Bytes of the stack from the stack pointer upwards, as many as the agent copies.
const STACK_BYTES: u32 = 256;
/// Data pages of a thread's ring: half a second of its CPU time.
const RING_PAGES: usize = 8;
/// The same of an event that ticks in bursts: the memory that the kernel locks for rings is scarce.
const BURST_RING_PAGES: usize = 2;
/// The same of an event in place of a timer: 0.2 s of the thread's CPU time.
const REPLACING_RING_PAGES: usize = 4;
const RECORD_SAMPLE: u32 = 9;
const MISC_CPUMODE: u16 = 7;
const MISC_KERNEL: u16 = 1;
/// `PERF_SAMPLE_REGS_ABI_64`
const ABI_64: u64 = 2;
/// Registers of a sample: [`firsttouch_system::calls::perf::REGS_GENERAL`].
const REGISTERS: usize = 17;
/// Where the instruction pointer is among them.
const INSTRUCTION_POINTER: usize = 8;
/// Where the others are, in the processor's numbering: ax, cx, dx, bx, sp, bp, si, di, r8 to r15.
const ORDER: [usize; 16] = [0, 2, 3, 1, 7, 6, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16];

/// What the CPU did for the thread at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickMode {
    User,
    /// It was in the kernel. The registers are those of the thread on its way in.
    Kernel,
    /// The kernel gave no registers of 64-bit code.
    Unreadable,
}

/// A thread at a tick of its CPU clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTick {
    pub pid: i32,
    pub tid: i32,
    pub time: u64,
    pub mode: TickMode,
    /// It is of a burst: it stands for no time, and its clock is not the thread's CPU time.
    pub is_of_burst: bool,
    /// It counts although its thread has a timer, whose samples do not.
    pub replaces_timer: bool,
    /// Its CPU time counts from the opening of the event; in place of a timer it is the thread's.
    pub tick: Tick,
    /// Ticks right before this one that were not reported, because they hit the kernel.
    pub unreported: u32,
}

/// Parses the body of a sample (after its 8-byte header). `None` if it is too short.
#[must_use]
pub fn parse_tick(misc: u16, body: &[u8]) -> Option<ThreadTick> {
    let mut r = Reader::new(body);
    let ip = r.u64()?;
    let (pid, tid, time) = (r.i32()?, r.i32()?, r.u64()?);
    let (cpu, _reserved) = (r.u32()?, r.u32()?);
    let (cpu_ns, _enabled, _running) = (r.u64()?, r.u64()?, r.u64()?);
    let abi = r.u64()?;
    let mut registers = [0; REGISTERS];
    // Other than none (0), all registers that were asked for are there.
    if abi != 0 {
        for register in &mut registers {
            *register = r.u64()?;
        }
    }
    let stack = r.user_stack()?;
    let mode = match () {
        () if abi != ABI_64 => TickMode::Unreadable,
        () if misc & MISC_CPUMODE == MISC_KERNEL => TickMode::Kernel,
        () => TickMode::User,
    };
    let general = ORDER.map(|at| registers[at]);
    let tick = Tick {
        instruction_pointer: if mode == TickMode::Unreadable { ip } else { registers[INSTRUCTION_POINTER] },
        registers: general,
        cpu,
        cpu_ns,
        faults: None,
        python: 0,
        stack_address: general[4],
        stack,
    };
    Some(ThreadTick { pid, tid, time, mode, is_of_burst: false, replaces_timer: false, tick, unreported: 0 })
}

/// The event of one thread, and its ring.
pub struct TickEvent {
    event: Event,
    ring: PerfRing,
    period_ns: u64,
    sees_kernel: bool,
    /// CPU time at the last tick; `None` once records were lost.
    last_ns: Option<u64>,
}

/// What a ring held.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Ticks that the kernel dropped because the ring was full.
    pub lost: u64,
    /// Records that could not be read.
    pub malformed: u64,
}

impl TickEvent {
    /// Opens the event on a thread and starts it. Ticks in the kernel are reported where the privilege allows it, and follow from the
    /// gaps between the others elsewhere.
    ///
    /// # Errors
    /// The kernel's reason; ENOMEM if no memory can be locked for the ring.
    pub fn open(tid: i32, period_ns: u64) -> io::Result<Self> {
        Self::open_as(tid, &Attributes::cpu_ticks(period_ns, STACK_BYTES), period_ns, RING_PAGES)
    }

    /// Opens an event that ticks when [`Self::allow`] says so.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_disabled(tid: i32, period_ns: u64) -> io::Result<Self> {
        Self::open_as(tid, &Attributes::cpu_ticks(period_ns, STACK_BYTES).disabled(true), period_ns, BURST_RING_PAGES)
    }

    /// Opens an event that ticks once, after so much CPU time, until [`Self::allow`] says more. In place of a timer it takes less memory.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_for_one(tid: i32, period_ns: u64, replaces_timer: bool) -> io::Result<Self> {
        let pages = if replaces_timer { REPLACING_RING_PAGES } else { RING_PAGES };
        let opened = Self::open_as(tid, &Attributes::cpu_ticks(period_ns, STACK_BYTES).disabled(true), period_ns, pages)?;
        opened.allow(1);
        Ok(opened)
    }

    /// CPU time while the event was on, ns.
    pub fn counted_ns(&self) -> u64 {
        self.event.read().count
    }

    /// Lets the event tick so many times.
    pub fn allow(&self, ticks: u32) {
        let _ = self.event.refresh(ticks);
    }

    fn open_as(tid: i32, attr: &Attributes, period_ns: u64, ring_pages: usize) -> io::Result<Self> {
        let (event, sees_kernel) = match Event::open(attr, tid, -1) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {
                (Event::open(&attr.exclude_kernel(true), tid, -1)?, false)
            }
            opened => (opened?, true),
        };
        // The kernel says EPERM where too much memory is locked.
        let ring = PerfRing::map(&event, ring_pages).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { event, ring, period_ns, sees_kernel, last_ns: Some(0) })
    }

    /// CPU time between two ticks, ns.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Changes the period; the current one begins anew. A change takes an interrupt of the thread's CPU.
    pub fn set_period(&mut self, period_ns: u64) {
        if period_ns != self.period_ns && self.event.set_period(period_ns).is_ok() {
            self.period_ns = period_ns;
        }
    }

    /// Hands every tick in the ring to `consume`.
    pub fn drain(&mut self, mut consume: impl FnMut(ThreadTick)) -> Drained {
        let mut drained = Drained::default();
        let (last_ns, period_ns, sees_kernel) = (&mut self.last_ns, self.period_ns, self.sees_kernel);
        self.ring.drain(|kind, misc, body| match (kind, parse_tick(misc, body)) {
            (RECORD_SAMPLE, Some(mut tick)) => {
                let last = last_ns.replace(tick.tick.cpu_ns);
                if !sees_kernel && let Some(last) = last {
                    tick.unreported = missed(tick.tick.cpu_ns.saturating_sub(last), period_ns);
                }
                consume(tick);
            }
            (RECORD_SAMPLE, None) => drained.malformed += 1,
            _ => {
                if let Some(PerfRecord::Lost { count }) = parse(kind, misc, body) {
                    drained.lost += count;
                    *last_ns = None;
                }
            }
        });
        drained
    }

    pub fn stop(&self) {
        let _ = self.event.disable();
    }
}

/// Ticks within a gap between two.
fn missed(gap_ns: u64, period_ns: u64) -> u32 {
    let periods = (gap_ns + period_ns / 2) / period_ns.max(1);
    u32::try_from(periods.saturating_sub(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of a sample as the kernel writes it: registers 100 to 116 in its order, and 16 bytes of stack, of which 8 are valid.
    fn body(abi: u64) -> Vec<u64> {
        let mut words = vec![0x40_1000, 7 | 8 << 32, 99, 3, 6_300_000, 6_400_000, 6_400_000, abi];
        if abi != 0 {
            words.extend(100..117);
        }
        words.extend([16, 0x1111, 0x2222, 8]);
        words
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Check that registers come out in the processor's numbering, with the instruction pointer and the valid part of the stack.
    #[test]
    fn registers_are_numbered_as_the_processor_does() {
        let tick = parse_tick(2, &bytes(&body(ABI_64))).expect("a whole record");
        assert_eq!((tick.pid, tick.tid, tick.time, tick.mode), (7, 8, 99, TickMode::User));
        let Tick { instruction_pointer, registers, cpu, cpu_ns, stack_address, stack, faults: _, python: _ } = tick.tick;
        assert_eq!((instruction_pointer, cpu, cpu_ns, stack_address), (108, 3, 6_300_000, 107));
        assert_eq!(registers, [100, 102, 103, 101, 107, 106, 104, 105, 109, 110, 111, 112, 113, 114, 115, 116]);
        assert_eq!(stack, 0x1111u64.to_ne_bytes());
    }

    /// Check that the parser recognises ticks in the kernel and ticks without 64-bit registers.
    #[test]
    fn modes_are_recognised() {
        let mode = |misc, abi| parse_tick(misc, &bytes(&body(abi))).map(|tick| (tick.mode, tick.tick.instruction_pointer));
        assert_eq!(mode(0x4002, ABI_64), Some((TickMode::User, 108)));
        assert_eq!(mode(0x4001, ABI_64), Some((TickMode::Kernel, 108)));
        assert_eq!(mode(2, 1), Some((TickMode::Unreadable, 0x40_1000)));
        assert_eq!(mode(1, 0), Some((TickMode::Unreadable, 0x40_1000)));
    }

    /// Check that every truncated record is refused, that impossible sizes are, and that no bytes make the parser panic.
    #[test]
    fn malformed_ticks_are_refused() {
        for abi in [0, 1, ABI_64, u64::MAX] {
            let whole = bytes(&body(abi));
            assert!(parse_tick(2, &whole).is_some());
            for length in 0..whole.len() {
                assert_eq!(parse_tick(2, &whole[..length]), None, "{length} of {} bytes", whole.len());
            }
        }
        let (size, valid) = (8 + 17, 8 + 17 + 3);
        for impossible in [17, 1 << 20, u64::MAX / 2, u64::MAX] {
            let mut words = body(ABI_64);
            words[size] = impossible;
            assert_eq!(parse_tick(2, &bytes(&words)), None, "a stack of {impossible} bytes");
            let mut words = body(ABI_64);
            words[valid] = impossible;
            // No more than what was copied.
            assert_eq!(parse_tick(2, &bytes(&words)).expect("a record").tick.stack.len(), 16, "{impossible} valid bytes");
        }
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let length = usize::try_from(state >> 54).unwrap_or(0);
            let noise: Vec<u8> = (0..length).map(|i| (state >> (i % 8 * 8)).to_ne_bytes()[0]).collect();
            let _ = parse_tick((state >> 32) as u16, &noise);
        }
    }

    /// Check that the ticks within a gap are counted, and that a late tick is not taken for a missed one.
    #[test]
    fn gaps_are_ticks_in_the_kernel() {
        for (gap, ticks) in [(0, 0), (4_000_000, 0), (6_300_000, 0), (9_000_000, 0), (12_600_000, 1), (64_000_000, 9)] {
            assert_eq!(missed(gap, 6_300_000), ticks, "{gap}");
        }
        assert_eq!((missed(u64::MAX - 1, 1), missed(5, 0)), (u32::MAX, 4));
    }
}
