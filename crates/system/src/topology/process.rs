//! Where this process may run and allocate: proc/self/status, its cgroup's cpuset, numa_maps.

use crate::files::{Reader, parse_list, short};
use crate::proc::cgroup::{self, group_and_parents, hierarchies};
use crate::proc::numa_maps;
use crate::proc::status::Status;
use firsttouch_model::topology::{Cpuset, ProcessLimits};

const STATUS: &str = "proc/self/status";
const CGROUP: &str = "proc/self/cgroup";

pub fn read(reader: &mut Reader) -> ProcessLimits {
    let policy = reader.text("proc/self/numa_maps").and_then(|text| numa_maps::policy_of_thread(&text));
    ProcessLimits { policy, cpuset: cpuset(reader), ..outline(reader) }
}

/// Only the allowed CPUs and nodes.
pub fn outline(reader: &mut Reader) -> ProcessLimits {
    let status = Status::parse(reader.text(STATUS).unwrap_or_default());
    let mut list = |key: &str| {
        let text = status.value(key)?;
        let list = parse_list(text);
        if list.is_err() {
            reader.doubt(STATUS, format_args!("expected a list such as 0-3,8 after {key}:, found {}", short(text)));
        }
        list.ok()
    };
    let (allowed_cpus, allowed_nodes) = (list("Cpus_allowed_list"), list("Mems_allowed_list"));
    ProcessLimits { allowed_cpus, allowed_nodes, ..ProcessLimits::default() }
}

/// The effective cpuset of this process's group: version 1 (`4:cpuset:/group`), else version 2 (`0::/group`).
fn cpuset(reader: &mut Reader) -> Option<Cpuset> {
    let text = reader.text(CGROUP)?;
    if let Some(hierarchy) = hierarchies(&text).find(|hierarchy| hierarchy.has("cpuset")) {
        let files = ["cpuset.effective_cpus", "cpuset.effective_mems"];
        return at(reader, "sys/fs/cgroup/cpuset", hierarchy.group, files);
    }
    let group = hierarchies(&text).find(cgroup::Hierarchy::is_unified)?.group;
    let files = ["cpuset.cpus.effective", "cpuset.mems.effective"];
    at(reader, "sys/fs/cgroup", group, files).or_else(|| at(reader, "sys/fs/cgroup/unified", group, files))
}

/// The nearest group from `group` upwards that has the files: the controller may be off in a group, and in a container the mount point
/// is the container's own group.
fn at(reader: &mut Reader, mount: &str, group: &str, [cpus, nodes]: [&str; 2]) -> Option<Cpuset> {
    group_and_parents(group).find_map(|group| {
        let cpus = reader.list(&format!("{mount}{group}/{cpus}"));
        let nodes = reader.list(&format!("{mount}{group}/{nodes}"));
        let name = if group.is_empty() { "/" } else { group };
        (cpus.is_some() || nodes.is_some()).then(|| Cpuset { group: name.to_owned(), cpus, nodes })
    })
}
