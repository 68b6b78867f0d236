//! /proc/PID/maps. The headers of smaps are lines of the same form.

use std::fs;
use std::path::Path;

/// What the names of shared memory begin with. A memory file is the same memory in all processes, and so is a deleted file.
const SHARED_MEMORY: [&str; 6] = ["/dev/zero (deleted)", "/memfd:", "/dev/shm/", "/SYSV", "/anon_hugepage", "/dev/hugepages/"];
/// The agent's ring.
const OWN_RING: &str = "/memfd:firsttouch-ring (deleted)";

/// The fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub start: u64,
    pub end: u64,
    /// Four letters: `rw-p`.
    pub permissions: &'a str,
    pub file_offset: u64,
    pub device: &'a str,
    pub inode: &'a str,
    pub name: &'a str,
}

impl<'a> Line<'a> {
    /// Parses `start-end permissions offset device inode name`.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let mut rest = line;
        let mut field = || {
            rest = rest.trim_start_matches(' ');
            let end = rest.find(' ').unwrap_or(rest.len());
            let (word, tail) = rest.split_at(end);
            rest = tail;
            word
        };
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = field().split_once('-')?;
        let (start, end) = (hex(start)?, hex(end)?);
        let permissions = field();
        let file_offset = hex(field())?;
        let (device, inode) = (field(), field());
        let is_sound = start < end && permissions.len() == 4;
        is_sound.then(|| Self { start, end, permissions, file_offset, device, inode, name: rest.trim_start_matches(' ') })
    }
}

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    pub writable: bool,
    pub executable: bool,
    pub shared: bool,
    pub file_offset: u64,
    /// Device and inode of the file; those of shared memory without a file too.
    pub device: String,
    pub inode: u64,
    /// The path, `[heap]`, `[stack]`, `[anon:...]`, or empty.
    pub name: String,
}

impl Mapping {
    /// Private or shared memory without a file behind it.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.name.is_empty() || self.name == "[heap]" || self.name.starts_with("[anon")
    }

    /// Shared memory: an anonymous shared mapping, a memory file, POSIX or System V shared memory, or huge pages. Other shared files are not:
    /// their pages are those of the page cache.
    #[must_use]
    pub fn is_shared_memory(&self) -> bool {
        self.shared && self.inode != 0 && SHARED_MEMORY.iter().any(|start| self.name.starts_with(start)) && self.name != OWN_RING
    }
}

/// The mappings of a process; empty if it has ended or belongs to another user.
#[must_use]
pub fn read(root: &Path, pid: i32) -> Vec<Mapping> {
    let text = fs::read(root.join(format!("proc/{pid}/maps"))).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(parse).collect()
}

/// Whether a process has a file of this name mapped.
#[must_use]
pub fn has_mapped(root: &Path, pid: i32, file: &str) -> bool {
    read(root, pid).iter().any(|m| Path::new(&m.name).file_name().is_some_and(|name| name == file))
}

/// Parses a line; `None` if it has another form.
#[must_use]
pub fn parse(line: &str) -> Option<Mapping> {
    let line = Line::parse(line)?;
    let permissions = line.permissions.as_bytes();
    Some(Mapping {
        start: line.start,
        end: line.end,
        writable: permissions[1] == b'w',
        executable: permissions[2] == b'x',
        shared: permissions[3] == b's',
        file_offset: line.file_offset,
        device: line.device.to_owned(),
        inode: line.inode.parse().unwrap_or(0),
        name: line.name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check mappings, with and without names, and that malformed lines are refused.
    #[test]
    fn mapping_lines() {
        let m = parse("7f00-8f00 rw-p 00001000 08:02 173521      /usr/lib/a b.so (deleted)").expect("a mapping");
        assert_eq!((m.start, m.end, m.writable, m.executable, m.file_offset), (0x7f00, 0x8f00, true, false, 0x1000));
        assert_eq!(m.name, "/usr/lib/a b.so (deleted)");
        assert!(parse("1000-2000 rw-p 00000000 00:00 0 ").expect("anonymous").is_anonymous());
        for (line, is_shared_memory) in [
            ("1000-2000 rw-s 00000000 00:01 4096      /dev/zero (deleted)", true),
            ("1000-2000 rw-p 00000000 00:06 4         /dev/zero", false),
            ("1000-2000 rw-s 00001000 00:01 77        /memfd:a b (deleted)", true),
            ("1000-2000 rw-p 00001000 00:01 77        /memfd:a b (deleted)", false),
            ("1000-2000 rw-s 00000000 00:01 78        /memfd:firsttouch-ring (deleted)", false),
            ("1000-2000 rw-s 00000000 00:19 3         /dev/shm/sem", true),
            ("1000-2000 rw-s 00000000 00:01 32768     /SYSV00000000 (deleted)", true),
            ("1000-2000 rw-s 00000000 00:0f 5         /anon_hugepage (deleted)", true),
            ("1000-2000 rw-s 00000000 08:02 5         /var/lib/db", false),
            ("1000-2000 rw-s 00000000 00:00 0 ", false),
        ] {
            assert_eq!(parse(line).expect("a mapping").is_shared_memory(), is_shared_memory, "{line}");
        }
        let m = parse("1000-2000 rw-s 00001000 00:01 77 /memfd:a").expect("a mapping");
        assert_eq!((m.device.as_str(), m.inode), ("00:01", 77));
        for bad in ["", "x", "1000", "1000-", "2000-1000 rw-p 0 0 0", "1000-2000 rw 0 0 0", "1000-2000 rw-p z 0 0", "-", "g-h rw-p 0 0 0"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
