//! Where this process may run and allocate: proc/self/status, its cgroup's cpuset, numa_maps.

use super::policy;
use super::reader::{Reader, short};
use crate::list::parse_list;
use firsttouch_model::topology::{Cpuset, ProcessLimits};

const STATUS: &str = "proc/self/status";
const CGROUP: &str = "proc/self/cgroup";

pub fn read(reader: &mut Reader) -> ProcessLimits {
    let policy = reader.text("proc/self/numa_maps").and_then(|text| policy::from_numa_maps(&text));
    ProcessLimits { policy, cpuset: cpuset(reader), ..outline(reader) }
}

/// Only the allowed CPUs and nodes.
pub fn outline(reader: &mut Reader) -> ProcessLimits {
    let status = reader.text(STATUS).unwrap_or_default();
    let mut list = |key: &str| {
        let text = status.lines().find_map(|line| line.strip_prefix(key))?.trim();
        let list = parse_list(text);
        if list.is_err() {
            reader.doubt(STATUS, format_args!("expected a list such as 0-3,8 after {key}, found {}", short(text)));
        }
        list.ok()
    };
    let (allowed_cpus, allowed_nodes) = (list("Cpus_allowed_list:"), list("Mems_allowed_list:"));
    ProcessLimits { allowed_cpus, allowed_nodes, ..ProcessLimits::default() }
}

/// The effective cpuset of this process's group: version 1 (`4:cpuset:/group`), else version 2 (`0::/group`).
fn cpuset(reader: &mut Reader) -> Option<Cpuset> {
    let text = reader.text(CGROUP)?;
    let mut hierarchies = text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let first = hierarchies.clone().find(|(controllers, _)| controllers.split(',').any(|name| name == "cpuset"));
    if let Some((_, group)) = first {
        let files = ["cpuset.effective_cpus", "cpuset.effective_mems"];
        return at(reader, "sys/fs/cgroup/cpuset", group, files);
    }
    let (_, group) = hierarchies.find(|(controllers, _)| controllers.is_empty())?;
    let files = ["cpuset.cpus.effective", "cpuset.mems.effective"];
    at(reader, "sys/fs/cgroup", group, files).or_else(|| at(reader, "sys/fs/cgroup/unified", group, files))
}

/// The nearest group from `group` upwards that has the files: the controller need not be on in each, and a container
/// sees its own group as the mount point.
fn at(reader: &mut Reader, mount: &str, group: &str, [cpus, nodes]: [&str; 2]) -> Option<Cpuset> {
    let mut group = group.trim_end_matches('/');
    // A group outside the cgroup namespace is shown as /../other.
    if group.split('/').any(|part| part == "..") {
        group = "";
    }
    loop {
        let found = Cpuset {
            group: if group.is_empty() { "/".to_owned() } else { group.to_owned() },
            cpus: reader.list(&format!("{mount}{group}/{cpus}")),
            nodes: reader.list(&format!("{mount}{group}/{nodes}")),
        };
        if found.cpus.is_some() || found.nodes.is_some() {
            return Some(found);
        }
        group = group.rsplit_once('/').map(|(parent, _)| parent)?;
    }
}
