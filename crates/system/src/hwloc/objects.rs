//! The `object` elements: CPUs (PU), cores, dies, packages, caches, nodes.

use super::bitmap;
use crate::files;
use firsttouch_model::error::{Error, Result};
use firsttouch_model::topology::{
    Access, Cache, CacheKind, Core, CpuLists, Die, HugePages, Memory, MemorySideCache, Node, Package, Processor, Topology,
};
use roxmltree::Node as Element;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Larger numbers of nodes, packages and cores are damage, or hwloc's number for an unknown one (the largest).
const LARGEST: u32 = 65_535;
/// Kernels support at most 1024 nodes (CONFIG_NODES_SHIFT ends at 10).
const MOST_NODES: usize = 1024;

/// A node in the file, with the CPUs it is local to; another node may be local to the same CPUs.
struct Local {
    node: Node,
    cpus: Vec<u32>,
    /// `HBM`, `MCDRAM`, `NVM`, `CXL-DRAM`, ...: memory that is not the CPUs' own.
    special: bool,
}

#[derive(Default)]
pub struct Objects {
    machine: Option<Vec<u32>>,
    processor: Processor,
    cpus: BTreeSet<u32>,
    nodes: Vec<Local>,
    packages: Vec<(u32, Vec<u32>)>,
    dies: Vec<(u32, Vec<u32>)>,
    cores: Vec<(Option<u32>, Vec<u32>)>,
    caches: Vec<Cache>,
    page_bytes: Option<u64>,
    side_caches: Vec<(u32, MemorySideCache)>,
    /// hwloc's own numbers (gp_index), which `distances2` and `memattr` may use: of nodes, and the CPUs of any object.
    pub node_of_gp: HashMap<u64, u32>,
    pub cpus_of_gp: HashMap<u64, Vec<u32>>,
    pub doubts: Vec<String>,
}

impl Objects {
    pub fn collect(root: Element) -> Result<Self> {
        let mut objects = Self::default();
        for element in root.descendants().filter(|element| element.has_tag_name("object")) {
            objects.one(element)?;
        }
        if objects.cpus.is_empty() {
            return Err(Error::invalid_data("it has no CPUs (objects of type PU)"));
        }
        if objects.nodes.is_empty() {
            return Err(Error::invalid_data("it has no nodes (objects of type NUMANode)"));
        }
        Ok(objects)
    }

    fn one(&mut self, element: Element) -> Result<()> {
        let kind = element.attribute("type").unwrap_or_default();
        if let (Some(gp), Some(cpus)) = (number(element, "gp_index"), element.attribute("cpuset").and_then(bitmap::parse)) {
            self.cpus_of_gp.insert(gp, cpus);
        }
        match kind {
            "Machine" => {
                self.machine = element.attribute("complete_cpuset").and_then(bitmap::parse);
                self.processor(element);
            }
            "Package" => {
                self.packages.push((index(element).unwrap_or(count(&self.packages)), cpus(element)?));
                self.processor(element);
            }
            "Die" => self.dies.push((index(element).unwrap_or(count(&self.dies)), cpus(element)?)),
            "Core" => self.cores.push((index(element), cpus(element)?)),
            "PU" => {
                let cpu = index(element).filter(|cpu| *cpu <= files::LARGEST);
                let cpu = cpu.ok_or_else(|| Error::invalid_data(format!("a PU has no valid os_index at line {}", line(element))))?;
                if !self.cpus.insert(cpu) {
                    return Err(Error::invalid_data(format!("CPU {cpu} appears twice at line {}", line(element))));
                }
            }
            "NUMANode" => self.node(element)?,
            "MemCache" => self.memory_side_cache(element),
            _ if kind.ends_with("Cache") && kind.starts_with('L') => self.cache(element)?,
            // Groups, devices and kinds of later formats are not needed here.
            _ => {}
        }
        Ok(())
    }

    fn processor(&mut self, element: Element) {
        let infos: HashMap<&str, &str> = element
            .children()
            .filter(|child| child.has_tag_name("info"))
            .filter_map(|info| Some((info.attribute("name")?, info.attribute("value")?)))
            .collect();
        let text = |name: &str| infos.get(name).map(|value| (*value).to_owned());
        let number = |name: &str| infos.get(name).and_then(|value| value.parse().ok());
        let processor = &mut self.processor;
        if processor.vendor.is_empty() {
            processor.vendor = text("CPUVendor").unwrap_or_default();
        }
        if processor.model_name.is_empty() {
            processor.model_name = text("CPUModel").unwrap_or_default();
        }
        processor.family = processor.family.or_else(|| number("CPUFamilyNumber"));
        processor.model = processor.model.or_else(|| number("CPUModelNumber"));
    }

