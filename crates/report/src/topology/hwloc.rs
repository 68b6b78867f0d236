//! A topology as hwloc XML, format 2: `lstopo -i FILE`, `hwloc-info -i FILE` and hwloc's library read it.
//!
//! hwloc expects objects nested by their sets of CPUs. Each object has the sets of its CPUs and nodes and a unique number; memory is a
//! child of the object that it is local to (hwloc2.dtd, and its reader topology-xml.c).

use crate::xml::escape;
use firsttouch_model::topology::{Cache, CacheKind, Distances, Node, Topology};
use std::fmt::Write;

/// The kind of an object in the tree.
enum Kind<'a> {
    Machine,
    Package(u32),
    Die(u32),
    /// Holds a node whose set of CPUs no other object has.
    Group,
    Cache(&'a Cache),
    Core(Option<u32>),
    Pu(u32),
}

struct Object<'a> {
    kind: Kind<'a>,
    cpus: Vec<u32>,
    memory: Vec<&'a Node>,
    children: Vec<Object<'a>>,
}

/// A measured memory attribute, by hwloc's name.
pub struct Attribute {
    pub name: &'static str,
    pub higher_is_better: bool,
    /// (memory node, the CPUs that use it, figure in MiB/s or ns).
    pub values: Vec<(u32, Vec<u32>, u64)>,
}

/// The topology as an hwloc XML document.
#[must_use]
pub fn hwloc_xml(topology: &Topology) -> String {
    hwloc_xml_with(topology, &[])
}

/// The same with measured attributes, which replace the firmware's.
pub fn hwloc_xml_with(topology: &Topology, measured: &[Attribute]) -> String {
    let mut root = Object { kind: Kind::Machine, cpus: topology.cpus.online.clone(), memory: Vec::new(), children: Vec::new() };
    for object in objects(topology) {
        insert(&mut root, object);
    }
    for node in &topology.nodes {
        attach(&mut root, node, &near(topology, node));
    }
    let mut writer = Writer { topology, out: String::new(), gp: 0, node_gp: Vec::new() };
    writer
        .out
        .push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n");
    writer.object(&root, 1, &[]);
    if let Some(distances) = &topology.distances {
        writer.distances(distances);
    }
    writer.attributes(measured);
    writer.out.push_str("</topology>\n");
    writer.out
}

/// All objects except nodes: larger sets first, and for equal sets the outer kind first.
fn objects(topology: &Topology) -> Vec<Object<'_>> {
    let mut list: Vec<(u32, Object)> = Vec::new();
    let mut push = |rank, kind, cpus: &[u32]| {
        if !cpus.is_empty() {
            list.push((rank, Object { kind, cpus: cpus.to_vec(), memory: Vec::new(), children: Vec::new() }));
        }
    };
    for package in &topology.packages {
        push(0, Kind::Package(package.id), &package.cpus);
    }
    // A single die is the same as its package.
    if topology.dies.len() > topology.packages.len() {
        for die in &topology.dies {
            push(1, Kind::Die(die.id), &die.cpus);
        }
    }
    for cache in &topology.caches {
        // L5 is outermost; the instruction cache is inside the data cache.
        push(10 - cache.level.min(5) + u32::from(cache.kind == CacheKind::Instruction), Kind::Cache(cache), &cache.cpus);
    }
    for core in &topology.cores {
        push(20, Kind::Core(core.id), &core.cpus);
    }
    for &cpu in &topology.cpus.online {
        push(30, Kind::Pu(cpu), &[cpu]);
    }
    list.sort_by_key(|(rank, object)| (std::cmp::Reverse(object.cpus.len()), *rank));
    list.into_iter().map(|(_, object)| object).collect()
}

fn within(inner: &[u32], outer: &[u32]) -> bool {
    inner.iter().all(|cpu| outer.binary_search(cpu).is_ok())
}

/// Inserts an object below the smallest object that encloses it. An object that only overlaps another does not fit a tree and is left out.
fn insert<'a>(parent: &mut Object<'a>, object: Object<'a>) {
    if !within(&object.cpus, &parent.cpus) {
        return;
    }
    if let Some(child) = parent.children.iter_mut().find(|child| within(&object.cpus, &child.cpus)) {
        return insert(child, object);
    }
    let overlaps = |child: &Object| object.cpus.iter().any(|cpu| child.cpus.binary_search(cpu).is_ok());
    if !parent.children.iter().any(overlaps) {
        parent.children.push(object);
    }
}

