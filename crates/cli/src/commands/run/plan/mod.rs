//! `firsttouch run --plan`: the plan on this machine and in the files that will run, handed to the library in the program. Whatever
//! cannot be had is said in a line, and the program runs.

mod find;
mod handover;

use super::pin;
use crate::arguments::Run;
use crate::output::message;
use anyhow::{Context, Result, bail};
use firsttouch_model::format_bytes;
use firsttouch_model::launch::PlannedMemory;
use firsttouch_model::topology::Topology;
use firsttouch_native::{PIN, PLAN};
use firsttouch_placement::plan::{Applied, Entry, Found, Plan, Policies, Reach, Table, apply, table};
use firsttouch_placement::{Layout, Level, Numbered, Placement, openmp};
use firsttouch_system::launch::find_program;
use firsttouch_system::placement::try_mbind;
use firsttouch_system::preload::cached;
use firsttouch_system::preload::target::accepts_agent;
use firsttouch_system::topology as machine;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

const BIND: u32 = 2;
/// The kernel takes no longer strings (MAX_ARG_STRLEN is 128 KiB).
const LONGEST_VARIABLE: usize = 100_000;

/// A plan on this machine.
struct Here {
    plan: Plan,
    topology: Topology,
    reach: Reach,
    applied: Applied,
}

impl Here {
    fn read(path: &Path) -> Result<Self> {
        let plan = crate::plan::read(path)?;
        let topology = machine::read(Path::new("/"))?;
        let reach = reach(&topology);
        let applied = apply(&plan, &reach);
        Ok(Self { plan, topology, reach, applied })
    }
}

/// Where threads and memory would go; nothing is placed.
///
/// # Errors
/// A plan that cannot be read.
pub fn explain(arguments: &Run, path: &Path) -> Result<(Placement, Vec<PlannedMemory>)> {
    let Here { plan, topology, reach, mut applied } = Here::read(path)?;
    let mut placement = Placement::default();
    if reach.nodes.len() < 2 {
        say("there is one node here, so nothing to place, and no thread is pinned");
    }
    applied.doubts.iter().for_each(|doubt| say(doubt));
    check_room(&plan, &mut applied, &topology);
    seat(&applied, &topology, &mut placement);
    let program = arguments.program.first().and_then(|name| find_program(name));
    match (&program, arguments.program.first()) {
        (None, Some(name)) => bail!("cannot find the program {}: check the name and PATH", name.to_string_lossy()),
        (Some(program), _) if !plan.entries.is_empty() && !find::is_in(&plan, program) => {
            let all: Vec<&str> = plan.modules.iter().map(|module| module.path.as_str()).collect();
            say(&format!(
                "it is about {}, and {} is another program: it holds if that starts the first",
                all.join(", "),
                program.display()
            ));
        }
        _ => {}
    }
    let found = program.as_deref().map(|program| find::find(&plan, Some(program)).1);
    let of = |(index, entry): (usize, &Entry)| PlannedMemory {
        what: entry.what.clone(),
        at: entry.at.clone(),
        policy: entry.place.name().to_owned(),
        nodes: match applied.policies.get(index) {
            Some(Policies::Whole { nodes, .. }) => nodes.clone(),
            Some(Policies::Parts { parts, .. }) => parts.iter().map(|(_, node)| *node).collect(),
            Some(Policies::Leave) | None => Vec::new(),
        },
        found: found.as_ref().and_then(|found| found.get(index)).map(|found| *found != Found::Missing),
    };
    let planned = plan.entries.iter().enumerate().map(of).collect();
    Ok((placement, planned))
}

/// Reads and resolves the plan; what is left to do is to set the placement and to become the program.
///
/// # Errors
/// A plan that cannot be read: nothing has run then.
pub fn prepare(arguments: &Run, path: &Path) -> Result<Placement> {
    let Here { plan, topology, reach, mut applied } = Here::read(path)?;
    let mut placement = Placement::default();
    if plan.entries.is_empty() {
        say(&format!("{} places nothing: the program runs as it is", path.display()));
        return Ok(placement);
    }
    if reach.nodes.len() < 2 {
        say("there is one node here, so nothing to place, and no thread is pinned; at the end it says which sites were seen");
    } else if let Err(refusal) = try_mbind(reach.nodes[0]) {
        say(&format!("{refusal}. The program runs with its memory unplaced"));
        return Ok(placement);
    }
    applied.doubts.iter().for_each(|doubt| say(doubt));
    check_room(&plan, &mut applied, &topology);
    seat(&applied, &topology, &mut placement);
    let program = arguments.program.first().and_then(|name| find_program(name));
    if let Some(path) = &program
        && let Err(reason) = accepts_agent(path)
        && let Some(why) = pin::why_not(&reason)
    {
        say(&format!("{} {why}: its memory is not placed", path.display()));
        return Ok(placement);
    }
    let (identities, found) = find::find(&plan, program.as_deref());
    if found.iter().all(|found| *found == Found::Missing) {
        say(&format!("none of its sites is in the program: {} was made for another program, or for an old build of it", path.display()));
    }
    let bytes = table(&Table { plan: &plan, applied: &applied, identities: &identities, found: &found, pid: std::process::id() });
    match handover::write(&bytes).and_then(|table| Ok((table, preload(!placement.threads.is_empty())?))) {
        Ok((table, preload)) => placement.environment.extend([("FIRSTTOUCH_PLAN".to_owned(), table), preload]),
        Err(error) => say(&format!("{error:#}. The program runs with its memory unplaced")),
    }
    Ok(placement)
}

