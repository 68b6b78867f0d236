//! Memory by node of control groups (version 2): memory.numa_stat, and the nodes that a cpuset allows. Documentation/admin-guide/cgroup-v2.rst.
//!
//! Containers and pods are control groups, so this says where their memory is without a look at any process. A group's figures contain those of the
//! groups below it.

use crate::files::{Reader, short};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// Where version 2 is mounted: alone, or beside version 1 (systemd's hybrid layout).
const MOUNTS: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
/// Groups that are read at most: those nearest to the root.
pub const MOST_GROUPS: usize = 10_000;
/// Kernels support at most 1024 nodes.
const MOST_NODES: u32 = 1024;

/// Memory of a group on one node, bytes. The kinds do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupMemory {
    pub anonymous: u64,
    /// The page cache, without shared memory.
    pub file: u64,
    /// Shared memory and tmpfs.
    pub shared: u64,
    /// Slabs, stacks of the kernel, and page tables.
    pub kernel: u64,
}

impl GroupMemory {
    #[must_use]
    pub fn sum(&self) -> u64 {
        [self.anonymous, self.file, self.shared, self.kernel].into_iter().fold(0, u64::saturating_add)
    }
}

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// `/system.slice/cron.service`, as in /proc/PID/cgroup; `/` is the root.
    pub path: String,
    pub memory: BTreeMap<u32, GroupMemory>,
    /// The nodes that its cpuset allows, or that of the nearest group above it that has one.
    pub allowed: Option<Vec<u32>>,
}

impl Group {
    /// Bytes on nodes that the cpuset does not allow.
    #[must_use]
    pub fn outside_bytes(&self) -> Option<u64> {
        let allowed = self.allowed.as_ref()?;
        let outside = self.memory.iter().filter(|(node, _)| allowed.binary_search(node).is_err());
        Some(outside.fold(0, |sum, (_, memory)| sum.saturating_add(memory.sum())))
    }
}

/// The groups that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// By depth, then by name: a group comes after those above it.
    pub groups: Vec<Group>,
    /// Groups beyond [`MOST_GROUPS`].
    pub left_out: usize,
    /// Why no groups were found, and which files are damaged.
    pub doubts: Vec<String>,
}

/// Reads the groups that are wanted. A group that is not wanted is still looked into: those below it may be.
#[must_use]
pub fn read(root: &Path, is_wanted: impl Fn(&str) -> bool) -> Groups {
    let mut reader = Reader::new(root);
    let mut found = Groups::default();
    let Some(mount) = MOUNTS.into_iter().find(|mount| reader.text(&format!("{mount}/cgroup.controllers")).is_some()) else {
        reader.doubt(MOUNTS[0], "has no control groups of version 2");
        return Groups { doubts: reader.doubts, ..found };
    };
    let mut waiting: VecDeque<(String, Option<Vec<u32>>)> = VecDeque::from([(String::new(), None)]);
    let mut looked_at = 0;
    while let Some((path, above)) = waiting.pop_front() {
        if looked_at == MOST_GROUPS {
            found.left_out = waiting.len() + 1;
            break;
        }
        looked_at += 1;
        let folder = format!("{mount}{path}");
        let own = reader.list(&format!("{folder}/cpuset.mems.effective")).filter(|nodes| !nodes.is_empty());
        let allowed = own.or(above);
        let shown = if path.is_empty() { "/" } else { path.as_str() };
        if is_wanted(shown)
            && let Some(memory) = numa_stat(&mut reader, &format!("{folder}/memory.numa_stat"))
        {
            found.groups.push(Group { path: shown.to_owned(), memory, allowed: allowed.clone() });
        }
        waiting.extend(reader.folders(&folder).into_iter().map(|name| (format!("{path}/{name}"), allowed.clone())));
    }
    // The root group has the file, also if nobody wants its figures.
    if found.groups.is_empty() && reader.text(&format!("{mount}/memory.numa_stat")).is_none() {
        let why = match reader.text(&format!("{mount}/cgroup.controllers")) {
            Some(list) if !list.split_ascii_whitespace().any(|name| name == "memory") => {
                "does not have the controller 'memory', which is mounted as version 1 or switched off"
            }
            _ => "no group has memory.numa_stat (Linux 5.10 or later has it, with CONFIG_NUMA)",
        };
        reader.doubt(mount, why);
    }
    found.doubts = reader.doubts;
    found
}

fn numa_stat(reader: &mut Reader, file: &str) -> Option<BTreeMap<u32, GroupMemory>> {
    // A group that has just been removed, or one without the controller, has no file.
    let text = reader.text(file)?;
    let (memory, damaged) = parse(&text);
    if let Some(line) = damaged {
        reader.doubt(file, format_args!("expected a line such as anon N0=4096 N1=0, found {}", short(line)));
    }
    (!memory.is_empty()).then_some(memory)
}

/// Memory by node, and the first line that could not be parsed.
fn parse(text: &str) -> (BTreeMap<u32, GroupMemory>, Option<&str>) {
    let mut nodes: BTreeMap<u32, GroupMemory> = BTreeMap::new();
    let mut damaged = None;
    // The page cache counts shared memory too, so both are needed before one is known.
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let field: fn(&mut GroupMemory) -> &mut u64 = match name {
            "anon" => |memory| &mut memory.anonymous,
            "file" => |memory| &mut memory.file,
            "shmem" => |memory| &mut memory.shared,
            "kernel_stack" | "pagetables" | "sec_pagetables" | "slab_reclaimable" | "slab_unreclaimable" => |memory| &mut memory.kernel,
            _ => continue,
        };
        for word in words {
            match value(word) {
                Some((node, bytes)) => {
                    let sum = field(nodes.entry(node).or_default());
                    *sum = sum.saturating_add(bytes);
                }
                None => damaged = damaged.or(Some(line)),
            }
        }
    }
    for memory in nodes.values_mut() {
        memory.file = memory.file.saturating_sub(memory.shared);
    }
    (nodes, damaged)
}

