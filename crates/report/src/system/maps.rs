//! `firsttouch maps`: memory by mapping and node, and the objects of a profile in it.

use super::ps::resident;
use super::{Lines, by_node, known, row, shares};
use crate::text::Style;
use crate::text::layout::{clean, cut, cut_front, width};
use crate::text::words::{count, thousands};
use crate::topology::table::Align::{Left, Right};
use firsttouch_model::format_bytes;
use firsttouch_model::system::{MappedObject, Mapping, ProcessMaps};
use serde::Serialize;

/// The JSON of `firsttouch maps`.
#[derive(Serialize)]
pub struct MapsJson<'a> {
    pub schema: &'static str,
    pub processes: &'a [ProcessMaps],
}

impl<'a> MapsJson<'a> {
    #[must_use]
    pub fn new(processes: &'a [ProcessMaps]) -> Self {
        Self { schema: "firsttouch.maps/1", processes }
    }
}

/// Options of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapsText {
    /// Show all mappings by address instead of the largest.
    pub all: bool,
    pub style: Style,
}

/// Up to this many nodes, each has a column; with more, the nodes of a mapping follow its name.
const NODE_COLUMNS: usize = 3;
/// The number of mappings shown by default, and the least fraction of the process's memory that they cover.
const SHOWN: usize = 24;
const LEAST_SHARE: f64 = 0.002;
const POLICY: usize = 18;
const LEAST_NAME: usize = 12;

/// The processes as text.
#[must_use]
pub fn maps_text(processes: &[ProcessMaps], options: MapsText) -> String {
    let mut out = Lines::new(options.style);
    for process in processes {
        let mappings = count(process.mappings.len(), "mapping");
        out.heading(&clean(&format!("{} ({}): {mappings}, {}", process.name, process.pid, resident(&process.memory))));
        if let Some(nodes) = process.memory.nodes.as_ref().filter(|nodes| !nodes.is_empty()) {
            out.sentence(&format!("memory: {}", by_node(nodes)));
        }
        mappings_table(&mut out, process, options);
        objects(&mut out, &process.objects, process);
        out.doubts(&process.doubts);
    }
    out.text()
}

/// The mappings to show; the number and the bytes of those left out.
fn shown(process: &ProcessMaps, all: bool) -> (Vec<&Mapping>, usize, u64) {
    let mut list: Vec<&Mapping> = process.mappings.iter().collect();
    if all {
        return (list, 0, 0);
    }
    let sum: f64 = list.iter().map(|mapping| mapping.resident_bytes as f64).sum();
    list.sort_by_key(|mapping| (std::cmp::Reverse(mapping.resident_bytes), mapping.start));
    let large = list.iter().take_while(|mapping| mapping.resident_bytes > 0 && mapping.resident_bytes as f64 >= LEAST_SHARE * sum).count();
    let rest = list.split_off(large.min(SHOWN));
    (list, rest.len(), rest.iter().fold(0, |sum, mapping| sum.saturating_add(mapping.resident_bytes)))
}

fn mappings_table(out: &mut Lines, process: &ProcessMaps, options: MapsText) {
    let (list, left_out, bytes) = shown(process, options.all);
    let nodes: Vec<u32> = process.memory.nodes.iter().flat_map(|nodes| nodes.keys().copied()).collect();
    let columns = if nodes.len() <= NODE_COLUMNS { nodes.as_slice() } else { &[] };
    let mut header = row(["address", "size", "resident"]);
    let mut aligns = vec![Right; 3];
    header.extend(columns.iter().map(|node| format!("node {node}")));
    aligns.extend(columns.iter().map(|_| Right));
    header.extend(row(["pages", "policy", "mapping"]));
    aligns.extend([Left, Left, Left]);
    let mut rows = vec![header];
    for mapping in &list {
        let mut cells = vec![
            format!("{:x}", mapping.start),
            if mapping.end > mapping.start { format_bytes(mapping.end - mapping.start) } else { "?".to_owned() },
            format_bytes(mapping.resident_bytes),
        ];
        for node in columns {
            let bytes = mapping.nodes.as_ref().map(|nodes| nodes.get(node).copied().unwrap_or(0));
            cells.push(known(bytes, |bytes| if bytes == 0 { "-".to_owned() } else { format_bytes(bytes) }));
        }
        cells.extend([pages(mapping), cut(&clean(mapping.policy.as_deref().unwrap_or("?")), POLICY)]);
        rows.push(cells);
    }
    let used: usize = (0..aligns.len() - 1).map(|column| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0) + 2).sum();
    let most = out.style.width.saturating_sub(used).max(LEAST_NAME);
    for (cells, mapping) in rows.iter_mut().skip(1).zip(&list) {
        let name = cut_front(&name(mapping), if columns.is_empty() { most.min(LEAST_NAME) } else { most });
        let placed = mapping.nodes.as_ref().filter(|nodes| columns.is_empty() && !nodes.is_empty());
        cells.push(placed.map_or(name.clone(), |nodes| format!("{name}: {}", shares(nodes))));
    }
    if rows.len() > 1 {
        out.headed_table(&rows, &aligns);
    }
    if left_out > 0 {
        out.sentence(&format!("{} with {} resident; --all shows them.", count(left_out, "more mapping"), format_bytes(bytes)));
    }
}

/// `4 KiB`, `4 KiB, 96 % huge` (transparent), `2 MiB hugetlb`.
fn pages(mapping: &Mapping) -> String {
    let mut text = known(mapping.page_bytes, format_bytes);
    if mapping.hugetlb {
        text += " hugetlb";
    } else if mapping.transparent_huge_bytes > 0 && mapping.resident_bytes > 0 {
        let share = mapping.transparent_huge_bytes as f64 / mapping.resident_bytes as f64;
        text += &format!(", {:.0} % huge", 100.0 * share.min(1.0));
    }
    text
}

fn name(mapping: &Mapping) -> String {
    match mapping.name.as_str() {
        "" => "anonymous".to_owned(),
        name => clean(name),
    }
}

fn objects(out: &mut Lines, objects: &[MappedObject], process: &ProcessMaps) {
    if objects.is_empty() {
        return;
    }
    out.heading("Objects of the profile (nodes of a sample of their pages)");
    let mut rows = vec![row(["object", "address", "size", "pages", "present", "where"])];
    for object in objects {
        rows.push(vec![
            cut(&clean(&object.name), 34),
            format!("{:x}", object.address),
            format_bytes(object.bytes),
            thousands(object.pages_asked),
            thousands(object.pages_by_node.values().sum()),
            if process.mappings.iter().any(|mapping| mapping.start <= object.address && object.address < mapping.end) {
                shares(&object.pages_by_node)
            } else {
                "not mapped any more".to_owned()
            },
        ]);
    }
    out.headed_table(&rows, &[Left, Right, Right, Right, Right, Left]);
}
