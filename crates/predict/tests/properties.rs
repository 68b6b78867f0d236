//! Properties that hold on any machine and for any team.

use firsttouch_predict::machine::MachineModel;
use firsttouch_predict::model::{Schedule, Seat, Simulation, Stretch, Thread, simulate};
use firsttouch_predict::units::{Bandwidth, Volume};
use std::fmt::Write;

const CASES: u64 = 300;
const CLOSE: f64 = 1e-6;

struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() * bound as f64) as usize
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }
}

/// Cores per node of every machine in this file.
const CORES: usize = 4;

/// A machine whose controllers saturate gradually. Each link has `link()` GB/s.
fn machine(nodes: usize, core: f64, middle: f64, all: f64, remote: f64, mut link: impl FnMut() -> f64) -> MachineModel {
    let mut text = format!(
        r#"
        schema = "firsttouch.machine/1"
        name = "test"
        title = "test"
        nodes.count = {{ value = {nodes}, source = "assumed" }}
        nodes.per_package = {{ value = 1, source = "assumed" }}
        nodes.cores = {{ value = {CORES}, source = "assumed" }}
        nodes.smt = {{ value = 1, source = "assumed" }}
        core.remote_gb_per_s = {{ value = {remote}, source = "assumed" }}
        [[controller.curves]]
        streams = {{ read = 1, write = 0, allocate = 0 }}
        points = [[1, {core}], [2, {middle}], [4, {all}]]
        source = "assumed"
        "#
    );
    for from in 0..nodes {
        for to in (0..nodes).filter(|to| *to != from) {
            write!(text, "\n[[links]]\nfrom = {from}\nto = {to}\ngb_per_s = {{ value = {}, source = \"assumed\" }}\n", link()).unwrap();
        }
    }
    MachineModel::parse(&text).unwrap()
}

fn any_machine(random: &mut Random) -> MachineModel {
    let nodes = 1 + random.below(5);
    let core = random.between(2.0, 10.0);
    let (middle, all, remote) = (core * random.between(1.2, 2.0), core * random.between(2.0, 3.9), core * random.between(0.2, 1.0));
    machine(nodes, core, middle, all, remote, || random.between(1.0, 20.0))
}

fn any_team(random: &mut Random, machine: &MachineModel) -> Vec<Thread> {
    let nodes = machine.nodes.len();
    (0..=random.below(12))
        .map(|_| {
            let seat = Seat { node: random.below(nodes), core: random.below(CORES) };
            let part = |random: &mut Random, node: usize| (node, Volume(if random.next() < 0.3 { 0.0 } else { random.between(1e8, 4e9) }));
            let stretch = |random: &mut Random| Stretch { parts: (0..nodes).map(|node| part(random, node)).collect() };
            let work = (0..1 + random.below(3)).map(|_| stretch(random)).collect();
            let compute = if random.next() < 0.2 { Bandwidth(random.between(5e8, 5e9)) } else { Bandwidth::UNLIMITED };
            Thread { seat, work, write_share: random.next(), compute }
        })
        .collect()
}

fn each_case(mut check: impl FnMut(&mut Random, &MachineModel, &[Thread], Schedule)) {
    for case in 0..CASES {
        let mut random = Random(case);
        let machine = any_machine(&mut random);
        let team = any_team(&mut random, &machine);
        for schedule in [Schedule::Static, Schedule::Dynamic] {
            check(&mut random, &machine, &team, schedule);
        }
    }
}

fn run(machine: &MachineModel, team: &[Thread], schedule: Schedule) -> Simulation {
    simulate(machine, team, schedule).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= CLOSE * a.abs().max(b.abs()).max(1e-12)
}

/// Check that no controller and no link carries more than it can in the time, and every byte is carried once.
#[test]
fn nothing_carries_more_than_it_can() {
    each_case(|_, machine, team, schedule| {
        let outcome = run(machine, team, schedule);
        let most = outcome.time.0 * (1.0 + CLOSE);
        for (node, carried) in machine.nodes.iter().zip(&outcome.controllers) {
            assert!(carried.0 <= node.curve(0.0).limit * most, "{carried:?} in {most}");
        }
        for (link, carried) in machine.links.iter().zip(&outcome.links) {
            assert!(carried.0 <= link.capacity.0 * most, "{carried:?} in {most}");
        }
        let asked: f64 = team.iter().flat_map(|thread| &thread.work).map(|stretch| stretch.volume().0).sum();
        assert!(close(outcome.controllers.iter().map(|volume| volume.0).sum(), asked));
        assert!(outcome.ended.iter().all(|ended| ended.0 <= most));
    });
}

