//! The fluid simulation: rates are constant between events, and an event is the end of a thread's stretch.

use super::demand::{capacities, demand, link};
use super::fair_sharing::Filling;
use super::{Schedule, Seat, Stretch, TeamError, Thread, ThreadFault};
use crate::machine::MachineModel;
use crate::units::{Seconds, Volume};
use std::collections::{BTreeMap, BTreeSet};

/// Stretches that end within this fraction of a step of each other end together.
const TOGETHER: f64 = 1e-9;

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    pub time: Seconds,
    /// When each thread had finished its work.
    pub ended: Vec<Seconds>,
    /// Bytes from and to other nodes / all bytes.
    pub remote_fraction: f64,
    /// Bytes each controller carried.
    pub controllers: Vec<Volume>,
    /// Bytes each link carried.
    pub links: Vec<Volume>,
}

impl Simulation {
    /// This outcome, and as much time beside it in which nothing is moved.
    #[must_use]
    pub fn with(self, beside: Seconds) -> Self {
        Self { time: Seconds(self.time.0 + beside.0), ..self }
    }

    /// This outcome followed by another: two phases, one after the other.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let volume = |outcome: &Self| outcome.controllers.iter().map(|bytes| bytes.0).sum::<f64>();
        let (before, after) = (volume(&self), volume(&next));
        let remote = self.remote_fraction * before + next.remote_fraction * after;
        let sum = |one: Vec<Volume>, other: Vec<Volume>| one.into_iter().zip(other).map(|(one, other)| one + other).collect();
        let start = self.time.0;
        let later = |(own, next): (Seconds, Seconds)| if next.0 > 0.0 { Seconds(start + next.0) } else { own };
        Self {
            time: Seconds(start + next.time.0),
            ended: self.ended.into_iter().zip(next.ended).map(later).collect(),
            remote_fraction: if before + after > 0.0 { remote / (before + after) } else { 0.0 },
            controllers: sum(self.controllers, next.controllers),
            links: sum(self.links, next.links),
        }
    }
}

/// Simulates a team on a machine.
///
/// # Errors
/// When a thread runs on, or uses memory of, a node that does not exist, or a volume or limit is not a valid number.
pub fn simulate(machine: &MachineModel, threads: &[Thread], schedule: Schedule) -> Result<Simulation, TeamError> {
    match schedule {
        Schedule::Static => {
            check(machine, threads)?;
            Ok(run(machine, threads))
        }
        Schedule::Dynamic => {
            let idle: Vec<Thread> = threads.iter().map(|thread| Thread { work: Vec::new(), ..thread.clone() }).collect();
            simulate_pool(machine, &idle, threads)
        }
    }
}

/// Simulates a team in which each thread has work of its own, and takes pieces of a common pool: the work of all threads in `pool`. Threads
/// without work in `pool` take no pieces.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_pool(machine: &MachineModel, own: &[Thread], pool: &[Thread]) -> Result<Simulation, TeamError> {
    check(machine, own)?;
    check(machine, pool)?;
    Ok(run(machine, &pooled(machine, own, pool)))
}

fn check(machine: &MachineModel, threads: &[Thread]) -> Result<(), TeamError> {
    let nodes = machine.nodes.len();
    for (index, thread) in threads.iter().enumerate() {
        let refused = |fault: ThreadFault| Err(TeamError::Thread { index, fault });
        if thread.seat.node >= nodes || thread.seat.core >= machine.nodes[thread.seat.node].cores {
            return refused(ThreadFault::Seat(thread.seat));
        }
        if !(0.0..=1.0).contains(&thread.write_share) || thread.compute.0.is_nan() || thread.compute.0 <= 0.0 {
            return refused(ThreadFault::Speed);
        }
        for (node, volume) in thread.work.iter().flat_map(|stretch| &stretch.parts) {
            if *node >= nodes {
                return refused(ThreadFault::Node(*node));
            }
            if !(volume.0.is_finite() && volume.0 >= 0.0) {
                return refused(ThreadFault::Volume(volume.0));
            }
        }
    }
    Ok(())
}

