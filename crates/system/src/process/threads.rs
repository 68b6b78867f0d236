//! Threads: /proc/PID/task/TID/stat, status and sched.

use super::memory::{add, bytes_by_node, numa_mappings, sums};
use super::{count, file, name};
use crate::list::parse_list;
use anyhow::Result;
use firsttouch_model::system::{ProcessThreads, Thread};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Clock ticks a second in every file of /proc (USER_HZ; fixed on all architectures of today).
const TICKS_PER_S: u64 = 100;

/// Reads the threads of a process, and its memory by node.
///
/// # Errors
/// When the process is gone. Where only its memory may not be read, a doubt says who may.
pub fn threads(root: &Path, pid: i32) -> Result<ProcessThreads> {
    let mut doubts = Vec::new();
    let mut memory = sums(root, pid)?;
    match numa_mappings(root, pid, &mut doubts) {
        Ok(Some(mappings)) => {
            let base = crate::page_bytes(&crate::files::Root::new(root));
            let mut nodes = BTreeMap::new();
            let (counted, lost): (Vec<_>, Vec<_>) =
                mappings.iter().map(|mapping| bytes_by_node(mapping, None, base)).partition(Option::is_some);
            counted.iter().flatten().for_each(|(bytes, _)| add(&mut nodes, bytes));
            if !lost.is_empty() {
                doubts.push(format!("the size of huge pages is not told for {}; not counted by node", count(lost.len(), "mapping")));
            }
            memory.nodes = Some(nodes);
        }
        Ok(None) => {}
        Err(error) => doubts.push(format!("memory by node is not known: {error:#}")),
    }
    let nodes = cpu_nodes(root);
    let mut list: Vec<i32> = fs::read_dir(root.join(format!("proc/{pid}/task")))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    list.sort_unstable();
    let mut threads = Vec::with_capacity(list.len());
    let mut unread = 0;
    for tid in list {
        match thread(root, pid, tid, &nodes) {
            Some(thread) => threads.push(thread),
            None => unread += 1,
        }
    }
    if unread > 0 {
        doubts.push(format!("{} ended while being read, or with a damaged stat; missing here", count(unread, "thread")));
    }
    if !threads.is_empty() && threads.iter().all(|thread| thread.migrations.is_none()) {
        doubts.push("migrations are not known: this kernel has no /proc/PID/task/TID/sched (CONFIG_SCHED_DEBUG)".to_owned());
    }
    Ok(ProcessThreads { pid, name: name(root, pid), memory, threads, doubts })
}

/// CPU -> node of all nodes' cpulist.
fn cpu_nodes(root: &Path) -> BTreeMap<u32, u32> {
    let mut reader = crate::topology::Reader::new(root);
    let mut nodes = BTreeMap::new();
    for node in reader.numbered("sys/devices/system/node", "node") {
        for cpu in reader.list(&format!("sys/devices/system/node/node{node}/cpulist")).unwrap_or_default() {
            nodes.entry(cpu).or_insert(node);
        }
    }
    nodes
}

fn thread(root: &Path, pid: i32, tid: i32, nodes: &BTreeMap<u32, u32>) -> Option<Thread> {
    let folder = format!("task/{tid}");
    let mut thread = stat(&file(root, pid, &format!("{folder}/stat")).ok()??)?;
    thread.tid = tid;
    thread.node = nodes.get(&thread.cpu).copied();
    let status = file(root, pid, &format!("{folder}/status")).ok().flatten().unwrap_or_default();
    let list = |key: &str| parse_list(status.lines().find_map(|line| line.strip_prefix(key))?).ok();
    (thread.allowed_cpus, thread.allowed_nodes) = (list("Cpus_allowed_list:"), list("Mems_allowed_list:"));
    if let Some(sched) = file(root, pid, &format!("{folder}/sched")).ok().flatten() {
        add_sched(&mut thread, &sched);
    }
    Some(thread)
}

/// Parses a stat line (proc(5)). The name is in parentheses, and may itself have any character.
fn stat(line: &str) -> Option<Thread> {
    let (open, close) = (line.find('(')?, line.rfind(')')?);
    let fields: Vec<&str> = line.get(close + 1..)?.split_ascii_whitespace().collect();
    // The first field after the name is the third of the line.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Thread {
        name: line.get(open + 1..close)?.to_owned(),
        state: fields.first()?.chars().next()?,
        cpu: u32::try_from(number(39)?).ok()?,
        cpu_ms: number(14)?.checked_add(number(15)?)?.checked_mul(1000 / TICKS_PER_S)?,
        ..Thread::default()
    })
}

/// Adds what the scheduler tells: `se.nr_migrations : 12`, and `numa_faults node=0 task_private=1 task_shared=2 ...`.
fn add_sched(thread: &mut Thread, text: &str) {
    let mut faults = BTreeMap::<u32, u64>::new();
    let mut told = false;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("numa_faults ") {
            let value = |key: &str| rest.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
            let Some(node) = value("node=").and_then(|node| u32::try_from(node).ok()) else { continue };
            told = true;
            let count = value("task_private=").unwrap_or(0).saturating_add(value("task_shared=").unwrap_or(0));
            if count > 0 {
                faults.insert(node, count);
            }
        } else if let Some((key, value)) = line.split_once(':') {
            let value = value.trim();
            match key.trim() {
                "se.nr_migrations" | "nr_migrations" => thread.migrations = value.parse().ok(),
                "numa_pages_migrated" => thread.pages_migrated = value.parse().ok(),
                // -1 where there is none.
                "numa_preferred_nid" => thread.preferred_node = value.parse().ok(),
                _ => {}
            }
        }
    }
    thread.hint_faults = told.then_some(faults);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that names with parentheses and spaces do not shift the fields, and that damage is none.
    #[test]
    fn stat_lines() {
        let tail = "S 1 1 1 0 -1 4194304 123 0 5 0 7 8 0 0 20 0 4 0 100 1000 10 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0 0 0 0";
        let thread = stat(&format!("42 (a) b (c)) {tail}")).expect("a stat line");
        assert_eq!((thread.name.as_str(), thread.state, thread.cpu, thread.cpu_ms), ("a) b (c)", 'S', 3, 150));
        let huge = tail.replace(" 7 8 ", " 18446744073709551615 8 ");
        for bad in ["", "(", ")", ")(", "1 (x) S", "1 (x) S 1 2 3", &format!("1 (x) {huge}")] {
            assert_eq!(stat(bad), None, "{bad}");
        }
    }

    /// Check the scheduler's file, of kernels with and without balancing.
    #[test]
    fn sched_files() {
        let mut thread = Thread::default();
        add_sched(
            &mut thread,
            "x (1, #threads: 1)\n---\nse.nr_migrations   :    12\nnuma_pages_migrated : 7\nnuma_preferred_nid : -1\n\
             current_node=0, numa_group_id=0\nnuma_faults node=0 task_private=0 task_shared=0 group_private=9 group_shared=9\n\
             numa_faults node=1 task_private=3 task_shared=4 group_private=0 group_shared=0\nnuma_faults node=x\nnuma_faults \n:",
        );
        assert_eq!((thread.migrations, thread.pages_migrated, thread.preferred_node), (Some(12), Some(7), None));
        assert_eq!(thread.hint_faults, Some([(1, 7)].into()));
        let mut bare = Thread::default();
        add_sched(&mut bare, "nr_migrations:x");
        assert_eq!(bare, Thread::default());
    }
}
