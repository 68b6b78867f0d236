//! move_pages(2): asks for the nodes of a process's pages, and moves them. The process keeps running.

use std::collections::BTreeMap;
use std::io;

/// The status of a page that the kernel did not reach.
const UNTOUCHED: i32 = i32::MIN;
/// Move pages that only this process maps (numaif.h). Pages of several processes need CAP_SYS_NICE and another flag.
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
    /// When the kernel refuses the whole call.
    pub fn nodes(&self, addresses: &[u64]) -> io::Result<Vec<i32>> {
        self.call(addresses, None)
    }

    /// Moves each page to its node; returns the node of each page afterwards, or a negative errno. `nodes` has an entry for each page.
    ///
    /// # Errors
    /// As [`Pages::nodes`].
    pub fn relocate(&self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>> {
        assert_eq!(addresses.len(), nodes.len(), "a node for each page");
        move_all(addresses, nodes, |addresses, nodes| self.call(addresses, Some(nodes)))
    }

    fn call(&self, addresses: &[u64], nodes: Option<&[i32]>) -> io::Result<Vec<i32>> {
        move_pages(self.pid, addresses, nodes).map_err(|error| {
            // The kernel returns EINVAL for a process that is exiting.
            let is_gone = error.raw_os_error() == Some(libc::EINVAL) && has_ended(self.pid);
            if is_gone { io::Error::from_raw_os_error(libc::ESRCH) } else { error }
        })
    }
}

/// Queries the node of each page, or, with `nodes`, moves the pages first: a node, or a negative errno (-2: not present).
fn move_pages(pid: i32, addresses: &[u64], nodes: Option<&[i32]>) -> io::Result<Vec<i32>> {
    let pages: Vec<*const libc::c_void> = addresses.iter().map(|address| *address as *const libc::c_void).collect();
    let mut status = vec![UNTOUCHED; pages.len()];
    let nodes = nodes.map_or(std::ptr::null(), <[i32]>::as_ptr);
    // SAFETY: the arrays have `pages.len()` elements and outlive the call; null nodes make it a query. The call does not change the
    // contents of pages.
    let done = unsafe { libc::syscall(libc::SYS_move_pages, pid, pages.len(), pages.as_ptr(), nodes, status.as_mut_ptr(), MPOL_MF_MOVE) };
    if done >= 0 { Ok(status) } else { Err(io::Error::last_os_error()) }
}

/// The node of each page, or a negative errno (-2: not present). Needs the same user.
///
/// # Errors
/// EPERM when the process is another user's, ENOSYS or EPERM when a container forbids the call, ESRCH when the process has ended.
pub fn nodes_of(pid: i32, addresses: &[u64]) -> io::Result<Vec<i32>> {
    Pages::of(pid).nodes(addresses)
}

/// Queries the nodes of at most `most` pages, evenly spread over a range. Returns the number of pages queried, and how many of them
/// are on each node; pages that are not present are not counted.
///
/// # Errors
/// When the process is another user's, or a container forbids move_pages.
pub fn sample_nodes(pid: i32, address: u64, bytes: u64, page_bytes: u64, most: u64) -> io::Result<(u64, BTreeMap<u32, u64>)> {
    let page_bytes = page_bytes.max(1);
    let first = address / page_bytes;
    let last = address.saturating_add(bytes.saturating_sub(1)) / page_bytes;
    let pages = (last - first).saturating_add(1);
    let asked = pages.min(most.max(1));
    let at = |index: u64| {
        let page = first + u64::try_from(u128::from(index) * u128::from(pages) / u128::from(asked)).unwrap_or(0);
        page.saturating_mul(page_bytes)
    };
    let addresses: Vec<u64> = (0..asked).map(at).collect();
    let mut nodes = BTreeMap::new();
    for node in nodes_of(pid, &addresses)?.into_iter().filter_map(|status| u32::try_from(status).ok()) {
        *nodes.entry(node).or_default() += 1;
    }
    Ok((asked, nodes))
}

