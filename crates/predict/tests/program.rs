//! Fully known programs, predicted from samples of their traffic.

use firsttouch_model::finding::Remedy;
use firsttouch_model::traffic::{Division, ObjectTraffic, Parts, Traffic, TrafficSample, Work, Worker};
use firsttouch_predict::forecast::{ForecastMachine, ForecastOptions, choose, forecast};
use firsttouch_predict::machine::MachineModel;
use firsttouch_predict::model::TeamError;
use firsttouch_predict::program::{Assumptions, Candidate, Caps, Left, Placement, Placements, Predicted, Program, best};

const SAMPLES: usize = 400;

/// The machine of docs/model.md's worked example; `memory` in MiB.
fn machine(memory: u32) -> MachineModel {
    MachineModel::parse(&described(memory)).unwrap()
}

fn described(memory: u32) -> String {
    format!(
        r#"
        schema = "firsttouch.machine/1"
        name = "worked"
        title = "worked example"
        nodes.count = {{ value = 2, source = "assumed" }}
        nodes.per_package = {{ value = 1, source = "assumed" }}
        nodes.cores = {{ value = 4, source = "assumed" }}
        nodes.smt = {{ value = 1, source = "assumed" }}
        nodes.memory_mib = {{ value = {memory}, source = "assumed" }}
        core.remote_gb_per_s = {{ value = 4, source = "assumed" }}
        interconnect.gb_per_s = {{ value = 4, source = "assumed" }}
        [[controller.curves]]
        streams = {{ read = 1, write = 0, allocate = 0 }}
        points = [[1, 5], [4, 14]]
        source = "assumed"
        "#
    )
}

/// Eight workers, four per node, use one object in blocks. Its pages are on `home(owner's node)`. Rates vary between samples.
fn program(division: Division, cpu_s: f64, home: impl Fn(u32) -> u32) -> Traffic {
    let worker = |index: usize| Worker { threads: vec![index], node: (index / 4) as u32, idle: false, cpu_s: Some(cpu_s) };
    let sample = |index: usize| {
        let position = (index as f64 + 0.5) / SAMPLES as f64;
        let user = if division == Division::Owned { (position * 8.0) as usize } else { index * 5 % 8 };
        let owner = (division == Division::Owned).then_some(user);
        let part = (position * 8.0) as u32 / 4;
        let bytes = vec![(user, 8e9 / SAMPLES as f64 * [0.5, 1.5][index / 8 % 2])];
        TrafficSample { position, round: (index * 7 % 50) as u64, home: home(part), owner, serial: false, bytes }
    };
    let object = ObjectTraffic {
        id: 7,
        name: "A".into(),
        bytes: 1 << 30,
        division,
        work: Work::AsSeen,
        has_fine_parts: false,
        even: (0..8).collect(),
        rows: 1,
        members: Vec::new(),
        parts: None,
        samples: (0..SAMPLES).map(sample).collect(),
    };
    Traffic { workers: (0..8).map(worker).collect(), objects: vec![object], unknown: 0.0, computing: None, guessed: 0.0 }
}

fn ask(caps: Caps, model_error: f64) -> Assumptions {
    Assumptions { write_share: 0.0, caps, model_error }
}

const ALL: [Placement; 4] = [Placement::AsIs, Placement::ParallelFirstTouch, Placement::Interleave, Placement::OneNode { node: 0 }];

fn predicted(machine: &MachineModel, traffic: &Traffic, question: Assumptions) -> Vec<Predicted> {
    Program::new(machine, traffic, vec![0, 1], question).unwrap().predict(&ALL).unwrap()
}

fn near(value: f64, truth: f64) -> bool {
    (value / truth - 1.0).abs() < 0.02
}