/// The CPUs that are local to a node: its own, else those of its nearest initiators, else all.
fn near(topology: &Topology, node: &Node) -> Vec<u32> {
    if !node.cpus.is_empty() {
        return node.cpus.clone();
    }
    let initiators = node.access.iter().max_by_key(|access| access.class).map_or(&[][..], |access| &access.initiators);
    let mut cpus: Vec<u32> =
        topology.nodes.iter().filter(|node| initiators.contains(&node.id)).flat_map(|node| node.cpus.iter().copied()).collect();
    cpus.sort_unstable();
    if cpus.is_empty() { topology.cpus.online.clone() } else { cpus }
}

/// Attaches a node to the object with exactly these CPUs, else to a new group of them. Like hwloc, prefers the package to the machine if
/// there is one package, but stays above the caches.
fn attach<'a>(parent: &mut Object<'a>, node: &'a Node, cpus: &[u32]) {
    let inner = |child: &Object| matches!(child.kind, Kind::Package(_) | Kind::Die(_) | Kind::Group) || cpus.len() < parent.cpus.len();
    let place = parent.children.iter().position(|child| within(cpus, &child.cpus) && inner(child));
    if let Some(child) = place.and_then(|place| parent.children.get_mut(place)) {
        return attach(child, node, cpus);
    }
    if cpus == parent.cpus {
        parent.memory.push(node);
        return;
    }
    let (inside, outside): (Vec<Object>, Vec<Object>) =
        std::mem::take(&mut parent.children).into_iter().partition(|child| within(&child.cpus, cpus));
    parent.children = outside;
    if inside.iter().map(|child| child.cpus.len()).sum::<usize>() == cpus.len() {
        parent.children.push(Object { kind: Kind::Group, cpus: cpus.to_vec(), memory: vec![node], children: inside });
    } else {
        // Another object overlaps the node's CPUs: the tree can only express which object encloses both.
        parent.children.extend(inside);
        parent.memory.push(node);
    }
    parent.children.sort_by_key(|child| child.cpus.first().copied());
}

struct Writer<'a> {
    topology: &'a Topology,
    out: String,
    /// The number of the last object (`gp_index`).
    gp: u64,
    /// (node, number of its object), for attributes.
    node_gp: Vec<(u32, u64)>,
}