fn faster(machine: &MachineModel, factor: f64) -> MachineModel {
    let mut machine = machine.clone();
    for node in &mut machine.nodes {
        node.core_remote.0 *= factor;
        node.curves.iter_mut().for_each(|curve| (curve.core, curve.limit) = (curve.core * factor, curve.limit * factor));
    }
    machine.links.iter_mut().for_each(|link| link.capacity.0 *= factor);
    machine
}

/// Check that twice the bytes take twice the time, and that raising all bandwidths by a factor divides the time by it.
#[test]
fn time_scales_with_bytes_and_bandwidths() {
    each_case(|random, machine, team, schedule| {
        let factor = random.between(1.1, 9.0);
        let before = run(machine, team, schedule).time.0;
        let mut more = team.to_vec();
        more.iter_mut().flat_map(|thread| &mut thread.work).flat_map(|stretch| &mut stretch.parts).for_each(|part| part.1.0 *= factor);
        assert!(close(run(machine, &more, schedule).time.0, before * factor));
        let mut quick = team.to_vec();
        quick.iter_mut().for_each(|thread| thread.compute.0 *= factor);
        assert!(close(run(&faster(machine, factor), &quick, schedule).time.0, before / factor));
    });
}

/// Check that the order of threads does not matter.
#[test]
fn threads_have_no_rank() {
    each_case(|_, machine, team, schedule| {
        let turned: Vec<Thread> = team.iter().rev().cloned().collect();
        assert!(close(run(machine, team, schedule).time.0, run(machine, &turned, schedule).time.0));
    });
}

/// A team that is the same on every node: the same number of threads, each with the same bytes on its own node and on each other node.
fn even_team(nodes: usize, threads: usize, own: f64, other: f64) -> Vec<Thread> {
    let work = |node: usize| vec![Stretch { parts: (0..nodes).map(|at| (at, Volume(if at == node { own } else { other }))).collect() }];
    let thread =
        |node: usize, core: usize| Thread { seat: Seat { node, core }, work: work(node), write_share: 0.0, compute: Bandwidth::UNLIMITED };
    (0..nodes).flat_map(|node| (0..threads).map(move |core| (node, core))).map(|(node, core)| thread(node, core)).collect()
}

/// Check that on a symmetric machine, all threads of a symmetric team end at the same time.
#[test]
fn symmetric_machines_give_symmetric_answers() {
    for case in 0..CASES {
        let mut random = Random(case);
        let nodes = 2 + random.below(4);
        let link = random.between(1.0, 20.0);
        let machine = machine(nodes, 5.0, 9.0, 14.0, random.between(1.0, 5.0), || link);
        let team = even_team(nodes, 1 + random.below(CORES), random.between(0.0, 4e9), random.between(1.0, 4e9));
        let outcome = run(&machine, &team, Schedule::Static);
        assert!(outcome.ended.iter().all(|ended| close(ended.0, outcome.time.0)));
        assert!(outcome.controllers.iter().all(|carried| close(carried.0, outcome.controllers[0].0)));
    }
}

/// Check that more capacity of any kind never slows a symmetric team.
#[test]
fn more_bandwidth_never_slows_an_even_team() {
    for case in 0..CASES {
        let mut random = Random(case);
        let nodes = 2 + random.below(4);
        let link = random.between(1.0, 20.0);
        let described = machine(nodes, 5.0, 9.0, 14.0, random.between(1.0, 5.0), || link);
        let team = even_team(nodes, 1 + random.below(CORES), random.between(1.0, 4e9), random.between(1.0, 4e9));
        let before = run(&described, &team, Schedule::Static).time.0;
        let factor = random.between(1.0, 5.0);
        for kind in 0..4 {
            let mut better = described.clone();
            match kind {
                0 => better.links.iter_mut().for_each(|link| link.capacity.0 *= factor),
                1 => better.nodes.iter_mut().for_each(|node| node.curves[0].limit *= factor),
                2 => better.nodes.iter_mut().for_each(|node| node.curves[0].core *= factor),
                _ => better.nodes.iter_mut().for_each(|node| node.core_remote.0 *= factor),
            }
            let after = run(&better, &team, Schedule::Static).time.0;
            assert!(after <= before * (1.0 + CLOSE), "case {case}: {before} s, with more of kind {kind} {after} s");
        }
    }
}