/// Check the worked example from its samples: serial initialisation is 3.5 times slower, interleaving 1.75 times, and the gain of the fix is
/// 3.5.
#[test]
fn the_worked_example() {
    let (machine, traffic) = (machine(65536), program(Division::Owned, 0.1, |_| 0));
    let found = predicted(&machine, &traffic, ask(Caps::Machine, 0.0));
    for (one, truth) in found.iter().zip([3.5, 1.0, 1.75, 3.5]) {
        assert!(near(one.slowdown, truth), "{one:?}");
        assert!(one.interval[0] <= one.slowdown && one.slowdown <= one.interval[1]);
        assert!(one.interval_of_samples[1] < one.slowdown * 1.2, "{one:?}");
    }
    assert_eq!(best(&found).unwrap().placement, Placement::ParallelFirstTouch);
    assert!(near(found[0].remote_fraction, 0.5) && found[1].remote_fraction < 1e-9 && found[1].link.is_none());
    let link = found[0].link.unwrap();
    assert_eq!((link.from, link.to), (0, 1));
    assert!(near(link.utilisation, 1.0) && found[0].controller.unwrap().node == 0);
    let gain =
        Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.05)).unwrap().gain(7, Placement::ParallelFirstTouch).unwrap();
    assert!(near(gain.gain, 3.5) && gain.interval[0] < 3.3 && gain.interval[1] > 3.7, "{gain:?}");
}

/// Check that the best placement of a well-placed program is its own, and that the model's error widens intervals.
#[test]
fn well_placed_programs_stay() {
    let traffic = program(Division::Owned, 0.1, |node| node);
    let (sharp, wide) =
        (predicted(&machine(65536), &traffic, ask(Caps::Machine, 0.0)), predicted(&machine(65536), &traffic, ask(Caps::Machine, 0.1)));
    assert_eq!((sharp[0].slowdown, best(&sharp).unwrap().placement), (1.0, Placement::AsIs));
    assert!(wide[2].interval[1] > 1.2 * sharp[2].interval[1] && wide[2].interval_of_samples == sharp[2].interval_of_samples);
}

/// Check phases: the main thread reads 4 GB alone, then the team reads 8 GB. With a core's 5 GB/s the first phase takes 0.8 s regardless of
/// the team's placement, so the slowdown of serial initialisation is (0.8 + 1) / (0.8 + 2/7). Interleaving slows both phases:
/// (4/4.4 + 0.5) / (0.8 + 2/7).
#[test]
fn serial_phases_take_their_own_time() {
    let mut traffic = program(Division::Owned, 0.1, |_| 0);
    let alone = |index: usize| TrafficSample {
        position: (index as f64 + 0.5) / 50.0,
        round: index as u64 + 50,
        home: 0,
        owner: Some(0),
        serial: true,
        bytes: vec![(0, 4e9 / 50.0)],
    };
    traffic.objects.push(ObjectTraffic {
        id: 8,
        name: "log".into(),
        bytes: 1 << 28,
        division: Division::Owned,
        work: Work::AsSeen,
        has_fine_parts: false,
        even: Vec::new(),
        rows: 1,
        members: Vec::new(),
        parts: None,
        samples: (0..50).map(alone).collect(),
    });
    let machine = machine(65536);
    let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
    assert!(near(program.serial(), 1.0 / 3.0) && program.team() == 8);
    // A thread that waits for the others, and looks at their results, does not work at the same time.
    let mut waits = self::program(Division::Owned, 0.1, |_| 0);
    waits.objects[0].even.clear();
    let of_first = waits.objects.iter_mut().flat_map(|object| &mut object.samples).flat_map(|sample| &mut sample.bytes);
    of_first.filter(|(worker, _)| *worker == 0).for_each(|(_, bytes)| *bytes *= 0.001);
    assert_eq!(Program::new(&machine, &waits, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap().team(), 7);
    let found = program.predict(&ALL).unwrap();
    let best = 0.8 + 2.0 / 7.0;
    for (one, truth) in found.iter().zip([1.8 / best, 1.0, (4.0 / (1.0 / (0.5 / 5.0 + 0.5 / 4.0)) + 0.5) / best, 1.8 / best]) {
        assert!(near(one.slowdown, truth), "{truth} {one:?}");
    }
    // Half of the team's bytes, none of the main thread's.
    assert!(near(found[0].remote_fraction, 4.0 / 12.0), "{:?}", found[0]);
    // If the phase counted as work of the team, it would look like the work of one late thread.
    traffic.objects[1].samples.iter_mut().for_each(|sample| sample.serial = false);
    let at_once = predicted(&machine, &traffic, ask(Caps::Machine, 0.0));
    assert!(at_once[0].slowdown < 0.95 * found[0].slowdown, "{:?}", at_once[0]);
}

/// Check that a page which holds parts of both nodes is on one of them, however it is touched: blocks of 1,536 bytes in turn have 1.5 pages for each node, and
/// blocks of 3,072 bytes 3 pages.
#[test]
fn pages_hold_parts_of_several_nodes() {
    for (block, remote) in [(1536.0, 1.0 / 6.0), (3072.0, 0.0), (65536.0, 0.0)] {
        let mut traffic = program(Division::Owned, 0.1, |_| 0);
        let object = &mut traffic.objects[0];
        let period = 8.0 * block;
        let ends = (1..=8).map(|end| f64::from(end) / 8.0).collect();
        object.bytes = (period * 997.0) as u64;
        object.parts = Some(Parts { period_bytes: Some(period), ends, workers: (0..8).collect() });
        let (bytes, count) = (object.bytes as f64, object.samples.len() as f64);
        for (index, sample) in object.samples.iter_mut().enumerate() {
            let at = (index as f64 + 0.5) / count;
            let owner = ((at * bytes / period).fract() * 8.0) as usize;
            (sample.position, sample.owner, sample.bytes) = (at, Some(owner), vec![(owner, 8e9 / count)]);
        }
        let found = predicted(&machine(65536), &traffic, ask(Caps::Machine, 0.0));
        assert!((found[1].remote_fraction - remote).abs() < 0.03, "{block}: {:?}", found[1]);
        assert!((found[0].remote_fraction - 0.5).abs() < 0.03, "{block}: {:?}", found[0]);
    }
}

/// Check that memory that does not fit on a node goes to the other node: three quarters of the object do.
#[test]
fn full_nodes_spill() {
    let traffic = program(Division::Owned, 0.1, |_| 0);
    let found = predicted(&machine(768), &traffic, ask(Caps::Machine, 0.0));
    assert!(near(found[3].remote_fraction, 0.5) && found[3].slowdown < 3.4, "{:?}", found[3]);
    let roomy = predicted(&machine(65536), &traffic, ask(Caps::Machine, 0.0));
    assert!(found[3].slowdown < roomy[3].slowdown - 0.1);
}

/// Check that a compute-bound program loses little if its speed was recorded, and the full amount if the recorded speed is ignored.
#[test]
fn computing_hides_memory() {
    let traffic = program(Division::Owned, 100.0, |_| 0);
    let machine = machine(65536);
    let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Auto, 0.0)).unwrap();
    assert_eq!(program.caps(), Caps::Recorded);
    assert!(program.predict(&ALL).unwrap().iter().all(|one| one.slowdown < 1.01));
    assert!(near(predicted(&machine, &traffic, ask(Caps::Machine, 0.0))[0].slowdown, 3.5));
}

