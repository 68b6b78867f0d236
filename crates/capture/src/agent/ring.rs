//! Reads the agent's ring. The format and its rules are native/include/firsttouch_ring.h.

use super::memory::RingMemory;
use super::records::{AgentEvent, AgentRecord, Tick, python_frames};
use firsttouch_model::rows::SharedMemory;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const MAGIC: u64 = 0x3147_4e49_5254_4646;
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 4096;
const SLOT_BYTES: usize = 64;
const IPS_PER_SLOT: usize = 7;
const STACK_MAX: usize = 32;
const SAMPLE_REGISTERS: usize = 16;
const SAMPLE_STACK_MAX: usize = 48;
const TEXT_PER_SLOT: usize = 56;
const PYTHON_TEXT_MAX: usize = 6888;
/// A slot reserved but never published belongs to a thread that died between the two: skipped after this long.
const STALLED_NS: u64 = 1_000_000_000;
/// The same, if a thread that left a signal handler by a jump says that the slot may be its own. Another thread's is published within this time, unless
/// that waits for a CPU or holds the slot while it unmaps memory.
const DOUBTFUL_NS: u64 = 50_000_000;
/// So many records wait outside of the ring at most (some 100 bytes each).
const MOST_SAVED: usize = 1 << 19;
const HEAD: usize = 64;
const LOST: usize = 72;
const TAIL: usize = 128;
const ATTACHED: usize = 192;
const CLOSED: usize = 196;
const SILENT: usize = 200;
const SAMPLE_US: usize = 204;
const UNSAMPLED_THREADS: usize = 208;
const SKIPPED_SAMPLES: usize = 216;
const FIRST_SAMPLE_US: usize = 224;
const WAKE_SIZE: usize = 232;
const SMALL_MEAN: usize = 240;
const TRAP_HANDLER_REPLACED: usize = 244;
const CAUSELESS_TRAPS: usize = 248;
const SHIFT_US: usize = 256;
const FORKING: usize = 260;
const FORKED: usize = 264;
const CHILD: usize = 268;
const CHILDREN: usize = 14;
const HAS_ABORTED: usize = 324;
const ABORT_STATUS: usize = 328;
const DOUBTFUL: usize = 336;
const DOUBTFUL_SLOTS: u64 = 256;

pub const FLAG_FOLLOW: u32 = 1;
/// The kernel's clock source is the time-stamp counter, so the agent may read that.
pub const FLAG_TICKS: u32 = 2;
/// Take samples of the registers.
pub const FLAG_SAMPLE: u32 = 4;
/// Hold back debug exceptions without a cause.
pub const FLAG_GUARD_TRAPS: u32 = 8;
/// A rank of an MPI job: note a call of `MPI_Abort`.
pub const FLAG_RANK: u32 = 16;
/// A process restricted its own system calls (seccomp, `PR_SET_TSC`): it is not recorded from then on.
pub const SILENT_SANDBOX: u32 = 1;
/// A limit on address space left no room for the ring: the process is not recorded.
pub const SILENT_ADDRESS_SPACE: u32 = 2;

/// The kernel's clock source is the CPUs' time-stamp counter. (`kvm-clock` may be based on it as well, but does not say so.)
fn clock_runs_by_ticks() -> bool {
    cfg!(target_arch = "x86_64") && firsttouch_system::machine::clock_source(Path::new("/")).as_deref() == Some("tsc")
}

/// CPU time of a thread between two samples of its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleInterval {
    pub each_us: u32,
    /// The first sample comes at a random time up to this.
    pub first_us: u32,
}

/// The ring, made and read by firsttouch.
pub struct AgentRing {
    file: File,
    memory: RingMemory,
    capacity: usize,
    reader: Mutex<Reader>,
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    /// The next slot to read. The header has a copy for the producers: a program may overwrite that.
    tail: u64,
    stalled_since: Option<(u64, u64)>,
    skipped: u64,
    /// Records that were taken out while the session was at other work.
    saved: VecDeque<AgentRecord>,
}

