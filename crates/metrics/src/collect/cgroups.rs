//! Control groups: containers, pods, services.

use super::{Cgroups, Found};
use crate::catalogue as metric;
use crate::exposition::Batch;
use firsttouch_model::shown::one_line;
use firsttouch_system::cgroups::{self, Group};
use std::collections::BTreeSet;
use std::path::Path;

/// A batch a group, those nearest to the root first.
pub fn read(root: &Path, wanted: &Cgroups) -> Found {
    let read = cgroups::read(root, |path| is_wanted(path, wanted));
    let mut found = Found { doubts: read.doubts, ..Found::default() };
    let mut shown = BTreeSet::new();
    for group in &read.groups {
        let path = one_line(&group.path);
        let batch = of_group(&path, group);
        // Who may make groups could make two that look alike; Prometheus refuses a scrape that has a series twice.
        if shown.insert(path.into_owned()) {
            found.batches.push(batch);
        } else {
            found.left_out += batch.len();
        }
    }
    // Nobody read the others: they are counted as if they were like the largest one.
    found.left_out += read.left_out.saturating_mul(found.batches.iter().map(Batch::len).max().unwrap_or(0));
    found
}

fn is_wanted(path: &str, wanted: &Cgroups) -> bool {
    let is_below = |top: &String| {
        let top = top.trim_end_matches('/');
        path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match wanted {
        Cgroups::All => true,
        Cgroups::None => false,
        Cgroups::Below(tops) => tops.iter().any(is_below),
    }
}

fn of_group(path: &str, group: &Group) -> Batch {
    let mut batch = Batch::default();
    for (node, memory) in &group.memory {
        let node = node.to_string();
        let kinds = [("anonymous", memory.anonymous), ("file", memory.file), ("shared", memory.shared), ("kernel", memory.kernel)];
        for (kind, bytes) in kinds {
            batch.add(&metric::CGROUP_MEMORY, &[path, &node, kind], bytes);
        }
        let allowed = group.allowed.as_ref().map(|nodes| nodes.iter().any(|one| one.to_string() == node));
        batch.add_known(&metric::CGROUP_NODE_ALLOWED, &[path, &node], allowed);
    }
    batch.add_known(&metric::CGROUP_OUTSIDE, &[path], group.outside_bytes());
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which groups are below others: whole names count.
    #[test]
    fn groups_are_below_whole_names() {
        let below = |top: &str, path: &str| is_wanted(path, &Cgroups::Below(vec!["/none".to_owned(), top.to_owned()]));
        assert!(below("/kube.slice", "/kube.slice") && below("/kube.slice/", "/kube.slice/pod") && below("/", "/a"));
        assert!(!below("/kube.slice", "/kube.slices") && !below("/kube.slice/pod", "/kube.slice") && !below("/a", "/"));
        assert!(is_wanted("/a", &Cgroups::All) && !is_wanted("/a", &Cgroups::None));
    }

    /// Check that of two groups whose names look alike when they are shown, one is left out, and counted.
    #[test]
    fn names_are_shown_once() {
        let root = tempfile::tempdir().unwrap();
        let groups = root.path().join("sys/fs/cgroup");
        for name in ["a\u{1}", "a\u{2}", "b"] {
            std::fs::create_dir_all(groups.join(name)).unwrap();
            std::fs::write(groups.join(name).join("memory.numa_stat"), "anon N0=1\n").unwrap();
        }
        std::fs::write(groups.join("cgroup.controllers"), "memory\n").unwrap();
        std::fs::write(groups.join("memory.numa_stat"), "anon N0=3\n").unwrap();
        let found = read(root.path(), &Cgroups::All);
        assert_eq!((found.batches.len(), found.left_out, found.doubts.len()), (3, 4, 0));
    }
}
