//! The fluid simulation: between events nothing changes, and an event is a thread that ends a stretch.

use super::demand::{Demand, capacities, demand, link};
use super::fill::rates;
use super::{Schedule, Seat, Stretch, TeamError, Thread};
use crate::machine::Machine;
use crate::units::{Seconds, Volume};
use std::collections::BTreeMap;

/// Stretches end together when they end within this part of a step.
const TOGETHER: f64 = 1e-9;

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub time: Seconds,
    /// When each thread had nothing left to do.
    pub ended: Vec<Seconds>,
    /// Bytes from and to other nodes, over all bytes.
    pub remote_fraction: f64,
    /// Bytes each controller carried.
    pub controllers: Vec<Volume>,
    /// Bytes each link carried.
    pub links: Vec<Volume>,
}

/// Lets a team work on a machine.
///
/// # Errors
/// A thread that sits or works on a node that does not exist, volumes or limits that are no numbers.
pub fn simulate(machine: &Machine, threads: &[Thread], schedule: Schedule) -> Result<Outcome, TeamError> {
    check(machine, threads)?;
    match schedule {
        Schedule::Static => Ok(run(machine, threads)),
        Schedule::Dynamic => Ok(run(machine, &pooled(machine, threads))),
    }
}

fn check(machine: &Machine, threads: &[Thread]) -> Result<(), TeamError> {
    let nodes = machine.nodes.len();
    for (index, thread) in threads.iter().enumerate() {
        let refused = |reason: String| Err(TeamError(format!("thread {index} {reason}")));
        if thread.seat.node >= nodes || thread.seat.core >= machine.nodes[thread.seat.node].cores {
            return refused(format!("sits on core {} of node {}, which does not exist", thread.seat.core, thread.seat.node));
        }
        if !(0.0..=1.0).contains(&thread.write_share) || thread.compute.0.is_nan() || thread.compute.0 <= 0.0 {
            return refused("has no possible share of writes or speed".to_owned());
        }
        for (node, volume) in thread.work.iter().flat_map(|stretch| &stretch.parts) {
            if *node >= nodes {
                return refused(format!("uses memory of node {node}, which does not exist"));
            }
            if !(volume.0.is_finite() && volume.0 >= 0.0) {
                return refused(format!("moves {} bytes", volume.0));
            }
        }
    }
    Ok(())
}

/// A team whose threads take pieces of one pool as they come: each gets what it manages in the time all need together.
fn pooled(machine: &Machine, threads: &[Thread]) -> Vec<Thread> {
    let mut sums = vec![0.0; machine.nodes.len()];
    for (node, volume) in threads.iter().flat_map(|thread| &thread.work).flat_map(|stretch| &stretch.parts) {
        sums[*node] += volume.0;
    }
    let total: f64 = sums.iter().sum();
    if total <= 0.0 {
        return threads.to_vec();
    }
    let shares: Vec<(usize, f64)> = sums.iter().map(|sum| sum / total).enumerate().filter(|(_, share)| *share > 0.0).collect();
    let sitting = sitting(threads.iter().map(|thread| thread.seat));
    let demands: Vec<Demand> =
        threads.iter().map(|thread| demand(machine, thread, &shares, sitting.get(&thread.seat).copied().unwrap_or(1))).collect();
    let speeds = speeds(machine, &threads.iter().zip(&demands).collect::<Vec<_>>());
    let together: f64 = speeds.iter().sum();
    let work = |speed: f64| {
        vec![Stretch { parts: shares.iter().map(|(node, share)| (*node, Volume(total * share * speed / together))).collect() }]
    };
    threads.iter().zip(speeds).map(|(thread, speed)| Thread { work: work(speed), ..thread.clone() }).collect()
}

fn sitting(seats: impl Iterator<Item = Seat>) -> BTreeMap<Seat, usize> {
    let mut sitting = BTreeMap::new();
    for seat in seats {
        *sitting.entry(seat).or_insert(0) += 1;
    }
    sitting
}

fn speeds(machine: &Machine, working: &[(&Thread, &Demand)]) -> Vec<f64> {
    let asked: Vec<(&Demand, f64)> = working.iter().map(|(thread, demand)| (*demand, thread.write_share)).collect();
    let demands: Vec<&Demand> = working.iter().map(|(_, demand)| *demand).collect();
    rates(&demands, &capacities(machine, &asked))
}