/// Check that threads with dynamically scheduled work end together: 16 GB/s interleaved (two links full), 14 from one controller. Placement
/// by owner does not help.
#[test]
fn work_dealt_out() {
    let traffic = program(Division::DealtOut, 0.1, |_| 0);
    let machine = machine(65536);
    let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
    assert!(program.is_dynamic());
    let found = program.predict(&ALL).unwrap();
    assert!(near(found[1].slowdown, found[2].slowdown) && near(found[0].slowdown, 16.0 / 14.0), "{found:?}");
}

/// Check that parts below a page are their threads' own work, although no page has an owner: threads of the other node do not get less of it where all
/// memory is on node 0.
#[test]
fn fine_parts_stay_with_their_threads() {
    let mut traffic = program(Division::DealtOut, 0.1, |_| 0);
    traffic.objects[0].has_fine_parts = true;
    let machine = machine(65536);
    let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
    assert!(!program.is_dynamic());
    let found = program.predict(&ALL).unwrap();
    assert!(near(found[0].slowdown, 2.0) && near(found[2].slowdown, 1.0), "{found:?}");
}

/// Check a program that works by rows for half of its time and by columns for the other half, on pages that were placed by rows: a quarter of its
/// accesses is remote, as a report says; each thread does its own work, and equal blocks are what it has already. Interleaved memory is worse.
#[test]
fn rows_and_columns_in_turn() {
    let mut traffic = program(Division::DealtOut, 0.1, |part| part);
    for (index, sample) in traffic.objects[0].samples.iter_mut().enumerate() {
        let user = if index % 2 == 0 { (sample.position * 8.0) as usize } else { index / 2 * 5 % 8 };
        sample.bytes = vec![(user, 8e9 / SAMPLES as f64)];
    }
    let machine = machine(65536);
    let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
    assert!(!program.is_dynamic());
    let found = program.predict(&ALL).unwrap();
    for (one, remote) in found.iter().zip([0.25, 0.25, 0.5, 0.5]) {
        assert!(near(one.remote_fraction, remote), "{one:?}");
    }
    assert!(near(found[0].slowdown, 1.0) && near(found[1].slowdown, 1.0) && found[2].slowdown > 1.1, "{found:?}");
    let interleave = Candidate { object: 7, others: Vec::new(), options: vec![Placement::Interleave] };
    let choice = program.choose(&[interleave]).unwrap();
    assert!(choice.placements.is_empty() && near(choice.remote[0], 0.25), "{choice:?}");
    // Tasks that happened to be executed so have no threads that they belong to.
    traffic.objects[0].work = Work::OfAnyThread;
    assert!(Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap().is_dynamic());
}

