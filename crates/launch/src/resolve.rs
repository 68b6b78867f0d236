//! Makes a placement from options: resolves every list and expression on this machine before anything is set.

use crate::apply::Refusals;
use crate::{Error, Result, pin};
use firsttouch_model::ExpressionError;
use firsttouch_model::policy::{Mode, Policy};
use firsttouch_model::topology::{Topology, format_list};
use firsttouch_placement::{Affinity, CpuList, Device, DeviceKind, Layout, NodeList, Numbered, Placement, openmp};
use firsttouch_system::{devices, topology};
use std::path::Path;

const ROOT: &str = "/";

/// A requested placement, as the user wrote it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub cpunodebind: Option<String>,
    pub physcpubind: Option<String>,
    /// The affinity expression of the threads.
    pub pin: Option<String>,
    /// Threads, by order of creation, that are not to be pinned.
    pub skip: Vec<u32>,
    pub policy: Option<PolicyRequest>,
    pub home_node: Option<String>,
    /// Lists may name nodes and CPUs outside this process's cpuset and affinity.
    pub all: bool,
}

#[derive(Clone, Debug)]
pub struct PolicyRequest {
    pub mode: Mode,
    /// `None` for local allocation, which has no nodes.
    pub nodes: Option<String>,
    /// Whether the kernel's balancing may move pages between the nodes.
    pub balancing: bool,
}

/// The placement on this machine.
///
/// # Errors
/// When something does not exist or is not allowed, and `--best-effort` is not set.
pub fn resolve(request: &Request, refusals: &mut Refusals) -> Result<Placement> {
    let mut placement = Placement::default();
    if request.home_node.is_some() {
        refusals.accept::<()>(Err(Error::usage(
            "--home-node: the kernel gives a home node to ranges of memory only, not to a process (set_mempolicy_home_node(2)): name a range with \
             --shm or --file. A process starts with the nodes nearest to where it runs: --cpunodebind NODE",
        )))?;
    }
    if let Some(list) = &request.cpunodebind {
        placement.cpus = refusals.accept(cpus_of_nodes(request, list))?;
    }
    if let Some(list) = &request.physcpubind {
        placement.cpus = refusals.accept(cpus(request, list))?;
    }
    if let Some(expression) = &request.pin
        && let Some(threads) = refusals.accept(pinned(request, expression))?
    {
        let mut cpus = threads.clone();
        cpus.sort_unstable();
        cpus.dedup();
        placement.environment = openmp::variables(&for_all_threads(&threads), &variable);
        placement.environment.extend(pin::variables(&threads, &request.skip, &[]));
        (placement.cpus, placement.threads) = (Some(cpus), threads);
    }
    if request.policy.is_some() {
        placement.policy = refusals.accept(policy(request, placement.cpus.as_deref()))?.flatten();
    }
    Ok(placement)
}

/// The requested memory policy, if any. `cpus` are the CPUs from the other options; `same` means their nodes.
///
/// # Errors
/// When nodes do not exist or are not allowed, or the policy does not accept them.
pub fn policy(request: &Request, cpus: Option<&[u32]>) -> Result<Option<Policy>> {
    let Some(PolicyRequest { mode, nodes, balancing }) = &request.policy else { return Ok(None) };
    let Some(list) = nodes.as_deref() else { return Ok(Some(Policy::new(*mode, Vec::new()))) };
    let option = option_of(*mode);
    let topology = outline()?;
    let same = match request.cpunodebind.as_deref().filter(|other| list == "same" && *other != "same") {
        Some(other) => Some(nodes_to_run_on(request, &topology, other)?),
        None => cpus.map(|cpus| topology.nodes_of(cpus)),
    };
    let known = limited(request, Numbered::nodes(&topology));
    let nodes = expression(option, list.parse().and_then(|list: NodeList| list.resolve(&known, same.as_deref(), &device)))?;
    let policy = Policy { balancing: *balancing, ..Policy::new(*mode, nodes) };
    policy.check(&topology).map_err(|why| Error::usage(format!("{option}: {why}")))?;
    Ok(Some(policy))
}

fn option_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Bind => "--membind",
        Mode::Preferred => "--preferred",
        Mode::PreferredMany => "--preferred-many",
        Mode::Interleave => "--interleave",
        Mode::WeightedInterleave => "--weighted-interleave",
        _ => "--localalloc",
    }
}

