//! From options to a placement: every list and expression is resolved on this machine, before anything is set.

use super::{Effort, pin};
use crate::arguments::Run;
use crate::commands::{Usage, usage};
use anyhow::{Context, Result, anyhow};
use firsttouch_model::ExpressionError;
use firsttouch_model::policy::{Mode, Policy};
use firsttouch_model::topology::{Topology, format_list};
use firsttouch_placement::{Affinity, CpuList, Device, DeviceKind, Layout, NodeList, Numbered, Placement, openmp};
use firsttouch_system::{devices, topology};
use std::path::Path;

const ROOT: &str = "/";

pub fn resolve(arguments: &Run, effort: &mut Effort) -> Result<Placement> {
    let mut placement = Placement::default();
    if arguments.home_node.is_some() {
        effort.settle::<()>(Err(Usage(anyhow!(
            "--home-node: the kernel gives a home to ranges of memory only, not to a process (set_mempolicy_home_node(2)): name one with --shm or \
             --file. A process begins with the nodes nearest to where it runs: --cpunodebind NODE"
        ))
        .into()))?;
    }
    if let Some(list) = &arguments.cpunodebind {
        placement.cpus = effort.settle(cpus_of_nodes(arguments, list))?;
    }
    if let Some(list) = &arguments.physcpubind {
        placement.cpus = effort.settle(cpus(arguments, list))?;
    }
    if let Some(expression) = &arguments.pin
        && let Some(threads) = effort.settle(pinned(arguments, expression))?
    {
        let mut cpus = threads.clone();
        cpus.sort_unstable();
        cpus.dedup();
        placement.environment = openmp::variables(&for_all_threads(&threads), &variable);
        placement.environment.extend(pin::variables(&threads, &arguments.skip));
        (placement.cpus, placement.threads) = (Some(cpus), threads);
    }
    if let Some((option, mode, list)) = memory(arguments) {
        let policy = policy(arguments, option, mode, list, placement.cpus.as_deref());
        placement.policy = effort.settle(policy)?;
    }
    Ok(placement)
}

/// The option of the memory policy, and its list.
fn memory(arguments: &Run) -> Option<(&'static str, Mode, Option<&str>)> {
    let lists = [
        ("--membind", Mode::Bind, &arguments.membind),
        ("--preferred", Mode::Preferred, &arguments.preferred),
        ("--preferred-many", Mode::PreferredMany, &arguments.preferred_many),
        ("--interleave", Mode::Interleave, &arguments.interleave),
        ("--weighted-interleave", Mode::WeightedInterleave, &arguments.weighted_interleave),
    ];
    let given = lists.into_iter().find_map(|(option, mode, list)| Some((option, mode, Some(list.as_deref()?))));
    given.or(arguments.localalloc.then_some(("--localalloc", Mode::Local, None)))
}

/// The policy that the options ask for; `None` where they ask for none.
pub fn asked_policy(arguments: &Run) -> Result<Option<Policy>> {
    memory(arguments).map(|(option, mode, list)| policy(arguments, option, mode, list, None)).transpose()
}

/// `cpus`: those of the other options, whose nodes are what `same` means.
fn policy(arguments: &Run, option: &str, mode: Mode, list: Option<&str>, cpus: Option<&[u32]>) -> Result<Policy> {
    let Some(list) = list else { return Ok(Policy::new(mode, Vec::new())) };
    let topology = outline()?;
    let same = match arguments.cpunodebind.as_deref().filter(|other| list == "same" && *other != "same") {
        Some(other) => Some(nodes_to_run_on(arguments, &topology, other)?),
        None => cpus.map(|cpus| topology.nodes_of(cpus)),
    };
    let known = limited(arguments, Numbered::nodes(&topology));
    let nodes = expression(option, list.parse().and_then(|list: NodeList| list.resolve(&known, same.as_deref(), &device)))?;
    let policy = Policy { balancing: arguments.balancing, ..Policy::new(mode, nodes) };
    usage(policy.check(&topology).map_err(|why| anyhow!("{option}: {why}")))?;
    Ok(policy)
}

