//! /proc/PID/task/TID/schedstat: how long a thread ran, and how long it waited for a CPU while it could have run.

use super::small_file;
use std::path::Path;

/// Since the thread began, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedStat {
    pub ran_ns: u64,
    /// It could have run, and another thread had the CPU.
    pub delayed_ns: u64,
    /// How often it got a CPU; 0 if the kernel does not say.
    pub turns: u64,
}

/// `None` if the thread has ended, or the kernel does not keep these figures.
#[must_use]
pub fn of_thread(root: &Path, pid: i32, tid: i32) -> Option<SchedStat> {
    parse(&small_file(&root.join(format!("proc/{pid}/task/{tid}/schedstat")))?)
}

fn parse(text: &str) -> Option<SchedStat> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some(SchedStat { ran_ns: numbers.next()?.ok()?, delayed_ns: numbers.next()?.ok()?, turns: numbers.next().map_or(Some(0), Result::ok)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read() {
        assert_eq!(parse("123456 789 12\n"), Some(SchedStat { ran_ns: 123_456, delayed_ns: 789, turns: 12 }));
        assert_eq!(parse("123456 789"), Some(SchedStat { ran_ns: 123_456, delayed_ns: 789, turns: 0 }));
        for damaged in ["", "12", "12 x 3", "-1 2 3", "1 2 x"] {
            assert_eq!(parse(damaged), None, "{damaged:?}");
        }
    }
}