impl AgentRing {
    /// Makes a ring of `capacity` slots (a power of two).
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn create(capacity: usize, min_size: u64, follow: bool) -> io::Result<Self> {
        // SAFETY: a NUL-terminated name.
        let fd = unsafe { libc::memfd_create(c"firsttouch-ring".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just returned this descriptor, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(fd) };
        let length = HEADER_BYTES + capacity * SLOT_BYTES;
        file.set_len(length as u64)?;
        // The memory is made now, while firsttouch waits for the kernel's first event anyway, and not page by page while the program runs.
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a fresh shared mapping of the whole file, released by `RingMemory`.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = RingMemory::new(base.cast(), length);
        let ring = Self { file, memory, capacity, reader: Mutex::default() };
        ring.word64(0).store(MAGIC, Ordering::Relaxed);
        ring.word32(8).store(VERSION, Ordering::Relaxed);
        ring.word32(12).store(u32::try_from(capacity).unwrap_or(0), Ordering::Relaxed);
        ring.word64(16).store(min_size, Ordering::Relaxed);
        let follows = if follow { FLAG_FOLLOW } else { 0 };
        let ticks = if clock_runs_by_ticks() { FLAG_TICKS } else { 0 };
        ring.word32(28).store(follows | ticks, Ordering::Release);
        Ok(ring)
    }

    /// The process the agent belongs to.
    pub fn set_root(&self, pid: i32) {
        self.word32(24).store(pid.unsigned_abs(), Ordering::Release);
    }

    /// Asks for samples of each thread's registers. Before the target starts.
    pub fn sample(&self, interval: SampleInterval) {
        self.word32(SAMPLE_US).store(interval.each_us, Ordering::Relaxed);
        self.word32(FIRST_SAMPLE_US).store(interval.first_us, Ordering::Relaxed);
        self.word32(28).fetch_or(FLAG_SAMPLE, Ordering::Release);
    }

    /// Asks for a sample of the blocks below the minimum size: one for so many bytes that a thread allocates. Before the target starts.
    pub fn sample_small_blocks(&self, mean_bytes: u32) {
        self.word32(SMALL_MEAN).store(mean_bytes, Ordering::Release);
    }

    /// Has the next thread that is sampled sleep for so long, so that its next tick comes earlier in its CPU time.
    pub fn shift_a_tick(&self, us: u32) {
        self.word32(SHIFT_US).store(us, Ordering::Relaxed);
    }

    /// Asks for the handler of debug exceptions without a cause. Before the target starts.
    pub fn guard_traps(&self) {
        self.word32(28).fetch_or(FLAG_GUARD_TRAPS, Ordering::Release);
    }

    /// Asks for a note of a call of `MPI_Abort`. Before the target starts.
    pub fn watch_for_abort(&self) {
        self.word32(28).fetch_or(FLAG_RANK, Ordering::Release);
    }

    /// The status with which the program called `MPI_Abort`, if it did.
    #[must_use]
    pub fn abort_status(&self) -> Option<i32> {
        let has_aborted = self.word32(HAS_ABORTED).load(Ordering::Acquire) != 0;
        has_aborted.then(|| self.word32(ABORT_STATUS).load(Ordering::Relaxed).cast_signed())
    }

    /// The program replaced that handler.
    #[must_use]
    pub fn trap_handler_is_replaced(&self) -> bool {
        self.word32(TRAP_HANDLER_REPLACED).load(Ordering::Relaxed) != 0
    }

    /// Debug exceptions without a cause that the handler held back.
    #[must_use]
    pub fn causeless_traps(&self) -> u64 {
        self.word64(CAUSELESS_TRAPS).load(Ordering::Relaxed)
    }

    /// Threads that got no timer for samples.
    #[must_use]
    pub fn unsampled_threads(&self) -> u64 {
        self.word64(UNSAMPLED_THREADS).load(Ordering::Relaxed)
    }

    /// Samples that fell into the agent's own recording, or found the ring full.
    #[must_use]
    pub fn skipped_samples(&self) -> u64 {
        self.word64(SKIPPED_SAMPLES).load(Ordering::Relaxed)
    }

    /// Where another process of the same user opens the ring.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Whether the program has overwritten what firsttouch wrote at the start: none of its numbers can be trusted.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        let size = self.word32(12).load(Ordering::Relaxed);
        (self.word64(0).load(Ordering::Relaxed), self.word32(8).load(Ordering::Relaxed)) != (MAGIC, VERSION)
            || size as usize != self.capacity
    }