    fn node(&mut self, element: Element) -> Result<()> {
        let id = index(element).ok_or_else(|| Error::invalid_data(format!("a NUMANode has no os_index at line {}", line(element))))?;
        if self.nodes.iter().any(|local| local.node.id == id) {
            return Err(Error::invalid_data(format!("node {id} appears twice at line {}", line(element))));
        }
        if self.nodes.len() == MOST_NODES {
            return Err(Error::invalid_data(format!("it has more than {MOST_NODES} nodes")));
        }
        let mut pages: Vec<(u64, u64)> = element
            .children()
            .filter(|child| child.has_tag_name("page_type"))
            .filter_map(|page| Some((number(page, "size")?, number(page, "count")?)))
            .collect();
        pages.sort_unstable();
        // The smallest pages are the base pages, the rest pools of huge ones.
        if let Some((size, _)) = pages.first() {
            self.page_bytes = self.page_bytes.or(Some(*size));
        }
        let huge_pages =
            pages.iter().skip(1).map(|&(page_bytes, total)| HugePages { page_bytes, total, free: None, surplus: None }).collect();
        let memory = number(element, "local_memory").map(|total_bytes| Memory { total_bytes, free_bytes: None });
        let subtype = element.attribute("subtype").unwrap_or_default();
        if let Some(gp) = number(element, "gp_index") {
            self.node_of_gp.insert(gp, id);
        }
        self.nodes.push(Local {
            // A node without memory may have no local_memory.
            node: Node { id, memory: memory.or(Some(Memory::default())), huge_pages, ..Node::default() },
            cpus: cpus(element)?,
            special: !subtype.is_empty() && subtype != "DRAM",
        });
        Ok(())
    }

    fn cache(&mut self, element: Element) -> Result<()> {
        let kind = match element.attribute("cache_type") {
            Some("0") => CacheKind::Unified,
            Some("1") => CacheKind::Data,
            Some("2") => CacheKind::Instruction,
            _ => return Ok(()),
        };
        // hwloc writes 0 for a cache of unknown size.
        let level = number(element, "depth").and_then(|level| u32::try_from(level).ok());
        let (Some(level), Some(size_bytes)) = (level, number(element, "cache_size").filter(|size| *size > 0)) else {
            return Ok(());
        };
        self.caches.push(Cache {
            level,
            kind,
            size_bytes,
            line_bytes: number(element, "cache_linesize").filter(|size| *size > 0),
            ways: number(element, "cache_associativity").filter(|ways| *ways > 0),
            cpus: cpus(element)?,
        });
        Ok(())
    }

    /// A memory-side cache encloses the nodes whose memory it caches.
    fn memory_side_cache(&mut self, element: Element) {
        let Some(size_bytes) = number(element, "cache_size") else { return };
        let level = number(element, "depth").and_then(|depth| u32::try_from(depth).ok()).unwrap_or(1);
        let cache = MemorySideCache { level, size_bytes, line_bytes: number(element, "cache_linesize").filter(|size| *size > 0) };
        let nodes = element.descendants().filter(|below| below.attribute("type") == Some("NUMANode")).filter_map(index);
        self.side_caches.extend(nodes.map(|node| (node, cache)));
    }

    /// Builds the topology from the objects.
    pub fn topology(&mut self) -> Topology {
        let online: Vec<u32> = self.cpus.iter().copied().collect();
        let complete = self.machine.take().unwrap_or_default();
        let offline = complete.into_iter().filter(|cpu| !self.cpus.contains(cpu)).collect();
        let nodes = self.assign_cpus();
        let known = |mut cpus: Vec<u32>| {
            cpus.retain(|cpu| self.cpus.contains(cpu));
            cpus
        };
        let mut doubts = Vec::new();
        let packages = apart("Package", self.packages.iter().map(|(id, cpus)| (*id, known(cpus.clone()))), &mut doubts);
        let dies = apart("Die", self.dies.iter().map(|(id, cpus)| (*id, known(cpus.clone()))), &mut doubts);
        let cores = apart("Core", self.cores.iter().map(|(id, cpus)| (*id, known(cpus.clone()))), &mut doubts);
        let package_of_cpu: HashMap<u32, u32> =
            packages.iter().flat_map(|(id, cpus)| cpus.iter().map(|cpu| (*cpu, *id)).collect::<Vec<_>>()).collect();
        let package_of = |cpus: &[u32]| package_of_cpu.get(cpus.first()?).copied();
        let mut topology = Topology {
            processor: self.processor.clone(),
            dies: dies.into_iter().map(|(id, cpus)| Die { id, package: package_of(&cpus).unwrap_or(0), cpus }).collect(),
            cores: cores.into_iter().map(|(id, cpus)| Core { id, package: package_of(&cpus), cpus }).collect(),
            caches: self.caches.iter().map(|cache| Cache { cpus: known(cache.cpus.clone()), ..cache.clone() }).collect(),
            cpus: CpuLists { online, offline },
            page_bytes: self.page_bytes,
            nodes,
            ..Topology::default()
        };
        topology.packages = packages.into_iter().map(|(id, cpus)| Package { id, nodes: topology.nodes_of(&cpus), cpus }).collect();
        self.doubts.extend(doubts);
        topology.caches.sort_by(|a, b| (a.level, a.kind, &a.cpus).cmp(&(b.level, b.kind, &b.cpus)));
        topology
    }

