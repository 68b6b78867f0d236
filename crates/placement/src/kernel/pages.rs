//! Pages of another process: where they are, and moving them (move_pages(2)). The process is not stopped and need not know.

use crate::migrate::Mover;
use std::io;

/// The status of a page that the kernel did not come to.
const UNTOUCHED: i32 = i32::MIN;
/// Pages that only this process maps (numaif.h); those of several need CAP_SYS_NICE and another flag.
const MPOL_MF_MOVE: libc::c_int = 2;

/// The pages of one process.
pub struct Pages {
    pid: i32,
}

impl Pages {
    #[must_use]
    pub fn of(pid: i32) -> Self {
        Self { pid }
    }

    fn call(&self, addresses: &[u64], nodes: Option<&[i32]>) -> io::Result<Vec<i32>> {
        let pages: Vec<*const libc::c_void> = addresses.iter().map(|address| *address as *const libc::c_void).collect();
        let mut status = vec![UNTOUCHED; pages.len()];
        let nodes = nodes.map_or(std::ptr::null(), <[i32]>::as_ptr);
        // SAFETY: the arrays have as many elements as the call is told, and outlive it; nodes may be null, which makes it a query. The
        // contents of the target's pages stay as they are.
        let done =
            unsafe { libc::syscall(libc::SYS_move_pages, self.pid, pages.len(), pages.as_ptr(), nodes, status.as_mut_ptr(), MPOL_MF_MOVE) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
    }
}

impl Mover for Pages {
    fn nodes(&self, addresses: &[u64]) -> io::Result<Vec<i32>> {
        self.call(addresses, None)
    }

    fn relocate(&self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>> {
        assert_eq!(addresses.len(), nodes.len(), "a node a page");
        let status = self.call(addresses, Some(nodes))?;
        // What was left out has not failed: it may be tried again.
        Ok(status.into_iter().map(|one| if one == UNTOUCHED { -libc::EBUSY } else { one }).collect())
    }
}