/// A thread on its way through its work.
struct Progress<'a> {
    index: usize,
    thread: &'a Thread,
    stretch: usize,
    left: f64,
    demand: Demand,
}

impl<'a> Progress<'a> {
    /// The thread at its first stretch from `stretch` on that moves anything.
    fn at(machine: &Machine, index: usize, thread: &'a Thread, stretch: usize, on_core: usize) -> Option<Self> {
        let stretch = (stretch..thread.work.len()).find(|stretch| thread.work[*stretch].volume().0 > 0.0)?;
        let volume = thread.work[stretch].volume().0;
        let shares: Vec<(usize, f64)> = thread.work[stretch].parts.iter().map(|(node, part)| (*node, part.0 / volume)).collect();
        Some(Self { index, thread, stretch, left: volume, demand: demand(machine, thread, &shares, on_core) })
    }
}

fn run(machine: &Machine, threads: &[Thread]) -> Outcome {
    let starts = |(index, thread): (usize, &'_ Thread)| thread.work.iter().any(|stretch| stretch.volume().0 > 0.0).then_some(index);
    let mut seated = sitting(threads.iter().enumerate().filter_map(starts).map(|index| threads[index].seat));
    let on_core = |seated: &BTreeMap<Seat, usize>, seat: Seat| seated.get(&seat).copied().unwrap_or(1);
    let mut working: Vec<Progress<'_>> = threads
        .iter()
        .enumerate()
        .filter_map(|(index, thread)| Progress::at(machine, index, thread, 0, on_core(&seated, thread.seat)))
        .collect();
    let mut carried = vec![0.0; link(machine, machine.links.len())];
    let mut ended = vec![Seconds(0.0); threads.len()];
    let mut now = 0.0;
    while !working.is_empty() {
        let speeds = speeds(machine, &working.iter().map(|at| (at.thread, &at.demand)).collect::<Vec<_>>());
        let step = working.iter().zip(&speeds).map(|(at, speed)| at.left / speed).fold(f64::INFINITY, f64::min);
        now += step;
        let mut freed = Vec::new();
        let mut going = Vec::with_capacity(working.len());
        for (mut at, speed) in working.into_iter().zip(speeds) {
            let moved = (speed * step).min(at.left);
            at.demand.uses.iter().for_each(|(resource, share)| carried[*resource] += share * moved);
            if at.left / speed > step * (1.0 + TOGETHER) {
                at.left -= moved;
                going.push(at);
                continue;
            }
            match Progress::at(machine, at.index, at.thread, at.stretch + 1, on_core(&seated, at.thread.seat)) {
                Some(next) => going.push(next),
                None => {
                    ended[at.index] = Seconds(now);
                    freed.push(at.thread.seat);
                }
            }
        }
        working = going;
        for seat in freed {
            // Who stays on the core has more of it.
            seated.entry(seat).and_modify(|threads| *threads -= 1);
            let left = on_core(&seated, seat);
            for at in working.iter_mut().filter(|at| at.thread.seat == seat) {
                let volume = at.thread.work[at.stretch].volume().0;
                let shares: Vec<(usize, f64)> =
                    at.thread.work[at.stretch].parts.iter().map(|(node, part)| (*node, part.0 / volume)).collect();
                at.demand = demand(machine, at.thread, &shares, left);
            }
        }
    }
    let nodes = machine.nodes.len();
    Outcome {
        time: Seconds(now),
        ended,
        remote_fraction: remote_fraction(threads),
        controllers: carried[..nodes].iter().copied().map(Volume).collect(),
        links: carried[nodes..].iter().copied().map(Volume).collect(),
    }
}

fn remote_fraction(threads: &[Thread]) -> f64 {
    let (mut all, mut remote) = (0.0, 0.0);
    for thread in threads {
        for (node, volume) in thread.work.iter().flat_map(|stretch| &stretch.parts) {
            all += volume.0;
            remote += if *node == thread.seat.node { 0.0 } else { volume.0 };
        }
    }
    if all > 0.0 { remote / all } else { 0.0 }
}
