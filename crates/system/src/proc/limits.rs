//! /proc/self/limits: the limits on this process's resources.

use firsttouch_model::facts::Limits;
use firsttouch_model::format_bytes;
use std::fs;

/// The most bytes that a file may have; `None` if there is no limit.
#[must_use]
pub fn file_size() -> Option<u64> {
    soft_limit(&fs::read_to_string("/proc/self/limits").ok()?, "Max file size")
}

/// ` (ulimit -f limits files to 50 KiB: raise it, ...)`, for a message about a file that cannot be written; empty without a limit.
#[must_use]
pub fn file_size_remedy() -> String {
    file_size().map_or_else(String::new, remedy)
}

/// The limits that this process starts programs with; `None` where /proc is missing.
#[must_use]
pub fn resources() -> Option<Limits> {
    Some(parsed(&fs::read_to_string("/proc/self/limits").ok()?))
}

fn parsed(text: &str) -> Limits {
    // firsttouch raises its soft limit on open files to the hard one.
    Limits { open_files: limit(text, "Max open files", 1), address_space_bytes: limit(text, "Max address space", 0) }
}

fn remedy(limit: u64) -> String {
    format!(" (ulimit -f limits files to {}: raise it, or use a shell without that limit)", format_bytes(limit))
}

fn soft_limit(text: &str, name: &str) -> Option<u64> {
    limit(text, name, 0)
}

/// The soft (0) or hard (1) limit of a line such as `Max file size   4096   unlimited   bytes`.
fn limit(text: &str, name: &str, which: usize) -> Option<u64> {
    let values = text.lines().find_map(|line| line.strip_prefix(name))?;
    values.split_whitespace().nth(which)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Limits, parsed, remedy, soft_limit};

    /// Check that the limit and what to do about it are named.
    #[test]
    fn limits_are_named() {
        assert_eq!(remedy(102_400), " (ulimit -f limits files to 100 KiB: raise it, or use a shell without that limit)");
    }

    /// Check that the hard limit on open files counts, and that "unlimited" sets no limit.
    #[test]
    fn resources_are_read() {
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax open files   8   64   files\nMax address space   unlimited unlimited bytes\n";
        assert_eq!(parsed(text), Limits { open_files: Some(64), address_space_bytes: None });
    }

    /// Check a limit, no limit, and damaged text.
    #[test]
    fn limits_are_read() {
        let text = "Limit        Soft Limit  Hard Limit  Units\nMax file size   4096   unlimited   bytes\nMax data size  unlimited unlimited bytes\n";
        assert_eq!(soft_limit(text, "Max file size"), Some(4096));
        assert_eq!(soft_limit(text, "Max data size"), None);
        for text in ["", "Max file size", "Max file size x"] {
            assert_eq!(soft_limit(text, "Max file size"), None, "{text}");
        }
    }
}