/// Check that threads with different code do not share work: of consumers on the node that the memory is not on, none of it goes to the producers, so that
/// spreading the pages helps them.
#[test]
fn work_stays_with_threads_of_other_code() {
    let machine = machine(65536);
    let mut traffic = program(Division::DealtOut, 0.1, |_| 0);
    traffic.objects[0].even = Vec::new();
    let times = |work: Work, traffic: &mut Traffic| {
        traffic.objects[0].work = work;
        let program = Program::new(&machine, traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
        let time = |placement| program.outcome_of(&Placements::all(placement)).unwrap().0.0;
        (program.is_dynamic(), time(Placement::AsIs) / time(Placement::Interleave))
    };
    let (is_dynamic, of_any) = times(Work::OfAnyThread, &mut traffic);
    assert!(is_dynamic);
    let (is_dynamic, of_its) = times(Work::OfItsThread, &mut traffic);
    assert!(!is_dynamic && of_its > 1.5 && of_its > 1.1 * of_any, "{of_its} {of_any}");
}

/// Check that the remote share of memory that is dealt out is that of the accesses as they were made, as in a report: threads of the other node
/// made half of them, though under this placement the others would have time for more.
#[test]
fn remote_shares_of_work_dealt_out() {
    let traffic = program(Division::DealtOut, 0.1, |_| 0);
    let machine = machine(65536);
    let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
    assert!(program.is_dynamic());
    let found = program.predict(&ALL).unwrap();
    assert!(found.iter().all(|one| near(one.remote_fraction, 0.5)), "{found:?}");
}

/// Check that an impossible program is an error that names the problem.
#[test]
fn impossible_programs_are_refused() {
    let machine = machine(65536);
    let refused = |traffic: &Traffic| Program::new(&machine, traffic, vec![0, 1], ask(Caps::Auto, 0.0)).err().unwrap().to_string();
    assert!(refused(&Traffic::default()).contains("no accesses"));
    assert!(refused(&program(Division::Owned, 0.1, |_| 5)).contains("a page is on node 5"));
    let mut seated = program(Division::Owned, 0.1, |_| 0);
    seated.workers[3].node = 9;
    assert!(refused(&seated).contains("a thread sits on node 9"));
}

/// Two objects of the same size, `b` a copy of `a`'s traffic with its pages on the nodes of `home`.
fn two_objects(home: impl Fn(u32) -> u32) -> Traffic {
    let mut traffic = program(Division::Owned, 0.1, |_| 0);
    let mut other = program(Division::Owned, 0.1, home).objects.remove(0);
    (other.id, other.name) = (8, "B".into());
    traffic.objects.push(other);
    traffic
}

/// Check the decisions of a plan: each thread's part on its node if that is best, interleaving if that is the only way, and nothing that
/// makes the program slower.
#[test]
fn the_best_way_is_chosen() {
    let machine = machine(65536);
    let candidate = |object: i64, options: &[Placement]| Candidate { object, others: Vec::new(), options: options.to_vec() };
    let traffic = two_objects(|node| node);
    let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
    let both = [Placement::ParallelFirstTouch, Placement::Interleave];
    let choice = program.choose(&[candidate(7, &both), candidate(8, &[Placement::Interleave])]).unwrap();
    assert_eq!(choice.placements, [(7, Placement::ParallelFirstTouch)].into());
    let [(8, Left::Slower(Placement::Interleave, ratio))] = choice.left[..] else { panic!("{:?}", choice.left) };
    assert!(ratio > 1.01 && near(choice.remote[0], 0.25) && choice.remote[1] < 1e-9, "{choice:?}");
    let interleaved = program.choose(&[candidate(7, &[Placement::Interleave])]).unwrap();
    assert_eq!(interleaved.placements, [(7, Placement::Interleave)].into());
    assert!(interleaved.time_ratio < 0.9 && interleaved.time_ratio >= choice.time_ratio);
    assert_eq!(program.choose(&[]).unwrap().time_ratio, 1.0);
}

/// Check that memory that all threads use at random is interleaved if that adds no more remote accesses than the samples can tell: 46 % of 400 samples
/// are half of all accesses. Of 40,000 samples they are less, and then a placement that saves no time is left out.
#[test]
fn noise_of_the_samples_decides_nothing() {
    let machine = machine(65536);
    let interleave = Candidate { object: 7, others: Vec::new(), options: vec![Placement::Interleave] };
    let placed = |times: usize| {
        let mut traffic = program(Division::Shared, 100.0, |_| 0);
        traffic.objects[0].even.clear();
        let samples = &mut traffic.objects[0].samples;
        let (mut seen, mut round) = (0, 0);
        let all = std::mem::take(samples);
        for mut sample in all.into_iter().flat_map(|sample| std::iter::repeat_n(sample, times)) {
            round += 1;
            sample.round = round;
            let user = sample.bytes[0].0;
            seen += usize::from(user >= 4);
            let user = if user >= 4 && seen % 12 == 0 { user - 4 } else { user };
            sample.bytes = vec![(user, 8e9 / (SAMPLES * times) as f64)];
            samples.push(sample);
        }
        let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Recorded, 0.0)).unwrap();
        let choice = program.choose(std::slice::from_ref(&interleave)).unwrap();
        let choice = program.leave_what_is_spread_in_vain::<TeamError>(choice, &|| Ok(0.05)).unwrap();
        assert!((0.44..0.48).contains(&choice.remote[0]), "{choice:?}");
        choice.placements.len()
    };
    assert_eq!((placed(1), placed(100)), (1, 0));
}

