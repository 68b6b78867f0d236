//! The topology as a picture: packages with their nodes, caches, cores and CPUs as nested boxes, as in lstopo, and below them the
//! distances as links and as a matrix.

mod boxes;
mod links;

use crate::canvas::{Anchor, Area, Canvas};
use crate::text::layout::clean;
use boxes::{NodeBox, heading, wide};
use firsttouch_model::counted;
use firsttouch_model::topology::{Node, Package, Topology, format_list};

/// The margin, and the gap between boxes, px.
const MARGIN: f64 = 16.0;
const GAP: f64 = 8.0;
/// The approximate width of a row of boxes, px: that of a screen.
const PAGE: f64 = 1500.0;
/// The height of a box's line of text, px.
const HEAD: f64 = 22.0;

/// The picture as an SVG document.
#[must_use]
pub fn picture(topology: &Topology) -> String {
    let mut canvas = Canvas::default();
    let title = title(topology);
    canvas.text((MARGIN, MARGIN + 14.0), Anchor::Start, "big", &title);
    canvas.text((MARGIN, MARGIN + 32.0), Anchor::Start, "faint", &subtitle(topology));
    let top = MARGIN + 46.0;
    machine(&mut canvas, topology, top);
    let y = canvas.bottom() + 26.0;
    legend(&mut canvas, topology, y);
    if topology.distances.as_ref().is_some_and(|distances| distances.nodes.len() > 1) {
        let y = canvas.bottom() + 30.0;
        links::draw(&mut canvas, topology, (MARGIN, y));
    }
    canvas.finish(&title, MARGIN)
}

fn title(topology: &Topology) -> String {
    let name = &topology.processor.model_name;
    clean(if name.is_empty() { "Topology" } else { name })
}

fn subtitle(topology: &Topology) -> String {
    let mut parts = vec![counted(topology.packages.len().max(1), "package"), counted(topology.nodes.len(), "node")];
    if !topology.cores.is_empty() {
        parts.push(counted(topology.cores.len(), "core"));
    }
    parts.push(counted(topology.cpus.online.len(), "CPU") + " online");
    if let Some(sub_numa) = topology.sub_numa.as_ref().filter(|sub_numa| !sub_numa.mode.is_empty()) {
        parts.push(sub_numa.mode.clone());
    }
    if topology.processor.hypervisor {
        parts.push("under a hypervisor".to_owned());
    }
    parts.join(", ")
}

/// A frame around nodes: a package, or all nodes that are in no package or in several.
struct Frame<'a> {
    package: Option<&'a Package>,
    nodes: Vec<NodeBox<'a>>,
    columns: usize,
}

impl<'a> Frame<'a> {
    fn new(topology: &'a Topology, package: Option<&'a Package>, nodes: Vec<&'a Node>) -> Self {
        let nodes: Vec<NodeBox> = nodes.into_iter().map(|node| NodeBox::new(topology, node)).collect();
        let widest = nodes.iter().map(|node| node.width).fold(1.0, f64::max);
        // Two nodes side by side, four in a square; fewer per row if they are wide.
        let square = (nodes.len() as f64).sqrt().ceil() as usize;
        let fitting = ((PAGE / (widest + GAP)) as usize).max(1);
        Self { package, nodes, columns: square.clamp(1, fitting) }
    }

    fn rows(&self) -> impl Iterator<Item = &[NodeBox<'a>]> {
        self.nodes.chunks(self.columns)
    }

    fn head(&self) -> f64 {
        if self.package.is_some() { HEAD } else { 0.0 }
    }

    fn width(&self) -> f64 {
        let row = |row: &[NodeBox]| row.iter().map(|node| node.width + GAP).sum::<f64>() + GAP;
        self.rows().map(row).fold(0.0, f64::max).max(self.package.map_or(0.0, |package| 1.4 * wide(&format!("Package {}", package.id))))
    }

    fn height(&self) -> f64 {
        let row = |row: &[NodeBox]| row.iter().map(|node| node.height).fold(0.0, f64::max) + GAP;
        self.rows().map(row).sum::<f64>() + GAP + self.head()
    }

    fn draw(&self, canvas: &mut Canvas, (x, y): (f64, f64)) {
        if let Some(package) = self.package {
            canvas.rectangle(Area { x, y, width: self.width(), height: self.height() }, "#f4f1e4", "#8a8262");
            heading(canvas, (x + GAP, y + 15.0), &format!("Package {}", package.id), "");
        }
        let mut y = y + self.head() + GAP;
        for row in self.rows() {
            let height = row.iter().map(|node| node.height).fold(0.0, f64::max);
            let mut x = x + GAP;
            for node in row {
                node.draw(canvas, (x, y), height);
                x += node.width + GAP;
            }
            y += height + GAP;
        }
    }
}

fn machine(canvas: &mut Canvas, topology: &Topology, top: f64) {
    let mut frames = Vec::new();
    let packages_of = |node: &Node| topology.packages.iter().filter(|package| package.nodes.contains(&node.id)).count();
    for package in &topology.packages {
        let nodes: Vec<&Node> = topology.nodes.iter().filter(|node| package.nodes.contains(&node.id) && packages_of(node) == 1).collect();
        if !nodes.is_empty() {
            frames.push(Frame::new(topology, Some(package), nodes));
        }
    }
    let others: Vec<&Node> = topology.nodes.iter().filter(|node| packages_of(node) != 1).collect();
    if !others.is_empty() {
        frames.push(Frame::new(topology, None, others));
    }
    let (mut x, mut y, mut row) = (MARGIN, top, 0.0f64);
    for frame in frames {
        if x > MARGIN && x + frame.width() > PAGE {
            (x, y, row) = (MARGIN, y + row + GAP, 0.0);
        }
        frame.draw(canvas, (x, y));
        x += frame.width() + GAP;
        row = row.max(frame.height());
    }
}

/// The meaning of the colours, and what is not drawn.
fn legend(canvas: &mut Canvas, topology: &Topology, y: f64) {
    let mut x = MARGIN;
    let mut item = |fill: &str, text: &str| {
        canvas.rectangle(Area { x, y: y - 10.0, width: 14.0, height: 12.0 }, fill, "#666");
        canvas.text((x + 19.0, y), Anchor::Start, "small", text);
        x += 32.0 + wide(text);
    };
    if topology.nodes.iter().any(|node| node.memory.is_some_and(|memory| memory.free_bytes.is_some())) {
        item(boxes::MEMORY_USED, "memory in use");
        item(boxes::MEMORY_FREE, "free");
    }
    item(boxes::CPU, "CPU");
    if topology.process.as_ref().and_then(|limits| limits.allowed_cpus.as_ref()).is_some_and(|list| list.len() < topology.cpus.online.len())
    {
        item(boxes::FORBIDDEN, "this process may not use it");
    }
    if !topology.cpus.offline.is_empty() {
        canvas.text((x, y), Anchor::Start, "small faint", &format!("Offline CPUs: {}", format_list(&topology.cpus.offline)));
    }
}
