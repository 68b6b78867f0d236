//! The ring that a perf event writes its records to, and its only reader.

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
    /// The record that wraps around the end of the ring, put together.
    wrapped: Vec<u8>,
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
                return Ok(Self { base: base.cast(), page, data_bytes: page * pages, wrapped: Vec::new() });
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

    /// Bytes that wait for `drain`.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.word(DATA_HEAD).load(Ordering::Acquire).wrapping_sub(self.word(DATA_TAIL).load(Ordering::Relaxed))
    }

    /// Hands every complete record to `consume` (type, misc, body after the header), then gives the space back to the kernel. A body
    /// is a slice of the ring itself, unless it wraps around the end.
    pub fn drain(&mut self, mut consume: impl FnMut(u32, u16, &[u8])) {
        let mut wrapped = std::mem::take(&mut self.wrapped);
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.word(DATA_TAIL).load(Ordering::Relaxed);
        while let Some(&[k0, k1, k2, k3, m0, m1, s0, s1]) = self.slice(tail, 8, head, &mut wrapped) {
            let kind = u32::from_ne_bytes([k0, k1, k2, k3]);
            let misc = u16::from_ne_bytes([m0, m1]);
            let size = u64::from(u16::from_ne_bytes([s0, s1]));
            let body = size.checked_sub(8).and_then(|length| self.slice(tail + 8, length, head, &mut wrapped));
            let Some(body) = body else {
                tail = head; // cannot happen with a sane kernel: resynchronise instead of looping
                break;
            };
            consume(kind, misc, body);
            tail += size;
        }
        self.word(DATA_TAIL).store(tail, Ordering::Release);
        self.wrapped = wrapped;
    }

    /// The bytes of the ring from a position on; `None` if they are not all written yet (`head`).
    fn slice<'a>(&'a self, position: u64, length: u64, head: u64, wrapped: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if length > head.wrapping_sub(position) || head.wrapping_sub(position) > self.data_bytes as u64 {
            return None;
        }
        let start = usize::try_from(position % self.data_bytes as u64).ok()?;
        let length = usize::try_from(length).ok()?;
        let first = length.min(self.data_bytes - start);
        // SAFETY: both parts lie within the data pages, and the kernel does not write between tail and head: `drain` moves the tail
        // only after the last use of a slice.
        let (part, rest) = unsafe {
            let data = self.base.add(self.page);
            (std::slice::from_raw_parts(data.add(start), first), std::slice::from_raw_parts(data, length - first))
        };
        if rest.is_empty() {
            return Some(part);
        }
        wrapped.clear();
        wrapped.extend_from_slice(part);
        wrapped.extend_from_slice(rest);
        Some(wrapped)
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, unmapped once.
        unsafe { libc::munmap(self.base.cast(), self.page + self.data_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a ring without a kernel: one page of header, one of data.
    fn ring() -> PerfRing {
        let page = 4096;
        // SAFETY: a fresh anonymous mapping, which Drop unmaps.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), 2 * page, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED);
        PerfRing { base: base.cast(), page, data_bytes: page, wrapped: Vec::new() }
    }

    /// Writes as the kernel does, and moves the head.
    fn write(ring: &PerfRing, bytes: &[u8]) {
        let head = ring.word(DATA_HEAD).load(Ordering::Relaxed);
        for (i, byte) in bytes.iter().enumerate() {
            let at = (head as usize + i) % ring.data_bytes;
            // SAFETY: within the data page.
            unsafe { ring.base.add(ring.page + at).write(*byte) };
        }
        ring.word(DATA_HEAD).store(head + bytes.len() as u64, Ordering::Release);
    }

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(8 + body.len()).unwrap();
        [&kind.to_ne_bytes()[..], &7u16.to_ne_bytes(), &size.to_ne_bytes(), body].concat()
    }

    /// Check that records come out as they went in, also those that wrap around the end, and that their space is given back.
    #[test]
    fn records_wrap_around() {
        let mut ring = ring();
        for round in 0..40u32 {
            let bodies: Vec<Vec<u8>> = (0..3u8).map(|i| vec![round as u8 ^ i; 8 * (1 + usize::from(i) * 37)]).collect();
            for body in &bodies {
                write(&ring, &record(round, body));
            }
            let mut seen = Vec::new();
            ring.drain(|kind, misc, body| {
                assert_eq!((kind, misc), (round, 7));
                seen.push(body.to_vec());
            });
            assert_eq!(seen, bodies);
            assert_eq!(ring.word(DATA_TAIL).load(Ordering::Relaxed), ring.word(DATA_HEAD).load(Ordering::Relaxed));
        }
    }

    /// Check that sizes and heads that no kernel writes cost the records, and neither a loop nor a read beyond the ring.
    #[test]
    fn impossible_sizes_are_skipped() {
        for size in [0u16, 7, 4096, u16::MAX] {
            let mut ring = ring();
            let mut bytes = record(9, &[1; 16]);
            bytes[6..8].copy_from_slice(&size.to_ne_bytes());
            write(&ring, &bytes);
            ring.drain(|_, _, _| panic!("size {size}"));
            write(&ring, &record(9, &[1; 16]));
            let mut seen = 0;
            ring.drain(|_, _, _| seen += 1);
            assert_eq!(seen, 1);
            ring.word(DATA_HEAD).store(1 << 40, Ordering::Relaxed);
            ring.drain(|_, _, _| panic!("beyond the ring"));
        }
    }
}
