//! Nodes and their CPUs, or one node with all CPUs where the kernel has no NUMA support. The topology finds both; here, a damaged file
//! is an error.

use crate::files::Reader;
use crate::topology::cpus;
use crate::topology::nodes::{self, NODES};
use firsttouch_model::error::Result;
use std::collections::BTreeMap;
use std::path::Path;

pub fn read(root: &Path, doubts: &mut Vec<String>) -> Result<BTreeMap<u32, Vec<u32>>> {
    let mut reader = Reader::new(root);
    let mut nodes = BTreeMap::new();
    for number in nodes::numbers(&mut reader) {
        let cpus = reader.list(&format!("{NODES}/node{number}/cpulist"));
        if cpus.is_none() {
            doubts.push(format!("node {number} is online, but its CPUs could not be read; taken as a node without CPUs"));
        }
        nodes.insert(number, cpus.unwrap_or_default());
    }
    if nodes.values().all(Vec::is_empty) {
        let cpus = cpus::online(&mut reader);
        reader.first_damage()?;
        let cpus = cpus?;
        doubts.push(format!("/{NODES} names no CPUs; taken as one node with all {} CPUs", cpus.len()));
        nodes = BTreeMap::from([(0, cpus)]);
    }
    reader.first_damage()?;
    doubts.append(&mut reader.doubts);
    Ok(nodes)
}
