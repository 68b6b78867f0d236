//! `firsttouch run --plan`: resolves the plan on this machine and in the files that will run, and passes it to the library in the program.
//! Parts that are not possible become warnings, and the program runs.

use crate::pin::{self, library, preload_before_users};
use crate::{Error, Result, handover};
use firsttouch_model::format_bytes;
use firsttouch_model::launch::PlannedMemory;
use firsttouch_model::topology::Topology;
use firsttouch_native::{PIN, PLAN};
use firsttouch_placement::{Layout, Level, Numbered, Placement, openmp};
use firsttouch_plan::{Applied, Entry, Found, KernelPolicy, Location, Plan, ProgramFiles, RunNodes, Table, apply, is_in, locate, table};
use firsttouch_system::calls::affinity::bind_to_cpus;
use firsttouch_system::calls::mbind::try_mbind;
use firsttouch_system::launch::find_program;
use firsttouch_system::preload::accepts_agent::accepts_agent;
use firsttouch_system::topology;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// MPOL_BIND (linux/mempolicy.h).
const BIND: u32 = 2;
/// The length limit of a variable. The kernel refuses longer strings (MAX_ARG_STRLEN is 128 KiB).
const LONGEST_VARIABLE: usize = 100_000;

/// A placement, and warnings about the parts of the plan that are not possible.
#[derive(Default)]
pub struct Prepared {
    pub placement: Placement,
    pub warnings: Vec<String>,
}

impl Prepared {
    fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }
}

/// A plan whose nodes and threads are resolved on this machine.
struct ResolvedPlan<'a> {
    plan: &'a Plan,
    topology: Topology,
    run_nodes: RunNodes,
    applied: Applied,
}

impl<'a> ResolvedPlan<'a> {
    fn new(plan: &'a Plan) -> Result<Self> {
        let (topology, run_nodes) = for_this_rank(plan)?;
        let applied = apply(plan, &run_nodes);
        Ok(Self { plan, topology, run_nodes, applied })
    }
}

/// Where threads and memory would go; places nothing.
///
/// # Errors
/// When the topology cannot be read, or the program does not exist.
pub fn explain(plan: &Plan, program: &[OsString], files: &dyn ProgramFiles) -> Result<(Prepared, Vec<PlannedMemory>)> {
    let mut resolved = ResolvedPlan::new(plan)?;
    let mut prepared = Prepared::default();
    let name = program.first();
    let program = name.and_then(|name| find_program(name));
    if let (None, Some(name)) = (&program, name) {
        return Err(Error::system(format!("cannot find the program {}: check the name and PATH", name.to_string_lossy())));
    }
    if resolved.run_nodes.nodes.len() < 2 {
        prepared.warn("there is one node here, so nothing to place, and no thread is pinned");
    }
    resolved.place_threads(&mut prepared);
    if let Some(program) = program.as_deref().filter(|program| !plan.entries.is_empty() && !is_in(plan, program, files)) {
        let all: Vec<&str> = plan.modules.iter().map(|module| module.path.as_str()).collect();
        prepared.warn(format!(
            "it is about {}, and {} is another program: it applies if that program starts the first",
            all.join(", "),
            program.display()
        ));
    }
    let found = program.as_deref().map(|program| locate(plan, Some(program), files).found);
    let of = |(index, entry): (usize, &Entry)| PlannedMemory {
        what: entry.what.clone(),
        at: entry.at.clone(),
        policy: entry.policy.name().to_owned(),
        nodes: match resolved.applied.policies.get(index) {
            Some(KernelPolicy::Whole { nodes, .. }) => nodes.clone(),
            Some(KernelPolicy::Parts { parts, .. }) => parts.iter().map(|(_, node)| *node).collect(),
            Some(KernelPolicy::Leave) | None => Vec::new(),
        },
        found: found.as_ref().and_then(|found| found.get(index)).map(|found| *found != Found::Missing),
    };
    let planned = plan.entries.iter().enumerate().map(of).collect();
    Ok((prepared, planned))
}