impl Writer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{}{text}", "  ".repeat(depth));
    }

    fn next(&mut self) -> u64 {
        self.gp += 1;
        self.gp
    }

    /// Writes an object and its children. `outer` are the nodes of enclosing objects, which are local to it as well.
    fn object(&mut self, object: &Object, depth: usize, outer: &[u32]) {
        let gp = self.next();
        let mut outer = outer.to_vec();
        outer.extend(object.memory.iter().map(|node| node.id));
        let mut nodes = outer.clone();
        below(object, &mut nodes);
        let mut tag = format!("<object type=\"{}\"", name(&object.kind));
        let index = match object.kind {
            Kind::Machine => Some(0),
            Kind::Package(id) | Kind::Die(id) | Kind::Pu(id) => Some(id),
            Kind::Core(id) => id,
            Kind::Group | Kind::Cache(_) => None,
        };
        if let Some(index) = index {
            let _ = write!(tag, " os_index=\"{index}\"");
        }
        let _ = write!(tag, "{}", sets(&object.cpus, &nodes));
        if matches!(object.kind, Kind::Machine) {
            tag = self.machine(&nodes);
        }
        let _ = write!(tag, " gp_index=\"{gp}\"");
        if let Kind::Cache(cache) = object.kind {
            let kind = match cache.kind {
                CacheKind::Unified => 0,
                CacheKind::Data => 1,
                CacheKind::Instruction => 2,
            };
            let _ = write!(
                tag,
                " cache_size=\"{}\" depth=\"{}\" cache_linesize=\"{}\" cache_associativity=\"{}\" cache_type=\"{kind}\"",
                cache.size_bytes,
                cache.level,
                cache.line_bytes.unwrap_or(0),
                cache.ways.unwrap_or(0)
            );
        }
        if matches!(object.kind, Kind::Group) {
            // HWLOC_GROUP_KIND_MEMORY: a group that was created to hold memory.
            tag += " kind=\"1001\" subkind=\"0\"";
        }
        if object.memory.is_empty() && object.children.is_empty() {
            return self.line(depth, &format!("{tag}/>"));
        }
        self.line(depth, &format!("{tag}>"));
        self.infos(&object.kind, depth + 1);
        for node in &object.memory {
            self.node(node, &object.cpus, depth + 1);
        }
        for child in &object.children {
            self.object(child, depth + 1, &outer);
        }
        self.line(depth, "</object>");
    }

    /// The machine's tag, with offline and forbidden CPUs and nodes.
    fn machine(&self, nodes: &[u32]) -> String {
        let cpus = &self.topology.cpus;
        let mut complete: Vec<u32> = cpus.online.iter().chain(&cpus.offline).copied().collect();
        complete.sort_unstable();
        let limits = self.topology.process.as_ref();
        let allowed = |list: Option<&Vec<u32>>, all: &[u32]| -> Vec<u32> {
            let kept: Vec<u32> = all.iter().copied().filter(|one| list.is_none_or(|list| list.binary_search(one).is_ok())).collect();
            // hwloc refuses a machine without allowed CPUs or nodes.
            if kept.is_empty() { all.to_vec() } else { kept }
        };
        format!(
            "<object type=\"Machine\" os_index=\"0\" cpuset=\"{}\" complete_cpuset=\"{}\" allowed_cpuset=\"{}\" nodeset=\"{nodes}\" \
             complete_nodeset=\"{nodes}\" allowed_nodeset=\"{}\"",
            bitmap(&cpus.online),
            bitmap(&complete),
            bitmap(&allowed(limits.and_then(|limits| limits.allowed_cpus.as_ref()), &cpus.online)),
            bitmap(&allowed(limits.and_then(|limits| limits.allowed_nodes.as_ref()), nodes)),
            nodes = bitmap(nodes),
        )
    }

    fn infos(&mut self, kind: &Kind, depth: usize) {
        let processor = &self.topology.processor;
        let number = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
        let infos = match kind {
            Kind::Machine => vec![("Backend", "firsttouch".to_owned())],
            Kind::Package(_) => vec![
                ("CPUVendor", processor.vendor.clone()),
                ("CPUFamilyNumber", number(processor.family)),
                ("CPUModelNumber", number(processor.model)),
                ("CPUModel", processor.model_name.clone()),
            ],
            _ => Vec::new(),
        };
        for (name, value) in infos {
            if !value.is_empty() {
                self.line(depth, &format!("<info name=\"{name}\" value=\"{}\"/>", escape(&value)));
            }
        }
    }

    fn node(&mut self, node: &Node, cpus: &[u32], depth: usize) {
        let gp = self.next();
        self.node_gp.push((node.id, gp));
        let total = node.memory.map_or(0, |memory| memory.total_bytes);
        let memory = if total > 0 { format!(" local_memory=\"{total}\"") } else { String::new() };
        let mut tag = format!("<object type=\"NUMANode\" os_index=\"{}\"{} gp_index=\"{gp}\"{memory}", node.id, sets(cpus, &[node.id]));
        let mut pages = Vec::new();
        if let Some(base) = self.topology.page_bytes {
            let huge = node.huge_pages.iter().fold(0, |sum: u64, pool| sum.saturating_add(pool.page_bytes.saturating_mul(pool.total)));
            pages.push((base, total.saturating_sub(huge) / base.max(1)));
            pages.extend(node.huge_pages.iter().map(|pool| (pool.page_bytes, pool.total)));
        }
        if pages.is_empty() {
            tag += "/>";
            return self.line(depth, &tag);
        }
        self.line(depth, &format!("{tag}>"));
        for (size, count) in pages {
            self.line(depth + 1, &format!("<page_type size=\"{size}\" count=\"{count}\"/>"));
        }
        self.line(depth, "</object>");
    }

    fn distances(&mut self, distances: &Distances) {
        let count = distances.nodes.len();
        if count < 2 {
            return;
        }
        // kind 5: a latency from the operating system. Each `length` attribute is the length of the text.
        self.line(1, &format!("<distances2 type=\"NUMANode\" nbobjs=\"{count}\" kind=\"5\" name=\"NUMALatency\" indexing=\"os\">"));
        let indexes: String = distances.nodes.iter().map(|node| format!("{node} ")).collect();
        self.line(2, &format!("<indexes length=\"{}\">{indexes}</indexes>", indexes.len()));
        for row in &distances.matrix {
            let values: String = row.iter().map(|value| format!("{value} ")).collect();
            self.line(2, &format!("<u64values length=\"{}\">{values}</u64values>", values.len()));
        }
        self.line(1, "</distances2>");
    }

    /// Bandwidth and latency: the measured values, else the firmware's for the nearest CPUs.
    fn attributes(&mut self, measured: &[Attribute]) {
        let by_firmware = ["ReadBandwidth", "WriteBandwidth", "ReadLatency", "WriteLatency"];
        for name in by_firmware.into_iter().filter(|name| !measured.iter().any(|one| one.name == *name)) {
            let values = self.topology.nodes.iter().filter_map(|node| self.of_firmware(name, node)).collect();
            self.attribute(&Attribute { name, higher_is_better: name.ends_with("Bandwidth"), values });
        }
        for attribute in measured {
            self.attribute(attribute);
        }
    }

    fn of_firmware(&self, name: &str, node: &Node) -> Option<(u32, Vec<u32>, u64)> {
        // hwloc expects access from CPUs, which is class 1; class 0 may be from another device.
        let access = node.access.iter().max_by_key(|access| access.class)?;
        let figure = match name {
            "ReadBandwidth" => access.read_bandwidth_mib_s,
            "WriteBandwidth" => access.write_bandwidth_mib_s,
            "ReadLatency" => access.read_latency_ns,
            _ => access.write_latency_ns,
        };
        let from = self.topology.nodes.iter().filter(|node| access.initiators.contains(&node.id));
        let mut cpus: Vec<u32> = from.flat_map(|node| node.cpus.iter().copied()).collect();
        cpus.sort_unstable();
        Some((node.id, cpus, figure?))
    }

    fn attribute(&mut self, attribute: &Attribute) {
        let mut lines = Vec::new();
        for (node, cpus, figure) in &attribute.values {
            let gp = self.node_gp.iter().find(|(id, _)| id == node).map(|(_, gp)| *gp);
            if let (Some(gp), false) = (gp, cpus.is_empty()) {
                lines.push(format!(
                    "<memattr_value target_obj_type=\"NUMANode\" target_obj_gp_index=\"{gp}\" value=\"{figure}\" initiator_cpuset=\"{}\"/>",
                    bitmap(cpus)
                ));
            }
        }
        if lines.is_empty() {
            return;
        }
        // Flags: needs an initiator; higher (or lower) is better.
        let flags = if attribute.higher_is_better { 5 } else { 6 };
        self.line(1, &format!("<memattr name=\"{}\" flags=\"{flags}\">", attribute.name));
        for line in lines {
            self.line(2, &line);
        }
        self.line(1, "</memattr>");
    }
}