/// Check the search: among all combinations of two objects' placements it finds the best one according to the machine's numbers, and the
/// plan is as good. Placements that represent others have the same prediction as those.
#[test]
fn the_plan_is_as_good_as_any_combination() {
    let machine = machine(65536);
    let traffic = two_objects(|_| 1);
    let mut program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
    let options = vec![Placement::ParallelFirstTouch, Placement::Interleave];
    let candidates = [7, 8].map(|object| Candidate { object, others: Vec::new(), options: options.clone() });
    let choice = program.choose(&candidates).unwrap();
    // Six placements of each object: as it is, two by users, two by pages, and each node.
    let found = program.search(&choice.placements, 36).unwrap();
    assert_eq!((found.objects, found.tried), (2, 36));
    assert_eq!(found.placements, choice.placements);
    // Objects that are placed alike: one of them alone gains nothing where the other one ends later.
    let alike = Candidate { object: 7, others: vec![8], options: options.clone() };
    assert_eq!(program.choose(&[alike]).unwrap().placements, choice.placements);
    let few = program.search(&choice.placements, 35).unwrap();
    assert_eq!((few.objects, few.tried, &few.placements), (1, 6, &choice.placements));
    let bad = program.search(&[(7, Placement::OneNode { node: 0 })].into(), 36).unwrap();
    assert_eq!(bad.placements, choice.placements);
    let (placements, time) = (choice.placements.clone(), choice.time_ratio);
    program.follow(choice.placements);
    program.follow_found(found.placements);
    let asked = [Placement::AsIs, Placement::Plan, Placement::Exhaustive, Placement::ParallelFirstTouch];
    let predicted = program.predict(&asked).unwrap();
    assert_eq!(placements.len(), 2);
    assert!(near(predicted[0].slowdown, 1.0 / time), "{predicted:?} {time}");
    assert!(predicted[1..].iter().all(|one| near(one.slowdown, 1.0) && one.remote_fraction < 1e-9), "{predicted:?}");
}

