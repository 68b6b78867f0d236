//! The memory of nodes.

use super::Found;
use crate::catalogue as metric;
use crate::exposition::Batch;
use firsttouch_system::node_memory;
use std::path::Path;

/// A batch a node. Nodes that appear and vanish do so here too: they are listed anew each time.
pub fn memory(root: &Path) -> Found {
    let mut found = Found::default();
    for memory in node_memory::read(root, &mut found.doubts) {
        let node = memory.node.to_string();
        let mut batch = Batch::default();
        batch.add_known(&metric::NODE_CPUS, &[&node], memory.cpus);
        batch.add(&metric::NODE_MEMORY_SIZE, &[&node], memory.total_bytes);
        batch.add(&metric::NODE_MEMORY_FREE, &[&node], memory.free_bytes);
        for (kind, bytes) in &memory.used {
            batch.add(&metric::NODE_MEMORY_USED, &[&node, kind.name()], *bytes);
        }
        batch.add_known(&metric::NODE_MEMORY_TRANSPARENT_HUGE, &[&node], memory.transparent_huge_bytes);
        found.batches.push(batch);
    }
    if found.batches.is_empty() && found.doubts.is_empty() {
        let place = root.join("sys/devices/system/node");
        found.doubts.push(format!("{}: names no nodes (a kernel without NUMA support, or /sys is hidden)", place.display()));
    }
    found
}
