//! /proc/PID/numa_maps: mappings with their policy and their pages by node.
//!
//! `N0=5` counts pages of `kernelpagesize_kB` (fs/proc/task_mmu.c, gather_stats). A transparent huge page counts as its 512 base
//! pages, with kernelpagesize_kB=4; a page of hugetlbfs counts as one page of the mapping's kernelpagesize_kB. So pages times
//! kernelpagesize_kB is right for both. `numastat -p` assumes the default huge page size for every mapping marked `huge`, and
//! is wrong for other sizes (numactl issues 115, 147, 152).

use firsttouch_model::topology::MemoryPolicy;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaMapping {
    pub start: u64,
    /// The kernel's words: `default`, `interleave:0-1`, `prefer (many):0`.
    pub policy: String,
    pub name: String,
    /// Whether the mapping is of hugetlbfs.
    pub huge: bool,
    /// Since Linux 3.16.
    pub page_bytes: Option<u64>,
    /// Pages of `page_bytes` by node.
    pub pages: BTreeMap<u32, u64>,
}

/// The kernel's names by number (mm/mempolicy.c, `policy_modes`; linux/mempolicy.h).
pub(crate) const MODES: [&str; 7] = ["default", "prefer", "bind", "interleave", "local", "prefer (many)", "weighted interleave"];

/// Larger node numbers are damage (CONFIG_NODES_SHIFT ends at 10).
const MOST_NODES: u32 = 1024;

/// Parses a line; `None` if it has another form.
pub fn parse(line: &str) -> Option<NumaMapping> {
    let mut words = line.split_ascii_whitespace().peekable();
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut policy = words.next()?.to_owned();
    // Two policies have a space in their name.
    let second = match policy.as_str() {
        "prefer" => "(many)",
        "weighted" => "interleave",
        _ => "",
    };
    if let Some(word) = words.next_if(|word| !second.is_empty() && word.starts_with(second)) {
        policy = format!("{policy} {word}");
    }
    let mut mapping = NumaMapping { start, policy, ..NumaMapping::default() };
    for word in words {
        match word.split_once('=') {
            Some(("file", path)) => mapping.name = unescape(path),
            Some(("kernelpagesize_kB", size)) => mapping.page_bytes = Some(page_bytes(size)?),
            Some((key, pages)) => {
                let Some(node) = key.strip_prefix('N').filter(|node| node.bytes().all(|byte| byte.is_ascii_digit())) else { continue };
                let node = node.parse().ok().filter(|node| *node < MOST_NODES)?;
                if mapping.pages.insert(node, pages.parse().ok()?).is_some() {
                    return None;
                }
            }
            None => match word {
                "heap" | "stack" => mapping.name = format!("[{word}]"),
                "huge" => mapping.huge = true,
                _ => {}
            },
        }
    }
    Some(mapping)
}

/// The policy of the process's main thread. Programs do not bind their stack, so the kernel shows the thread's policy for it.
#[must_use]
pub fn policy_of_thread(text: &str) -> Option<MemoryPolicy> {
    let stack = text.lines().filter_map(parse).find(|mapping| mapping.name == "[stack]")?;
    // Longest name first: `prefer (many)` begins with `prefer`.
    let mut modes = MODES;
    modes.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let (mode, rest) = modes.into_iter().find_map(|name| Some((name, stack.policy.strip_prefix(name)?)))?;
    if !rest.is_empty() && !rest.starts_with([':', '=']) {
        return None;
    }
    let (flags, nodes) = rest.split_once(':').unwrap_or((rest, ""));
    Some(MemoryPolicy {
        mode: mode.to_owned(),
        flags: flags.split(['=', '|']).filter(|word| !word.is_empty()).map(str::to_owned).collect(),
        nodes: crate::parse_list(nodes).ok()?,
        source: "numa_maps".to_owned(),
    })
}

fn page_bytes(kib: &str) -> Option<u64> {
    kib.parse::<u64>().ok()?.checked_mul(1024).filter(|bytes| bytes.is_power_of_two())
}

