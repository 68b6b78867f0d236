//! Where pages are: move_pages as a query (nodes = NULL), and huge pages through PAGEMAP_SCAN (Linux 6.7).

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
}

impl PageSizes {
    #[must_use]
    pub fn open(pid: i32, page_bytes: u64, huge_bytes: u64) -> Self {
        Self { pagemap: File::open(format!("/proc/{pid}/pagemap")).ok(), page_bytes, huge_bytes }
    }

    /// Size of the present page at `address`; 0 when the kernel does not tell.
    pub fn at(&mut self, address: u64) -> u64 {
        let Some(file) = &self.pagemap else { return 0 };
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
                0
            }
        }
    }
}