/// Resolves the plan in `file`. The caller then applies the placement and executes the program.
///
/// # Errors
/// When the topology cannot be read.
pub fn prepare(plan: &Plan, file: &Path, program: &[OsString], files: &dyn ProgramFiles) -> Result<Prepared> {
    let mut resolved = ResolvedPlan::new(plan)?;
    let mut prepared = Prepared::default();
    if plan.entries.is_empty() {
        if plan.ranks.is_none() {
            prepared.warn(format!("{} places nothing: the program runs as it is", file.display()));
        }
        return Ok(prepared);
    }
    if resolved.run_nodes.nodes.len() < 2 && (!resolved.run_nodes.all.is_empty() || is_later_rank()) {
        // A rank that was put on one node has its memory there; what holds for all ranks, one of them says.
    } else if resolved.run_nodes.nodes.len() < 2 {
        prepared.warn("there is one node here, so nothing to place, and no thread is pinned; at the end it says which sites were seen");
    } else if let Err(refusal) = try_mbind(resolved.run_nodes.nodes[0]) {
        prepared.warn(format!("{refusal}. The program runs with its memory unplaced"));
        return Ok(prepared);
    }
    resolved.place_threads(&mut prepared);
    let program = program.first().and_then(|name| find_program(name));
    if let Some(path) = &program
        && let Err(reason) = accepts_agent(path)
        && let Some(why) = pin::why_not(&reason)
    {
        prepared.warn(format!("{} {why}: its memory is not placed", path.display()));
        return Ok(prepared);
    }
    let Location { identities, found } = locate(plan, program.as_deref(), files);
    if found.iter().all(|found| *found == Found::Missing) {
        prepared.warn(format!(
            "none of its sites is in the program: {} was made for another program, or for an old build of it",
            file.display()
        ));
    }
    let applied = &resolved.applied;
    let bytes = table(&Table { plan, applied, identities: &identities, found: &found, pid: std::process::id() });
    let has_threads = !prepared.placement.threads.is_empty();
    match handover::write(&bytes).and_then(|table| Ok((table, preload(has_threads)?))) {
        Ok((table, preload)) => prepared.placement.environment.extend([("FIRSTTOUCH_PLAN".to_owned(), table), preload]),
        Err(error) => prepared.warn(format!("{error}. The program runs with its memory unplaced")),
    }
    Ok(prepared)
}

impl ResolvedPlan<'_> {
    fn place_threads(&mut self, prepared: &mut Prepared) {
        prepared.warnings.extend(self.applied.doubts.iter().map(ToString::to_string));
        check_room(self.plan, &mut self.applied, &self.topology, prepared);
        pin_threads(&self.applied, &self.topology, prepared);
    }
}

/// Whether this process is a rank of a job, and not its first.
fn is_later_rank() -> bool {
    firsttouch_ranks::place(&|name| std::env::var(name).ok()).is_some_and(|place| place.rank > 0)
}

/// This machine and its nodes for this process. In a rank of a job that its launcher let run on several nodes, the process is confined to the nodes
/// that the plan has for the rank; the program inherits that.
fn for_this_rank(plan: &Plan) -> Result<(Topology, RunNodes)> {
    let read = || topology::read(Path::new("/")).map_err(Error::from_system);
    let topology = read()?;
    let whole = run_nodes(&topology);
    let place = firsttouch_ranks::place(&|name| std::env::var(name).ok());
    let numbers = place.and_then(|place| Some((place.local_rank?, place.local_size?)));
    let Some((ranks, (rank, size))) = plan.ranks.as_ref().zip(numbers).filter(|(_, (_, size))| *size > 1) else {
        return Ok((topology, whole));
    };
    let own = ranks.real(rank, size, &whole.nodes);
    if own.is_empty() || own.len() >= whole.nodes.len() {
        return Ok((topology, whole));
    }
    let allowed = Numbered::cpus(&topology);
    let is_own = |cpu: &u32| topology.node_of_cpu(*cpu).is_some_and(|node| own.contains(&node));
    let cpus: Vec<u32> = allowed.allowed().iter().copied().filter(is_own).collect();
    bind_to_cpus(&cpus).map_err(Error::from_system)?;
    let topology = read()?;
    let confined = run_nodes(&topology);
    Ok((topology, RunNodes { all: whole.nodes, ..confined }))
}

/// Nodes with CPUs and memory that this process may use.
fn run_nodes(topology: &Topology) -> RunNodes {
    let cpus = Numbered::cpus(topology);
    let memory = Numbered::nodes(topology);
    let has_memory = |memory: &Option<firsttouch_model::topology::Memory>| memory.is_none_or(|memory| memory.total_bytes > 0);
    let usable = topology.nodes.iter().filter(|node| {
        has_memory(&node.memory) && memory.allowed().contains(&node.id) && node.cpus.iter().any(|cpu| cpus.allowed().contains(cpu))
    });
    let mut nodes: Vec<u32> = usable.map(|node| node.id).collect();
    nodes.sort_unstable();
    RunNodes { nodes, ..RunNodes::default() }
}

