//! Where pages are: move_pages as a query (nodes = NULL), and huge pages through PAGEMAP_SCAN (Linux 6.7).

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The node of each page, or a negative errno (-2: not present). Needs the same user.
///
/// # Errors
/// EPERM when the process is another user's, ENOSYS or EPERM when a container forbids the call.
pub fn nodes_of(pid: i32, addresses: &[u64]) -> io::Result<Vec<i32>> {
    let pages: Vec<*const libc::c_void> = addresses.iter().map(|&a| a as *const libc::c_void).collect();
    let mut status = vec![0i32; addresses.len()];
    // SAFETY: both arrays have `len` elements; a query changes nothing in the target.
    let done = unsafe {
        libc::syscall(libc::SYS_move_pages, pid, pages.len(), pages.as_ptr(), std::ptr::null::<libc::c_int>(), status.as_mut_ptr(), 0)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

/// Ranges whose page size is kept in mind.
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
    /// Of huge pages' ranges, by number: what samples told of them.
    learned: HashMap<u64, u64>,
}

impl PageSizes {
    #[must_use]
    pub fn open(pid: i32, page_bytes: u64, huge_bytes: u64) -> Self {
        Self { pagemap: File::open(format!("/proc/{pid}/pagemap")).ok(), page_bytes, huge_bytes, learned: HashMap::new() }
    }

    /// Size of the present page at `address`; 0 when the kernel does not tell.
    pub fn at(&mut self, address: u64) -> u64 {
        let Some(file) = &self.pagemap else { return self.learned.get(&self.range(address)).copied().unwrap_or(0) };
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
            1 if region.categories & PAGE_IS_HUGE != 0 => self.huge_bytes,
            1 => self.page_bytes,
            0 => 0,
            _ => {
                self.pagemap = None; // older kernel or not permitted: do not ask again
                self.learned.get(&self.range(address)).copied().unwrap_or(0)
            }
        }
    }

    /// Takes in what a sample told of the page at `address`, for kernels that cannot be asked (before Linux 6.7).
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
