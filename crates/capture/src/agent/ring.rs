//! Reads the agent's ring. The format and its rules are native/include/firsttouch_ring.h.

use anyhow::{Context, Result};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MAGIC: u64 = 0x3147_4e49_5254_4646;
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 4096;
const SLOT_BYTES: usize = 64;
const IPS_PER_SLOT: usize = 7;
const STACK_MAX: usize = 32;
/// A slot reserved but never published belongs to a thread that died between the two: skipped after this long.
const STALLED_NS: u64 = 1_000_000_000;

const HEAD: usize = 64;
const LOST: usize = 72;
const TAIL: usize = 128;
const ATTACHED: usize = 192;
const CLOSED: usize = 196;

pub const FLAG_FOLLOW: u32 = 1;

/// One record of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRecord {
    pub pid: i32,
    pub tid: i32,
    pub time: u64,
    pub event: AgentEvent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    Attach,
    Alloc { call: &'static str, address: u64, bytes: u64, stack: u64 },
    Free { address: u64 },
    Map { call: &'static str, file: bool, address: u64, bytes: u64, stack: u64 },
    /// The range is gone (munmap) or its pages are (`advise`).
    Unmap { address: u64, bytes: u64, advise: bool },
    Stack { id: u64, frames: Vec<u64> },
    Thread { creator: i32 },
    ParallelBegin { code: u64, id: u64, team_size: u64 },
    ParallelEnd { id: u64 },
    ImplicitTask { id: u64, number: u64 },
}

/// The ring, made and read by firsttouch.
pub struct AgentRing {
    file: File,
    base: *mut u8,
    capacity: usize,
    stalled_since: Option<(u64, u64)>,
    skipped: u64,
}

impl AgentRing {
    /// Makes a ring of `capacity` slots (a power of two).
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn create(capacity: usize, min_size: u64, follow: bool) -> Result<Self> {
        let context = "cannot make the ring that the agent writes to";
        // SAFETY: a NUL-terminated name; the descriptor is ours.
        let fd = unsafe { libc::memfd_create(c"firsttouch-ring".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error()).context(context);
        }
        // SAFETY: as above.
        let file = unsafe { File::from_raw_fd(fd) };
        let length = HEADER_BYTES + capacity * SLOT_BYTES;
        file.set_len(length as u64).context(context)?;
        // SAFETY: a fresh shared mapping of the whole file, released in Drop.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context(context);
        }
        let ring = Self { file, base: base.cast(), capacity, stalled_since: None, skipped: 0 };
        ring.word64(0).store(MAGIC, Ordering::Relaxed);
        ring.word32(8).store(VERSION, Ordering::Relaxed);
        ring.word32(12).store(u32::try_from(capacity).unwrap_or(0), Ordering::Relaxed);
        ring.word64(16).store(min_size, Ordering::Relaxed);
        ring.word32(28).store(if follow { FLAG_FOLLOW } else { 0 }, Ordering::Release);
        Ok(ring)
    }

    /// The process the agent belongs to.
    pub fn set_root(&self, pid: i32) {
        self.word32(24).store(pid.unsigned_abs(), Ordering::Release);
    }

    /// Where another process of the same user opens the ring.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Program images that loaded the agent.
    #[must_use]
    pub fn attached(&self) -> u32 {
        self.word32(ATTACHED).load(Ordering::Acquire)
    }

    /// Records dropped because the ring was full, or never finished by a thread that died.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.word64(LOST).load(Ordering::Relaxed) + self.skipped
    }

    /// Tells every agent to go silent.
    pub fn close(&self) {
        self.word32(CLOSED).store(1, Ordering::Release);
    }

    fn word32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: aligned words inside the mapping, shared with the target and accessed atomically on both sides.
        unsafe { &*self.base.add(offset).cast::<AtomicU32>() }
    }

    fn word64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as `word32`.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
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

    /// Hands every published record to `consume`, in slot order.
    pub fn drain(&mut self, now_ns: u64, mut consume: impl FnMut(AgentRecord)) {
        let mut tail = self.word64(TAIL).load(Ordering::Relaxed);
        loop {
            let head = self.word64(HEAD).load(Ordering::Acquire);
            if tail == head {
                break;
            }
            if !self.published(tail) {
                match self.stalled_since {
                    Some((slot, since)) if slot == tail => {
                        if now_ns.saturating_sub(since) < STALLED_NS {
                            break;
                        }
                        self.skipped += 1;
                        tail += 1;
                    }
                    _ => {
                        self.stalled_since = Some((tail, now_ns));
                        break;
                    }
                }
                continue;
            }
            let first = self.words(tail);
            let length = 1 + continuation_slots(&first) as u64;
            if (1..length).any(|i| !self.published(tail + i)) {
                // The producer publishes in order: the rest follows at once, or its thread died.
                match self.stalled_since {
                    Some((slot, since)) if slot == tail && now_ns.saturating_sub(since) >= STALLED_NS => {
                        self.skipped += 1;
                        tail += length;
                        continue;
                    }
                    Some((slot, _)) if slot == tail => break,
                    _ => {
                        self.stalled_since = Some((tail, now_ns));
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
        self.word64(TAIL).store(tail, Ordering::Release);
    }

    fn decode(&self, number: u64, w: &[u64; 8]) -> Option<AgentRecord> {
        let kind = (w[0] >> 32) as u16;
        let call = (w[0] >> 48) as u8;
        let (address, bytes, stack, aux) = (w[3], w[4], w[5], w[6]);
        let event = match kind {
            1 => AgentEvent::Attach,
            2 => AgentEvent::Alloc { call: call_name(call), address, bytes, stack },
            3 => AgentEvent::Free { address },
            4 => AgentEvent::Map { call: call_name(call), file: call == 6, address, bytes, stack },
            5 | 11 => AgentEvent::Unmap { address, bytes, advise: kind == 11 },
            6 => {
                let depth = depth(w);
                let mut frames = Vec::with_capacity(depth);
                for i in 0..continuation_slots(w) {
                    let words = self.words(number + 1 + i as u64);
                    frames.extend(words[1..].iter().take(depth - frames.len()));
                }
                AgentEvent::Stack { id: stack, frames }
            }
            7 => AgentEvent::Thread { creator: (aux as u32).cast_signed() },
            8 => AgentEvent::ParallelBegin { code: address, id: aux, team_size: bytes },
            9 => AgentEvent::ParallelEnd { id: aux },
            10 => AgentEvent::ImplicitTask { id: aux, number: address },
            _ => return None,
        };
        Some(AgentRecord { pid: (w[1] as u32).cast_signed(), tid: ((w[1] >> 32) as u32).cast_signed(), time: w[2], event })
    }
}

fn depth(first: &[u64; 8]) -> usize {
    usize::from((first[0] >> 56) as u8).min(STACK_MAX)
}

fn continuation_slots(first: &[u64; 8]) -> usize {
    if (first[0] >> 32) as u16 == 6 { depth(first).div_ceil(IPS_PER_SLOT) } else { 0 }
}

fn call_name(kind: u8) -> &'static str {
    match kind {
        1 => "malloc",
        2 => "calloc",
        3 => "realloc",
        4 => "aligned",
        5 | 6 => "mmap",
        7 => "mremap",
        _ => "unknown",
    }
}

impl Drop for AgentRing {
    fn drop(&mut self) {
        self.close();
        // SAFETY: the mapping made in `create`, unmapped once.
        unsafe { libc::munmap(self.base.cast(), HEADER_BYTES + self.capacity * SLOT_BYTES) };
    }
}
