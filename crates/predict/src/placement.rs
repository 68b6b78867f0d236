//! Where an object's bytes are, and on which nodes a thread finds the part that it works on.

use crate::machine::MachineModel;
use crate::model::Stretch;
use crate::units::Volume;

/// An address range as consecutive pieces: bytes, and the nodes they are on, in shares that sum to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    pieces: Vec<(f64, Vec<(usize, f64)>)>,
}

impl Layout {
    /// Pages in turn on all nodes, by weight. Without a positive weight, the layout is empty.
    #[must_use]
    pub fn interleaved(volume: Volume, weights: &[(usize, f64)]) -> Self {
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        if !(sum.is_finite() && sum > 0.0) {
            return Self::default();
        }
        Self { pieces: vec![(volume.0, weights.iter().map(|(node, weight)| (*node, weight / sum)).collect())] }
    }

    /// The layout after threads first touch blocks of this volume in this order, each on its own node. What does not fit on a node goes to
    /// the nearest node with room (fewest links, then the lowest number), as in the kernel's zone lists. `room` is reduced by what is
    /// allocated. What fits nowhere stays on the first node (the kernel would swap or kill).
    #[must_use]
    pub fn first_touched(machine: &MachineModel, touches: &[(usize, Volume)], room: &mut [f64]) -> Self {
        let mut pieces: Vec<(f64, Vec<(usize, f64)>)> = Vec::new();
        for &(node, volume) in touches {
            let mut left = volume.0;
            for target in nearest(machine, node) {
                let Some(room) = room.get_mut(target) else { continue };
                let taken = left.min(*room);
                if taken > 0.0 {
                    *room -= taken;
                    left -= taken;
                    pieces.push((taken, vec![(target, 1.0)]));
                }
            }
            if left > 0.0 {
                pieces.push((left, vec![(node, 1.0)]));
            }
        }
        Self { pieces }
    }

    /// The work of a thread that accesses the bytes from `from` to `to` in order.
    #[must_use]
    pub fn cut(&self, from: Volume, to: Volume) -> Vec<Stretch> {
        let mut work = Vec::new();
        let mut start = 0.0;
        for (volume, shares) in &self.pieces {
            let inside = (start + volume).min(to.0) - from.0.max(start);
            if inside > 0.0 {
                work.push(Stretch { parts: shares.iter().map(|(node, share)| (*node, Volume(inside * share))).collect() });
            }
            start += volume;
        }
        work
    }
}

/// The free memory of each node before the program allocates anything; infinite if it is unknown.
#[must_use]
pub fn room(machine: &MachineModel) -> Vec<f64> {
    machine.nodes.iter().map(|node| node.free.or(node.memory).map_or(f64::INFINITY, |volume| volume.0)).collect()
}

/// All nodes, nearest first: fewest links, then the lowest number.
#[must_use]
pub fn nearest(machine: &MachineModel, node: usize) -> Vec<usize> {
    let mut nodes: Vec<usize> = (0..machine.nodes.len()).collect();
    nodes.sort_by_key(|other| (machine.route(*other, node).len(), *other));
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine;

    fn parts(work: &[Stretch]) -> Vec<Vec<(usize, f64)>> {
        work.iter().map(|stretch| stretch.parts.iter().map(|(node, volume)| (*node, volume.0)).collect()).collect()
    }

    /// Check that what does not fit on a node goes to the nearest node with room, and stays if no node has room.
    #[test]
    fn what_does_not_fit_spills() {
        let machine = machine::find("epyc-7451x2").unwrap();
        let mut room = vec![10.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0];
        let layout = Layout::first_touched(&machine, &[(0, Volume(20.0))], &mut room);
        assert_eq!(parts(&layout.cut(Volume(0.0), Volume(20.0))), [[(0, 10.0)], [(1, 5.0)], [(7, 2.0)], [(0, 3.0)]]);
        assert_eq!(parts(&layout.cut(Volume(8.0), Volume(12.0))), [[(0, 2.0)], [(1, 2.0)]]);
        assert!(room.iter().all(|left| *left == 0.0));
    }

    /// Check that later touches get only the room that earlier ones left.
    #[test]
    fn rooms_are_shared_by_blocks() {
        let machine = machine::find("xeon-e5620x2").unwrap();
        let mut room = vec![6.0, 6.0];
        let layout = Layout::first_touched(&machine, &[(0, Volume(4.0)), (0, Volume(4.0)), (1, Volume(4.0))], &mut room);
        assert_eq!(parts(&layout.cut(Volume(4.0), Volume(12.0))), [[(0, 2.0)], [(1, 2.0)], [(1, 4.0)]]);
    }

    /// Check that weights are shares, and that without a positive weight there is no layout.
    #[test]
    fn pages_go_round_by_weight() {
        let layout = Layout::interleaved(Volume(100.0), &[(0, 3.0), (1, 1.0)]);
        assert_eq!(parts(&layout.cut(Volume(20.0), Volume(60.0))), [[(0, 30.0), (1, 10.0)]]);
        assert!(layout.cut(Volume(200.0), Volume(300.0)).is_empty());
        for weights in [&[][..], &[(0, 0.0)], &[(0, f64::NAN)], &[(0, f64::INFINITY)]] {
            assert_eq!(Layout::interleaved(Volume(1.0), weights), Layout::default());
        }
    }
}
