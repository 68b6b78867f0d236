//! What working threads ask of a machine: the resources each passes, and what each could draw alone.

use super::Thread;
use crate::machine::Machine;
use crate::machine::curve::delivered;

/// One thread's use of the machine while it works on one stretch.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The most it could move, by itself on the machine, bytes a second.
    pub cap: f64,
    /// The part of its traffic that is written.
    pub write_share: f64,
    /// Resources with the bytes they carry for each byte the thread moves.
    pub uses: Vec<(usize, f64)>,
}

/// Controllers come first, by node; then links, in the machine's order.
pub fn link(machine: &Machine, index: usize) -> usize {
    machine.nodes.len() + index
}

/// The demand of a thread whose bytes lie on nodes in these shares (they sum to 1), on a core it shares with others.
pub fn demand(machine: &Machine, thread: &Thread, shares: &[(usize, f64)], on_core: usize) -> Demand {
    let node = thread.seat.node;
    let write = thread.write_share;
    let mut uses: Vec<(usize, f64)> = Vec::with_capacity(3 * shares.len());
    // A byte takes a core 1/b seconds, and b is another for each place: a mix takes the mean of the times.
    let mut time_per_byte = 0.0;
    let local = machine.nodes[node].curve(write).core;
    for &(memory, share) in shares.iter().filter(|(_, share)| *share > 0.0) {
        uses.push((memory, share));
        let core = if memory == node { local } else { local.min(machine.nodes[node].core_remote.0) };
        time_per_byte += share / core;
        for (part, from, to) in [(1.0 - write, memory, node), (write, node, memory)] {
            if part > 0.0 {
                uses.extend(machine.route(from, to).iter().map(|index| (link(machine, *index), share * part)));
            }
        }
    }
    uses.sort_unstable_by_key(|(resource, _)| *resource);
    uses.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    let core = 1.0 / (time_per_byte * on_core.max(1) as f64);
    Demand { cap: core.min(thread.compute.0), write_share: write, uses }
}

/// What each resource carries at most while threads would offer so much to each, with so much of it written. A controller delivers less
/// than its limit before its queue is full (see `curve`): by the load its threads would offer if nothing else held them back.
pub fn capacities(machine: &Machine, (offered, written): (&[f64], &[f64]), capacities: &mut Vec<f64>) {
    let controllers = machine.nodes.iter().zip(offered.iter().zip(written)).map(|(node, (&offered, &written))| {
        if offered <= 0.0 {
            return node.curve(0.0).limit;
        }
        let curve = node.curve((written / offered).clamp(0.0, 1.0));
        delivered(offered, curve.limit, curve.sharpness)
    });
    capacities.clear();
    capacities.extend(controllers.chain(machine.links.iter().map(|link| link.capacity.0)));
}