/// The node of `--home-node`.
///
/// # Errors
/// When the list is not exactly one allowed node.
pub fn home_node(request: &Request, list: &str) -> Result<u32> {
    let known = limited(request, Numbered::nodes(&outline()?));
    let nodes = expression("--home-node", list.parse().and_then(|list: NodeList| list.resolve(&known, None, &device)))?;
    match nodes[..] {
        [node] => Ok(node),
        _ => Err(Error::usage(format!("--home-node takes one node, not {}", format_list(&nodes)))),
    }
}

fn nodes_to_run_on(request: &Request, topology: &Topology, list: &str) -> Result<Vec<u32>> {
    let known = limited(request, Numbered::nodes_to_run_on(topology));
    let other = request.policy.as_ref().and_then(|policy| policy.nodes.as_deref());
    let other = other.filter(|other| list == "same" && *other != "same");
    let same = other.map(|other| {
        let known = limited(request, Numbered::nodes(topology));
        expression("--cpunodebind", other.parse().and_then(|list: NodeList| list.resolve(&known, None, &device)))
    });
    let same = same.transpose()?;
    expression("--cpunodebind", list.parse().and_then(|list: NodeList| list.resolve(&known, same.as_deref(), &device)))
}

fn cpus_of_nodes(request: &Request, list: &str) -> Result<Vec<u32>> {
    let topology = outline()?;
    let nodes = nodes_to_run_on(request, &topology, list)?;
    let known = limited(request, Numbered::cpus(&topology));
    let on_nodes = |cpu: &u32| topology.node_of_cpu(*cpu).is_some_and(|node| nodes.contains(&node));
    let cpus: Vec<u32> = known.allowed().iter().copied().filter(on_nodes).collect();
    if cpus.is_empty() {
        let has_cpus = topology.nodes.iter().any(|node| nodes.contains(&node.id) && !node.cpus.is_empty());
        let why = if has_cpus { "no CPU that this process may use" } else { "no CPUs: their memory can be used (--membind)" };
        let (nodes, has) = (format_list(&nodes), if nodes.len() == 1 { "node has" } else { "nodes have" });
        return Err(Error::usage(format!("--cpunodebind {nodes}: the {has} {why}")));
    }
    Ok(cpus)
}

fn cpus(request: &Request, list: &str) -> Result<Vec<u32>> {
    let known = limited(request, Numbered::cpus(&outline()?));
    expression("--physcpubind", list.parse().and_then(|list: CpuList| list.resolve(&known)))
}

/// The CPU of each thread.
fn pinned(request: &Request, text: &str) -> Result<Vec<u32>> {
    let affinity: Affinity = expression("--pin", text.parse())?;
    let topology = topology::read(Path::new(ROOT)).map_err(Error::from_system)?;
    let layout = Layout::with(&topology, limited(request, Numbered::cpus(&topology)));
    let threads = expression("--pin", affinity.resolve(&layout, openmp::threads(&variable)))?;
    let conflicts = openmp::conflicts(&for_all_threads(&threads), &variable);
    let Some(first) = conflicts.first() else { return Ok(threads) };
    let all: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
    Err(Error::usage(format!(
        "--pin {text} contradicts the environment: {}; leave one of them out: env -u {} firsttouch run ...",
        all.join(", "),
        first.variable
    )))
}

/// Repeats the list if the user asks for more threads than it has CPUs.
fn for_all_threads(cpus: &[u32]) -> Vec<u32> {
    let threads = openmp::threads(&variable).unwrap_or(0).max(cpus.len());
    cpus.iter().copied().cycle().take(threads).collect()
}

fn outline() -> Result<Topology> {
    topology::read_outline(Path::new(ROOT)).map_err(Error::from_system)
}

fn limited(request: &Request, known: Numbered) -> Numbered {
    if request.all { known.without_limits() } else { known }
}

/// Makes an error in a list or an expression a usage error.
fn expression<T>(option: &str, result: std::result::Result<T, ExpressionError>) -> Result<T> {
    result.map_err(|error| Error::usage(format!("{option}: {error}")))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn device(device: &Device) -> firsttouch_model::error::Result<Vec<u32>> {
    let (root, name) = (Path::new(ROOT), device.name.as_str());
    let node = match device.kind {
        DeviceKind::Network => devices::of_class(root, "net", name),
        DeviceKind::Block => devices::of_class(root, "block", name),
        DeviceKind::File => devices::of_file(root, Path::new(name)),
        DeviceKind::Pci => devices::of_pci(root, name),
        DeviceKind::Ip => devices::of_host(root, name),
    };
    node.map(|node| vec![node])
}