/// One node, for `--home-node`.
pub fn home_node(arguments: &Run, list: &str) -> Result<u32> {
    let known = limited(arguments, Numbered::nodes(&outline()?));
    let nodes = expression("--home-node", list.parse().and_then(|list: NodeList| list.resolve(&known, None, &device)))?;
    match nodes[..] {
        [node] => Ok(node),
        _ => Err(Usage(anyhow!("--home-node takes one node, not {}", format_list(&nodes))).into()),
    }
}

fn nodes_to_run_on(arguments: &Run, topology: &Topology, list: &str) -> Result<Vec<u32>> {
    let known = limited(arguments, Numbered::nodes_to_run_on(topology));
    let other = memory(arguments).and_then(|(.., other)| other).filter(|other| list == "same" && *other != "same");
    let same = other.map(|other| {
        let known = limited(arguments, Numbered::nodes(topology));
        expression("--cpunodebind", other.parse().and_then(|list: NodeList| list.resolve(&known, None, &device)))
    });
    let same = same.transpose()?;
    expression("--cpunodebind", list.parse().and_then(|list: NodeList| list.resolve(&known, same.as_deref(), &device)))
}

fn cpus_of_nodes(arguments: &Run, list: &str) -> Result<Vec<u32>> {
    let topology = outline()?;
    let nodes = nodes_to_run_on(arguments, &topology, list)?;
    let known = limited(arguments, Numbered::cpus(&topology));
    let on_nodes = |cpu: &u32| topology.node_of_cpu(*cpu).is_some_and(|node| nodes.contains(&node));
    let cpus: Vec<u32> = known.allowed().iter().copied().filter(on_nodes).collect();
    if cpus.is_empty() {
        let has_cpus = topology.nodes.iter().any(|node| nodes.contains(&node.id) && !node.cpus.is_empty());
        let why = if has_cpus { "no CPU that this process may use" } else { "no CPUs: their memory can be used (--membind)" };
        let (nodes, has) = (format_list(&nodes), if nodes.len() == 1 { "node has" } else { "nodes have" });
        return Err(Usage(anyhow!("--cpunodebind {nodes}: the {has} {why}")).into());
    }
    Ok(cpus)
}

fn cpus(arguments: &Run, list: &str) -> Result<Vec<u32>> {
    let known = limited(arguments, Numbered::cpus(&outline()?));
    expression("--physcpubind", list.parse().and_then(|list: CpuList| list.resolve(&known)))
}

/// The CPU of each thread.
fn pinned(arguments: &Run, text: &str) -> Result<Vec<u32>> {
    let affinity: Affinity = expression("--pin", text.parse())?;
    let topology = topology::read(Path::new(ROOT))?;
    let layout = Layout::with(&topology, limited(arguments, Numbered::cpus(&topology)));
    let threads = expression("--pin", affinity.resolve(&layout, openmp::threads(&variable)))?;
    let conflicts = openmp::conflicts(&for_all_threads(&threads), &variable);
    let Some(first) = conflicts.first() else { return Ok(threads) };
    let all: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
    Err(Usage(anyhow!(
        "--pin {text} contradicts the environment: {}; leave one of them out: env -u {} firsttouch run ...",
        all.join(", "),
        first.variable
    ))
    .into())
}

/// The list from its beginning again, where the user asks for more threads than it has.
fn for_all_threads(cpus: &[u32]) -> Vec<u32> {
    let threads = openmp::threads(&variable).unwrap_or(0).max(cpus.len());
    cpus.iter().copied().cycle().take(threads).collect()
}

fn outline() -> Result<Topology> {
    Ok(topology::read_outline(Path::new(ROOT))?)
}

fn limited(arguments: &Run, known: Numbered) -> Numbered {
    if arguments.all { known.without_limits() } else { known }
}

/// An error in a list or an expression is one of the command line.
fn expression<T>(option: &str, result: Result<T, ExpressionError>) -> Result<T> {
    usage(result.with_context(|| option.to_owned()))
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
