//! The topology as text.

use super::table::{Align, fold, table};
use crate::text::Style;
use crate::text::layout::clean;
use crate::text::paint::Paint;
use crate::text::words::{count, thousands};
use Align::{Left, Right};
use firsttouch_model::format_bytes;
use firsttouch_model::topology::{Cache, MemoryPolicy, Node, ProcessLimits, Topology, format_list};
use std::collections::BTreeMap;

/// The topology as text, lines of about `style.width` columns, ending in a newline.
#[must_use]
pub fn topology_text(topology: &Topology, style: Style) -> String {
    let mut out = Text { style, lines: Vec::new() };
    overview(&mut out, topology);
    caches(&mut out, topology);
    nodes(&mut out, topology);
    distances(&mut out, topology);
    access(&mut out, topology);
    if let Some(limits) = &topology.process {
        process(&mut out, topology, limits);
    }
    domains(&mut out, topology);
    if !topology.doubts.is_empty() {
        out.heading("Doubts");
        for doubt in &topology.doubts {
            out.rows(&[vec!["  -".to_owned(), clean(doubt)]], &[Left, Left]);
        }
    }
    let mut text = out.lines.join("\n");
    text.push('\n');
    text
}

struct Text {
    style: Style,
    lines: Vec<String>,
}

impl Text {
    fn heading(&mut self, text: &str) {
        if !self.lines.is_empty() {
            self.lines.push(String::new());
        }
        self.lines.extend(fold(text, self.style.width).iter().map(|line| self.style.paint(Paint::Bold, line.trim_end())));
    }

    fn rows(&mut self, rows: &[Vec<String>], aligns: &[Align]) {
        self.lines.extend(table(rows, aligns, self.style.width));
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() { "none".to_owned() } else { text }
}

fn unknown<T>(value: Option<T>, word: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "?".to_owned(), word)
}

fn overview(out: &mut Text, topology: &Topology) {
    let processor = &topology.processor;
    let name = match (processor.model_name.as_str(), processor.vendor.as_str()) {
        ("", "") => "unknown".to_owned(),
        (name, "") | ("", name) => name.to_owned(),
        (name, vendor) => format!("{name} ({vendor})"),
    };
    let guest = if processor.hypervisor { ", under a hypervisor: what it shows may differ from the hardware" } else { "" };
    let cpus = count(topology.cpus.online.len() + topology.cpus.offline.len(), "CPU");
    let mut shape = vec![count(topology.nodes.len(), "node")];
    for (number, noun) in [(topology.packages.len(), "package"), (topology.dies.len(), "die"), (topology.cores.len(), "core")] {
        if number > 0 {
            shape.push(count(number, noun));
        }
    }
    let threads = topology.threads_per_core();
    shape.push(if threads > 0 { format!("{cpus} ({} a core)", count(threads, "thread")) } else { cpus });
    let mut rows = vec![
        vec!["processor".to_owned(), clean(&format!("{name}{guest}"))],
        vec!["machine".to_owned(), shape.join(", ")],
        vec![
            "CPUs".to_owned(),
            format!("online {}; offline {}", format_list(&topology.cpus.online), or_none(format_list(&topology.cpus.offline))),
        ],
    ];
    if threads > 1 {
        rows.push(vec!["SMT siblings".to_owned(), siblings(topology)]);
    }
    if let Some(sub_numa) = &topology.sub_numa {
        let name = if sub_numa.mode.is_empty() { String::new() } else { format!("{}: ", sub_numa.mode) };
        rows.push(vec!["sub-NUMA".to_owned(), format!("{name}{}", sub_numa.meaning)]);
    }
    for package in &topology.packages {
        let nodes = or_none(format_list(&package.nodes));
        let dies = topology.dies.iter().filter(|die| die.package == package.id).count();
        let dies = if dies > 1 { format!(", {dies} dies") } else { String::new() };
        rows.push(vec![format!("package {}", package.id), format!("nodes {nodes}{dies}, CPUs {}", format_list(&package.cpus))]);
    }
    out.rows(&rows, &[Left, Left]);
}

/// `n with n+64` if that describes all cores, else each core: `0,4  1,5`.
fn siblings(topology: &Topology) -> String {
    let first = topology.cores.first().map_or(&[][..], |core| &core.cpus);
    let offsets = |cpus: &[u32]| cpus.iter().map(|cpu| cpu - cpus[0]).collect::<Vec<u32>>();
    let pattern = offsets(first);
    if pattern.len() > 1 && topology.cores.iter().all(|core| offsets(&core.cpus) == pattern) {
        let others: Vec<String> = pattern.iter().skip(1).map(|offset| format!("n+{offset}")).collect();
        return format!("CPU n with {}: {} and so on", others.join(", "), format_list(first));
    }
    let cores: Vec<String> = topology.cores.iter().map(|core| format_list(&core.cpus).replace(',', "+")).collect();
    cores.join("  ")
}

