//! /proc/self/limits: the limits on this process's resources.

use std::fs;

/// The most bytes that a file may have; `None` if there is no limit.
#[must_use]
pub fn file_size() -> Option<u64> {
    soft_limit(&fs::read_to_string("/proc/self/limits").ok()?, "Max file size")
}

/// The soft limit of a line such as `Max file size   4096   unlimited   bytes`.
fn soft_limit(text: &str, name: &str) -> Option<u64> {
    let values = text.lines().find_map(|line| line.strip_prefix(name))?;
    values.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::soft_limit;

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
