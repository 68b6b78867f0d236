//! /proc/PID/stat and /proc/PID/task/TID/stat, proc(5); and the CPUs of /proc/stat.

use super::small_file;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// Clock ticks a second in every file of /proc (USER_HZ; 100 on all architectures of today).
pub const TICKS_PER_S: u64 = 100;

/// What the kernel says of a thread, or of a process as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub name: String,
    /// `R` runs, `S` sleeps, `Z` has ended and waits to be reaped, ...
    pub state: char,
    /// User and system time, clock ticks.
    pub cpu_ticks: u64,
    /// The same of the children that it has waited for, and of those that they have.
    pub children_ticks: u64,
    pub minor_faults: u64,
    /// When it started, clock ticks since boot.
    pub start_ticks: u64,
    /// CPU it last ran on.
    pub cpu: u32,
}

#[must_use]
pub fn of_thread(root: &Path, pid: i32, tid: i32) -> Option<Stat> {
    parse(&small_file(&root.join(format!("proc/{pid}/task/{tid}/stat")))?)
}

#[must_use]
pub fn of_process(root: &Path, pid: i32) -> Option<Stat> {
    parse(&small_file(&root.join(format!("proc/{pid}/stat")))?)
}

/// Bytes of a stat line that hold its first fields, whatever the name is (the kernel writes at most 64 bytes of it).
const FIRST_FIELDS: usize = 128;

/// The stat file of a thread, kept open for those who often ask whether the thread runs: opening it takes longer than reading it.
#[derive(Debug)]
pub struct KeptStat(File);

impl KeptStat {
    /// `None` if the thread has ended, or no file can be opened.
    #[must_use]
    pub fn open(root: &Path, pid: i32, tid: i32) -> Option<Self> {
        File::open(root.join(format!("proc/{pid}/task/{tid}/stat"))).ok().map(Self)
    }

    /// The thread's state now, as in [`Stat::state`]. `None` if it has ended.
    #[must_use]
    pub fn state(&self) -> Option<char> {
        let mut line = [0; FIRST_FIELDS];
        let length = self.0.read_at(&mut line, 0).ok()?;
        state(line.get(..length)?)
    }
}

/// The state in the beginning of a stat line.
fn state(line: &[u8]) -> Option<char> {
    let close = line.iter().rposition(|byte| *byte == b')')?;
    line.get(close + 1..)?.iter().copied().map(char::from).find(|letter| !letter.is_ascii_whitespace())
}

/// The parent of a process, its process group and its session: fields 4 to 6 of proc(5).
#[must_use]
pub fn relatives(root: &Path, pid: i32) -> Option<[i32; 3]> {
    let stat = small_file(&root.join(format!("proc/{pid}/stat")))?;
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().skip(1).map(str::parse);
    Some([fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?])
}

