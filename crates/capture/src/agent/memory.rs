//! The memory of the agent's ring. Its layout is native/include/firsttouch_ring.h.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// The offset of the futex.
const WAKES: usize = 228;

/// The ring's memory, shared with the target.
pub struct RingMemory {
    base: *mut u8,
    length: usize,
}

// SAFETY: the memory is accessed by atomic operations only, and unmapped when the last owner drops it.
unsafe impl Send for RingMemory {}
// SAFETY: as above.
unsafe impl Sync for RingMemory {}

impl RingMemory {
    /// Takes over a mapping that starts with the ring's header.
    pub(super) fn new(base: *mut u8, length: usize) -> Self {
        Self { base, length }
    }

    pub(super) fn word32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: aligned words inside the mapping, shared with the target and accessed atomically on both sides.
        unsafe { &*self.base.add(offset).cast::<AtomicU32>() }
    }

    pub(super) fn word64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as `word32`.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }

    /// The number of times that an agent woke firsttouch; it is a futex.
    #[must_use]
    pub fn wakes(&self) -> &AtomicU32 {
        self.word32(WAKES)
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `AgentRing::create`, unmapped once.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}