fn say(text: &str) {
    message(&format!("plan: {text}"));
}

/// Nodes with CPUs and memory that this process may use.
fn reach(topology: &Topology) -> Reach {
    let cpus = Numbered::cpus(topology);
    let memory = Numbered::nodes(topology);
    let has_memory = |memory: &Option<firsttouch_model::topology::Memory>| memory.is_none_or(|memory| memory.total_bytes > 0);
    let usable = topology.nodes.iter().filter(|node| {
        has_memory(&node.memory) && memory.allowed().contains(&node.id) && node.cpus.iter().any(|cpu| cpus.allowed().contains(cpu))
    });
    let mut nodes: Vec<u32> = usable.map(|node| node.id).collect();
    nodes.sort_unstable();
    Reach { nodes }
}

/// Says where a node has less free memory than the plan puts on it. What is bound would be killed there: it is left alone.
fn check_room(plan: &Plan, applied: &mut Applied, topology: &Topology) {
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
            if matches!(policies, Policies::Whole { mode: BIND, nodes } if nodes.contains(&node)) {
                *policies = Policies::Leave;
                bound.push(entry.what.clone());
            }
        }
        let what = if bound.is_empty() {
            "what does not fit goes to other nodes".to_owned()
        } else {
            format!("{} is left alone", bound.join(", "))
        };
        say(&format!("it puts {wanted} on node {node}, which has {free} free: {what}"));
    }
}

/// Bytes by node, as large as they were when profiled.
fn shares(entry: &Entry, policies: &Policies) -> Vec<(u32, u64)> {
    match policies {
        Policies::Leave => Vec::new(),
        Policies::Whole { nodes, .. } => nodes.iter().map(|node| (*node, entry.bytes / nodes.len().max(1) as u64)).collect(),
        Policies::Parts { parts, rows, .. } => {
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

/// The CPUs of the threads, and what tells OpenMP runtimes and the pinning library of them.
fn seat(applied: &Applied, topology: &Topology, placement: &mut Placement) {
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
        say("its threads cannot be pinned: a node has no CPU that this process may use");
        return;
    };
    let conflicts = openmp::conflicts(&threads, &|name| std::env::var(name).ok());
    if !conflicts.is_empty() {
        let all: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
        say(&format!("threads stay where the environment puts them: {}", all.join(", ")));
        return;
    }
    let places = openmp::places(&threads);
    if places.len() > LONGEST_VARIABLE {
        say(&format!("its {} threads are not pinned: a variable that names so many places cannot be handed to a program", threads.len()));
        return;
    }
    let mut cpus = threads.clone();
    cpus.sort_unstable();
    cpus.dedup();
    // Fewer threads than planned spread over all places, more of them share places; their number stays the program's own.
    placement.environment = vec![("OMP_PLACES".to_owned(), places), ("OMP_PROC_BIND".to_owned(), "spread".to_owned())];
    placement.environment.extend(pin::variables(&threads, &[]));
    (placement.cpus, placement.threads) = (Some(cpus), threads);
}

/// The libraries, before what the user preloads.
fn preload(pins: bool) -> Result<(String, String)> {
    let mut libraries = Vec::new();
    if pins {
        libraries.push(library("libfirsttouch_pin", PIN)?);
    }
    libraries.push(library("libfirsttouch_plan", PLAN)?);
    let users = std::env::var("LD_PRELOAD").unwrap_or_default();
    libraries.extend((!users.is_empty()).then_some(users));
    Ok(("LD_PRELOAD".to_owned(), libraries.join(":")))
}

fn library(name: &str, bytes: &[u8]) -> Result<String> {
    let path: OsString = cached(name, bytes)?.into_os_string();
    path.into_string().ok().context("cannot preload the library that places memory: its path is no text")
}