/// `N0=4096`.
fn value(word: &str) -> Option<(u32, u64)> {
    let (node, bytes) = word.strip_prefix('N')?.split_once('=')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(node) || !is_number(bytes) {
        return None;
    }
    Some((node.parse().ok().filter(|node| *node < MOST_NODES)?, bytes.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const NUMA_STAT: &str = "anon N0=40960 N1=8192\nfile N0=20480 N1=0\nkernel_stack N0=16384 N1=0\nshmem N0=4096 N1=0\nfile_mapped N0=1 N1=1\n\
        slab_reclaimable N0=100 N1=0\nslab_unreclaimable N0=28 N1=0\nworkingset_refault_anon N0=7 N1=7\n";

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join("sys/fs/cgroup").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Check a file of the kernel: the kinds do not overlap.
    #[test]
    fn numa_stat_is_read() {
        let (nodes, damaged) = parse(NUMA_STAT);
        assert_eq!(damaged, None);
        assert_eq!(nodes[&0], GroupMemory { anonymous: 40960, file: 16384, shared: 4096, kernel: 16512 });
        assert_eq!((nodes[&1], nodes[&1].sum()), (GroupMemory { anonymous: 8192, ..GroupMemory::default() }, 8192));
    }

    /// Check the table of malformed lines: they cost only themselves.
    #[test]
    fn malformed_lines_are_named() {
        for line in [
            "anon N0",
            "anon N0=",
            "anon N=1",
            "anon 0=1",
            "anon N0=-1",
            "anon N+0=1",
            "anon N1024=1",
            "anon N99999999999=1",
            "anon N0=99999999999999999999",
            "anon N0=1.5",
            "anon N0=1=2",
            "anon é=1",
        ] {
            let text = format!("{line}\nfile N0=5\n");
            let (nodes, damaged) = parse(&text);
            assert_eq!((damaged, nodes[&0].sum()), (Some(line), 5), "{line}");
        }
        for text in ["", "\n\n", "anon\n", " \n", "anonymous N0=5\n"] {
            assert_eq!(parse(text), (BTreeMap::new(), None), "{text:?}");
        }
        let most = format!("anon N0={0}\nfile N0={0}\nkernel_stack N0={0}\nslab_reclaimable N0={0}\n", u64::MAX);
        assert_eq!(parse(&most).0[&0].sum(), u64::MAX);
    }

    /// Check the tree: nodes are allowed by the nearest cpuset, memory outside of it is found, and links are not followed.
    #[test]
    fn groups_are_found() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "cgroup.controllers", "cpuset memory\n");
        write(root.path(), "cpuset.mems.effective", "0-1\n");
        write(root.path(), "memory.numa_stat", NUMA_STAT);
        write(root.path(), "b/memory.numa_stat", NUMA_STAT);
        write(root.path(), "b/cpuset.mems.effective", "1\n");
        write(root.path(), "b/c/memory.numa_stat", NUMA_STAT);
        write(root.path(), "b/c/cpuset.mems.effective", "\n");
        write(root.path(), "a/none", "");
        write(root.path(), "a/d/memory.numa_stat", "anon N0=1\nfile x\n");
        std::os::unix::fs::symlink("..", root.path().join("sys/fs/cgroup/b/c/loop")).unwrap();
        let read_all = || read(root.path(), |_| true);
        let found = read_all();
        let paths: Vec<&str> = found.groups.iter().map(|group| group.path.as_str()).collect();
        assert_eq!(paths, ["/", "/b", "/a/d", "/b/c"]);
        let outside: Vec<Option<u64>> = found.groups.iter().map(Group::outside_bytes).collect();
        assert_eq!(outside, [Some(0), Some(77_952), Some(0), Some(77_952)], "{:?}", found.groups);
        assert!(found.doubts.len() == 1 && found.doubts[0].contains("file x"), "{:?}", found.doubts);
        assert_eq!(read(root.path(), |path| path.starts_with("/b")).groups.len(), 2);
    }

    /// Check what is said where there is no version 2, no controller, or an older kernel.
    #[test]
    fn missing_groups_are_explained() {
        let root = tempfile::tempdir().unwrap();
        let why = || read(root.path(), |_| true).doubts.join("\n");
        assert!(why().contains("has no control groups of version 2"), "{}", why());
        write(root.path(), "unified/cgroup.controllers", "\n");
        assert!(why().contains("unified: does not have the controller 'memory'"), "{}", why());
        write(root.path(), "cgroup.controllers", "cpuset memory\n");
        assert!(why().contains("no group has memory.numa_stat"), "{}", why());
        write(root.path(), "a/memory.numa_stat", NUMA_STAT);
        assert_eq!(why(), "");
        assert_eq!(read(root.path(), |_| true).groups[0].outside_bytes(), None, "no cpuset is known");
        write(root.path(), "memory.numa_stat", NUMA_STAT);
        assert_eq!(read(root.path(), |_| false), Groups::default(), "all groups are left out by the reader's choice");
    }

    /// Check that a name that is not text is left out, and said.
    #[test]
    fn names_that_are_not_text() {
        use std::os::unix::ffi::OsStrExt;
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "cgroup.controllers", "memory\n");
        write(root.path(), "memory.numa_stat", NUMA_STAT);
        fs::create_dir(root.path().join("sys/fs/cgroup").join(std::ffi::OsStr::from_bytes(b"a\xff"))).unwrap();
        let found = read(root.path(), |_| true);
        assert!(found.groups.len() == 1 && found.doubts[0].contains("is not text"), "{found:?}");
    }
}
