//! One node as a box: its memory, and below it groups of cores under their shared cache.

use super::{GAP, HEAD};
use crate::canvas::{Anchor, Area, Canvas, text_width, width_of};
use firsttouch_model::format_bytes;
use firsttouch_model::topology::{Cache, CacheKind, Core, Node, Topology};

pub const MEMORY_USED: &str = "#f2b880";
pub const MEMORY_FREE: &str = "#dff0d8";
pub const CPU: &str = "#ffffff";
pub const FORBIDDEN: &str = "#e08f8f";
const NODE: &str = "#e8eef7";
const CACHE: &str = "#ffffff";
const CORE: &str = "#d9d9d9";
const EDGE: &str = "#666";

/// The heights of a cache's bar and of a CPU, px.
const BAR: f64 = 17.0;
const CPU_HEIGHT: f64 = 20.0;
/// The gaps between boxes in a core and in a group, px.
const NARROW: f64 = 4.0;
/// Cores in a row of a group.
const MOST_IN_ROW: usize = 8;

/// The width of a text with padding, px.
pub fn wide(text: &str) -> f64 {
    text_width(text) + 10.0
}

/// A heading and its fainter details.
pub fn heading(canvas: &mut Canvas, (x, y): (f64, f64), text: &str, more: &str) {
    canvas.text((x, y), Anchor::Start, "head", text);
    if !more.is_empty() {
        canvas.text((x + width_of("head", text) * 1.1 + 8.0, y), Anchor::Start, "", more);
    }
}

/// A core with its private caches and its CPUs.
struct CoreBox {
    caches: Vec<String>,
    cpus: Vec<(u32, bool)>,
    width: f64,
}

/// Cores that share their largest cache.
struct Group {
    cache: Option<String>,
    cores: Vec<CoreBox>,
    columns: usize,
    core_width: f64,
    core_height: f64,
}

pub struct NodeBox<'a> {
    topology: &'a Topology,
    node: &'a Node,
    groups: Vec<Group>,
    group_columns: usize,
    pub width: f64,
    pub height: f64,
}

impl<'a> NodeBox<'a> {
    pub fn new(topology: &'a Topology, node: &'a Node) -> Self {
        let groups = groups(topology, node);
        let group_columns = (groups.len() as f64).sqrt().ceil().max(1.0) as usize;
        let rows = || groups.chunks(group_columns);
        let row_width = |row: &[Group]| row.iter().map(|group| group.width() + GAP).sum::<f64>() + GAP;
        let row_height = |row: &[Group]| row.iter().map(Group::height).fold(0.0, f64::max) + GAP;
        let text = 60.0 + wide(&memory_words(node)).max(wide(&access_words(node)));
        let width = rows().map(row_width).fold(text, f64::max);
        let lines = if access_words(node).is_empty() { 2.0 } else { 3.0 };
        let height = lines * HEAD + rows().map(row_height).sum::<f64>();
        Self { topology, node, group_columns, width, height, groups }
    }

    pub fn draw(&self, canvas: &mut Canvas, (x, y): (f64, f64), height: f64) {
        canvas.rectangle(Area { x, y, width: self.width, height }, NODE, "#5b76a3");
        let only = if self.node.cpus.is_empty() { "memory only" } else { "" };
        heading(canvas, (x + GAP, y + 15.0), &format!("Node {}", self.node.id), only);
        self.memory(canvas, Area { x: x + GAP, y: y + HEAD, width: self.width - 2.0 * GAP, height: BAR });
        let mut y = y + 2.0 * HEAD;
        let access = access_words(self.node);
        if !access.is_empty() {
            canvas.text((x + GAP, y + 11.0), Anchor::Start, "small", &access);
            y += HEAD;
        }
        for row in self.groups.chunks(self.group_columns) {
            let mut x = x + GAP;
            let taken: f64 = row.iter().map(|group| group.width() + GAP).sum();
            let spare = (self.width - GAP - taken).max(0.0) / row.len() as f64;
            for group in row {
                group.draw(canvas, (x, y), spare);
                x += group.width() + spare + GAP;
            }
            y += row.iter().map(Group::height).fold(0.0, f64::max) + GAP;
        }
    }