    /// Gives each CPU to one node, as the kernel does; hwloc also lists nearby CPUs for a node without CPUs. The CPU goes to the
    /// closest node (the smallest set), then to ordinary memory before special memory, then to the lower number.
    fn assign_cpus(&mut self) -> Vec<Node> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&place| (self.nodes[place].cpus.len(), self.nodes[place].special, self.nodes[place].node.id));
        let mut free = self.cpus.clone();
        let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
        for place in order {
            let Local { node, cpus, .. } = &self.nodes[place];
            let own: Vec<u32> = cpus.iter().copied().filter(|cpu| free.remove(cpu)).collect();
            let memory_side_caches = self.side_caches.iter().filter(|(id, _)| *id == node.id).map(|(_, cache)| *cache).collect();
            // The CPUs near a node without CPUs are its initiators. If all CPUs are near, that says nothing.
            let near = own.is_empty() && !cpus.is_empty() && cpus.len() < self.cpus.len();
            let owners = || nodes.values().filter(|other| other.cpus.iter().any(|cpu| cpus.binary_search(cpu).is_ok()));
            let access = near.then(|| Access { class: 1, initiators: owners().map(|other| other.id).collect(), ..Access::default() });
            nodes.insert(node.id, Node { cpus: own, memory_side_caches, access: access.into_iter().collect(), ..node.clone() });
        }
        if let Some(cpu) = free.first() {
            self.doubts.push(format!("no node has CPU {cpu} ({} CPUs in all)", free.len()));
        }
        nodes.into_values().collect()
    }
}

/// Makes sets of CPUs disjoint: a CPU in two sets stays in the first, and empty sets are removed.
fn apart<T>(kind: &str, sets: impl Iterator<Item = (T, Vec<u32>)>, doubts: &mut Vec<String>) -> Vec<(T, Vec<u32>)> {
    let mut taken = BTreeSet::new();
    let mut doubled = None;
    let mut left = Vec::new();
    for (id, mut cpus) in sets {
        cpus.retain(|cpu| {
            let is_new = taken.insert(*cpu);
            doubled = doubled.or((!is_new).then_some(*cpu));
            is_new
        });
        if !cpus.is_empty() {
            left.push((id, cpus));
        }
    }
    doubts.extend(doubled.map(|cpu| format!("CPU {cpu} is in two objects of type {kind}; taken as in the first")));
    left
}

/// The operating system's number of an object; `None` if the object has none (a group, some cores) or it is unknown (hwloc writes
/// the largest number).
fn index(element: Element) -> Option<u32> {
    number(element, "os_index").and_then(|index| u32::try_from(index).ok()).filter(|index| *index <= LARGEST)
}

pub fn number(element: Element, name: &str) -> Option<u64> {
    element.attribute(name)?.trim().parse().ok()
}

fn cpus(element: Element) -> Result<Vec<u32>> {
    let kind = element.attribute("type").unwrap_or_default();
    let text =
        element.attribute("cpuset").ok_or_else(|| Error::invalid_data(format!("a {kind} has no cpuset at line {}", line(element))))?;
    bitmap::parse(text).ok_or_else(|| {
        Error::invalid_data(format!(
            "a {kind} has the cpuset {text:.60?} at line {}: expected a finite set such as 0x0000000f",
            line(element)
        ))
    })
}

/// The line of the file, for messages.
pub fn line(element: Element) -> u32 {
    element.document().text_pos_at(element.range().start).row
}

/// The number of an object without one: the count of the objects before it.
fn count<T>(objects: &[T]) -> u32 {
    u32::try_from(objects.len()).unwrap_or(u32::MAX)
}
