//! Memory by node, from numa_maps. The kernel walks all pages of a process for it, so it is read seldom, within the cost budget: first of the
//! processes that the reader looks at, then of all others in turn.

use super::Processes;
use crate::pace::Pace;
use crate::snapshot::{MappedMemory, ProcessRow};
use firsttouch_model::shown::one_line;
use firsttouch_system::process::numa_maps;
use std::collections::BTreeMap;
use std::path::Path;

/// The part of one CPU that reading may take: of the process looked at, and of all others.
const CLOSE_SHARE: f64 = 0.002;
const SHARE: f64 = 0.002;
/// Mappings that are listed, the largest first.
const LISTED: usize = 40;
/// Processes with less memory are not asked.
const LEAST_BYTES: u64 = 1 << 20;

struct Known {
    read_ns: u64,
    nodes: Result<BTreeMap<u32, u64>, String>,
}

/// Memory by node of processes.
pub struct Memory {
    known: BTreeMap<i32, Known>,
    pace: Pace,
    close: Option<(i32, Pace)>,
    mappings: Vec<MappedMemory>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { known: BTreeMap::new(), pace: Pace::new(SHARE), close: None, mappings: Vec::new() }
    }
}

impl Memory {
    /// Reads what is due. `close`: the process that is looked at closely.
    pub fn read(&mut self, root: &Path, now_ns: u64, processes: &Processes, close: Option<i32>, has_nodes: bool) {
        self.known.retain(|pid, _| processes.get(*pid).is_some());
        if self.close.as_ref().map(|(pid, _)| *pid) != close {
            self.close = close.map(|pid| (pid, Pace::new(CLOSE_SHARE)));
            self.mappings.clear();
        }
        if let Some((pid, pace)) = &mut self.close {
            let read = pace.run(now_ns, || read(root, *pid));
            if let Some(read) = read {
                let (nodes, mappings) = split(read);
                self.known.insert(*pid, Known { read_ns: now_ns, nodes });
                self.mappings = mappings;
            }
        }
        // On a machine with one node, all memory is there.
        while has_nodes && self.pace.is_due(now_ns) {
            let candidates = processes
                .iter()
                .filter(|(_, known)| known.refused.is_none() && known.summary.resident_pages.saturating_mul(4096) >= LEAST_BYTES);
            let age = |pid: i32| self.known.get(&pid).map_or(0, |known| known.read_ns);
            let Some(next) = candidates.map(|(pid, _)| pid).filter(|pid| age(*pid) < now_ns).min_by_key(|pid| age(*pid)) else { break };
            let nodes = self.pace.run(now_ns, || split(read(root, next)).0);
            if let Some(nodes) = nodes {
                self.known.insert(next, Known { read_ns: now_ns, nodes });
            }
        }
    }

    /// Adds what is known to a row. `only`: the only node of the machine.
    pub fn add_to(&self, row: &mut ProcessRow, refused: Option<&str>, only: Option<u32>) {
        match (only, self.known.get(&row.pid), refused) {
            (Some(node), _, _) => row.nodes = Some(BTreeMap::from([(node, row.resident_bytes)])),
            (None, Some(Known { nodes: Ok(nodes), .. }), _) => row.nodes = Some(nodes.clone()),
            (None, Some(Known { nodes: Err(why), .. }), _) => row.nodes_unknown = Some(why.clone()),
            (None, None, Some(why)) => row.nodes_unknown = Some(why.to_owned()),
            (None, None, None) => row.nodes_unknown = Some("not read yet: numa_maps of all processes are read in turn".to_owned()),
        }
    }

    /// The largest mappings of the process that is looked at closely.
    #[must_use]
    pub fn mappings(&self) -> &[MappedMemory] {
        &self.mappings
    }
}