    /// The node's memory as a bar whose filled part is used.
    fn memory(&self, canvas: &mut Canvas, area: Area) {
        let free = self.node.memory.and_then(|memory| memory.free_bytes).filter(|free| *free > 0);
        // The free memory of a machine from a file is unknown.
        let fill = match free {
            _ if !self.is_allowed() => FORBIDDEN,
            Some(_) => MEMORY_FREE,
            None => CPU,
        };
        canvas.rectangle(area, fill, EDGE);
        if let Some((total, free)) = self.node.memory.and_then(|memory| Some((memory.total_bytes, memory.free_bytes?)))
            && total > 0
        {
            let part = total.saturating_sub(free) as f64 / total as f64;
            canvas.rectangle(Area { width: area.width * part, ..area }, MEMORY_USED, "none");
            canvas.rectangle(area, "none", EDGE);
        }
        canvas.text((area.x + area.width / 2.0, area.y + 12.5), Anchor::Middle, "", &memory_words(self.node));
    }

    fn is_allowed(&self) -> bool {
        let nodes = self.topology.process.as_ref().and_then(|limits| limits.allowed_nodes.as_ref());
        nodes.is_none_or(|nodes| nodes.binary_search(&self.node.id).is_ok())
    }
}

fn memory_words(node: &Node) -> String {
    match node.memory {
        None => "memory unknown".to_owned(),
        Some(memory) if memory.total_bytes == 0 => "no memory".to_owned(),
        Some(memory) => {
            let free = memory.free_bytes.map(|free| format!(", {} free", format_bytes(free))).unwrap_or_default();
            format!("{}{free}", format_bytes(memory.total_bytes))
        }
    }
}

/// `read 204,800 MiB/s, 90 ns`: the firmware's figures from the nearest CPUs.
fn access_words(node: &Node) -> String {
    let Some(access) = node.access.iter().max_by_key(|access| access.class) else { return String::new() };
    let bandwidth = access.read_bandwidth_mib_s.map(|figure| format!("{} MiB/s", crate::thousands(figure)));
    let latency = access.read_latency_ns.map(|figure| format!("{figure} ns"));
    let words: Vec<String> = bandwidth.into_iter().chain(latency).collect();
    if words.is_empty() { String::new() } else { format!("read {}", words.join(", ")) }
}

fn groups(topology: &Topology, node: &Node) -> Vec<Group> {
    let inside = |cpus: &[u32]| cpus.iter().any(|cpu| node.cpus.binary_search(cpu).is_ok());
    let mut cores: Vec<&Core> = topology.cores.iter().filter(|core| inside(&core.cpus)).collect();
    let singles: Vec<Core>;
    if cores.is_empty() {
        // Cores are unknown: treat each CPU as a core.
        singles = node.cpus.iter().map(|&cpu| Core { id: None, package: None, cpus: vec![cpu] }).collect();
        cores = singles.iter().collect();
        return gather(topology, node, cores);
    }
    gather(topology, node, cores)
}

fn gather(topology: &Topology, node: &Node, cores: Vec<&Core>) -> Vec<Group> {
    // Cores are grouped by their outermost shared cache.
    let outer = |core: &Core| {
        let holds = |cache: &&Cache| core.cpus.first().is_some_and(|cpu| cache.cpus.binary_search(cpu).is_ok());
        topology
            .caches
            .iter()
            .enumerate()
            .filter(|(_, cache)| holds(cache) && cache.cpus.len() > core.cpus.len())
            .max_by_key(|(_, cache)| cache.level)
    };
    let mut lists: Vec<(Option<usize>, Vec<&Core>)> = Vec::new();
    for core in cores {
        let key = outer(core).map(|(index, _)| index);
        match lists.iter_mut().find(|(other, _)| *other == key) {
            Some((_, list)) => list.push(core),
            None => lists.push((key, vec![core])),
        }
    }
    lists.into_iter().map(|(key, cores)| Group::new(topology, node, key.map(|index| &topology.caches[index]), &cores)).collect()
}

impl Group {
    fn new(topology: &Topology, node: &Node, cache: Option<&Cache>, cores: &[&Core]) -> Self {
        let cores: Vec<CoreBox> = cores.iter().map(|core| CoreBox::new(topology, core, cache)).collect();
        let core_width = cores.iter().map(|core| core.width).fold(0.0, f64::max);
        let core_height = cores.iter().map(CoreBox::height).fold(0.0, f64::max);
        // Up to four in a row, up to two rows, then rows of eight.
        let columns = match cores.len() {
            count @ 0..=4 => count.max(1),
            count if count <= MOST_IN_ROW => count.div_ceil(2),
            _ => MOST_IN_ROW,
        };
        let label = cache.map(|cache| {
            let beyond = cache.cpus.iter().any(|cpu| node.cpus.binary_search(cpu).is_err());
            format!("{} {}{}", cache.name(), format_bytes(cache.size_bytes), if beyond { ", shared with other nodes" } else { "" })
        });
        Self { columns, cache: label, cores, core_width, core_height }
    }