/// The process that started a process, or that took it over.
#[must_use]
pub fn parent(root: &Path, pid: i32) -> Option<i32> {
    let stat = small_file(&root.join(format!("proc/{pid}/stat")))?;
    // Field 4 of proc(5), where the state after the name is field 3.
    stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// When a process started, clock ticks since boot: with its number, this tells it from all other processes.
#[must_use]
pub fn start_ticks(root: &Path, pid: i32) -> Option<u64> {
    let stat = small_file(&root.join(format!("proc/{pid}/stat")))?;
    // Field 22 of proc(5), where the state after the name is field 3.
    stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

/// How long a process has existed.
#[must_use]
pub fn age(root: &Path, pid: i32) -> Option<Duration> {
    Some(age_at(uptime(root)?, start_ticks(root, pid)?))
}

/// The age, at a time since boot, of what started so many clock ticks after boot; 0 if that is later.
#[must_use]
pub fn age_at(up: Duration, start_ticks: u64) -> Duration {
    up.saturating_sub(Duration::from_millis(start_ticks.saturating_mul(1000 / TICKS_PER_S)))
}

/// The time since boot, on the clock of start times.
#[must_use]
pub fn uptime(root: &Path) -> Option<Duration> {
    let seconds: f64 = small_file(&root.join("proc/uptime"))?.split_ascii_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Parses a stat line; the name is in parentheses and may itself contain any character.
#[must_use]
pub fn parse(line: &str) -> Option<Stat> {
    let (open, close) = (line.find('(')?, line.rfind(')')?);
    let fields: Vec<&str> = line.get(close + 1..)?.split_ascii_whitespace().collect();
    // fields[0] is field 3 (state) of proc(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        name: line.get(open + 1..close)?.to_owned(),
        state: fields.first()?.chars().next()?,
        cpu_ticks: number(14)?.checked_add(number(15)?)?,
        children_ticks: number(16)?.checked_add(number(17)?)?,
        minor_faults: number(10)?,
        start_ticks: number(22)?,
        cpu: u32::try_from(number(39)?).ok()?,
    })
}

/// What /proc/PID/stat says of a process, for a list of all processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub name: String,
    pub state: char,
    pub parent: i32,
    /// A thread of the kernel, which has no memory of its own.
    pub is_of_kernel: bool,
    /// User and system time, clock ticks.
    pub cpu_ticks: u64,
    pub threads: u64,
    /// When it started, clock ticks since boot: with its number, this tells it from all other processes.
    pub start_ticks: u64,
    /// Resident memory, base pages.
    pub resident_pages: u64,
    /// CPU it last ran on.
    pub cpu: u32,
}

/// PF_KTHREAD of include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// `None` if the process has ended.
#[must_use]
pub fn summary(root: &Path, pid: i32) -> Option<Summary> {
    parse_summary(&small_file(&root.join(format!("proc/{pid}/stat")))?)
}

/// Parses the stat line of a process.
#[must_use]
pub fn parse_summary(line: &str) -> Option<Summary> {
    let (open, close) = (line.find('(')?, line.rfind(')')?);
    let fields: Vec<&str> = line.get(close + 1..)?.split_ascii_whitespace().collect();
    // fields[0] is field 3 (state) of proc(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Summary {
        name: line.get(open + 1..close)?.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        is_of_kernel: number(9)? & KERNEL_THREAD != 0,
        cpu_ticks: number(14)?.checked_add(number(15)?)?,
        threads: number(20)?,
        start_ticks: number(22)?,
        resident_pages: number(24)?,
        cpu: u32::try_from(number(39)?).ok()?,
    })
}

/// How long a CPU was busy and how long it existed, clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub busy_ticks: u64,
    pub all_ticks: u64,
}