fn read(root: &Path, pid: i32) -> Result<Vec<MappedMemory>, String> {
    let mappings = numa_maps(root, pid).map_err(|error| format!("{error:#}"))?;
    let one = |mapping: firsttouch_system::proc::numa_maps::NumaMapping| {
        let page = mapping.page_bytes.unwrap_or(4096);
        let nodes: BTreeMap<u32, u64> = mapping.pages.iter().map(|(node, pages)| (*node, pages.saturating_mul(page))).collect();
        MappedMemory {
            id: mapping.start,
            name: if mapping.name.is_empty() { format!("mapping at {:#x}", mapping.start) } else { one_line(&mapping.name).into_owned() },
            policy: mapping.policy,
            resident_bytes: nodes.values().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            nodes,
        }
    };
    Ok(mappings.into_iter().map(one).collect())
}

type Split = (Result<BTreeMap<u32, u64>, String>, Vec<MappedMemory>);

/// The sums by node, and the largest mappings.
fn split(read: Result<Vec<MappedMemory>, String>) -> Split {
    let mut mappings = match read {
        Ok(mappings) => mappings,
        Err(why) => return (Err(why), Vec::new()),
    };
    let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
    for (node, bytes) in mappings.iter().flat_map(|mapping| &mapping.nodes) {
        let sum = nodes.entry(*node).or_default();
        *sum = sum.saturating_add(*bytes);
    }
    mappings.retain(|mapping| mapping.resident_bytes > 0 && !is_own(&mapping.name));
    mappings.sort_by_key(|mapping| std::cmp::Reverse(mapping.resident_bytes));
    mappings.truncate(LISTED);
    mappings.sort_by_key(|mapping| mapping.id);
    (Ok(nodes), mappings)
}

/// Whether firsttouch itself mapped it into the program: the agent's library and its ring.
fn is_own(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.starts_with("libfirsttouch_") || file.starts_with("memfd:firsttouch-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(pages: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/10");
        fs::create_dir_all(&folder).unwrap();
        let stat = "10 (a) S 1 1 1 0 -1 0 0 0 0 0 5 0 0 0 20 0 4 0 9 1000 100000 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0";
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("numa_maps"), pages).unwrap();
        root
    }

    /// Check sums and mappings of a machine with several nodes, and that a machine with one node needs no numa_maps.
    #[test]
    fn memory_is_summed_by_node() {
        let root = tree("5000 default heap anon=2 N0=2 N1=1 kernelpagesize_kB=4\n9000 bind:1 N1=3 kernelpagesize_kB=2048\nbroken\n");
        let mut processes = Processes::new(root.path());
        processes.read(root.path(), 1);
        let mut memory = Memory::default();
        memory.read(root.path(), 1, &processes, Some(10), true);
        let mut row = ProcessRow { pid: 10, resident_bytes: 7, ..ProcessRow::default() };
        memory.add_to(&mut row, None, None);
        assert_eq!(row.nodes, Some(BTreeMap::from([(0, 8192), (1, (6 << 20) + 4096)])));
        assert_eq!(memory.mappings().iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["[heap]", "mapping at 0x9000"]);
        memory.add_to(&mut row, None, Some(3));
        assert_eq!(row.nodes, Some(BTreeMap::from([(3, 7)])));
    }

    /// Check that what firsttouch mapped is not listed.
    #[test]
    fn own_mappings_are_left_out() {
        for (name, expected) in [
            ("/tmp/firsttouch-0-7-1/libfirsttouch_agent.so", true),
            ("/memfd:firsttouch-ring (deleted)", true),
            ("/home/firsttouch-user/solver", false),
            ("[heap]", false),
            ("", false),
        ] {
            assert_eq!(is_own(name), expected, "{name}");
        }
    }

    /// Check that a process that may not be read, or was not yet, has a reason and no figure.
    #[test]
    fn unknown_memory_has_a_reason() {
        let memory = Memory::default();
        for (refused, expected) in [(Some("it belongs to user db"), "it belongs to user db"), (None, "not read yet")] {
            let mut row = ProcessRow { pid: 10, ..ProcessRow::default() };
            memory.add_to(&mut row, refused, None);
            assert_eq!(row.nodes, None);
            assert!(row.nodes_unknown.is_some_and(|why| why.starts_with(expected)));
        }
    }
}