/// Each thread's own work, plus its part of the pool: as much of the pool's mean mix as the thread does in the time that all threads
/// together need for the pool.
fn pooled(machine: &MachineModel, own: &[Thread], pool: &[Thread]) -> Vec<Thread> {
    let mut sums = vec![0.0; machine.nodes.len()];
    for (node, volume) in pool.iter().flat_map(|thread| &thread.work).flat_map(|stretch| &stretch.parts) {
        sums[*node] += volume.0;
    }
    let total: f64 = sums.iter().sum();
    if total <= 0.0 {
        return own.to_vec();
    }
    let shares: Vec<(usize, f64)> = sums.iter().map(|sum| sum / total).enumerate().filter(|(_, share)| *share > 0.0).collect();
    let takes = |thread: &Thread| thread.work.iter().any(|stretch| stretch.volume().0 > 0.0);
    let sitting = sitting(pool.iter().filter(|thread| takes(thread)).map(|thread| thread.seat));
    let mut work = Filling::new(pool.len(), link(machine, machine.links.len()));
    for (index, thread) in pool.iter().enumerate().filter(|(_, thread)| takes(thread)) {
        let on_core = sitting.get(&thread.seat).copied().unwrap_or(1);
        work.set(index, Some(demand(machine, thread, &shares, on_core)));
    }
    let mut speeds = vec![0.0; pool.len()];
    speed(machine, &mut work, &mut Vec::new(), &mut speeds);
    let together: f64 = speeds.iter().zip(pool).filter(|(_, thread)| takes(thread)).map(|(speed, _)| speed).sum();
    let both = |((own, pool), speed): ((&Thread, &Thread), f64)| {
        let mut parts: BTreeMap<usize, f64> = BTreeMap::new();
        for (node, volume) in own.work.iter().flat_map(|stretch| &stretch.parts) {
            *parts.entry(*node).or_default() += volume.0;
        }
        if takes(pool) {
            shares.iter().for_each(|(node, share)| *parts.entry(*node).or_default() += total * share * speed / together);
        }
        let parts: Vec<(usize, Volume)> = parts.into_iter().map(|(node, bytes)| (node, Volume(bytes))).collect();
        Thread { work: if parts.is_empty() { Vec::new() } else { vec![Stretch { parts }] }, ..own.clone() }
    };
    own.iter().zip(pool).zip(speeds).map(both).collect()
}

fn sitting(seats: impl Iterator<Item = Seat>) -> BTreeMap<Seat, usize> {
    let mut sitting = BTreeMap::new();
    for seat in seats {
        *sitting.entry(seat).or_insert(0) += 1;
    }
    sitting
}

/// Computes the speed of each thread until the next event.
fn speed(machine: &MachineModel, work: &mut Filling, limits: &mut Vec<f64>, speeds: &mut [f64]) {
    capacities(machine, work.offered(), limits);
    work.rates(limits, speeds);
}

/// The state of threads during the simulation.
struct Progress<'a> {
    machine: &'a MachineModel,
    threads: &'a [Thread],
    /// The number of working threads in each seat.
    seated: BTreeMap<Seat, usize>,
    /// The current stretch of each thread, and the bytes left of it.
    stretch: Vec<usize>,
    left: Vec<f64>,
    work: Filling,
    /// Bytes that each resource carried for stretches that are finished.
    carried: Vec<f64>,
}

impl<'a> Progress<'a> {
    fn new(machine: &'a MachineModel, threads: &'a [Thread]) -> Self {
        let works = |thread: &&Thread| thread.work.iter().any(|stretch| stretch.volume().0 > 0.0);
        let resources = link(machine, machine.links.len());
        let mut progress = Self {
            machine,
            threads,
            seated: sitting(threads.iter().filter(works).map(|thread| thread.seat)),
            stretch: vec![0; threads.len()],
            left: vec![0.0; threads.len()],
            work: Filling::new(threads.len(), resources),
            carried: vec![0.0; resources],
        };
        (0..threads.len()).for_each(|thread| progress.begin(thread, 0));
        progress
    }

