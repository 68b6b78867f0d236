//! What a launcher of ranks gave this process: its place in the job, and CPUs.

use firsttouch_model::facts::Facts;
use firsttouch_model::rows::RankPlace;
use firsttouch_model::topology::format_list;
use serde::Serialize;

/// A rank and its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RankBinding {
    pub place: RankPlace,
    /// The CPUs that it may use; `None` if that is not known.
    pub cpus: Option<Vec<u32>>,
    /// The nodes that these CPUs are on.
    pub nodes: Vec<u32>,
    /// Whether the launcher, or what is around it, left out a CPU of the machine.
    pub is_bound: bool,
    /// This as a sentence, with what to do if the rank may run on several nodes.
    pub message: String,
}

/// `None` if this process is no rank.
pub fn of(facts: &Facts) -> Option<RankBinding> {
    let place = facts.rank.clone()?;
    let topology = &facts.topology;
    let cpus = topology.process.as_ref().and_then(|limits| limits.allowed_cpus.clone());
    let nodes = cpus.as_ref().map_or_else(Vec::new, |cpus| topology.nodes_of(cpus));
    let is_bound = cpus.as_ref().is_some_and(|cpus| topology.cpus.online.iter().any(|cpu| !cpus.contains(cpu)));
    let message = message(&place, cpus.as_deref(), &nodes, is_bound);
    Some(RankBinding { place, cpus, nodes, is_bound, message })
}

fn message(place: &RankPlace, cpus: Option<&[u32]>, nodes: &[u32], is_bound: bool) -> String {
    let local = match (place.local_rank, place.local_size) {
        (Some(rank), Some(size)) => format!(", {rank} of {size} on this host"),
        _ => String::new(),
    };
    let who = format!("rank {} of {} ({}){local}", place.rank, place.size, place.launcher);
    let Some(cpus) = cpus else { return format!("{who}: the CPUs that it may use are not known") };
    let some = |noun: &str, list: &[u32]| {
        let plural = if list.len() == 1 { "" } else { "s" };
        format!("{noun}{plural} {}", format_list(list))
    };
    let bound = match is_bound {
        true => format!("may use {}", some("CPU", cpus)),
        false => "is not bound: it may use all CPUs".to_owned(),
    };
    match nodes {
        [] => format!("{who}: {bound}"),
        [_] => format!("{who}: {bound}, of {}", some("node", nodes)),
        _ => format!(
            "{who}: {bound}, of {}: its threads and its memory may be on different nodes. Bind each rank to a node: {}",
            some("node", nodes),
            place.binding_options()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::topology::{Node, ProcessLimits, Topology};

    fn of_cpus(cpus: &[u32], launcher: &str) -> RankBinding {
        let node = |id: u32| Node { id, cpus: vec![2 * id, 2 * id + 1], ..Node::default() };
        let mut topology = Topology { nodes: vec![node(0), node(1)], ..Topology::default() };
        topology.cpus.online = vec![0, 1, 2, 3];
        topology.process = Some(ProcessLimits { allowed_cpus: Some(cpus.to_vec()), ..ProcessLimits::default() });
        let place =
            RankPlace { rank: 1, size: 4, local_rank: Some(1), local_size: Some(2), launcher: launcher.to_owned(), ..RankPlace::default() };
        of(&Facts { topology, rank: Some(place), ..Facts::default() }).unwrap()
    }

    /// Check what is said of ranks that are bound to a CPU, to a node, across nodes, and not at all.
    #[test]
    fn bindings_are_named() {
        assert_eq!(of_cpus(&[2], "Open MPI").message, "rank 1 of 4 (Open MPI), 1 of 2 on this host: may use CPU 2, of node 1");
        assert_eq!(of_cpus(&[0, 1], "Slurm").message, "rank 1 of 4 (Slurm), 1 of 2 on this host: may use CPUs 0-1, of node 0");
        let across = of_cpus(&[1, 2], "MPICH");
        assert!(across.is_bound && across.message.ends_with("Bind each rank to a node: mpiexec -bind-to numa"), "{across:?}");
        let free = of_cpus(&[0, 1, 2, 3], "Open MPI");
        assert!(!free.is_bound && free.message.contains("is not bound: it may use all CPUs, of nodes 0-1"), "{free:?}");
        assert_eq!(of(&Facts::default()), None);
    }
}
