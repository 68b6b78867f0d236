//! perf_event_open: attributes, opening, control. Field layout: include/uapi/linux/perf_event.h (PERF_ATTR_SIZE_VER5).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

pub const PERF_TYPE_SOFTWARE: u32 = 1;
pub const PERF_TYPE_BREAKPOINT: u32 = 5;
pub const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;
pub const PERF_COUNT_SW_PAGE_FAULTS: u64 = 2;
pub const PERF_COUNT_SW_DUMMY: u64 = 9;
pub const HW_BREAKPOINT_RW: u32 = 3;

pub const PERF_SAMPLE_IP: u64 = 1;
pub const PERF_SAMPLE_TID: u64 = 1 << 1;
pub const PERF_SAMPLE_TIME: u64 = 1 << 2;
pub const PERF_SAMPLE_ADDR: u64 = 1 << 3;
pub const PERF_SAMPLE_READ: u64 = 1 << 4;
pub const PERF_SAMPLE_ID: u64 = 1 << 6;
pub const PERF_SAMPLE_CPU: u64 = 1 << 7;

pub const PERF_SAMPLE_REGS_USER: u64 = 1 << 12;
pub const PERF_SAMPLE_STACK_USER: u64 = 1 << 13;
/// Linux 5.11.
pub const PERF_SAMPLE_DATA_PAGE_SIZE: u64 = 1 << 22;

/// The fields of every sample. Both kinds of event have the same layout, and the parser relies on it. (PERF_SAMPLE_PERIOD cannot be
/// used: with it, a software event of fixed period reports every single event; kernel/events/core.c, perf_swevent_event.)
pub const SAMPLE_TYPE: u64 = PERF_SAMPLE_IP
    | PERF_SAMPLE_TID
    | PERF_SAMPLE_TIME
    | PERF_SAMPLE_ADDR
    | PERF_SAMPLE_CPU
    | PERF_SAMPLE_ID
    | PERF_SAMPLE_REGS_USER
    | PERF_SAMPLE_STACK_USER;

/// User registers: those of the unwinder, and the counters of string instructions (capture's `watch/string_instructions.rs`). The kernel stores
/// them in ascending order of their bits.
#[cfg(target_arch = "x86_64")]
pub const REGS_USER: u64 = (1 << 2) | (1 << 4) | (1 << 5) | (1 << 6) | (1 << 7) | (1 << 8); // cx, si, di, bp, sp, ip: arch/x86/include/uapi/asm/perf_regs.h
#[cfg(target_arch = "aarch64")]
pub const REGS_USER: u64 = (1 << 29) | (1 << 30) | (1 << 31) | (1 << 32); // fp, lr, sp, pc: arch/arm64/include/uapi/asm/perf_regs.h

/// The fields of a sample of a thread's CPU clock. `READ` is the clock itself: the thread's CPU time since the event was opened.
pub const TICK_SAMPLE_TYPE: u64 = PERF_SAMPLE_IP
    | PERF_SAMPLE_TID
    | PERF_SAMPLE_TIME
    | PERF_SAMPLE_READ
    | PERF_SAMPLE_CPU
    | PERF_SAMPLE_REGS_USER
    | PERF_SAMPLE_STACK_USER;

/// All general registers of x86-64 and the instruction pointer, in the kernel's order: ax, bx, cx, dx, si, di, bp, sp, ip, r8 to r15.
pub const REGS_GENERAL: u64 = 0x1ff | 0xff << 16;

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;
const INHERIT_THREAD: u64 = 1 << 35;

const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_REFRESH: libc::c_ulong = 0x2402;
const IOC_PERIOD: libc::c_ulong = 0x4008_2404;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOC_ID: libc::c_ulong = 0x8008_2407;
const IOC_MODIFY_ATTRIBUTES: libc::c_ulong = 0x4008_240b;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// Bytes in a ring that wake its reader.
pub const WAKE_BYTES: u32 = 128 << 10;

/// `struct perf_event_attr` up to version 6 (120 bytes: includes `aux_sample_size`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
    breakpoint_length: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
    aux_sample_size: u32,
    reserved_3: u32,
}

impl Attributes {
    fn base() -> Self {
        Self {
            size: u32::try_from(size_of::<Self>()).unwrap_or(0),
            sample_type: SAMPLE_TYPE,
            read_format: READ_FORMAT,
            sample_regs_user: REGS_USER,
            clock_id: libc::CLOCK_MONOTONIC,
            flags: EXCLUDE_HV | USE_CLOCKID,
            ..Self::default()
        }
    }

