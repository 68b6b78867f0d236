//! The size of a process's pages: from PAGEMAP_SCAN (Linux 6.7), or from samples. Which pages are present: from PAGEMAP_SCAN, or from the
//! entries of /proc/PID/pagemap.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// The most ranges whose page size is remembered.
const MOST_LEARNED: usize = 100_000;

const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const PAGE_IS_FILE: u64 = 1 << 2;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_PFNZERO: u64 = 1 << 5;
const PAGE_IS_HUGE: u64 = 1 << 6;
/// Ranges that one scan returns.
const REGIONS: usize = 512;
/// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). The zero page is not mapped exclusively.
const ENTRY_EXCLUSIVE: u64 = 1 << 56;
const ENTRY_FILE: u64 = 1 << 61;
const ENTRY_PRESENT: u64 = 1 << 63;
/// Entries read at a time.
const ENTRIES: usize = 4096;

/// `struct pm_scan_arg` (include/uapi/linux/fs.h).
#[repr(C)]
#[derive(Default)]
struct ScanArgument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    region_count: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// Memory whose pages are present: from `start` to `end`, on pages of this size (0: the kernel does not say).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    pub start: u64,
    pub end: u64,
    pub page_bytes: u64,
}

/// Which pages of a process are present that belong to it alone: not the zero page, not those of files and of shared memory.
pub struct PresentPages {
    pagemap: File,
    page_bytes: u64,
    huge_bytes: u64,
    /// The kernel knows PAGEMAP_SCAN.
    can_scan: bool,
}

impl PresentPages {
    /// # Errors
    /// The kernel's, where the process is another user's, or is gone.
    pub fn open(pid: i32, page_bytes: u64, huge_bytes: u64) -> io::Result<Self> {
        Ok(Self { pagemap: File::open(format!("/proc/{pid}/pagemap"))?, page_bytes: page_bytes.max(1), huge_bytes, can_scan: true })
    }

    /// Adds what is present from `start` to `end` (multiples of the page size).
    ///
    /// # Errors
    /// The kernel's.
    pub fn find(&mut self, start: u64, end: u64, found: &mut Vec<Present>) -> io::Result<()> {
        if self.can_scan {
            match self.scan(start, end, found) {
                // An older kernel.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)) => self.can_scan = false,
                other => return other,
            }
        }
        self.read_entries(start, end, found)
    }

    fn scan(&self, start: u64, end: u64, found: &mut Vec<Present>) -> io::Result<()> {
        let mut regions = [Region::default(); REGIONS];
        let mut from = start;
        while from < end {
            let mut argument = ScanArgument {
                size: size_of::<ScanArgument>() as u64,
                start: from,
                end,
                regions: regions.as_mut_ptr() as u64,
                region_count: REGIONS as u64,
                category_inverted: PAGE_IS_FILE | PAGE_IS_PFNZERO,
                category_mask: PAGE_IS_PRESENT | PAGE_IS_FILE | PAGE_IS_PFNZERO,
                return_mask: PAGE_IS_HUGE,
                ..ScanArgument::default()
            };
            // SAFETY: the argument block and the regions that it points to outlive the call.
            let count = unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN, std::ptr::from_mut(&mut argument)) };
            let Ok(count) = usize::try_from(count) else { return Err(io::Error::last_os_error()) };
            for region in regions.iter().take(count) {
                let page_bytes = if region.categories & PAGE_IS_HUGE == 0 { self.page_bytes } else { self.huge_bytes };
                found.push(Present { start: region.start, end: region.end, page_bytes });
            }
            if argument.walk_end <= from {
                break;
            }
            from = argument.walk_end;
        }
        Ok(())
    }

    fn read_entries(&self, start: u64, end: u64, found: &mut Vec<Present>) -> io::Result<()> {
        let mut bytes = vec![0u8; ENTRIES * 8];
        let mut run: Option<Present> = None;
        let mut page = start / self.page_bytes;
        let last = end / self.page_bytes;
        while page < last {
            let wanted = usize::try_from(last - page).unwrap_or(ENTRIES).min(ENTRIES) * 8;
            let read = self.pagemap.read_at(&mut bytes[..wanted], page * 8)? / 8;
            if read == 0 {
                break;
            }
            for entry in bytes[..read * 8].chunks_exact(8) {
                let entry = u64::from_ne_bytes(entry.try_into().unwrap_or_default());
                let address = page * self.page_bytes;
                if entry & (ENTRY_PRESENT | ENTRY_FILE | ENTRY_EXCLUSIVE) == ENTRY_PRESENT | ENTRY_EXCLUSIVE {
                    run.get_or_insert(Present { start: address, end: address, page_bytes: 0 }).end = address + self.page_bytes;
                } else {
                    found.extend(run.take());
                }
                page += 1;
            }
        }
        found.extend(run);
        Ok(())
    }
}