/// Warns if a node has less free memory than the plan puts on it. A program whose memory is bound to that node would be killed, so bound
/// entries are left alone.
fn check_room(plan: &Plan, applied: &mut Applied, topology: &Topology, prepared: &mut Prepared) {
    let mut planned: BTreeMap<u32, u64> = BTreeMap::new();
    for (entry, policies) in plan.entries.iter().zip(&applied.policies) {
        for (node, share) in shares(entry, policies) {
            let sum = planned.entry(node).or_default();
            *sum = sum.saturating_add(share);
        }
    }
    for (node, bytes) in planned {
        let free = topology.node(node).and_then(|node| node.memory.as_ref()?.free_bytes);
        let Some(free) = free.filter(|free| *free < bytes) else { continue };
        let (wanted, free) = (format_bytes(bytes), format_bytes(free));
        let mut bound = Vec::new();
        for (entry, policies) in plan.entries.iter().zip(&mut applied.policies) {
            if matches!(policies, KernelPolicy::Whole { mode: BIND, nodes } if nodes.contains(&node)) {
                *policies = KernelPolicy::Leave;
                bound.push(entry.what.clone());
            }
        }
        let what = if bound.is_empty() { "the rest goes to other nodes".to_owned() } else { format!("{} is left alone", bound.join(", ")) };
        prepared.warn(format!("it puts {wanted} on node {node}, which has {free} free: {what}"));
    }
}

/// Bytes of an entry by node, for the size that was profiled.
fn shares(entry: &Entry, policies: &KernelPolicy) -> Vec<(u32, u64)> {
    match policies {
        KernelPolicy::Leave => Vec::new(),
        KernelPolicy::Whole { nodes, .. } => nodes.iter().map(|node| (*node, entry.bytes / nodes.len().max(1) as u64)).collect(),
        KernelPolicy::Parts { parts, rows, .. } => {
            let bytes = entry.bytes as f64 * f64::from(*rows);
            let mut before = 0.0;
            let share = parts.iter().map(|(end, node)| {
                let share = (end - before) * bytes;
                before = *end;
                (*node, share as u64)
            });
            share.collect()
        }
    }
}

/// Sets the CPUs of the threads, and the variables for OpenMP runtimes and the pinning library.
fn pin_threads(applied: &Applied, topology: &Topology, prepared: &mut Prepared) {
    if applied.threads.is_empty() {
        return;
    }
    let layout = Layout::new(topology);
    let cpus_of: BTreeMap<u32, Vec<u32>> = layout
        .objects(Level::Node)
        .iter()
        .map(|cpus| layout.cores_first(cpus))
        .filter_map(|cpus| Some((topology.node_of_cpu(*cpus.first()?)?, cpus)))
        .collect();
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    let mut cpu = |node: &u32| {
        let cpus = cpus_of.get(node)?;
        let turn = taken.entry(*node).or_default();
        *turn += 1;
        cpus.get((*turn - 1) % cpus.len()).copied()
    };
    let Some(threads) = applied.threads.iter().map(&mut cpu).collect::<Option<Vec<u32>>>() else {
        prepared.warn("its threads cannot be pinned: a node has no CPU that this process may use");
        return;
    };
    let conflicts = openmp::conflicts(&threads, &|name| std::env::var(name).ok());
    if !conflicts.is_empty() {
        let all: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
        prepared.warn(format!("threads stay where the environment puts them: {}", all.join(", ")));
        return;
    }
    let places = openmp::places(&threads);
    if places.len() > LONGEST_VARIABLE {
        prepared.warn(format!("its {} threads are not pinned: an environment variable cannot hold so many places", threads.len()));
        return;
    }
    let mut cpus = threads.clone();
    cpus.sort_unstable();
    cpus.dedup();
    // The program chooses its number of threads: fewer threads than planned spread over all places, and more threads share places.
    let placement = &mut prepared.placement;
    placement.environment = vec![("OMP_PLACES".to_owned(), places), ("OMP_PROC_BIND".to_owned(), "spread".to_owned())];
    placement.environment.extend(pin::variables(&threads, &[], &applied.idle));
    placement.unpinned.clone_from(&applied.idle);
    (placement.cpus, placement.threads) = (Some(cpus), threads);
}

/// `LD_PRELOAD` with the library that places memory, and the one that pins threads.
fn preload(has_threads: bool) -> Result<(String, String)> {
    let pinning = if has_threads { Some(library("libfirsttouch_pin", PIN)?) } else { None };
    Ok(preload_before_users(pinning.into_iter().chain([library("libfirsttouch_plan", PLAN)?]).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::topology::{Memory, Node};

    /// Check which nodes a plan may use: those with CPUs and memory.
    #[test]
    fn plans_use_whole_nodes() {
        let node = |id, cpus: &[u32], bytes| Node {
            id,
            cpus: cpus.to_vec(),
            memory: Some(Memory { total_bytes: bytes, ..Memory::default() }),
            ..Node::default()
        };
        let nodes = vec![node(2, &[2, 3], 1 << 30), node(0, &[0, 1], 1 << 30), node(1, &[], 1 << 30), node(3, &[4], 0)];
        let mut topology = Topology { nodes, ..Topology::default() };
        topology.cpus.online = vec![0, 1, 2, 3, 4];
        assert_eq!(run_nodes(&topology).nodes, [0, 2]);
    }
}
