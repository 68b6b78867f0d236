//! Control groups: containers, pods, services.

use super::{Cgroups, Found};
use crate::catalogue as metric;
use crate::exposition::Batch;
use firsttouch_system::cgroups::{self, Group};
use std::path::Path;

/// A batch a group, those nearest to the root first.
pub fn read(root: &Path, wanted: &Cgroups) -> Found {
    let read = cgroups::read(root, |path| is_wanted(path, wanted));
    let mut found = Found { doubts: read.doubts, ..Found::default() };
    found.batches = read.groups.iter().map(of_group).collect();
    // Nobody read the others: they are counted as if they were like the largest one.
    found.left_out = read.left_out.saturating_mul(found.batches.iter().map(Batch::len).max().unwrap_or(0));
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

fn of_group(group: &Group) -> Batch {
    let mut batch = Batch::default();
    let path = group.path.as_str();
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
}