/// Check the known exception, which is a property of fair sharing: if one path of a thread becomes faster, the thread also takes more of its
/// other path, and a thread that shares the other path ends later, although the team as a whole ends earlier.
#[test]
fn fair_sharing_can_slow_a_third_thread() {
    let mut machine = machine(2, 100.0, 200.0, 390.0, 100.0, || 10.0);
    let thread = |core: usize, parts: [f64; 2]| Thread {
        seat: Seat { node: 0, core },
        work: vec![Stretch { parts: vec![(0, Volume(parts[0])), (1, Volume(parts[1]))] }],
        write_share: 0.0,
        compute: Bandwidth::UNLIMITED,
    };
    let team = [thread(0, [50e9, 50e9]), thread(1, [100e9, 0.0]), thread(2, [0.0, 20e9])];
    machine.nodes[0].curves[0].limit = 1e9;
    let before = run(&machine, &team, Schedule::Static);
    machine.nodes[0].curves[0].limit = 2e9;
    let after = run(&machine, &team, Schedule::Static);
    assert!(close(before.ended[2].0, 20.0 / (10.0 - 1.0 / 3.0)) && close(after.ended[2].0, 20.0 / (10.0 - 2.0 / 3.0)));
    assert!(after.time.0 < before.time.0);
}

/// Check that the node of a page matters: with pages interleaved over two nodes, half of each thread's bytes cross the link.
#[test]
fn a_worked_example() {
    // docs/model.md: two nodes, cores 5 GB/s, controllers 14 GB/s, links 4 GB/s, remote 4 GB/s per core; four threads per node, 1 GB each.
    let machine = machine(2, 5.0, 10.0, 14.0, 4.0, || 4.0);
    let local = run(&machine, &even_team(2, 4, 1e9, 0.0), Schedule::Static);
    assert!(close(local.time.0, 8.0 / 28.0), "{:?}", local.time);
    let interleaved = run(&machine, &even_team(2, 4, 0.5e9, 0.5e9), Schedule::Static);
    assert!(close(interleaved.time.0, 0.5), "{:?}", interleaved.time);
    let mut serial = even_team(2, 4, 1e9, 0.0);
    serial.iter_mut().for_each(|thread| thread.work = vec![Stretch { parts: vec![(0, Volume(1e9))] }]);
    let serial = run(&machine, &serial, Schedule::Static);
    assert!(close(serial.time.0, 1.0) && close(serial.remote_fraction, 0.5), "{:?}", serial.time);
}

/// Check that an impossible team is an error that names the thread.
#[test]
fn impossible_teams_are_refused() {
    let machine = machine(2, 5.0, 9.0, 14.0, 4.0, || 4.0);
    let good = even_team(2, 1, 1e9, 1e9);
    let wrong = |change: &dyn Fn(&mut Thread)| {
        let mut team = good.clone();
        change(&mut team[1]);
        simulate(&machine, &team, Schedule::Static).unwrap_err().to_string()
    };
    for message in [
        wrong(&|thread| thread.seat.node = 2),
        wrong(&|thread| thread.seat.core = 99),
        wrong(&|thread| thread.work[0].parts[0].0 = 2),
        wrong(&|thread| thread.work[0].parts[0].1.0 = f64::NAN),
        wrong(&|thread| thread.work[0].parts[0].1.0 = -1.0),
        wrong(&|thread| thread.write_share = 1.5),
        wrong(&|thread| thread.compute.0 = 0.0),
    ] {
        assert!(message.contains("thread 1"), "{message}");
    }
    assert_eq!(run(&machine, &[], Schedule::Dynamic).time.0, 0.0);
}