/// One line for all caches that differ only in their CPUs.
fn caches(out: &mut Text, topology: &Topology) {
    let mut kinds: BTreeMap<(u32, String, u64, usize), Vec<&Cache>> = BTreeMap::new();
    for cache in &topology.caches {
        kinds.entry((cache.level, cache.name(), cache.size_bytes, cache.cpus.len())).or_default().push(cache);
    }
    if kinds.is_empty() {
        return;
    }
    out.heading("Caches");
    let mut rows = vec![["cache", "size", "number", "sum", "line", "shared by"].map(str::to_owned).to_vec()];
    for ((_, name, size, cpus), list) in kinds {
        let shared = match list.as_slice() {
            _ if cpus == 1 => "1 CPU".to_owned(),
            [one] => format!("CPUs {}", format_list(&one.cpus)),
            [one, ..] => format!("{} CPUs ({}; ...)", cpus, format_list(&one.cpus)),
            [] => String::new(),
        };
        rows.push(vec![
            name,
            format_bytes(size),
            list.len().to_string(),
            format_bytes(size.saturating_mul(list.len() as u64)),
            unknown(list[0].line_bytes, |bytes| format!("{bytes} B")),
            shared,
        ]);
    }
    out.rows(&rows, &[Left, Right, Right, Right, Right, Left]);
}

