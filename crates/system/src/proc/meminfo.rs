//! /proc/meminfo, and meminfo of each node in sysfs: `MemTotal:  12 kB`, `Node 0 MemTotal:  12 kB`.

use super::kib;

/// The value of a key, in bytes: of the system, or of a node's file.
#[must_use]
pub fn bytes(text: &str, node: Option<u32>, key: &str) -> Option<u64> {
    let prefix = node.map_or_else(String::new, |node| format!("Node {node} "));
    let value = text.lines().find_map(|line| {
        let line = line.trim_start().strip_prefix(prefix.as_str())?;
        line.trim_start().strip_prefix(key)?.strip_prefix(':')
    });
    kib(value?)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    /// Check lines with and without a node, and that a damaged value is `None`.
    #[test]
    fn meminfo_is_read() {
        let text = "Node 0 MemFree: 4 kB\nNode 0 FilePages:   12 kB\n";
        assert_eq!(bytes(text, Some(0), "FilePages"), Some(12 << 10));
        assert_eq!((bytes(text, Some(1), "FilePages"), bytes(text, None, "FilePages")), (None, None));
        assert_eq!(bytes("SwapTotal:       0 kB", None, "SwapTotal"), Some(0));
        assert_eq!(bytes("MemTotalX: 1 kB\nMemTotal: 2 kB", None, "MemTotal"), Some(2048));
        for text in ["", "SwapTotal:", "SwapTotal: kB", "SwapTotal: 5", "SwapTotal: -1 kB", "SwapTotal: 99999999999999999999 kB"] {
            assert_eq!(bytes(text, None, "SwapTotal"), None, "{text}");
        }
        assert_eq!(bytes("SwapTotal: 18446744073709551615 kB", None, "SwapTotal"), None, "more bytes than there are numbers");
    }
}