/// Check that intervals of long runs, whose rounds are drawn in groups, still shrink with the root of the number of samples. Half of the
/// pages are remote, and the samples come sorted by that: groups of neighbours, or in turn, would be too much alike.
#[test]
fn rounds_in_groups_spread_as_rounds_do() {
    let machine = machine(65536);
    let width = |rounds: usize| {
        let mut traffic = program(Division::Owned, 0.1, |_| 0);
        let sample = |index: usize| TrafficSample {
            position: (index as f64 + 0.5) / rounds as f64,
            round: index as u64,
            home: u32::from(index >= rounds / 2),
            owner: Some(0),
            serial: false,
            bytes: vec![(0, 8e9 / rounds as f64)],
        };
        traffic.objects[0].even = Vec::new();
        traffic.objects[0].samples = (0..rounds).map(sample).collect();
        let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
        let [low, high] = program.gain(7, Placement::ParallelFirstTouch).unwrap().interval;
        high - low
    };
    let ratio = width(1000) / width(16_000);
    assert!((3.2..5.0).contains(&ratio), "{ratio}");
}

/// Check memory that is local to each thread: as fast as each thread's part on its own node, whether all threads use all of it or parts change
/// hands, and 3.5 times as fast as memory on one node (docs/model.md).
#[test]
fn local_memory_has_no_remote_accesses() {
    let machine = machine(65536);
    for division in [Division::Owned, Division::Shared, Division::DealtOut] {
        let traffic = program(division, 0.1, |_| 0);
        let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
        let (time, remote) = program.outcome_of(&Placements::all(Placement::Local)).unwrap();
        assert!(near(time.0, 8.0 / 28.0) && remote < 1e-9, "{division:?}: {time:?} {remote}");
    }
}

/// Check that fixed parts in place of parts that are dealt out are equal parts, however much of the work each thread had time for in the recorded run: on
/// a busy machine one may have executed most tasks.
#[test]
fn fixed_parts_are_equal() {
    let machine = machine(65536);
    let mut traffic = program(Division::DealtOut, 0.1, |_| 0);
    let object = &mut traffic.objects[0];
    (object.work, object.even) = (Work::OfAnyThread, Vec::new());
    object.samples.iter_mut().take(SAMPLES / 2).for_each(|sample| sample.bytes[0].0 = 0);
    let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
    let (time, remote) = program.outcome_of(&Placements::all(Placement::Local)).unwrap();
    assert!(near(time.0, 8.0 / 28.0) && remote < 1e-9, "{time:?} {remote}");
    let (as_is, _) = program.outcome_of(&Placements::all(Placement::AsIs)).unwrap();
    assert!(time.0 < as_is.0, "the fix is not slower: {time:?} {as_is:?}");
    let gain = program.gain(7, Placement::Local).unwrap();
    assert!(gain.gain > 1.5 && gain.interval[0] > 1.0, "{gain:?}");
}

/// Check that placements which gain nothing are left out by finding, also in the decision on a described machine, and stay on an assumed one.
#[test]
fn what_gains_nothing_is_left_alone() {
    let machine = machine(65536);
    let traffic = two_objects(|node| node);
    let program = Program::new(&machine, &traffic, vec![0, 1], ask(Caps::Machine, 0.0)).unwrap();
    let candidates =
        [7, 8].map(|object| Candidate { object, others: Vec::new(), options: vec![Placement::ParallelFirstTouch, Placement::Interleave] });
    let all = program.choose(&candidates).unwrap();
    assert_eq!(all.placements.len(), 2);
    let worth = program.leave_what_gains_nothing(&[&[7], &[8]], all.clone()).unwrap();
    assert_eq!(worth.placements, [(7, Placement::ParallelFirstTouch)].into());
    assert!(matches!(worth.left[..], [(8, Left::NoGain(gain))] if near(gain, 1.0)) && near(worth.time_ratio, all.time_ratio), "{worth:?}");
    assert_eq!(program.leave_what_gains_nothing(&[&[7, 8]], all.clone()).unwrap(), all, "of one finding");

    let remedies = [(vec![7], Remedy::ParallelFirstTouch), (vec![8], Remedy::Interleave)];
    for is_assumed in [false, true] {
        let machine = ForecastMachine { is_assumed, ..ForecastMachine::described(machine.clone(), vec![0, 1]) };
        let decision = choose(&traffic, &machine, &candidates, &remedies, ForecastOptions::default()).unwrap();
        assert_eq!(decision.choice.placements.contains_key(&8), is_assumed);
        let [first, second] = [7, 8].map(|object| decision.findings[&object]);
        let placed = first.placed.map(|placed| placed.gain);
        assert!(first.remedy.gain > 1.5 && placed == Some(first.remedy.gain) && first.remedy.interval.is_none(), "{decision:?}");
        // The links are free once the other object is placed.
        assert!(second.remedy.gain < 0.99 && near(second.beside_others, 1.0), "interleaving what is well placed costs time: {decision:?}");
        let whole = forecast(&traffic, &machine, &candidates, &remedies, ForecastOptions::default()).unwrap().decision;
        assert_eq!(whole.choice, decision.choice);
        let same = |object: i64| whole.findings[&object].remedy.gain.to_bits() == decision.findings[&object].remedy.gain.to_bits();
        assert!(same(7) && same(8) && whole.findings[&7].remedy.interval.is_some(), "{whole:?}");
    }
}

