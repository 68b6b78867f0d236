//! The demand of a working thread on a machine: the resources that its traffic passes, and the rate that it could reach alone.

use super::Thread;
use crate::machine::MachineModel;
use crate::machine::curve::{Curve, delivered, offered};

/// One thread's use of the machine while it works on one stretch.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The highest rate that it could reach alone on the machine, bytes per second.
    pub cap: f64,
    /// The fraction of its traffic that is written.
    pub write_share: f64,
    /// Resources, each with the bytes that it carries for each byte the thread moves.
    pub uses: Vec<(usize, f64)>,
}

/// The index of a link's resource. Controllers come first, by node; then links, in the machine's order.
pub fn link(machine: &MachineModel, index: usize) -> usize {
    machine.nodes.len() + index
}

/// What a core of `node` asks of another node at most. The described bandwidth was measured behind a controller that delivers less than
/// it is asked for, as for a core's own node.
fn remote(machine: &MachineModel, node: usize, memory: usize, curve: Curve) -> f64 {
    let own = &machine.nodes[node];
    let measured = if own.package == machine.nodes[memory].package { own.core_in_package } else { own.core_remote };
    offered(measured.0, curve.limit, curve.sharpness)
}

/// The demand of a thread whose bytes are on nodes in the given shares (sum 1), on a core with `on_core` working threads.
pub fn demand(machine: &MachineModel, thread: &Thread, shares: &[(usize, f64)], on_core: usize) -> Demand {
    let node = thread.seat.node;
    let write = thread.write_share;
    let mut uses: Vec<(usize, f64)> = Vec::with_capacity(3 * shares.len());
    // A byte takes a core 1/b seconds, and b depends on the node: a mix takes the mean of the times.
    let mut time_per_byte = 0.0;
    let curve = machine.nodes[node].curve(write);
    for &(memory, share) in shares.iter().filter(|(_, share)| *share > 0.0) {
        uses.push((memory, share));
        let core = if memory == node { curve.core } else { curve.core.min(remote(machine, node, memory, curve)) };
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

/// The capacity of each resource for an offered load in bytes per second, `written` of which is written. A controller delivers less than
/// its limit before its queue is full (see `curve`): its capacity follows from the load that its threads would offer if nothing else
/// limited them.
pub fn capacities(machine: &MachineModel, (offered, written): (&[f64], &[f64]), capacities: &mut Vec<f64>) {
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
