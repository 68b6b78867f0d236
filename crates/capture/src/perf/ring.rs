//! The ring a perf event writes its records to, and its one reader.

use firsttouch_system::calls::perf::Event;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Offsets of data_head and data_tail in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

pub struct PerfRing {
    base: *mut u8,
    page: usize,
    data_bytes: usize,
}

impl PerfRing {
    /// Maps a ring of `pages` data pages (a power of two), halving the size while the kernel refuses it
    /// (perf_event_mlock_kb, RLIMIT_MEMLOCK).
    ///
    /// # Errors
    /// When not even one data page can be locked.
    pub fn map(event: &Event, pages: usize) -> io::Result<Self> {
        // SAFETY: sysconf has no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let mut pages = pages.next_power_of_two();
        loop {
            let length = page * (pages + 1);
            // SAFETY: a fresh mapping of the event's ring; released in Drop.
            let base =
                unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, event.raw(), 0) };
            if base != libc::MAP_FAILED {
                return Ok(Self { base: base.cast(), page, data_bytes: page * pages });
            }
            let error = io::Error::last_os_error();
            if pages == 1 || !matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM | libc::EAGAIN)) {
                return Err(error);
            }
            pages /= 2;
        }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page of the mapping is perf_event_mmap_page; both words are aligned and shared with the kernel.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }

    /// Hands every complete record to `consume` (type, misc, body after the header) and gives the space back.
    pub fn drain(&mut self, buffer: &mut Vec<u8>, mut consume: impl FnMut(u32, u16, &[u8])) {
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.word(DATA_TAIL).load(Ordering::Relaxed);
        while head.wrapping_sub(tail) >= 8 {
            let mut header = [0u8; 8];
            self.copy(tail, &mut header);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_ne_bytes([header[4], header[5]]);
            let size = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < 8 || size > head.wrapping_sub(tail) {
                tail = head; // cannot happen with a sane kernel: resynchronise instead of looping
                break;
            }
            buffer.resize(usize::try_from(size).unwrap_or(8) - 8, 0);
            self.copy(tail + 8, buffer);
            consume(kind, misc, buffer);
            tail += size;
        }
        self.word(DATA_TAIL).store(tail, Ordering::Release);
    }

    /// Copies out of the ring, which wraps.
    fn copy(&self, position: u64, into: &mut [u8]) {
        let start = usize::try_from(position % self.data_bytes as u64).unwrap_or(0);
        let first = into.len().min(self.data_bytes - start);
        // SAFETY: both parts lie within the data pages; the kernel does not write between tail and head.
        unsafe {
            let data = self.base.add(self.page);
            std::ptr::copy_nonoverlapping(data.add(start), into.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, into.as_mut_ptr().add(first), into.len() - first);
        }
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, unmapped once.
        unsafe { libc::munmap(self.base.cast(), self.page + self.data_bytes) };
    }
}