/// Adds the nodes of all descendants.
fn below(object: &Object, nodes: &mut Vec<u32>) {
    for child in &object.children {
        nodes.extend(child.memory.iter().map(|node| node.id));
        below(child, nodes);
    }
}

fn name(kind: &Kind) -> String {
    match kind {
        Kind::Machine => "Machine".to_owned(),
        Kind::Package(_) => "Package".to_owned(),
        Kind::Die(_) => "Die".to_owned(),
        Kind::Group => "Group".to_owned(),
        Kind::Cache(cache) if cache.kind == CacheKind::Instruction => format!("L{}iCache", cache.level),
        Kind::Cache(cache) => format!("L{}Cache", cache.level),
        Kind::Core(_) => "Core".to_owned(),
        Kind::Pu(_) => "PU".to_owned(),
    }
}

fn sets(cpus: &[u32], nodes: &[u32]) -> String {
    let (cpus, nodes) = (bitmap(cpus), bitmap(nodes));
    format!(" cpuset=\"{cpus}\" complete_cpuset=\"{cpus}\" nodeset=\"{nodes}\" complete_nodeset=\"{nodes}\"")
}

/// A set in hwloc's notation: groups of 32 bits, the highest first.
fn bitmap(numbers: &[u32]) -> String {
    let groups = numbers.iter().max().map_or(1, |last| last / 32 + 1);
    let group = |index: u32| numbers.iter().filter(|number| **number / 32 == index).fold(0u32, |bits, number| bits | 1 << (number % 32));
    let words: Vec<String> = (0..groups).rev().map(|index| format!("0x{:08x}", group(index))).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::topology::{HugePages, Memory};

    /// Check sets in hwloc's notation.
    #[test]
    fn sets_are_written() {
        assert_eq!(bitmap(&[]), "0x00000000");
        assert_eq!(bitmap(&[0, 1, 31]), "0x80000003");
        assert_eq!(bitmap(&[31, 64]), "0x00000001,0x00000000,0x80000000");
    }

    /// Check that pools of huge pages which claim more bytes than a number holds leave no base pages. (A fuzz target found that their sum
    /// overflows.)
    #[test]
    fn huge_pages_larger_than_memory() {
        let pool = |page_bytes| HugePages { page_bytes, total: u64::MAX, free: None, surplus: None };
        let memory = Some(Memory { total_bytes: 1 << 30, free_bytes: None });
        let node = Node { id: 0, cpus: vec![0], memory, huge_pages: vec![pool(1), pool(2)], access: vec![], memory_side_caches: vec![] };
        let topology = Topology { nodes: vec![node], page_bytes: Some(4096), ..Topology::default() };
        let xml = hwloc_xml(&topology);
        assert!(xml.contains("<page_type size=\"4096\" count=\"0\"/>"), "{xml}");
    }
}
