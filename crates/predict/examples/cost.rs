//! What a prediction costs, by nodes, threads and objects: `make bench-predict`.
//!
//! Machines of N nodes, each linked with each; 16 threads a node. Of the model alone, teams whose threads are alike, whose threads end one by
//! one, and whose threads each have another mix of nodes; then a whole prediction from the traffic to 100,000 objects.

use firsttouch_model::traffic::{Division, ObjectTraffic, Traffic, TrafficSample, Work, Worker};
use firsttouch_predict::machine::{MachineModel, assumed};
use firsttouch_predict::model::{Schedule, Seat, Stretch, Thread, simulate};
use firsttouch_predict::program::{Assumptions, Caps, Placement, Program};
use firsttouch_predict::units::{Bandwidth, Volume};
use std::time::Instant;

const THREADS_A_NODE: usize = 16;
const OBJECTS: usize = 100_000;
/// Of so many runs the fastest is shown.
const RUNS: usize = 5;

type Failure = Box<dyn std::error::Error>;

struct Random(u64);

impl Random {
    /// In [0, 1).
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn team(nodes: usize, unlike_volumes: bool, unlike_mixes: bool) -> Vec<Thread> {
    let mut random = Random(1);
    let thread = |index: usize| {
        let bytes = if unlike_volumes { 1e9 * (1.0 + random.next()) } else { 1e9 };
        let part = |node: usize, random: &mut Random| (node, Volume(bytes * if unlike_mixes { random.next() } else { 1.0 }));
        let parts = (0..nodes).map(|node| part(node, &mut random)).collect();
        let seat = Seat { node: index / THREADS_A_NODE, core: index % THREADS_A_NODE };
        Thread { seat, work: vec![Stretch { parts }], write_share: 0.0, compute: Bandwidth::UNLIMITED }
    };
    (0..nodes * THREADS_A_NODE).map(thread).collect()
}

fn traffic(nodes: usize) -> Traffic {
    let mut random = Random(2);
    let workers = nodes * THREADS_A_NODE;
    let object = |id: usize| {
        let sample = |_| TrafficSample {
            serial: false,
            position: random.next(),
            round: (random.next() * 500.0) as u64,
            home: (random.next() * nodes as f64) as u32,
            owner: None,
            bytes: vec![((random.next() * workers as f64) as usize, 1e6 * random.next())],
        };
        let samples = (0..2).map(sample).collect();
        let division = [Division::Owned, Division::Shared, Division::DealtOut][id % 3];
        ObjectTraffic {
            id: id as i64,
            name: String::new(),
            bytes: 1 << 20,
            division,
            work: Work::AsSeen,
            has_fine_parts: false,
            even: Vec::new(),
            rows: 1,
            members: Vec::new(),
            parts: None,
            samples,
        }
    };
    let seat = |index: usize| Worker { threads: vec![index], node: (index / THREADS_A_NODE) as u32, idle: false, cpu_s: None };
    Traffic {
        workers: (0..workers).map(seat).collect(),
        objects: (0..OBJECTS).map(object).collect(),
        unknown: 0.0,
        computing: None,
        guessed: 0.0,
    }
}

/// Milliseconds, the least of some runs.
fn fastest(mut run: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}

fn model(machine: &MachineModel, team: &[Thread]) -> Result<f64, Failure> {
    fastest(|| Ok(simulate(machine, team, Schedule::Static).map(|_| ())?))
}

/// Most memory used so far, MiB.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? / 1024.0)
}

fn main() -> Result<(), Failure> {
    println!("nodes  threads  alike ms  ending one by one ms  each its own mix ms  us a thread and node  {OBJECTS} objects ms");
    for nodes in [2, 4, 8, 16, 32, 64] {
        let machine = assumed("equal", nodes, THREADS_A_NODE)?;
        let times = [(false, false), (true, false), (true, true)].map(|(volumes, mixes)| model(&machine, &team(nodes, volumes, mixes)));
        let [alike, ending, mixed] = times;
        let (alike, ending, mixed) = (alike?, ending?, mixed?);
        let traffic = traffic(nodes);
        let question = Assumptions { write_share: 0.0, caps: Caps::Machine, model_error: 0.0 };
        let program = Program::new(&machine, &traffic, (0..nodes).collect(), question)?;
        let whole = fastest(|| Ok(program.time(Placement::Interleave).map(|_| ())?))?;
        let threads = nodes * THREADS_A_NODE;
        let each = ending.max(mixed) * 1e3 / (threads * nodes) as f64;
        println!("{nodes:>5}  {threads:>7}  {alike:>8.2}  {ending:>20.2}  {mixed:>19.2}  {each:>20.2}  {whole:>17.1}");
    }
    if let Some(peak) = peak_mib() {
        println!("most memory: {peak:.0} MiB");
    }
    Ok(())
}