/// The kernel escapes spaces, tabs, newlines and backslashes in paths, such as `\040`.
fn unescape(path: &str) -> String {
    let bytes = path.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let octal = bytes
            .get(at + 1..at + 4)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal.filter(|_| byte == b'\\') {
            Some(meant) => {
                plain.push(meant);
                at += 4;
            }
            None => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check lines of each form.
    #[test]
    fn lines_are_read() {
        let line = "7f1200000000 interleave:0-1 file=/tmp/a\\040b huge anon=3 dirty=3 N0=1 N10=2 kernelpagesize_kB=2048";
        let expected = NumaMapping {
            start: 0x7f12_0000_0000,
            policy: "interleave:0-1".to_owned(),
            name: "/tmp/a b".to_owned(),
            huge: true,
            page_bytes: Some(2 << 20),
            pages: [(0, 1), (10, 2)].into(),
        };
        assert_eq!(parse(line), Some(expected));
        for (text, policy, name) in [
            ("5000 default heap anon=1 N0=1", "default", "[heap]"),
            ("5000 prefer (many):0,2 stack", "prefer (many):0,2", "[stack]"),
            ("5000 prefer:1 N1=1", "prefer:1", ""),
            ("5000 weighted interleave:0-1 N1=1", "weighted interleave:0-1", ""),
            ("5000 bind=static|balancing:0", "bind=static|balancing:0", ""),
            ("5000 default file=/a\\134040", "default", "/a\\040"),
        ] {
            let mapping = parse(text).expect(text);
            assert_eq!((mapping.policy.as_str(), mapping.name.as_str()), (policy, name), "{text}");
        }
    }

    /// Check the table of malformed lines.
    #[test]
    fn malformed_lines_are_refused() {
        for line in [
            "",
            " ",
            "x default",
            "5000",
            "fffffffffffffffff default",
            "5000 default N0=",
            "5000 default N0=-1",
            "5000 default N0=1 N0=2",
            "5000 default N4294967296=1",
            "5000 default N5000=1",
            "5000 default N0=1 kernelpagesize_kB=0",
            "5000 default N0=1 kernelpagesize_kB=3",
            "5000 default N0=1 kernelpagesize_kB=99999999999999999999",
            "5000 default N0=99999999999999999999",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
        for path in ["\\", "\\0", "\\04", "\\999", "\\777", "é\\04é"] {
            assert!(!unescape(path).is_empty());
        }
    }

    /// Check the forms of the kernel's mpol_to_str, and that damaged text gives `None`.
    #[test]
    fn policies_are_read() {
        let read = |policy: &str| {
            let text = format!("55e0 default heap anon=2 N0=2\n7ffc {policy} stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4\n");
            policy_of_thread(&text).map(|policy| (policy.mode, policy.flags, policy.nodes))
        };
        let answer = |mode: &str, flags: &[&str], nodes: &[u32]| {
            Some((mode.to_owned(), flags.iter().map(|flag| (*flag).to_owned()).collect(), nodes.to_vec()))
        };
        assert_eq!(read("default"), answer("default", &[], &[]));
        assert_eq!(read("bind:0-1,4"), answer("bind", &[], &[0, 1, 4]));
        assert_eq!(read("bind=static:1"), answer("bind", &["static"], &[1]));
        assert_eq!(read("interleave=relative|balancing:0-1"), answer("interleave", &["relative", "balancing"], &[0, 1]));
        assert_eq!(read("prefer (many):0,2"), answer("prefer (many)", &[], &[0, 2]));
        assert_eq!(read("weighted interleave:0-1"), answer("weighted interleave", &[], &[0, 1]));
        assert_eq!(read("local"), answer("local", &[], &[]));
        for damaged in ["", "bind:x", "defaults", "bind:0-"] {
            assert_eq!(read(damaged), None, "{damaged}");
        }
        for text in ["", "stack", "7ffc", "7ffc stack", "7ffc default heap\n"] {
            assert_eq!(policy_of_thread(text), None, "{text}");
        }
    }
}
