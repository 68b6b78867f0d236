//! Where threads run: pinned, or where the system puts them.

use crate::machine::MachineModel;
use crate::model::Seat;
use crate::random::SplitMix;

/// The number of draws of an unpinned team. The error of a mean over them is below 0.5 % even if times spread by 15 %.
pub const DRAWS: usize = 1000;

/// A node's hardware threads.
fn cpus_of(machine: &MachineModel, node: usize) -> impl Iterator<Item = Seat> + Clone + use<> {
    let (cores, smt) = machine.nodes.get(node).map_or((0, 0), |node| (node.cores, node.smt));
    (0..smt).flat_map(move |_| (0..cores).map(move |core| Seat { node, core }))
}

/// Threads in order, one per core, filling one node before the next. More threads than cores start again from the first core.
#[must_use]
pub fn compact(machine: &MachineModel, threads: usize) -> Vec<Seat> {
    let all = (0..machine.nodes.len()).flat_map(|node| (0..machine.nodes[node].cores).map(move |core| Seat { node, core }));
    all.cycle().take(threads).collect()
}

/// Threads on the cores of one node, one each. More threads than cores start again from the first core.
#[must_use]
pub fn on_node(machine: &MachineModel, node: usize, threads: usize) -> Vec<Seat> {
    let cores = machine.nodes.get(node).map_or(0, |node| node.cores);
    (0..cores).map(|core| Seat { node, core }).cycle().take(threads).collect()
}

/// An unpinned team: the system puts each thread on a hardware thread of its own while there are free ones, and every such choice is
/// equally likely. The same arguments give the same draws.
#[must_use]
pub fn unpinned(machine: &MachineModel, threads: usize) -> Vec<Vec<Seat>> {
    let all: Vec<Seat> = (0..machine.nodes.len()).flat_map(|node| cpus_of(machine, node)).collect();
    let mut random = SplitMix::new();
    (0..DRAWS)
        .map(|_| {
            let mut drawn = Vec::with_capacity(threads);
            while drawn.len() < threads && !all.is_empty() {
                let mut free = all.clone();
                while drawn.len() < threads && !free.is_empty() {
                    drawn.push(free.swap_remove(random.below(free.len())));
                }
            }
            drawn
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine;
    use std::collections::BTreeMap;

    /// Check that pinned threads are in order, and start again if there are more than cores.
    #[test]
    fn pinned_threads_sit_in_order() {
        let machine = machine::find("xeon-e5620x2").unwrap();
        let nodes = |seats: &[Seat]| seats.iter().map(|seat| seat.node).collect::<Vec<_>>();
        assert_eq!(nodes(&compact(&machine, 10)), [0, 0, 0, 0, 1, 1, 1, 1, 0, 0]);
        assert_eq!(on_node(&machine, 1, 6)[5], Seat { node: 1, core: 1 });
        assert!(on_node(&machine, 9, 6).is_empty());
    }

    /// Check that unpinned threads each have a hardware thread, that all are equally likely, and that draws are repeatable.
    #[test]
    fn unpinned_threads_sit_anywhere_once() {
        let machine = machine::find("xeon-e5-2620v4x2").unwrap();
        let draws = unpinned(&machine, 16);
        assert_eq!((draws.len(), &draws), (DRAWS, &unpinned(&machine, 16)));
        let mut count: BTreeMap<Seat, usize> = BTreeMap::new();
        for draw in &draws {
            let mut here: BTreeMap<Seat, usize> = BTreeMap::new();
            draw.iter().for_each(|seat| *here.entry(*seat).or_default() += 1);
            assert!(here.values().all(|threads| *threads <= 2), "two hardware threads a core");
            draw.iter().for_each(|seat| *count.entry(*seat).or_default() += 1);
        }
        // Expected 1,000 on each of 16 cores; six standard deviations of at most sqrt(1000) each.
        assert_eq!(count.len(), 16);
        assert!(count.values().all(|threads| threads.abs_diff(DRAWS) < 190), "{count:?}");
        assert_eq!(unpinned(&machine, 40)[0].len(), 40);
    }
}