    /// Starts the thread's first stretch from `stretch` on that moves anything, if there is one.
    fn begin(&mut self, thread: usize, stretch: usize) {
        let work = &self.threads[thread].work;
        let next = (stretch..work.len()).find(|stretch| work[*stretch].volume().0 > 0.0);
        self.stretch[thread] = next.unwrap_or(work.len());
        self.left[thread] = next.map_or(0.0, |stretch| work[stretch].volume().0);
        self.ask(thread);
    }

    /// Updates the demand of the thread.
    fn ask(&mut self, thread: usize) {
        let this = &self.threads[thread];
        let demand = this.work.get(self.stretch[thread]).map(|stretch| {
            let volume = stretch.volume().0;
            let shares: Vec<(usize, f64)> = stretch.parts.iter().map(|(node, part)| (*node, part.0 / volume)).collect();
            demand(self.machine, this, &shares, self.seated.get(&this.seat).copied().unwrap_or(1))
        });
        self.work.set(thread, demand);
    }

    /// Ends the thread's stretch. Returns whether the thread has finished.
    fn end(&mut self, thread: usize) -> bool {
        let volume = self.threads[thread].work[self.stretch[thread]].volume().0;
        for &(resource, share) in self.work.demand(thread).iter().flat_map(|demand| &demand.uses) {
            self.carried[resource] += share * volume;
        }
        self.begin(thread, self.stretch[thread] + 1);
        self.work.demand(thread).is_none()
    }

    /// The remaining threads on the cores of finished threads get a larger share of the core.
    fn leave(&mut self, gone: &[usize], working: &[usize]) {
        let mut freed: BTreeSet<Seat> = BTreeSet::new();
        for thread in gone {
            let seat = self.threads[*thread].seat;
            if let Some(threads) = self.seated.get_mut(&seat) {
                *threads -= 1;
                if *threads > 0 {
                    freed.insert(seat);
                }
            }
        }
        if !freed.is_empty() {
            working.iter().filter(|thread| freed.contains(&self.threads[**thread].seat)).for_each(|thread| self.ask(*thread));
        }
    }
}

fn run(machine: &MachineModel, threads: &[Thread]) -> Simulation {
    let mut at = Progress::new(machine, threads);
    let mut working: Vec<usize> = (0..threads.len()).filter(|thread| at.work.demand(*thread).is_some()).collect();
    let mut ended = vec![Seconds(0.0); threads.len()];
    let (mut speeds, mut limits) = (vec![0.0; threads.len()], Vec::new());
    // How long each working thread needs for what is left of its stretch.
    let mut needs = Vec::with_capacity(threads.len());
    let mut now = 0.0;
    while !working.is_empty() {
        speed(machine, &mut at.work, &mut limits, &mut speeds);
        needs.clear();
        needs.extend(working.iter().map(|thread| at.left[*thread] / speeds[*thread]));
        let step = needs.iter().copied().fold(f64::INFINITY, f64::min);
        now += step;
        let mut gone = Vec::new();
        for (&thread, &need) in working.iter().zip(&needs) {
            if need > step * (1.0 + TOGETHER) {
                at.left[thread] -= (speeds[thread] * step).min(at.left[thread]);
            } else if at.end(thread) {
                ended[thread] = Seconds(now);
                gone.push(thread);
            }
        }
        working.retain(|thread| at.work.demand(*thread).is_some());
        at.leave(&gone, &working);
    }
    let nodes = machine.nodes.len();
    Simulation {
        time: Seconds(now),
        ended,
        remote_fraction: remote_fraction(threads),
        controllers: at.carried[..nodes].iter().copied().map(Volume).collect(),
        links: at.carried[nodes..].iter().copied().map(Volume).collect(),
    }
}

/// Bytes from and to other nodes / all bytes.
#[must_use]
pub fn remote_fraction(threads: &[Thread]) -> f64 {
    let (mut all, mut remote) = (0.0, 0.0);
    for thread in threads {
        for (node, volume) in thread.work.iter().flat_map(|stretch| &stretch.parts) {
            all += volume.0;
            remote += if *node == thread.seat.node { 0.0 } else { volume.0 };
        }
    }
    if all > 0.0 { remote / all } else { 0.0 }
}