/// Check that a program whose recorded speed does not tell what limits it has the same figures at both ends of the doubt, and intervals that cover both
/// limits; so two runs of it cannot contradict each other.
#[test]
fn doubtful_limits_widen_intervals() {
    let machine = ForecastMachine::described(machine(65536), vec![0, 1]);
    let forecast_of = |cpu_s: f64, caps| {
        let options = ForecastOptions { caps, ..ForecastOptions::default() };
        forecast(&program(Division::Owned, cpu_s, |_| 0), &machine, &[], &[], options).unwrap()
    };
    let is_doubtful = |cpu_s: &f64| forecast_of(*cpu_s, Caps::Auto).has_doubtful_caps;
    let about = (0..17).map(|step| 0.01 * 2.0_f64.powi(step)).find(is_doubtful).expect("a doubtful speed");
    let doubtful: Vec<f64> = (-8..9).map(|step| about * 1.2_f64.powi(step)).filter(is_doubtful).collect();
    let (first, last) = (doubtful[0], doubtful[doubtful.len() - 1]);
    assert!((2.7..4.1).contains(&(last / first)), "a factor of 4 from {first} to {last}");
    for cpu_s in [first, last] {
        let [found, memory, computing] =
            [Caps::Auto, Caps::Machine, Caps::Recorded].map(|caps| forecast_of(cpu_s, caps).placements[0].clone());
        assert!(near(found.slowdown, memory.slowdown), "{found:?}");
        for one in [&memory, &computing] {
            assert!(found.interval[0] <= one.interval[0] && one.interval[1] <= found.interval[1], "{found:?} {one:?}");
        }
    }
    assert!(forecast_of(last * 1.5, Caps::Auto).caps == Caps::Recorded && forecast_of(first / 1.5, Caps::Auto).caps == Caps::Machine);
}

/// Check that intervals reach to no effect where most of the traffic is a guess, or caches served some of it, and that neither makes a program one that
/// computes.
#[test]
fn what_is_not_known_to_matter_may_not_matter() {
    let machine = ForecastMachine::described(machine(65536), vec![0, 1]);
    let forecast_of = |cpu_s: f64, guessed: f64, caps: Caps| {
        let traffic = Traffic { guessed, ..program(Division::Owned, cpu_s, |_| 0) };
        forecast(&traffic, &machine, &[], &[], ForecastOptions { caps, ..ForecastOptions::default() }).unwrap()
    };
    let usual = forecast_of(1.0, 0.4, Caps::Auto);
    assert!(usual.moot.is_none() && usual.placements[0].interval[0] > 1.0, "{usual:?}");
    for (cpu_s, guessed) in [(1000.0, 0.6), (1e-6, 0.0)] {
        let found = forecast_of(cpu_s, guessed, Caps::Auto);
        assert!(found.moot.is_some() && found.caps == Caps::Machine && !found.has_doubtful_caps, "{found:?}");
        let [now, same] = [&found, &forecast_of(cpu_s, guessed, Caps::Machine)].map(|forecast| forecast.placements[0].clone());
        assert!(near(now.slowdown, same.slowdown) && now.interval[0] <= 1.0 && same.interval[0] > 1.0, "{now:?} {same:?}");
    }
}

/// Check that workers which access no memory change nothing, wherever they are among the others.
#[test]
fn workers_without_traffic_change_nothing() {
    for division in [Division::Owned, Division::DealtOut] {
        let own = program(division, 0.1, |_| 0);
        let mut among_others = own.clone();
        let idle = |node: u32| Worker { threads: Vec::new(), node, idle: true, cpu_s: Some(0.0) };
        among_others.workers = own.workers.iter().flat_map(|worker| [idle(1), idle(0), worker.clone()]).collect();
        let moved = |worker: &mut usize| *worker = 3 * *worker + 2;
        let object = &mut among_others.objects[0];
        object.even.iter_mut().for_each(moved);
        for sample in &mut object.samples {
            sample.owner.iter_mut().for_each(moved);
            sample.bytes.iter_mut().for_each(|(worker, _)| moved(worker));
        }
        let all = |traffic: &Traffic| predicted(&machine(65536), traffic, ask(Caps::Machine, 0.05));
        assert_eq!(all(&own), all(&among_others), "{division:?}");
    }
}

