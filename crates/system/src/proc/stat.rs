//! /proc/PID/stat and /proc/PID/task/TID/stat, proc(5); and the CPUs of /proc/stat.

use super::small_file;
use std::collections::BTreeSet;
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

/// How long a process has existed; /proc/uptime and its stat have the same clock.
#[must_use]
pub fn age(root: &Path, pid: i32) -> Option<Duration> {
    let up: f64 = small_file(&root.join("proc/uptime"))?.split_ascii_whitespace().next()?.parse().ok()?;
    let stat = small_file(&root.join(format!("proc/{pid}/stat")))?;
    // Field 22 of proc(5), where the state after the name is field 3.
    let started: u64 = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().nth(22 - 3)?.parse().ok()?;
    Duration::try_from_secs_f64((up - started as f64 / TICKS_PER_S as f64).max(0.0)).ok()
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
        cpu: u32::try_from(number(39)?).ok()?,
    })
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

    /// Check that names with parentheses and spaces do not shift the fields.
    #[test]
    fn stat_lines() {
        let tail = "S 1 1 1 0 -1 4194304 123 0 5 0 7 8 30 4 20 0 4 0 100 1000 10 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0 0 0 0";
        let s = parse(&format!("42 (a) b (c)) {tail}")).expect("a stat line");
        assert_eq!(s, Stat { name: "a) b (c)".to_owned(), state: 'S', cpu_ticks: 15, children_ticks: 34, minor_faults: 123, cpu: 3 });
        let endless = tail.replace(" 7 8 ", &format!(" {} 8 ", u64::MAX));
        for bad in ["", "(", ")", ")(", "1 (x) S", "1 (x) S 1 2 3 4 5 6 7 8 9 a b c", &format!("1 (x) {endless}")] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