/// Why the kernel does not say where pages are, and the least that helps. (With CAP_SYS_NICE, Docker's and Podman's filters allow
/// mbind and the other policy calls; they allow move_pages with no capability at all.)
#[must_use]
pub fn explain_refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "cannot ask where pages are (this kernel or container has no move_pages): use a kernel with CONFIG_NUMA, or allow the call in the container's seccomp profile (docker run --security-opt seccomp=FILE)".to_owned(),
        Some(libc::EPERM | libc::EACCES) => "cannot ask where pages are (move_pages is forbidden): run as the target's user; in a container, allow the call in the seccomp profile (docker run --security-opt seccomp=FILE)".to_owned(),
        _ => format!("cannot ask where pages are (move_pages: {error})"),
    }
}

/// The kernel stops at the first batch with a page that cannot move, and ignores the pages behind it. This repeats the call from
/// there on; a page at which the kernel stops immediately is busy.
fn move_all(addresses: &[u64], nodes: &[i32], call: impl Fn(&[u64], &[i32]) -> io::Result<Vec<i32>>) -> io::Result<Vec<i32>> {
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

/// Whether the process has no memory any more: it has ended or is exiting.
fn has_ended(pid: i32) -> bool {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm"));
    pages.map_or(true, |text| text.split_whitespace().next().is_none_or(|size| size == "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a process which has ended, and whose parent has not collected its status, is not taken for a refusal.
    #[test]
    fn ended_processes_are_told_from_refusals() {
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        let pid = i32::try_from(child.id()).expect("a process number");
        while !has_ended(pid) {
            std::thread::yield_now();
        }
        let code = nodes_of(pid, &[4096]).map_err(|error| error.raw_os_error());
        child.wait().expect("its status");
        // Another error: this system forbids the call.
        assert!(matches!(code, Err(Some(libc::ESRCH | libc::EPERM | libc::ENOSYS))), "{code:?}");
    }

    /// Check that pages behind a page which cannot move are moved.
    #[test]
    fn one_page_does_not_stop_others() {
        let kernel = |addresses: &[u64], nodes: &[i32]| {
            // Pages 3 and 4 cannot move; the kernel ignores the pages behind the first of them.
            let stuck = addresses.iter().position(|address| [3, 4].contains(address)).unwrap_or(addresses.len());
            Ok((0..addresses.len()).map(|index| if index < stuck { nodes[index] } else { UNTOUCHED }).collect())
        };
        let busy = -libc::EBUSY;
        let status = move_all(&[1, 2, 3, 4, 5, 6], &[1, 1, 1, 1, 2, 2], kernel).map_err(|error| error.to_string());
        assert_eq!(status, Ok(vec![1, 1, busy, busy, 2, 2]));
        let refused = move_all(&[1], &[1], |_, _| Err(io::Error::from_raw_os_error(libc::EPERM)));
        assert_eq!(refused.map_err(|error| error.raw_os_error()), Err(Some(libc::EPERM)));
    }

    /// Check that each refusal names the call and what helps.
    #[test]
    fn refusals_name_the_remedy() {
        for (errno, cause, remedy) in [
            (libc::EPERM, "move_pages is forbidden", "seccomp=FILE"),
            (libc::ENOSYS, "has no move_pages", "CONFIG_NUMA"),
            (libc::E2BIG, "move_pages: ", "long"),
        ] {
            let text = explain_refusal(&io::Error::from_raw_os_error(errno));
            assert!(text.contains(cause) && text.contains(remedy), "{text}");
        }
    }

    /// Check that touched pages of this process are found, all or a sample, and untouched pages are not.
    #[test]
    fn own_pages_are_found() {
        let touched = vec![1u8; 64 * 4096];
        let address = touched.as_ptr() as u64;
        let pid = i32::try_from(std::process::id()).expect("a process id");
        let Ok((asked, nodes)) = sample_nodes(pid, address, 64 * 4096, 4096, 1000) else { return }; // forbidden in some containers
        assert!((64..=65).contains(&asked) && nodes.values().sum::<u64>() == asked, "{asked} {nodes:?}");
        let (asked, nodes) = sample_nodes(pid, address, 64 * 4096, 4096, 10).expect("allowed as before");
        assert_eq!((asked, nodes.values().sum()), (10, 10));
        assert_eq!(sample_nodes(pid, 4096, 4096, 4096, 10).expect("allowed as before"), (1, BTreeMap::new()));
        assert!(sample_nodes(pid, u64::MAX, u64::MAX, 0, 0).is_ok_and(|(asked, nodes)| asked == 1 && nodes.is_empty()));
    }
}