    /// Page faults: every `period`-th fault of a thread is a sample.
    #[must_use]
    pub fn page_faults(period: u64, stack_bytes: u32) -> Self {
        let mut attr = Self::base();
        attr.kind = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_PAGE_FAULTS;
        attr.sample_period = period;
        attr.sample_stack_user = stack_bytes;
        attr.flags |= DISABLED | INHERIT | SAMPLE_ID_ALL | WATERMARK;
        attr.wakeup = WAKE_BYTES;
        attr
    }

    /// Adds to each sample the size of the page at its address, 0 if no page is mapped (Linux 5.11). The kernel samples a page fault
    /// before it handles it (arch/x86/mm/fault.c, do_user_addr_fault), so this distinguishes a first touch from a fault on a present
    /// page: one that NUMA balancing marked, or a shared page that was written to.
    #[must_use]
    pub fn with_page_sizes(mut self, on: bool) -> Self {
        self.sample_type = if on { self.sample_type | PERF_SAMPLE_DATA_PAGE_SIZE } else { self.sample_type & !PERF_SAMPLE_DATA_PAGE_SIZE };
        self
    }

    /// A thread's CPU clock: a sample after each `period_ns` of CPU time.
    #[must_use]
    pub fn cpu_ticks(period_ns: u64, stack_bytes: u32) -> Self {
        let mut attr = Self::base();
        attr.kind = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_TASK_CLOCK;
        attr.sample_period = period_ns;
        attr.sample_type = TICK_SAMPLE_TYPE;
        attr.sample_regs_user = REGS_GENERAL;
        attr.sample_stack_user = stack_bytes;
        attr
    }

    /// The event waits until it is enabled.
    #[must_use]
    pub fn disabled(mut self, on: bool) -> Self {
        self.set(DISABLED, on);
        self
    }

    /// Births, deaths, names and executable mappings of the threads, without samples: perf's sideband records.
    #[must_use]
    pub fn sideband() -> Self {
        let mut attr = Self::ring_owner();
        attr.wakeup = WAKE_BYTES;
        attr.flags |= WATERMARK | INHERIT | MMAP | MMAP2 | COMM | COMM_EXEC | TASK | SAMPLE_ID_ALL;
        attr
    }

    /// An event of another unit than the processor's cores, such as a memory controller: it counts for the whole system, without samples.
    #[must_use]
    pub fn counter(kind: u32, [config, config1, config2]: [u64; 3]) -> Self {
        Self {
            kind,
            size: u32::try_from(size_of::<Self>()).unwrap_or(0),
            config,
            // A union: config1 and config2.
            breakpoint_address: config1,
            breakpoint_length: config2,
            read_format: READ_FORMAT,
            ..Self::default()
        }
    }

    /// A data watchpoint on 8 bytes: each read or write from user mode is a sample.
    #[must_use]
    pub fn watchpoint(address: u64, stack_bytes: u32) -> Self {
        let mut attr = Self::base();
        attr.kind = PERF_TYPE_BREAKPOINT;
        attr.breakpoint_type = HW_BREAKPOINT_RW;
        attr.breakpoint_address = address;
        attr.breakpoint_length = 8;
        attr.sample_period = 1;
        attr.sample_stack_user = stack_bytes;
        attr.flags |= DISABLED | EXCLUDE_KERNEL;
        attr
    }

    /// An event that counts nothing: it owns the ring that a thread's watchpoints write to.
    #[must_use]
    pub fn ring_owner() -> Self {
        let mut attr = Self::base();
        attr.kind = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_DUMMY;
        attr.sample_period = 1;
        attr.sample_stack_user = 8;
        attr.flags |= DISABLED | EXCLUDE_KERNEL;
        attr
    }

    /// The same watchpoint at another address.
    #[must_use]
    pub fn at(mut self, address: u64) -> Self {
        self.breakpoint_address = address;
        self
    }

    /// Excludes events in kernel mode. Then perf_event_paranoid <= 2 is enough.
    #[must_use]
    pub fn exclude_kernel(mut self, on: bool) -> Self {
        self.set(EXCLUDE_KERNEL, on);
        self
    }

    /// Starts counting when the process executes its program.
    #[must_use]
    pub fn enable_on_exec(mut self, on: bool) -> Self {
        self.set(ENABLE_ON_EXEC, on);
        self
    }