    /// Program images that loaded the agent.
    #[must_use]
    pub fn attached(&self) -> u32 {
        self.word32(ATTACHED).load(Ordering::Acquire)
    }

    /// Records dropped because the ring was full, or never finished by a thread that died.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.word64(LOST).load(Ordering::Relaxed).saturating_add(self.reader().skipped)
    }

    /// Why agents stopped recording: bits of `SILENT_SANDBOX`, `SILENT_ADDRESS_SPACE`.
    #[must_use]
    pub fn silent(&self) -> u32 {
        self.word32(SILENT).load(Ordering::Relaxed)
    }

    /// The children that forked in processes with the agent: the last of them. (Those of raw clones and of vfork are not among them.)
    #[must_use]
    pub fn children(&self) -> Vec<i32> {
        let entries = (0..CHILDREN).map(|index| self.word32(CHILD + 4 * index).load(Ordering::Acquire).cast_signed());
        entries.filter(|pid| *pid > 0).collect()
    }

    /// The number of forks that began, and of children that entered themselves.
    #[must_use]
    pub fn forks(&self) -> (u32, u32) {
        let entered = self.word32(FORKED).load(Ordering::Acquire);
        (self.word32(FORKING).load(Ordering::Acquire), entered)
    }

    /// Makes every agent stop recording.
    pub fn close(&self) {
        self.word32(CLOSED).store(1, Ordering::Release);
    }

    /// The number of times that an agent woke firsttouch; it is a futex.
    #[must_use]
    pub fn wakes(&self) -> &AtomicU32 {
        self.memory.wakes()
    }

    /// Asks the agents to wake firsttouch at the next allocation of at least `bytes`; 0: not to. Returns whether records have arrived
    /// that were not read yet: they may be of an allocation before this request.
    pub fn ask_for_wake(&self, bytes: u64) -> bool {
        self.word64(WAKE_SIZE).store(bytes, Ordering::SeqCst);
        let reader = self.reader();
        bytes != 0 && (self.word64(HEAD).load(Ordering::SeqCst) != reader.tail || !reader.saved.is_empty())
    }

    fn word32(&self, offset: usize) -> &AtomicU32 {
        self.memory.word32(offset)
    }

    fn word64(&self, offset: usize) -> &AtomicU64 {
        self.memory.word64(offset)
    }

    fn slot(&self, number: u64) -> usize {
        HEADER_BYTES + usize::try_from(number % self.capacity as u64).unwrap_or(0) * SLOT_BYTES
    }

    fn published(&self, number: u64) -> bool {
        self.word32(self.slot(number)).load(Ordering::Acquire) == (number.wrapping_add(1)) as u32
    }

    /// The eight words of a slot (the first holds sequence, type, kind, depth).
    fn words(&self, number: u64) -> [u64; 8] {
        let slot = self.slot(number);
        std::array::from_fn(|i| self.word64(slot + 8 * i).load(Ordering::Relaxed))
    }

    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands every published record to `consume`, in slot order.
    pub fn drain(&self, now_ns: u64, mut consume: impl FnMut(AgentRecord)) {
        let mut reader = self.reader();
        std::mem::take(&mut reader.saved).into_iter().for_each(&mut consume);
        self.take(&mut reader, now_ns, consume);
    }

    /// Takes records out of a ring that holds so many slots, for the next call of [`AgentRing::drain`]: the session is at other work, such as reading
    /// symbols or writing rows, and the program does not wait. Of a million allocations a second, the ring holds those of 65 ms. Returns whether
    /// records wait for that call.
    pub fn relieve(&self, now_ns: u64, least: usize) -> bool {
        let mut reader = self.reader();
        let taken = self.word64(HEAD).load(Ordering::Acquire).wrapping_sub(reader.tail);
        if taken >= least as u64 && reader.saved.len() < MOST_SAVED {
            let mut saved = std::mem::take(&mut reader.saved);
            self.take(&mut reader, now_ns, |record| saved.push_back(record));
            reader.saved = saved;
        }
        !reader.saved.is_empty()
    }

    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How long to wait for slot `number` to be published.
    fn longest_stall(&self, number: u64) -> u64 {
        if self.is_doubtful(number) { DOUBTFUL_NS } else { STALLED_NS }
    }

    fn is_doubtful(&self, number: u64) -> bool {
        let place = DOUBTFUL + 8 * (number % DOUBTFUL_SLOTS) as usize;
        self.word64(place).load(Ordering::Acquire) == number.wrapping_add(1)
    }

    fn take(&self, reader: &mut Reader, now_ns: u64, mut consume: impl FnMut(AgentRecord)) {
        let mut tail = reader.tail;
        loop {
            let head = self.word64(HEAD).load(Ordering::Acquire);
            if tail == head {
                break;
            }
            if !self.published(tail) {
                match reader.stalled_since {
                    Some((slot, since)) if slot == tail => {
                        if now_ns.saturating_sub(since) < self.longest_stall(tail) {
                            break;
                        }
                        reader.skipped += 1;
                        if self.is_doubtful(tail) && self.is_doubtful(tail + 1) {
                            // They were reserved together.
                            reader.stalled_since = Some((tail + 1, since));
                        }
                        tail += 1;
                    }
                    _ => {
                        reader.stalled_since = Some((tail, now_ns));
                        break;
                    }
                }
                continue;
            }
            let first = self.words(tail);
            let length = 1 + continuation_slots(&first) as u64;
            if (1..length).any(|i| !self.published(tail + i)) {
                // The producer publishes in order: the rest follows at once, or its thread died.
                match reader.stalled_since {
                    Some((slot, since)) if slot == tail && now_ns.saturating_sub(since) >= STALLED_NS => {
                        reader.skipped += 1;
                        tail += length;
                        continue;
                    }
                    Some((slot, _)) if slot == tail => break,
                    _ => {
                        reader.stalled_since = Some((tail, now_ns));
                        break;
                    }
                }
            }
            if let Some(record) = self.decode(tail, &first) {
                consume(record);
            }
            tail += length;
            self.word64(TAIL).store(tail, Ordering::Release);
        }
        reader.tail = tail;
        self.word64(TAIL).store(tail, Ordering::Release);
    }

    /// The first `count` words in the slots that follow slot `number`.
    fn following_words(&self, number: u64, first: &[u64; 8], count: usize) -> Vec<u64> {
        let mut words = Vec::with_capacity(count);
        for i in 0..continuation_slots(first) {
            words.extend(self.words(number + 1 + i as u64)[1..].iter().take(count - words.len()));
        }
        words
    }

    fn decode(&self, number: u64, w: &[u64; 8]) -> Option<AgentRecord> {
        let kind = (w[0] >> 32) as u16;
        let call = (w[0] >> 48) as u8;
        let (address, bytes, stack, aux, python) = (w[3], w[4], w[5], w[6], w[7]);
        let event = match kind {
            1 => AgentEvent::Attach,
            2 => AgentEvent::Alloc { call: call_name(call), address, bytes, stack, python },
            3 => AgentEvent::Free { address },
            4 => {
                // Of mmap and shmat, the upper half has the flags.
                let shared = matches!(call, 5 | 6 | 8) && (aux >> 32) as i32 & libc::MAP_SHARED != 0;
                let populated = matches!(call, 5 | 6) && is_populated(aux as i32, (aux >> 32) as i32);
                let present = present_part(aux).filter(|_| shared);
                AgentEvent::Map { call: call_name(call), file: call == 6, shared, present, populated, address, bytes, stack, python }
            }
            5 | 11 => AgentEvent::Unmap { address, bytes, advise: kind == 11 },
            6 => AgentEvent::Stack { id: stack, frames: self.following_words(number, w, depth(w)) },
            7 => AgentEvent::Thread { creator: (aux as u32).cast_signed() },
            8 => AgentEvent::ParallelBegin { code: address, id: aux, team_size: bytes },
            9 => AgentEvent::ParallelEnd { id: aux },
            10 => AgentEvent::ImplicitTask { id: aux, number: address },
            13 => AgentEvent::Tick(Box::new(tick(w, &self.following_words(number, w, sampled_words(w)))?)),
            12 => {
                let slots = (1..=continuation_slots(w)).map(|i| self.words(number + i as u64));
                let text: Vec<u8> =
                    slots.flat_map(|words| words[1..].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()).collect();
                AgentEvent::PythonStack {
                    id: python,
                    of_sample: call == 1,
                    frames: python_frames(text.get(..text_bytes(w)).unwrap_or(&text)),
                }
            }
            14 => AgentEvent::NoTimer,
            17 => AgentEvent::ThreadEnd { cpu_ns: bytes },
            16 => {
                let call = call_name(call);
                AgentEvent::Populate { call, address, bytes, future: (call == "mlockall").then_some(aux != 0), stack, python }
            }
            15 => AgentEvent::Small { call: call_name(call), address, bytes, stack, python, mean: aux },
            _ => return None,
        };
        Some(AgentRecord { pid: (w[1] as u32).cast_signed(), tid: ((w[1] >> 32) as u32).cast_signed(), time: w[2], event })
    }
}