/// The time of each CPU, from the text of /proc/stat: `cpu0 user nice system idle iowait irq softirq steal ...`.
#[must_use]
pub fn cpu_times(text: &str) -> BTreeMap<u32, CpuTime> {
    let one = |line: &str| {
        let (cpu, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        let (cpu, words) = (cpu.parse().ok()?, times.split_ascii_whitespace());
        let ticks = words.take(8).map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
        let all_ticks = ticks.iter().try_fold(0u64, |sum, one| sum.checked_add(*one))?;
        let idle = ticks.get(3)?.checked_add(ticks.get(4).copied().unwrap_or(0))?;
        Some((cpu, CpuTime { busy_ticks: all_ticks - idle, all_ticks }))
    };
    text.lines().filter_map(one).collect()
}

/// The CPUs that are online, from the text of /proc/stat: one `cpuN ...` line each. Sandboxes without /sys still have it.
#[must_use]
pub fn online_cpus(text: &str) -> Vec<u32> {
    let cpus: BTreeSet<u32> = text.lines().filter_map(|line| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok()).collect();
    cpus.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a process that just started is young, and that one that does not exist has no age.
    #[test]
    fn ages_of_processes() {
        let age = age(Path::new("/"), std::process::id().cast_signed()).expect("this process");
        assert!(age < Duration::from_secs(3600), "{age:?}");
        assert_eq!(super::age(Path::new("/"), i32::MAX), None);
        assert_eq!(super::age(Path::new("/nowhere"), 1), None);
    }

    /// Check that an open stat file tells the state of each moment, whatever the thread's name is, and that a damaged line has none.
    #[test]
    fn kept_files_tell_the_state() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let own = || std::fs::read_link("/proc/thread-self").ok()?.file_name()?.to_str()?.parse::<i32>().ok();
        let (tid_sender, tids) = std::sync::mpsc::channel();
        let sleeper = std::thread::Builder::new().name(") R (".to_owned()).spawn(move || {
            let _ = tid_sender.send(own());
            let _ = receiver.recv();
        });
        let tid = tids.recv().ok().flatten().expect("its number");
        let kept = KeptStat::open(Path::new("/"), std::process::id().cast_signed(), tid).expect("its file");
        let sleeps = (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            kept.state() == Some('S')
        });
        assert!(sleeps);
        drop(sender);
        sleeper.expect("a thread").join().expect("its end");
        // The kernel removes a thread a moment after its end.
        assert!((0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            kept.state().is_none()
        }));
        assert!(KeptStat::open(Path::new("/"), i32::MAX, 1).is_none());
        assert_eq!([&b"1 (a) R 2"[..], b"1 (a) b) S 2", b"1 (a)", b"1 (a", b""].map(state), [Some('R'), Some('S'), None, None, None]);
    }

    /// Check the summary of a process, and the table of malformed lines.
    #[test]
    fn summaries_are_read() {
        let line = "42 (a) b (c)) S 7 1 1 0 -1 4194304 123 0 5 0 7 8 30 4 20 0 4 0 100 1000 10 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0 0 0 0";
        let expected = Summary {
            name: "a) b (c)".to_owned(),
            state: 'S',
            parent: 7,
            is_of_kernel: false,
            cpu_ticks: 15,
            threads: 4,
            start_ticks: 100,
            resident_pages: 10,
            cpu: 3,
        };
        assert_eq!(parse_summary(line), Some(expected));
        assert!(parse_summary(&line.replace(" 4194304 ", " 2129984 ")).is_some_and(|one| one.is_of_kernel));
        for bad in ["", "1 (x", "1 (x) S", "1 (x) S z 2", &line[..60], &line.replace(" 7 8 ", " -7 8 ")] {
            assert_eq!(parse_summary(bad), None, "{bad}");
        }
    }

    /// Check the times of CPUs, and that damaged lines are left out.
    #[test]
    fn cpu_times_are_read() {
        let text = "cpu  9 9 9 9\ncpu0 10 1 5 100 4 1 1 0 0 0\ncpu3 1 0 0 9\ncpu4 1 2\ncpux 1 2 3 4\ncpu5 1 2 3 x\ncpu6 1 2 3 18446744073709551615\nintr 5\n";
        let times = cpu_times(text);
        assert_eq!(times.len(), 2);
        assert_eq!(times[&0], CpuTime { busy_ticks: 18, all_ticks: 122 });
        assert_eq!(times[&3], CpuTime { busy_ticks: 1, all_ticks: 10 });
    }

    /// Check that names with parentheses and spaces do not shift the fields.
    #[test]
    fn stat_lines() {
        let tail = "S 1 1 1 0 -1 4194304 123 0 5 0 7 8 30 4 20 0 4 0 100 1000 10 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0 0 0 0";
        let s = parse(&format!("42 (a) b (c)) {tail}")).expect("a stat line");
        assert_eq!(
            s,
            Stat {
                name: "a) b (c)".to_owned(),
                state: 'S',
                cpu_ticks: 15,
                children_ticks: 34,
                minor_faults: 123,
                start_ticks: 100,
                cpu: 3
            }
        );
        let endless = tail.replace(" 7 8 ", &format!(" {} 8 ", u64::MAX));
        for bad in ["", "(", ")", ")(", "1 (x) S", "1 (x) S 1 2 3 4 5 6 7 8 9 a b c", &format!("1 (x) {endless}")] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
