//! The threads of a process, and its memory by node.

use super::memory::{add, bytes_by_node, numa_mappings, sums};
use super::{count, file, name};
use crate::files::{Reader, parse_list};
use crate::proc::status::Status;
use crate::proc::{sched, stat, thread_ids};
use firsttouch_model::error::Result;
use firsttouch_model::system::{ProcessThreads, Thread};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads the threads of a process, and its memory by node.
///
/// # Errors
/// When the process has ended. If only its memory may not be read, a doubt says who may.
pub fn threads(root: &Path, pid: i32) -> Result<ProcessThreads> {
    let mut doubts = Vec::new();
    let mut memory = sums(root, pid)?;
    match numa_mappings(root, pid, &mut doubts) {
        Ok(Some(mappings)) => {
            let base = crate::files::page_bytes(root);
            let mut nodes = BTreeMap::new();
            let (counted, lost): (Vec<_>, Vec<_>) =
                mappings.iter().map(|mapping| bytes_by_node(mapping, None, base)).partition(Option::is_some);
            counted.iter().flatten().for_each(|(bytes, _)| add(&mut nodes, bytes));
            if !lost.is_empty() {
                doubts.push(format!("the size of huge pages is unknown for {}; not counted by node", count(lost.len(), "mapping")));
            }
            memory.nodes = Some(nodes);
        }
        Ok(None) => {}
        Err(error) => doubts.push(format!("memory by node is unknown: {error:#}")),
    }
    let nodes = cpu_nodes(root);
    let mut threads = Vec::new();
    let mut unread = 0;
    for tid in thread_ids(root, pid) {
        match thread(root, pid, tid, &nodes) {
            Some(thread) => threads.push(thread),
            None => unread += 1,
        }
    }
    if unread > 0 {
        doubts.push(format!("{} ended while being read, or with a damaged stat; missing here", count(unread, "thread")));
    }
    if !threads.is_empty() && threads.iter().all(|thread| thread.migrations.is_none()) {
        doubts.push("migrations are unknown: this kernel has no /proc/PID/task/TID/sched (CONFIG_SCHED_DEBUG)".to_owned());
    }
    Ok(ProcessThreads { pid, name: name(root, pid), memory, threads, doubts })
}

/// The node of each CPU, from the nodes' cpulist.
fn cpu_nodes(root: &Path) -> BTreeMap<u32, u32> {
    let mut reader = Reader::new(root);
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
    let stat = stat::parse(&file(root, pid, &format!("{folder}/stat")).ok()??)?;
    let text = |name: &str| file(root, pid, &format!("{folder}/{name}")).ok().flatten();
    let status = Status::parse(text("status").unwrap_or_default());
    let list = |key: &str| parse_list(status.value(key)?).ok();
    let sched = text("sched").map(|text| sched::parse(&text)).unwrap_or_default();
    Some(Thread {
        tid,
        name: stat.name,
        state: stat.state,
        cpu: stat.cpu,
        node: nodes.get(&stat.cpu).copied(),
        cpu_ms: stat.cpu_ticks.checked_mul(1000 / stat::TICKS_PER_S)?,
        allowed_cpus: list("Cpus_allowed_list"),
        allowed_nodes: list("Mems_allowed_list"),
        migrations: sched.migrations,
        pages_migrated: sched.pages_migrated,
        preferred_node: sched.preferred_node,
        hint_faults: sched.hint_faults,
    })
}