/// What part of a mapping was present before the program used it here ([`SharedMemory::present`]).
fn present_part(aux: u64) -> Option<u32> {
    let field = (aux >> 8 & 0xff_ffff) as u32;
    (1..=1 + SharedMemory::ALL_PRESENT).contains(&field).then(|| field - 1)
}

/// Whether mmap touches the pages of the mapping. Of a private one that nobody may write, it touches the zero page.
fn is_populated(protection: i32, flags: i32) -> bool {
    let touches = flags & libc::MAP_LOCKED != 0 || flags & (libc::MAP_POPULATE | libc::MAP_NONBLOCK) == libc::MAP_POPULATE;
    let is_shared = flags & libc::MAP_SHARED != 0;
    touches && (protection & libc::PROT_WRITE != 0 || (is_shared && protection & libc::PROT_READ != 0))
}

/// A sample from its first slot and the words that follow it. `None` if registers are missing.
fn tick(w: &[u64; 8], words: &[u64]) -> Option<Tick> {
    let (registers, stack) = words.split_first_chunk::<SAMPLE_REGISTERS>()?;
    Some(Tick {
        instruction_pointer: w[3],
        registers: *registers,
        cpu: w[6] as u32,
        cpu_ns: w[4],
        faults: Some((w[6] >> 32) as u32),
        python: w[7],
        stack_address: w[5],
        stack: stack.iter().flat_map(|word| word.to_le_bytes()).collect(),
    })
}