fn nodes(out: &mut Text, topology: &Topology) {
    out.heading("Nodes");
    let mut header = vec!["node".to_owned(), "package".to_owned(), "memory".to_owned(), "free".to_owned()];
    let mut aligns = vec![Right, Right, Right, Right];
    // A column for each size with reserved pages; one line names the other sizes.
    let mut sizes: Vec<u64> = topology.nodes.iter().flat_map(|node| node.huge_pages.iter().map(|pool| pool.page_bytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let has_pages =
        |size: u64| topology.nodes.iter().any(|node| node.huge_pages.iter().any(|pool| pool.page_bytes == size && pool.total > 0));
    let (used, unused): (Vec<u64>, Vec<u64>) = sizes.into_iter().partition(|size| has_pages(*size));
    for size in &used {
        header.push(format!("{} pages free", format_bytes(*size)));
        aligns.push(Right);
    }
    header.push("CPUs".to_owned());
    aligns.push(Left);
    let mut rows = vec![header];
    for node in &topology.nodes {
        rows.push(node_row(topology, node, &used));
    }
    out.rows(&rows, &aligns);
    if !unused.is_empty() {
        let sizes: Vec<String> = unused.into_iter().map(format_bytes).collect();
        out.lines.push(format!("No huge pages are reserved of {}.", sizes.join(" and ")));
    }
    for node in topology.nodes.iter().filter(|node| !node.memory_side_caches.is_empty()) {
        let sizes: Vec<String> = node.memory_side_caches.iter().map(|cache| format_bytes(cache.size_bytes)).collect();
        out.lines.push(format!("Node {} is behind a memory-side cache of {}.", node.id, sizes.join(", ")));
    }
}

fn node_row(topology: &Topology, node: &Node, huge: &[u64]) -> Vec<String> {
    let packages: Vec<u32> =
        topology.packages.iter().filter(|package| package.nodes.contains(&node.id)).map(|package| package.id).collect();
    let mut row = vec![
        node.id.to_string(),
        if packages.is_empty() { "-".to_owned() } else { format_list(&packages) },
        unknown(node.memory, |memory| if memory.total_bytes == 0 { "none".to_owned() } else { format_bytes(memory.total_bytes) }),
        unknown(node.memory.and_then(|memory| memory.free_bytes), format_bytes),
    ];
    for size in huge {
        let pool = node.huge_pages.iter().find(|pool| pool.page_bytes == *size);
        row.push(pool.map_or("-".to_owned(), |pool| format!("{} of {}", unknown(pool.free, thousands), thousands(pool.total))));
    }
    row.push(if node.cpus.is_empty() { memory_only(node) } else { format_list(&node.cpus) });
    row
}

/// `none: memory only, nearest to nodes 0`.
fn memory_only(node: &Node) -> String {
    let nearest = node.access.iter().max_by_key(|access| access.class).map(|access| format_list(&access.initiators));
    let nearest = nearest.filter(|list| !list.is_empty()).map(|list| format!(", nearest to nodes {list}")).unwrap_or_default();
    format!("none: memory only{nearest}")
}

fn distances(out: &mut Text, topology: &Topology) {
    let Some(distances) = &topology.distances else { return };
    out.heading("Distances (from the row's node to the column's memory; 10 = local)");
    let mut header = vec!["node".to_owned()];
    header.extend(distances.nodes.iter().map(u32::to_string));
    let mut rows = vec![header];
    for (node, row) in distances.nodes.iter().zip(&distances.matrix) {
        let mut cells = vec![node.to_string()];
        cells.extend(row.iter().map(u32::to_string));
        rows.push(cells);
    }
    // `table` folds the last column and aligns it left, so this one is padded here.
    let widest = rows.iter().filter_map(|row| row.last()).map(String::len).max().unwrap_or(0);
    for row in &mut rows {
        if let Some(cell) = row.last_mut() {
            *cell = format!("{cell:>widest$}");
        }
    }
    out.lines.extend(table(&rows, &vec![Right; distances.nodes.len() + 1], usize::MAX));
}

fn access(out: &mut Text, topology: &Topology) {
    let mut rows = vec![["node", "class", "read MiB/s", "write MiB/s", "read ns", "write ns", "from nodes"].map(str::to_owned).to_vec()];
    for node in &topology.nodes {
        for access in &node.access {
            let figures = [access.read_bandwidth_mib_s, access.write_bandwidth_mib_s, access.read_latency_ns, access.write_latency_ns];
            if figures == [None; 4] {
                continue;
            }
            rows.push(vec![
                node.id.to_string(),
                access.class.to_string(),
                unknown(access.read_bandwidth_mib_s, thousands),
                unknown(access.write_bandwidth_mib_s, thousands),
                unknown(access.read_latency_ns, thousands),
                unknown(access.write_latency_ns, thousands),
                or_none(format_list(&access.initiators)),
            ]);
        }
    }
    if rows.len() > 1 {
        out.heading("Access by the firmware (HMAT; class 0: nearest initiators, 1: nearest CPUs)");
        out.rows(&rows, &[Right, Right, Right, Right, Right, Right, Left]);
    }
}

fn process(out: &mut Text, topology: &Topology, limits: &ProcessLimits) {
    out.heading("This process");
    let cpus = unknown(limits.allowed_cpus.as_ref(), |cpus| {
        format!("{} (nodes {})", or_none(format_list(cpus)), or_none(format_list(&topology.nodes_of(cpus))))
    });
    let mut rows = vec![
        vec!["memory policy".to_owned(), unknown(limits.policy.as_ref(), policy)],
        vec!["allowed CPUs".to_owned(), cpus],
        vec!["allowed nodes".to_owned(), unknown(limits.allowed_nodes.as_ref(), |nodes| or_none(format_list(nodes)))],
    ];
    if let Some(cpuset) = &limits.cpuset {
        let list = |list: &Option<Vec<u32>>| unknown(list.as_ref(), |list| or_none(format_list(list)));
        rows.push(vec![
            "cpuset".to_owned(),
            format!("{}: CPUs {}, nodes {}", clean(&cpuset.group), list(&cpuset.cpus), list(&cpuset.nodes)),
        ]);
    }
    out.rows(&rows, &[Left, Left]);
}

fn policy(policy: &MemoryPolicy) -> String {
    let flags: String = policy.flags.iter().map(|flag| format!(" ={flag}")).collect();
    let nodes = if policy.nodes.is_empty() { String::new() } else { format!(" on nodes {}", format_list(&policy.nodes)) };
    clean(&format!("{}{flags}{nodes}", policy.mode))
}

fn domains(out: &mut Text, topology: &Topology) {
    if topology.scheduling_domains.is_empty() {
        return;
    }
    out.heading("Scheduling domains, from the innermost");
    let rows: Vec<Vec<String>> = topology
        .scheduling_domains
        .iter()
        .map(|domain| {
            let spans: Vec<String> = domain.spans.iter().map(|span| format_list(span)).collect();
            let spans = if spans.is_empty() { "CPUs unknown (proc/schedstat is missing)".to_owned() } else { spans.join(" | ") };
            vec![domain.level.to_string(), clean(if domain.name.is_empty() { "?" } else { &domain.name }), spans]
        })
        .collect();
    out.rows(&rows, &[Right, Left, Left]);
}
