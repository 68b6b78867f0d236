//! /proc/PID/smaps: mappings with permissions, page sizes, and resident and swapped memory.

use super::kib;
use super::maps::Line;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizedMapping {
    pub start: u64,
    pub end: u64,
    pub permissions: String,
    pub name: String,
    pub page_bytes: Option<u64>,
    /// Resident, without pages of hugetlbfs.
    pub rss_bytes: u64,
    pub hugetlb_bytes: u64,
    /// In transparent huge pages, anonymous, shared or of a file.
    pub transparent_huge_bytes: u64,
    pub swap_bytes: u64,
}

/// Parses the whole file. Returns the mappings, and the number of damaged lines.
pub fn parse(text: &str) -> (Vec<SizedMapping>, usize) {
    let (mut mappings, mut damaged) = (Vec::<SizedMapping>::new(), 0);
    for line in text.lines() {
        if let Some(mapping) = header(line) {
            mappings.push(mapping);
            continue;
        }
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        // Flags and unknown keys are not needed.
        let known =
            ["KernelPageSize", "Rss", "Swap", "AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb"];
        if !known.contains(&key) {
            damaged += usize::from(!is_key(key) || !line.contains(':'));
            continue;
        }
        let (Some(bytes), Some(mapping)) = (kib(value), mappings.last_mut()) else {
            damaged += 1;
            continue;
        };
        let sum = match key {
            "KernelPageSize" => {
                mapping.page_bytes = Some(bytes).filter(|bytes| bytes.is_power_of_two());
                continue;
            }
            "Rss" => &mut mapping.rss_bytes,
            "Swap" => &mut mapping.swap_bytes,
            "Shared_Hugetlb" | "Private_Hugetlb" => &mut mapping.hugetlb_bytes,
            _ => &mut mapping.transparent_huge_bytes,
        };
        *sum = sum.saturating_add(bytes);
    }
    (mappings, damaged)
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn header(line: &str) -> Option<SizedMapping> {
    let line = Line::parse(line)?;
    let (permissions, name) = (line.permissions.to_owned(), line.name.to_owned());
    Some(SizedMapping { start: line.start, end: line.end, permissions, name, ..SizedMapping::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check headers and values, those of huge pages included.
    #[test]
    fn mappings_are_read() {
        let text = "7f00-9f00 rw-p 00000000 00:0f 12      /dev/huge pages/a (deleted)\nSize: 8 kB\nKernelPageSize:     2048 kB\nRss: 0 kB\n\
                    Shared_Hugetlb:        0 kB\nPrivate_Hugetlb:     4096 kB\nTHPeligible:           0\nVmFlags: rd wr mr mw me ht\n\
                    a000-b000 r--p 00000000 00:00 0 \nRss:  4 kB\nSwap: 8 kB\nAnonHugePages: 4 kB\nShmemPmdMapped: 1 kB\n";
        let (mappings, damaged) = parse(text);
        assert_eq!((mappings.len(), damaged), (2, 0));
        assert_eq!(mappings[0].name, "/dev/huge pages/a (deleted)");
        assert_eq!((mappings[0].page_bytes, mappings[0].hugetlb_bytes), (Some(2 << 20), 4 << 20));
        assert_eq!((mappings[1].rss_bytes, mappings[1].swap_bytes, mappings[1].transparent_huge_bytes), (4096, 8192, 5120));
    }

    /// Check that damaged lines are counted and the other lines are read.
    #[test]
    fn damage_is_counted() {
        for (text, mappings, damaged) in [
            ("", 0, 0),
            ("Rss: 4 kB\n", 0, 1),
            ("\0\n", 0, 1),
            ("2000-1000 rw-p 0 0:0 0\n", 0, 1),
            ("1000-2000 rw-p 0 0:0 0\nRss: 4\nRss: -1 kB\nRss: 99999999999999999999 kB\n", 1, 3),
            ("1000-2000 rw-p 0 0:0 0\nRs", 1, 1),
        ] {
            let (found, lost) = parse(text);
            assert_eq!((found.len(), lost), (mappings, damaged), "{text:?}");
        }
        let (found, _) = parse("1000-2000 rw-p 0 0:0 0\nRss: 18014398509481983 kB\nRss: 18014398509481983 kB\n");
        assert_eq!(found[0].rss_bytes, u64::MAX);
    }
}
