//! Readers of /proc. Each takes the root, so that recorded trees can be read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    pub writable: bool,
    pub executable: bool,
    pub shared: bool,
    pub file_offset: u64,
    /// The path, `[heap]`, `[stack]`, `[anon:...]`, or empty.
    pub name: String,
}

impl Mapping {
    /// Private or shared memory without a file behind it.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.name.is_empty() || self.name == "[heap]" || self.name.starts_with("[anon")
    }
}

/// The mappings of a process; empty when it is gone or another user's.
#[must_use]
pub fn mappings(root: &Path, pid: i32) -> Vec<Mapping> {
    let text = std::fs::read(root.join(format!("proc/{pid}/maps"))).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(parse_mapping).collect()
}

/// Parses `start-end perms offset dev inode name`; none for a line that is not of that form.
#[must_use]
pub fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        rest = rest.trim_start_matches(' ');
        let end = rest.find(' ').unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail;
        word
    };
    let (start, end) = field().split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let permissions = field().as_bytes();
    let file_offset = u64::from_str_radix(field(), 16).ok()?;
    let (_device, _inode) = (field(), field());
    if start >= end || permissions.len() != 4 {
        return None;
    }
    Some(Mapping {
        start,
        end,
        writable: permissions[1] == b'w',
        executable: permissions[2] == b'x',
        shared: permissions[3] == b's',
        file_offset,
        name: rest.trim_start_matches(' ').to_owned(),
    })
}

/// What /proc/PID/task/TID/stat says of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStat {
    pub name: String,
    /// User and system time, clock ticks.
    pub cpu_ticks: u64,
    pub minor_faults: u64,
    /// CPU it last ran on.
    pub cpu: u32,
}

/// Whether a process has a file of this name mapped.
#[must_use]
pub fn has_mapped(root: &Path, pid: i32, file: &str) -> bool {
    mappings(root, pid).iter().any(|m| Path::new(&m.name).file_name().is_some_and(|name| name == file))
}

/// The text of a file of at most some kilobytes, read at once: these are read ten times a second.
fn small_file(path: &Path) -> Option<String> {
    let mut buffer = [0; 8192];
    let length = File::open(path).ok()?.read(&mut buffer).ok()?;
    Some(String::from_utf8_lossy(buffer.get(..length)?).into_owned())
}

#[must_use]
pub fn thread_stat(root: &Path, pid: i32, tid: i32) -> Option<ThreadStat> {
    parse_thread_stat(&small_file(&root.join(format!("proc/{pid}/task/{tid}/stat")))?)
}

/// Parses a stat line; the name is in parentheses and may itself contain any character.
#[must_use]
pub fn parse_thread_stat(line: &str) -> Option<ThreadStat> {
    let (open, close) = (line.find('(')?, line.rfind(')')?);
    let fields: Vec<&str> = line.get(close + 1..)?.split_ascii_whitespace().collect();
    // fields[0] is field 3 (state) of proc(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(ThreadStat {
        name: line.get(open + 1..close)?.to_owned(),
        cpu_ticks: number(14)?.checked_add(number(15)?)?,
        minor_faults: number(10)?,
        cpu: u32::try_from(number(39)?).ok()?,
    })
}

/// What /proc/PID/task/TID/status says of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStatus {
    /// Times it gave up its CPU to wait. Yields and preemptions are not among them.
    pub waits: u64,
    /// CPUs it may run on, as the kernel lists them.
    pub allowed_cpus: Option<String>,
}

#[must_use]
pub fn thread_status(root: &Path, pid: i32, tid: i32) -> Option<ThreadStatus> {
    let text = small_file(&root.join(format!("proc/{pid}/task/{tid}/status")))?;
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let allowed_cpus = value("Cpus_allowed_list:").filter(|list| !list.is_empty()).map(str::to_owned);
    Some(ThreadStatus { waits: value("voluntary_ctxt_switches:")?.parse().ok()?, allowed_cpus })
}

/// Bytes of a process's memory that are in swap (`VmSwap`).
#[must_use]
pub fn swapped_bytes(root: &Path, pid: i32) -> Option<u64> {
    let text = small_file(&root.join(format!("proc/{pid}/status")))?;
    let kib: u64 = text.lines().find_map(|line| line.strip_prefix("VmSwap:"))?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Thread ids of a process, ascending.
#[must_use]
pub fn threads(root: &Path, pid: i32) -> Vec<i32> {
    let mut list: Vec<i32> = std::fs::read_dir(root.join(format!("proc/{pid}/task")))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect();
    list.sort_unstable();
    list
}

/// kernel.perf_event_paranoid, if there is one.
#[must_use]
pub fn perf_event_paranoid(root: &Path) -> Option<i32> {
    std::fs::read_to_string(root.join("proc/sys/kernel/perf_event_paranoid")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check mappings, with and without names, and that malformed lines are refused.
    #[test]
    fn mapping_lines() {
        let m = parse_mapping("7f00-8f00 rw-p 00001000 08:02 173521      /usr/lib/a b.so (deleted)").expect("a mapping");
        assert_eq!((m.start, m.end, m.writable, m.executable, m.file_offset), (0x7f00, 0x8f00, true, false, 0x1000));
        assert_eq!(m.name, "/usr/lib/a b.so (deleted)");
        assert!(parse_mapping("1000-2000 rw-p 00000000 00:00 0 ").expect("anonymous").is_anonymous());
        for bad in ["", "x", "1000", "1000-", "2000-1000 rw-p 0 0 0", "1000-2000 rw 0 0 0", "1000-2000 rw-p z 0 0", "-", "g-h rw-p 0 0 0"] {
            assert_eq!(parse_mapping(bad), None, "{bad}");
        }
    }

    /// Check that names with parentheses and spaces do not shift the fields.
    #[test]
    fn stat_lines() {
        let tail = "S 1 1 1 0 -1 4194304 123 0 5 0 7 8 0 0 20 0 4 0 100 1000 10 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0 0 0 0";
        let s = parse_thread_stat(&format!("42 (a) b (c)) {tail}")).expect("a stat line");
        assert_eq!(s, ThreadStat { name: "a) b (c)".to_owned(), cpu_ticks: 15, minor_faults: 123, cpu: 3 });
        let endless = tail.replace(" 7 8 ", &format!(" {} 8 ", u64::MAX));
        for bad in ["", "(", ")", ")(", "1 (x) S", "1 (x) S 1 2 3 4 5 6 7 8 9 a b c", &format!("1 (x) {endless}")] {
            assert_eq!(parse_thread_stat(bad), None, "{bad}");
        }
    }
}