    /// Inherited by new threads only, not by child processes (Linux 5.13).
    #[must_use]
    pub fn threads_only(mut self, on: bool) -> Self {
        self.set(INHERIT_THREAD, on);
        self
    }

    fn set(&mut self, flag: u64, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}

/// Whether samples of this kernel can have page sizes, found by trying.
#[must_use]
pub fn kernel_reports_page_sizes() -> bool {
    static REPORTED: OnceLock<bool> = OnceLock::new();
    *REPORTED.get_or_init(|| Event::open(&Attributes::ring_owner().with_page_sizes(true), 0, -1).is_ok())
}

/// PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING.
const READ_FORMAT: u64 = 3;

/// A reading of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub count: u64,
    /// The thread's CPU time while the event was enabled, ns (the only time that a thread's event measures).
    pub enabled_ns: u64,
    /// The part of it in which the event counted.
    pub running_ns: u64,
}

/// An open event.
pub struct Event {
    fd: Option<OwnedFd>,
}

impl Event {
    /// Opens an event on thread `tid`, on one CPU or on all (-1).
    ///
    /// # Errors
    /// The kernel's reason (EACCES/EPERM: permission, ENOSPC: no debug register left, ESRCH: no such thread, EMFILE).
    pub fn open(attr: &Attributes, tid: i32, cpu: i32) -> io::Result<Self> {
        // SAFETY: `attr` is a valid attribute block that states its own size; the kernel only reads it.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(attr), tid, cpu, -1 as libc::c_int, PERF_FLAG_FD_CLOEXEC)
        };
        match i32::try_from(fd) {
            // SAFETY: the kernel just returned this descriptor; nothing else owns it.
            Ok(fd) if fd >= 0 => Ok(Self { fd: Some(unsafe { OwnedFd::from_raw_fd(fd) }) }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// What the event has counted since it was opened, and for how long it was enabled while its thread had a CPU.
    pub fn read(&self) -> Reading {
        let mut words = [0u64; 3];
        let size = size_of_val(&words);
        // SAFETY: the buffer has the three words that READ_FORMAT asks for.
        let got = unsafe { libc::read(self.raw(), words.as_mut_ptr().cast(), size) };
        if usize::try_from(got) == Ok(size) {
            Reading { count: words[0], enabled_ns: words[1], running_ns: words[2] }
        } else {
            Reading::default()
        }
    }

    fn control(&self, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: requests used here take an integer (or, for MODIFY_ATTRIBUTES, PERIOD and ID, a pointer that the caller keeps alive).
        let done = unsafe { libc::ioctl(self.raw(), request, argument) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub fn enable(&self) -> io::Result<()> {
        self.control(IOC_ENABLE, 0)
    }

    pub fn disable(&self) -> io::Result<()> {
        self.control(IOC_DISABLE, 0)
    }

    /// Enables the event for `hits` more overflows (added to what is left); the kernel then disables it by itself.
    pub fn refresh(&self, hits: u32) -> io::Result<()> {
        self.control(IOC_REFRESH, libc::c_ulong::from(hits))
    }

    /// Moves a watchpoint. `attr` must equal the attributes it was opened with, except for the address and `disabled`.
    pub fn modify(&self, attr: &Attributes) -> io::Result<()> {
        self.control(IOC_MODIFY_ATTRIBUTES, std::ptr::from_ref(attr) as libc::c_ulong)
    }

    /// Changes the period. The current one begins anew.
    pub fn set_period(&self, period: u64) -> io::Result<()> {
        self.control(IOC_PERIOD, std::ptr::from_ref(&period) as libc::c_ulong)
    }

    /// Sends this event's records to another event's ring (same thread or same CPU).
    pub fn redirect_to(&self, other: &Self) -> io::Result<()> {
        self.control(IOC_SET_OUTPUT, libc::c_ulong::try_from(other.raw()).unwrap_or(0))
    }

    /// The id that this event's samples carry, also those of threads that inherited it.
    #[must_use]
    pub fn id(&self) -> u64 {
        let mut id = 0u64;
        let _ = self.control(IOC_ID, std::ptr::from_mut(&mut id) as libc::c_ulong);
        id
    }

    /// Closes the event now.
    pub fn release(&mut self) {
        self.fd = None;
    }

    /// The descriptor, to poll.
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        self.raw()
    }

    pub fn raw(&self) -> i32 {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}
