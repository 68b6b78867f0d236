//! Single values of the running kernel, for callers that need no whole machine. A missing or damaged file gives `None`.

use crate::files::Root;
use std::path::Path;

pub(super) const HOST_NAME: &str = "proc/sys/kernel/hostname";
pub(crate) const HUGE_PAGE_BYTES: &str = "sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
const CLOCK_SOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The name of the host.
#[must_use]
pub fn host_name(root: &Path) -> Option<String> {
    value(root, HOST_NAME)
}

/// The size of a transparent huge page.
#[must_use]
pub fn huge_page_bytes(root: &Path) -> Option<u64> {
    value(root, HUGE_PAGE_BYTES)?.parse().ok()
}

/// What the kernel's clocks count: `tsc`, `kvm-clock`, `arch_sys_counter`, ...
#[must_use]
pub fn clock_source(root: &Path) -> Option<String> {
    value(root, CLOCK_SOURCE)
}

/// The trimmed text of a file that is not empty.
fn value(root: &Path, file: &str) -> Option<String> {
    Root::new(root).text(file).ok().flatten().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Check values with the kernel's line end, and that missing, empty and malformed files give none.
    #[test]
    fn values_are_read() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &[u8]| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let all = || (host_name(root.path()), huge_page_bytes(root.path()), clock_source(root.path()));
        assert_eq!(all(), (None, None, None));
        write(HOST_NAME, b"numa-1\n");
        write(HUGE_PAGE_BYTES, b"2097152\n");
        write(CLOCK_SOURCE, b"tsc\n");
        assert_eq!(all(), (Some("numa-1".to_owned()), Some(2 << 20), Some("tsc".to_owned())));
        write(HOST_NAME, b"\n");
        write(HUGE_PAGE_BYTES, b"2 MiB");
        write(CLOCK_SOURCE, b"\xff");
        assert_eq!(all(), (None, None, None));
    }
}
