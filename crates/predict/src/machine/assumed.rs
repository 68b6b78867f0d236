//! A machine of which only nodes and cores are known: the ratios of its numbers are taken from the catalogue.

use super::{MachineError, MachineModel, catalogue};
use crate::units::Bandwidth;
use std::sync::OnceLock;

/// The source of the numbers of an assumed machine.
const SOURCE: &str = "assumed: the median machine of the catalogue";

const REMOTE: &str = "assumed: what a core draws from its own node, times the median of local over remote latency in the catalogue";

/// The ratios of a machine's numbers to its controllers' limit.
struct Ratios {
    core: Option<f64>,
    link: Option<f64>,
    remote: Option<f64>,
}

impl Ratios {
    fn of(machine: &MachineModel) -> Self {
        let limit = machine.nodes.first().map_or(f64::NAN, |node| node.curve(0.0).limit);
        let core = machine.nodes.first().map(|node| node.curve(0.0).core / limit);
        let link = machine.links.iter().map(|link| link.capacity.0 / limit).reduce(f64::min);
        let usable = |ratio: Option<f64>| ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        // A curve of one point has no information about a single core.
        let remote = machine.latencies.as_deref().and_then(local_over_remote);
        Self { core: usable(core).filter(|ratio| *ratio < 1.0), link: usable(link), remote: usable(remote).filter(|ratio| *ratio < 1.0) }
    }
}

/// Local over remote latency. A core keeps a fixed number of cache lines in flight, whatever their node: by Little's law its bandwidth
/// falls as latency rises.
fn local_over_remote(latencies: &[Vec<f64>]) -> Option<f64> {
    let pairs = latencies.iter().enumerate().flat_map(|(cpu, row)| {
        let local = row.get(cpu).copied();
        row.iter().enumerate().filter(move |(memory, _)| *memory != cpu).filter_map(move |(_, remote)| Some(local? / remote))
    });
    let ratios: Vec<f64> = pairs.collect();
    (!ratios.is_empty()).then(|| median(ratios))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(1.0)
}

/// The ends of the middle half; the whole range of few values.
fn quartiles(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    let low = values.len() / 4;
    let at = |index: usize| values.get(index).copied().unwrap_or(1.0);
    [at(low), at(values.len().saturating_sub(1 + low))]
}

/// The ratios of machines' numbers: medians over the catalogue.
#[derive(Clone, Copy)]
pub struct Typical {
    /// Bytes per second of a controller.
    pub limit: f64,
    /// The bandwidth of one core, and of a link, as fractions of `limit`.
    pub core: f64,
    pub link: f64,
    /// Where the middle half of the catalogue has `link`.
    pub link_range: [f64; 2],
    /// The bandwidth of a core from another node, as a fraction of that from its own node.
    pub remote: f64,
    /// Cores per node.
    pub cores: usize,
}

/// # Errors
/// Internal error: the catalogue is invalid.
pub fn typical() -> Result<Typical, MachineError> {
    static KNOWN: OnceLock<Typical> = OnceLock::new();
    if let Some(typical) = KNOWN.get() {
        return Ok(*typical);
    }
    let typical = of_the_catalogue()?;
    Ok(*KNOWN.get_or_init(|| typical))
}

fn of_the_catalogue() -> Result<Typical, MachineError> {
    let machines = catalogue::names().map(catalogue::find).collect::<Result<Vec<_>, _>>()?;
    let limit = median(machines.iter().filter_map(|machine| Some(machine.nodes.first()?.curve(0.0).limit)).collect());
    let ratios: Vec<Ratios> = machines.iter().map(Ratios::of).collect();
    Ok(Typical {
        limit,
        core: median(ratios.iter().filter_map(|ratio| ratio.core).collect()),
        link: median(ratios.iter().filter_map(|ratio| ratio.link).collect()),
        link_range: quartiles(ratios.iter().filter_map(|ratio| ratio.link).collect()),
        remote: median(ratios.iter().filter_map(|ratio| ratio.remote).collect()),
        cores: median(machines.iter().filter_map(|machine| Some(machine.nodes.first()?.cores as f64)).collect()) as usize,
    })
}

/// `nodes` equal nodes of `cores` cores, with links between all pairs. The ratios of controllers, cores and links are those of the median
/// machine of the catalogue. Predicted times are right except for a factor that is the same for all placements.
///
/// # Errors
/// When a machine may not have that many nodes or cores.
pub fn assumed(name: &str, nodes: usize, cores: usize) -> Result<MachineModel, MachineError> {
    let Typical { limit, core, link, link_range, remote, .. } = typical()?;
    let (core, link) = (limit * core, limit * link);
    let gb = |bytes: f64| Bandwidth(bytes).gb_per_s();
    let text = format!(
        "schema = '{}'\nname = 'assumed'\ntitle = 'equal nodes, as the median of the catalogue'\n[nodes]\n\
         count = {{ value = {nodes}, source = '{SOURCE}' }}\nper_package = {{ value = 1, source = 'assumed' }}\n\
         cores = {{ value = {cores}, source = 'assumed' }}\nsmt = {{ value = 1, source = 'assumed' }}\n\
         [[controller.curves]]\nstreams = {{ read = 1, write = 0, allocate = 0 }}\npoints = [[1, {}], [2, {}]]\nsource = '{SOURCE}'\n\
         [core]\nremote_gb_per_s = {{ value = {}, source = '{REMOTE}' }}\n[interconnect]\ngb_per_s = {{ value = {}, range = [{}, {}], source = '{SOURCE}' }}\n",
        super::file::SCHEMA,
        gb(core),
        gb(limit),
        gb(core * remote),
        gb(link),
        gb(limit * link_range[0]),
        gb(limit * link_range[1])
    );
    Ok(MachineModel { name: name.to_owned(), ..MachineModel::parse(&text)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a core of an assumed machine has less bandwidth from other nodes, in the ratio of the catalogue's latencies.
    #[test]
    fn remote_memory_is_slower_for_one_core() {
        assert_eq!(local_over_remote(&[vec![80.0, 160.0], vec![100.0, 75.0]]), Some(0.75));
        assert_eq!((local_over_remote(&[vec![80.0]]), local_over_remote(&[])), (None, None));
        let node = assumed("virtual", 2, 4).unwrap().nodes[0].clone();
        let ratio = node.core_remote.0 / node.curve(0.0).core;
        // The six machines of the catalogue with latencies: 0.53 to 0.72.
        assert!((0.53..0.72).contains(&ratio), "{ratio}");
    }

    /// Check that any allowed number of nodes and cores makes a machine with equal nodes, and that too many are refused.
    #[test]
    fn assumed_machines_are_symmetric() {
        for (nodes, cores) in [(1, 1), (2, 1), (2, 4), (8, 64), (64, 2)] {
            let machine = assumed("virtual", nodes, cores).unwrap();
            assert_eq!((machine.name.as_str(), machine.nodes.len(), machine.cores()), ("virtual", nodes, nodes * cores));
            assert!(machine.nodes.iter().all(|node| node.curves == machine.nodes[0].curves));
            assert_eq!(machine.links.len(), nodes * (nodes - 1));
        }
        assert!(assumed("virtual", 5000, 1).is_err());
    }
}