/// Asks the kernel for page sizes of a process.
pub struct PageSizes {
    pagemap: Option<File>,
    page_bytes: u64,
    huge_bytes: u64,
    /// Page sizes from samples, by the number of the huge page's range.
    learned: HashMap<u64, u64>,
}

impl PageSizes {
    #[must_use]
    pub fn open(pid: i32, page_bytes: u64, huge_bytes: u64) -> Self {
        Self { pagemap: File::open(format!("/proc/{pid}/pagemap")).ok(), page_bytes, huge_bytes, learned: HashMap::new() }
    }

    /// Size of the present page at `address`; 0 if it is unknown.
    pub fn at(&mut self, address: u64) -> u64 {
        match self.scan(address) {
            Some(bytes) => bytes,
            None => self.learned.get(&self.range(address)).copied().unwrap_or(0),
        }
    }

    /// Size of the page at `address`, 0 if none is present there; `None` if the kernel does not say.
    pub fn scan(&mut self, address: u64) -> Option<u64> {
        let file = self.pagemap.as_ref()?;
        let start = address & !(self.page_bytes - 1);
        let mut region = Region::default();
        let mut argument = ScanArgument {
            size: size_of::<ScanArgument>() as u64,
            start,
            end: start + self.page_bytes,
            regions: std::ptr::from_mut(&mut region) as u64,
            region_count: 1,
            category_mask: PAGE_IS_PRESENT,
            return_mask: PAGE_IS_HUGE | PAGE_IS_PRESENT,
            ..ScanArgument::default()
        };
        // SAFETY: the argument block and the one region it points to outlive the call.
        let found = unsafe { libc::ioctl(file.as_raw_fd(), PAGEMAP_SCAN, std::ptr::from_mut(&mut argument)) };
        match found {
            1 if region.categories & PAGE_IS_HUGE != 0 => Some(self.huge_bytes),
            1 => Some(self.page_bytes),
            0 => Some(0),
            _ => {
                self.pagemap = None; // older kernel or not permitted: do not ask again
                None
            }
        }
    }

    /// Remembers the page size that a sample reported at `address`, for kernels without PAGEMAP_SCAN (before Linux 6.7).
    pub fn learn(&mut self, address: u64, mapped_bytes: Option<u64>) {
        let Some(bytes) = mapped_bytes.filter(|&bytes| bytes > 0 && self.pagemap.is_none()) else { return };
        if self.learned.len() >= MOST_LEARNED {
            self.learned.clear();
        }
        self.learned.insert(self.range(address), bytes);
    }

    fn range(&self, address: u64) -> u64 {
        address / self.huge_bytes.max(self.page_bytes).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that both ways find the pages that this process wrote, and neither those that it did not touch, nor the zero page.
    #[test]
    fn present_pages_are_found() {
        let page = 4096u64;
        let bytes = 64 * 4096;
        // SAFETY: a new private mapping.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(memory, libc::MAP_FAILED);
        let start = memory as u64;
        let at = |index: u64| (start + index * page) as *mut u8;
        // SAFETY: all lie in the mapping.
        unsafe {
            for written in [3, 4, 5, 20] {
                at(written).write_volatile(1);
            }
            assert_eq!(at(30).read_volatile(), 0);
        }
        let mut pages = PresentPages::open(std::process::id().cast_signed(), page, 2 << 20).expect("this process");
        let runs = |pages: &mut PresentPages| {
            let mut found = Vec::new();
            pages.find(start, start + bytes as u64, &mut found).expect("an answer");
            found.iter().map(|one| ((one.start - start) / page, (one.end - start) / page)).collect::<Vec<_>>()
        };
        assert_eq!(runs(&mut pages), [(3, 6), (20, 21)]);
        pages.can_scan = false;
        assert_eq!(runs(&mut pages), [(3, 6), (20, 21)]);
        // SAFETY: nothing refers to the mapping.
        unsafe { libc::munmap(memory, bytes) };
    }
}
