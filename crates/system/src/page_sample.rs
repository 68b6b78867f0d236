//! Where a range of a process's memory is now.

use crate::residency::nodes_of;
use std::collections::BTreeMap;
use std::io;

/// Asks the kernel for the nodes of at most `most` pages, evenly spread over a range: pages asked about, and how many are on each
/// node. Pages that are not present are on none.
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

/// Why the kernel does not tell where pages are, and the least that would help. (Docker's and Podman's filters open mbind and its
/// kin with CAP_SYS_NICE, but move_pages with no capability.)
#[must_use]
pub fn explain_refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "cannot ask where pages are (this kernel or container has no move_pages): use a kernel with CONFIG_NUMA, or allow the call in the container's seccomp profile (docker run --security-opt seccomp=FILE)".to_owned(),
        Some(libc::EPERM | libc::EACCES) => "cannot ask where pages are (move_pages is forbidden): run as the target's user; in a container, allow the call in the seccomp profile (docker run --security-opt seccomp=FILE)".to_owned(),
        _ => format!("cannot ask where pages are (move_pages: {error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Check that pages of this process are found, all or a sample, and those never touched are not.
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
