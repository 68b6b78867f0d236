//! A property of every machine read from a description: the model can compute with it.

use firsttouch_predict::machine::MachineModel;
use firsttouch_predict::model::{Schedule, Seat, Stretch, Thread, simulate};
use firsttouch_predict::units::{Bandwidth, Volume};
use firsttouch_report::{MachineJson, Style, machine_text};

/// Two threads, on the first and the last node; each uses memory of both.
pub fn computed(machine: &MachineModel) {
    let last = machine.nodes.len().checked_sub(1).expect("a machine has a node");
    assert!(machine.nodes.iter().all(|node| node.cores > 0));
    // What connects two packages is a link between any of their nodes. A pair of nodes may have a link of its own on the same way.
    let is_there = |at: usize, node: usize| at == node || machine.nodes[at].package == machine.nodes[node].package;
    for (from, to) in [(0, last), (last, 0)] {
        let (mut left, mut at) = (from, from);
        for link in machine.route(from, to).iter().map(|link| machine.links[*link]) {
            assert!(link.capacity.0 > 0.0);
            let is_beside = is_there(link.from, left) && is_there(link.to, at);
            assert!(is_beside || is_there(link.from, at), "{link:?} from {at}");
            (left, at) = (link.from, link.to);
        }
        assert!(is_there(at, to), "the route ends at {at}, not {to}");
    }
    let parts = || {
        let both = vec![(0, Volume(1e9)), (last, Volume(1e9))];
        if last == 0 { both[..1].to_vec() } else { both }
    };
    let thread = |node: usize| Thread {
        seat: Seat { node, core: 0 },
        work: vec![Stretch { parts: parts() }],
        write_share: 0.25,
        compute: Bandwidth::UNLIMITED,
    };
    for schedule in [Schedule::Static, Schedule::Dynamic] {
        let outcome = simulate(machine, &[thread(0), thread(last)], schedule).expect("a team that fits");
        assert!(outcome.time.0.is_finite() && outcome.time.0 > 0.0, "{:?}", outcome.time);
        assert!((0.0..=1.0).contains(&outcome.remote_fraction));
    }
    assert!(machine_text(machine, Style { width: 80, colour: false }).contains(&machine.name));
    serde_json::to_string(&MachineJson::new(machine)).expect("JSON");
}