/// Words of registers and stack that follow a sample.
fn sampled_words(first: &[u64; 8]) -> usize {
    usize::from((first[0] >> 56) as u8).min(SAMPLE_REGISTERS + SAMPLE_STACK_MAX)
}

fn depth(first: &[u64; 8]) -> usize {
    usize::from((first[0] >> 56) as u8).min(STACK_MAX)
}

fn continuation_slots(first: &[u64; 8]) -> usize {
    match (first[0] >> 32) as u16 {
        6 => depth(first).div_ceil(IPS_PER_SLOT),
        12 => text_bytes(first).div_ceil(TEXT_PER_SLOT),
        13 => sampled_words(first).div_ceil(IPS_PER_SLOT),
        _ => 0,
    }
}

fn text_bytes(first: &[u64; 8]) -> usize {
    usize::try_from(first[4]).unwrap_or(usize::MAX).min(PYTHON_TEXT_MAX)
}

fn call_name(kind: u8) -> &'static str {
    match kind {
        1 => "malloc",
        2 => "calloc",
        3 => "realloc",
        4 => "aligned",
        5 | 6 => "mmap",
        7 => "mremap",
        8 => "shmat",
        9 => "mlock",
        10 => "mlockall",
        11 => "madvise",
        _ => "unknown",
    }
}

impl Drop for AgentRing {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