/// Check that workers of which few samples were seen, because they did next to nothing, take no core from a worker with work: there are as many cores as
/// workers with work.
#[test]
fn idle_workers_take_no_core() {
    let with_idle = |at: usize| {
        let mut traffic = program(Division::Owned, 0.1, |_| 0);
        let idle = Worker { threads: Vec::new(), node: (at / 4) as u32, idle: true, cpu_s: Some(0.001) };
        traffic.workers.insert(at, idle);
        let moved = |worker: &mut usize| *worker += usize::from(*worker >= at);
        let object = &mut traffic.objects[0];
        object.even.iter_mut().for_each(moved);
        for sample in &mut object.samples {
            sample.owner.iter_mut().for_each(moved);
            sample.bytes.iter_mut().for_each(|(worker, _)| moved(worker));
        }
        let mut seen = object.samples[0].clone();
        seen.bytes = vec![(at, seen.volume())];
        object.samples.push(seen);
        predicted(&machine(65536), &traffic, ask(Caps::Machine, 0.0))
    };
    // Among the workers of either node.
    for at in [2, 6] {
        for (one, truth) in with_idle(at).iter().zip([3.5, 1.0, 1.75, 3.5]) {
            assert!((one.slowdown / truth - 1.0).abs() < 0.03, "{at}: {one:?}");
        }
    }
}

/// Check that a link which is known to a range only widens intervals, and that advice which depends on it is undecided and names the
/// measurement: four threads of one node gain from a second controller if the link carries 10 GB/s, and lose if it carries 4.
#[test]
fn advice_that_depends_on_an_assumed_link_is_undecided() {
    let mut traffic = program(Division::Shared, 0.1, |_| 0);
    traffic.workers.iter_mut().for_each(|worker| worker.node = 0);
    let with_link = |link: &str| {
        let text = described(65536).replace(
            "gb_per_s = { value = 4, source = \"assumed\" }\n        [[",
            &format!("gb_per_s = {{ {link}, source = \"assumed\" }}\n        [["),
        );
        let text = text
            .replace("remote_gb_per_s = { value = 4", "remote_gb_per_s = { value = 5")
            .replace("nodes.cores = { value = 4", "nodes.cores = { value = 8");
        let machine = ForecastMachine::described(MachineModel::parse(&text).unwrap(), vec![0, 1]);
        let options = ForecastOptions { caps: Caps::Machine, ..ForecastOptions::default() };
        forecast(&traffic, &machine, &[], &[], options).unwrap()
    };
    let (known, assumed) = (with_link("value = 10"), with_link("value = 10, range = [4, 10]"));
    assert_eq!(known.undecided, None);
    let undecided = assumed.undecided.as_ref().unwrap();
    assert_eq!((undecided.between[0], undecided.measure), ("interleave", "firsttouch map --save"));
    assert_eq!(undecided.depends_on, "links between nodes");
    let [of_known, of_assumed] = [&known, &assumed].map(|one| one.placements.clone());
    assert!(of_known.iter().zip(&of_assumed).all(|(known, assumed)| known.slowdown == assumed.slowdown));
    let of = |placements: &[Predicted], name: &str| placements.iter().find(|one| one.placement.name() == name).unwrap().interval;
    // With the slow link, the program as it is is the best: its slowdown may be none, and that of the interleaved one more, but not the other way round.
    let [as_is, other] = ["as-is", "interleave"].map(|name| (of(&of_known, name), of(&of_assumed, name)));
    assert!(as_is.0[0] >= 1.0 && near(as_is.1[0], 1.0) && near(as_is.1[1], as_is.0[1]), "{as_is:?}");
    assert!(other.1[1] > 1.2 * other.0[1] && near(other.1[0], other.0[0]), "{other:?}");
    // A range that changes nothing decides nothing.
    assert_eq!(with_link("value = 10, range = [9.9, 10.1]").undecided, None);
}
