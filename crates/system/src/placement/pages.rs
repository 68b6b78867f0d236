//! Pages of another process: where they are, and moving them (move_pages(2)). The process is not stopped and need not know.

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

    /// The node of each page, or a negative errno.
    ///
    /// # Errors
    /// The kernel refused the call as a whole.
    pub fn nodes(&self, addresses: &[u64]) -> io::Result<Vec<i32>> {
        self.call(addresses, None)
    }

    /// Moves each page to its node: the node it is on then, or a negative errno. `nodes` has one entry a page.
    ///
    /// # Errors
    /// As [`Pages::nodes`].
    pub fn relocate(&self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>> {
        assert_eq!(addresses.len(), nodes.len(), "a node a page");
        to_the_end(addresses, nodes, |addresses, nodes| self.call(addresses, Some(nodes)))
    }

    fn call(&self, addresses: &[u64], nodes: Option<&[i32]>) -> io::Result<Vec<i32>> {
        let pages: Vec<*const libc::c_void> = addresses.iter().map(|address| *address as *const libc::c_void).collect();
        let mut status = vec![UNTOUCHED; pages.len()];
        let nodes = nodes.map_or(std::ptr::null(), <[i32]>::as_ptr);
        // SAFETY: the arrays have as many elements as the call is told, and outlive it; nodes may be null, which makes it a query. The
        // contents of the target's pages stay as they are.
        let done =
            unsafe { libc::syscall(libc::SYS_move_pages, self.pid, pages.len(), pages.as_ptr(), nodes, status.as_mut_ptr(), MPOL_MF_MOVE) };
        if done >= 0 {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        // Of a process that is being taken down the kernel says that it is none to ask about.
        let is_gone = error.raw_os_error() == Some(libc::EINVAL) && has_ended(self.pid);
        Err(if is_gone { io::Error::from_raw_os_error(libc::ESRCH) } else { error })
    }
}

/// The kernel gives up at the first batch of pages of which one cannot move, and leaves those behind it as they are. So it is asked again, from
/// there on; a page that stops it at once is busy.
fn to_the_end(addresses: &[u64], nodes: &[i32], call: impl Fn(&[u64], &[i32]) -> io::Result<Vec<i32>>) -> io::Result<Vec<i32>> {
    let mut all: Vec<i32> = Vec::with_capacity(addresses.len());
    while all.len() < addresses.len() {
        let mut status = call(&addresses[all.len()..], &nodes[all.len()..])?;
        match status.iter().position(|one| *one == UNTOUCHED) {
            Some(0) => all.push(-libc::EBUSY),
            Some(reached) => all.extend(status.drain(..reached)),
            None => all.extend(status),
        }
    }
    Ok(all)
}

/// Whether the process has no memory any more: it has ended, or is about to.
fn has_ended(pid: i32) -> bool {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm"));
    pages.map_or(true, |text| text.split_whitespace().next().is_none_or(|size| size == "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a page which cannot move stops none behind it.
    #[test]
    fn one_page_stops_no_other() {
        let kernel = |addresses: &[u64], nodes: &[i32]| {
            // Pages 3 and 4 cannot move; what is behind the first of them is not looked at.
            let stuck = addresses.iter().position(|address| [3, 4].contains(address)).unwrap_or(addresses.len());
            Ok((0..addresses.len()).map(|index| if index < stuck { nodes[index] } else { UNTOUCHED }).collect())
        };
        let busy = -libc::EBUSY;
        let status = to_the_end(&[1, 2, 3, 4, 5, 6], &[1, 1, 1, 1, 2, 2], kernel).map_err(|error| error.to_string());
        assert_eq!(status, Ok(vec![1, 1, busy, busy, 2, 2]));
        let refused = to_the_end(&[1], &[1], |_, _| Err(io::Error::from_raw_os_error(libc::EPERM)));
        assert_eq!(refused.map_err(|error| error.raw_os_error()), Err(Some(libc::EPERM)));
    }
}
