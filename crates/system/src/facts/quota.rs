//! CPU time that the control groups allow: cpu.max (version 2), cpu.cfs_quota_us and cpu.cfs_period_us (version 1).

use crate::files::{Reader, short};
use crate::proc::cgroup::{group_and_parents, hierarchies};
use firsttouch_model::facts::CpuQuota;

/// The tightest quota of this process's group and those above it; `None` without a quota.
pub fn read(reader: &mut Reader) -> Option<CpuQuota> {
    let text = reader.text("proc/self/cgroup")?;
    let mut tightest: Option<CpuQuota> = None;
    for hierarchy in hierarchies(&text) {
        let is_first = hierarchy.has("cpu");
        let mounts = if hierarchy.is_unified() {
            ["sys/fs/cgroup", "sys/fs/cgroup/unified"]
        } else if is_first {
            ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"]
        } else {
            continue;
        };
        for mount in mounts {
            for group in group_and_parents(hierarchy.group) {
                let folder = format!("{mount}{group}");
                let quota = if is_first { version_1(reader, &folder) } else { version_2(reader, &folder) };
                if let Some(quota) = quota.filter(|quota| tightest.as_ref().is_none_or(|least| quota.cpus < least.cpus)) {
                    tightest = Some(quota);
                }
            }
        }
    }
    tightest
}

/// `QUOTA PERIOD` in microseconds, or `max PERIOD`.
fn version_2(reader: &mut Reader, folder: &str) -> Option<CpuQuota> {
    let file = format!("{folder}/cpu.max");
    let text = reader.text(&file)?;
    let mut words = text.split_whitespace();
    let (quota, period) = (words.next(), words.next());
    if quota == Some("max") {
        return None;
    }
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
    let found = number(quota).zip(number(period)).and_then(|(quota, period)| cpus(quota, period));
    if found.is_none() {
        reader.doubt(&file, format_args!("expected a quota such as 200000 100000, found {}", short(&text)));
    }
    Some(CpuQuota { cpus: found?, file: format!("/{file}"), value: text })
}

fn version_1(reader: &mut Reader, folder: &str) -> Option<CpuQuota> {
    let file = format!("{folder}/cpu.cfs_quota_us");
    // -1: no limit.
    let quota: i64 = reader.number(&file).filter(|quota| *quota >= 0)?;
    let period: i64 = reader.number(&format!("{folder}/cpu.cfs_period_us"))?;
    let cpus = cpus(quota, period);
    if cpus.is_none() {
        reader.doubt(&file, format_args!("a quota of {quota} in a period of {period} microseconds is impossible"));
    }
    Some(CpuQuota { cpus: cpus?, file: format!("/{file}"), value: format!("{quota} of {period}") })
}

fn cpus(quota: i64, period: i64) -> Option<f64> {
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn quota(files: &[(&str, &str)]) -> (Option<(f64, String)>, usize) {
        let root = tempfile::tempdir().expect("tempdir");
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            fs::write(path, text).expect("file");
        }
        let mut reader = Reader::new(root.path());
        let found = read(&mut reader).map(|quota| (quota.cpus, quota.file));
        (found, reader.doubts.len())
    }

    /// Check both versions, the tightest of nested groups, no limit, and damage.
    #[test]
    fn quotas_are_read() {
        let two = ("proc/self/cgroup", "0::/a/b\n");
        let max = "sys/fs/cgroup/a/b/cpu.max";
        let above = "sys/fs/cgroup/a/cpu.max";
        assert_eq!(quota(&[two, (max, "150000 100000\n")]), (Some((1.5, format!("/{max}"))), 0));
        assert_eq!(quota(&[two, (max, "max 100000\n"), (above, "400000 100000")]), (Some((4.0, format!("/{above}"))), 0));
        assert_eq!(quota(&[two, (max, "300000 100000\n"), (above, "400000 100000")]), (Some((3.0, format!("/{max}"))), 0));
        assert_eq!(quota(&[two, (max, "max 100000")]), (None, 0));
        assert_eq!(quota(&[two]), (None, 0));
        for damaged in ["", "x", "100000", "100000 0", "-5 100000", "1 x", "99999999999999999999 1"] {
            assert_eq!(quota(&[two, (max, damaged)]), (None, 1), "{damaged:?}");
        }
        let one = ("proc/self/cgroup", "4:cpu,cpuacct:/c\n3:cpuset:/\n");
        let file = |name: &str| format!("sys/fs/cgroup/cpu/c/cpu.cfs_{name}_us");
        let (limit, period) = (file("quota"), file("period"));
        assert_eq!(quota(&[one, (&limit, "200000"), (&period, "100000")]), (Some((2.0, format!("/{limit}"))), 0));
        assert_eq!(quota(&[one, (&limit, "-1"), (&period, "100000")]), (None, 0));
        assert_eq!(quota(&[one, (&limit, "5"), (&period, "0")]), (None, 1));
        assert_eq!(
            quota(&[("proc/self/cgroup", "0::/../x"), ("sys/fs/cgroup/cpu.max", "50000 100000")]).0.map(|(cpus, _)| cpus),
            Some(0.5)
        );
        assert_eq!(quota(&[("proc/self/cgroup", ":\n::\n0\n")]), (None, 0));
    }
}
