//! The links of a description, in the order of what is known best: links one by one, one bandwidth for all pairs, or a matrix of pairs. What
//! is not measured between packages comes from the links' generation, and all pairs of nodes of two packages share it.

use super::build::{Facts, each, refused};
use super::file::{Bandwidth as Pairs, File, Number};
use super::links::{Generation, generation};
use super::routes::Edge;
use super::{Link, MachineError, Uncertain, UncertainNumber};
use crate::units::Bandwidth;
use hashbrown::HashMap;

type Result<T> = std::result::Result<T, MachineError>;

/// The links of a machine, how nodes are connected through them, and which of their figures have a range.
#[derive(Default)]
pub struct Interconnect {
    pub links: Vec<Link>,
    pub edges: Vec<Edge>,
    pub uncertain: Vec<Uncertain>,
}

impl Interconnect {
    fn link(&mut self, from: usize, to: usize, capacity: Bandwidth) -> usize {
        self.links.push(Link { from, to, capacity });
        self.links.len() - 1
    }

    /// A link of its own between two nodes.
    fn pair(&mut self, from: usize, to: usize, capacity: Bandwidth) {
        let link = self.link(from, to, capacity);
        self.edges.push(Edge { from, to, links: vec![link] });
    }

    fn within(&mut self, what: &str, links: Vec<usize>, value: f64, range: Option<[f64; 2]>) {
        if let Some([low, high]) = range.filter(|[low, high]| low < high && !links.is_empty()) {
            let number = UncertainNumber::Links(links);
            self.uncertain.push(Uncertain { what: what.to_owned(), number, low: low / value, high: high / value });
        }
    }
}

fn between(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..nodes).flat_map(move |from| (0..nodes).filter(move |to| *to != from).map(move |to| (from, to)))
}

/// The links between `nodes` nodes in packages of `per_package`. `controller` is what a node's controller delivers, in GB/s of reads.
pub fn interconnect(file: &File, nodes: usize, per_package: usize, controller: &[f64], facts: &mut Facts<'_>) -> Result<Interconnect> {
    let mut all = Interconnect::default();
    let known = file.interconnect.as_ref();
    if !file.links.is_empty() {
        one_by_one(file, nodes, &mut all, facts)?;
    } else if let Some(number) = known.and_then(|known| known.gb_per_s.as_ref()) {
        let place = "interconnect.gb_per_s";
        let capacity = each(place, number, 1, facts)?[0];
        between(nodes).for_each(|(from, to)| all.pair(from, to, Bandwidth::from_gb_per_s(capacity)));
        let every = (0..all.links.len()).collect();
        all.within("links between nodes", every, capacity, number.range);
    } else if let Some(matrix) = file.bandwidth.as_ref().filter(|_| nodes > 1) {
        facts.add("links", "one from each node to each other".to_owned(), "inferred: from the matrix, each pair by itself")?;
        between(nodes).for_each(|(from, to)| all.pair(from, to, inferred(matrix, from, to)));
    } else if known.is_some_and(|known| known.generation.is_some()) {
        within_packages(known.and_then(|known| known.within_package_gb_per_s.as_ref()), (nodes, per_package), controller, &mut all, facts)?;
    }
    if let Some(name) = known.and_then(|known| known.generation.as_deref()) {
        shared(generation(name)?, nodes, per_package, &mut all, facts)?;
    }
    Ok(all)
}

fn one_by_one(file: &File, nodes: usize, all: &mut Interconnect, facts: &mut Facts<'_>) -> Result<()> {
    for (index, link) in file.links.iter().enumerate() {
        let place = format!("links[{index}]");
        if link.from >= nodes || link.to >= nodes || link.from == link.to {
            return refused(place, format!("a link from node {} to node {} on a machine of {nodes} nodes", link.from, link.to));
        }
        let capacity = each(&format!("{place} {}->{} gb_per_s", link.from, link.to), &link.gb_per_s, 1, facts)?[0];
        all.pair(link.from, link.to, Bandwidth::from_gb_per_s(capacity));
    }
    Ok(())
}

/// Nodes of one package: as described, else as fast as the memory's controller.
fn within_packages(
    described: Option<&Number>,
    (nodes, per_package): (usize, usize),
    controller: &[f64],
    all: &mut Interconnect,
    facts: &mut Facts<'_>,
) -> Result<()> {
    let place = "interconnect.within_package_gb_per_s";
    let given = described.map(|number| Ok((each(place, number, 1, facts)?[0], number.range))).transpose()?;
    if given.is_none() && per_package > 1 {
        facts.add(place, "as the controller".to_owned(), "assumed: nothing within a package is narrower than its controllers")?;
    }
    for (from, to) in between(nodes).filter(|(from, to)| from / per_package == to / per_package) {
        all.pair(from, to, Bandwidth::from_gb_per_s(given.map_or(controller[from], |(capacity, _)| capacity)));
    }
    if let Some((capacity, range)) = given {
        all.within("links within a package", (0..all.links.len()).collect(), capacity, range);
    }
    Ok(())
}

/// One link each way for two packages, which all pairs of their nodes share, in addition to what a pair is known to have. No less than
/// the fastest pair: a measurement is better than the table.
fn shared(generation: &Generation, nodes: usize, per_package: usize, all: &mut Interconnect, facts: &mut Facts<'_>) -> Result<()> {
    let packages = nodes.div_ceil(per_package);
    if packages < 2 {
        return refused("interconnect.generation", "a machine of one package has no links between packages");
    }
    let [low, high] = generation.range;
    facts.add(
        "links between packages",
        format!("{} GB/s [{low}, {high}] each way, shared by all nodes of the two packages", generation.gb_per_s),
        &format!("assumed: the generation {} ({}). {}", generation.name, generation.what, generation.source),
    )?;
    let mut links = Vec::new();
    // The edges between two packages. There are as many as pairs of nodes, too many to look at all of them for each pair of packages.
    let mut crossing: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    for (place, edge) in all.edges.iter().enumerate() {
        crossing.entry((edge.from / per_package, edge.to / per_package)).or_default().push(place);
    }
    for (from, to) in between(packages) {
        let crossing = crossing.remove(&(from, to)).unwrap_or_default();
        let own = crossing.iter().flat_map(|edge| &all.edges[*edge].links);
        let fastest = own.map(|link| all.links[*link].capacity.gb_per_s()).fold(generation.gb_per_s, f64::max);
        let link = all.link(from * per_package, to * per_package, Bandwidth::from_gb_per_s(fastest));
        links.push(link);
        for edge in &crossing {
            all.edges[*edge].links.push(link);
        }
        if crossing.is_empty() {
            let of = |package: usize| package * per_package..((package + 1) * per_package).min(nodes);
            all.edges.extend(of(from).flat_map(|from| of(to).map(move |to| Edge { from, to, links: vec![link] })));
        }
    }
    all.within("links between packages", links, generation.gb_per_s, Some(generation.range));
    Ok(())
}

/// The bandwidth of the link from `from` to `to`, inferred from the matrix. It carries what was read; writes used the link in the other
/// direction.
fn inferred(matrix: &Pairs, from: usize, to: usize) -> Bandwidth {
    let streams = matrix.streams;
    let share = (1.0 - streams.write_share()).max(streams.write_share());
    Bandwidth::from_gb_per_s(matrix.gb_per_s[from][to] * streams.traffic_factor() * share)
}
