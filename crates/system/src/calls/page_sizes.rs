//! The size of a process's pages: from PAGEMAP_SCAN (Linux 6.7), or from samples.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;

/// The most ranges whose page size is remembered.
const MOST_LEARNED: usize = 100_000;

const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const PAGE_IS_HUGE: u64 = 1 << 6;
const PAGE_IS_PRESENT: u64 = 1 << 3;

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