    fn width(&self) -> f64 {
        let cores = self.columns as f64 * (self.core_width + NARROW) - NARROW;
        cores.max(wide(self.cache.as_deref().unwrap_or_default()))
    }

    fn height(&self) -> f64 {
        let bar = if self.cache.is_some() { BAR + NARROW } else { 0.0 };
        bar + self.cores.len().div_ceil(self.columns) as f64 * (self.core_height + NARROW) - NARROW
    }

    /// Draws the group, wider by `spare` to fill its node.
    fn draw(&self, canvas: &mut Canvas, (x, mut y): (f64, f64), spare: f64) {
        let width = self.width() + spare;
        if let Some(cache) = &self.cache {
            bar(canvas, Area { x, y, width, height: BAR }, cache);
            y += BAR + NARROW;
        }
        let core_width = (width + NARROW) / self.columns as f64 - NARROW;
        for row in self.cores.chunks(self.columns) {
            for (place, core) in row.iter().enumerate() {
                let x = x + place as f64 * (core_width + NARROW);
                core.draw(canvas, Area { x, y, width: core_width, height: self.core_height });
            }
            y += self.core_height + NARROW;
        }
    }
}

fn bar(canvas: &mut Canvas, area: Area, text: &str) {
    canvas.rectangle(area, CACHE, EDGE);
    canvas.text((area.x + area.width / 2.0, area.y + 12.5), Anchor::Middle, "small", text);
}

impl CoreBox {
    fn new(topology: &Topology, core: &Core, group: Option<&Cache>) -> Self {
        let allowed = topology.process.as_ref().and_then(|limits| limits.allowed_cpus.as_ref());
        let cpus: Vec<(u32, bool)> =
            core.cpus.iter().map(|cpu| (*cpu, allowed.is_none_or(|list| list.binary_search(cpu).is_ok()))).collect();
        let mut own: Vec<&Cache> = topology
            .caches
            .iter()
            .filter(|cache| core.cpus.first().is_some_and(|cpu| cache.cpus.binary_search(cpu).is_ok()))
            // The group's cache is drawn above; instruction caches do not matter for memory.
            .filter(|cache| group.is_none_or(|group| !std::ptr::eq(*cache, group)) && cache.kind != CacheKind::Instruction)
            .collect();
        own.sort_by_key(|cache| std::cmp::Reverse(cache.level));
        let caches: Vec<String> = own
            .into_iter()
            .map(|cache| {
                let shared = if cache.cpus.len() > core.cpus.len() { format!(" /{} CPUs", cache.cpus.len()) } else { String::new() };
                format!("{} {}{shared}", cache.name(), format_bytes(cache.size_bytes))
            })
            .collect();
        let texts = caches.iter().map(|text| wide(text)).fold(36.0, f64::max);
        Self { width: texts.max(core.cpus.len() as f64 * 28.0 + NARROW), caches, cpus }
    }

    fn height(&self) -> f64 {
        self.caches.len() as f64 * BAR + CPU_HEIGHT + 2.0 * NARROW
    }

    fn draw(&self, canvas: &mut Canvas, area: Area) {
        canvas.rectangle(area, CORE, EDGE);
        let mut y = area.y;
        for cache in &self.caches {
            bar(canvas, Area { y, height: BAR, ..area }, cache);
            y += BAR;
        }
        let width = (area.width - NARROW) / self.cpus.len().max(1) as f64;
        for (place, (cpu, allowed)) in self.cpus.iter().enumerate() {
            let x = area.x + NARROW + place as f64 * width;
            let cell = Area { x, y: y + NARROW, width: width - NARROW, height: CPU_HEIGHT };
            canvas.rectangle(cell, if *allowed { CPU } else { FORBIDDEN }, EDGE);
            canvas.text((cell.x + cell.width / 2.0, cell.y + 14.0), Anchor::Middle, "", &cpu.to_string());
        }
    }
}
