//! A recorded program on a machine: the cost of each placement of its memory.
//!
//! Samples give the program's traffic. From the traffic and a placement follow each worker's bytes to each node, and the model computes how
//! long these take. Resampling gives the interval (`interval.rs`).

mod caps;
mod choose;
mod interval;
mod place;
mod volumes;

pub use caps::Caps;
pub use choose::{Candidate, Choice, Found, Left, PerObject};
pub use place::Placement;

use crate::machine::MachineModel;
use crate::model::{Schedule, Seat, Simulation, Stretch, TeamError, Thread, simulate, simulate_pool};
use crate::units::{Bandwidth, Seconds, Volume};
use firsttouch_model::prediction::Gain;
use firsttouch_model::traffic::{Division, ObjectTraffic, Traffic, TrafficSample};
use interval::Resampled;
use place::Places;
use serde::Serialize;
use volumes::{Mix, Phase, Weights, volumes};

/// The number of draws: as many as the amount of work allows.
const DRAWS: std::ops::RangeInclusive<usize> = 20..=200;
const WORK: usize = 400_000;

/// A program, and the machine it would run on.
pub struct Program<'a> {
    machine: &'a MachineModel,
    traffic: &'a Traffic,
    /// The nodes that memory can be placed on.
    nodes: Vec<usize>,
    seats: Vec<Seat>,
    schedule: Schedule,
    /// The fraction of the traffic that is written.
    write_share: f64,
    compute: Vec<Bandwidth>,
    caps: Caps,
    /// The relative standard error of the model on this machine.
    model_error: f64,
    /// The placements for [`Placement::Plan`] and [`Placement::Exhaustive`].
    plan: PerObject,
    found: PerObject,
}

/// The predicted cost of a placement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Predicted {
    pub placement: Placement,
    /// Time / time with the best placement.
    pub slowdown: f64,
    /// 95 % interval from the samples and the model's error.
    pub interval: [f64; 2],
    /// 95 % interval from the samples alone.
    pub interval_of_samples: [f64; 2],
    pub remote_fraction: f64,
    /// The controller and the link with the highest utilisation; `None` if they carry nothing.
    pub controller: Option<Controller>,
    pub link: Option<Link>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Controller {
    pub node: usize,
    /// What it carries / the most that it could carry.
    pub utilisation: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    pub from: usize,
    pub to: usize,
    pub utilisation: f64,
}

/// The inputs of a prediction besides traffic and machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumptions {
    pub write_share: f64,
    pub caps: Caps,
    /// The relative standard error of one prediction of the model.
    pub model_error: f64,
}

impl<'a> Program<'a> {
    /// Workers run where the traffic says, each on a core of its own while there are free cores.
    ///
    /// # Errors
    /// When there is no traffic, or workers or pages are on nodes that the machine does not have.
    pub fn new(machine: &'a MachineModel, traffic: &'a Traffic, nodes: Vec<usize>, assumptions: Assumptions) -> Result<Self, TeamError> {
        if traffic.objects.iter().all(|object| object.samples.is_empty()) {
            return Err(TeamError::NoTraffic);
        }
        let count = machine.nodes.len();
        let homes = traffic.objects.iter().flat_map(|object| &object.samples).map(|sample| sample.home as usize);
        if let Some(node) = homes.chain(nodes.iter().copied()).find(|node| *node >= count) {
            return Err(TeamError::PageNode { node, machine: machine.name.clone(), nodes: count });
        }
        let mut taken = vec![0; count];
        let mut seats = Vec::with_capacity(traffic.workers.len());
        let works = volumes(traffic, &Weights::Same, |_, sample| Mix::Node(sample.home as usize), count, Phase::All);
        for (worker, volumes) in traffic.workers.iter().zip(&works) {
            let node = worker.node as usize;
            let Some(cores) = machine.nodes.get(node).map(|node| node.cores.max(1)) else {
                return Err(TeamError::ThreadNode { node, machine: machine.name.clone(), nodes: count });
            };
            seats.push(Seat { node, core: taken[node] % cores });
            taken[node] += usize::from(volumes.iter().any(|bytes| *bytes > 0.0));
        }
        let mut program = Self {
            machine,
            traffic,
            nodes,
            seats,
            schedule: schedule(traffic),
            write_share: assumptions.write_share,
            compute: vec![Bandwidth::UNLIMITED; traffic.workers.len()],
            caps: assumptions.caps,
            model_error: assumptions.model_error,
            plan: PerObject::new(),
            found: PerObject::new(),
        };
        let offered = program.run(&Weights::Same, &|_| Placement::AsIs)?;
        (program.caps, program.compute) = caps::decide(assumptions.caps, traffic, &works, offered.time);
        Ok(program)
    }

    /// Sets the placements for [`Placement::Plan`]; before, they are those of the program as it is.
    pub fn follow(&mut self, plan: PerObject) {
        self.plan = plan;
    }

    /// Sets the placements for [`Placement::Exhaustive`].
    pub fn follow_found(&mut self, found: PerObject) {
        self.found = found;
    }

    /// What limits a thread besides memory: the choice that was made.
    #[must_use]
    pub fn caps(&self) -> Caps {
        self.caps
    }

    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.schedule == Schedule::Dynamic
    }

    /// Fraction of the traffic that flows while one thread works alone.
    #[must_use]
    pub fn serial(&self) -> f64 {
        let samples = || self.traffic.objects.iter().flat_map(|object| &object.samples);
        let all: f64 = samples().map(TrafficSample::volume).sum();
        let serial: f64 = samples().filter(|sample| sample.serial).map(TrafficSample::volume).sum();
        if all > 0.0 { serial / all } else { 0.0 }
    }

    /// The number of workers that access memory at the same time.
    #[must_use]
    pub fn team(&self) -> usize {
        let home = |_: usize, sample: &TrafficSample| Mix::Node(sample.home as usize);
        let works = volumes(self.traffic, &Weights::Same, home, self.machine.nodes.len(), Phase::Team);
        works.iter().filter(|bytes| bytes.iter().any(|bytes| *bytes > 0.0)).count()
    }

    /// The node of the main thread, on which serial initialisation places all memory.
    #[must_use]
    pub fn main_node(&self) -> usize {
        self.traffic.workers.first().map_or(0, |worker| worker.node as usize)
    }

    /// Predicts the placements of the whole program, in the given order.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn predict(&self, placements: &[Placement]) -> Result<Vec<Predicted>, TeamError> {
        let outcomes = self.outcomes(&Weights::Same, placements)?;
        let best = fastest(&outcomes);
        let draws = self.draws(|weights| {
            let times: Vec<f64> = self.outcomes(weights, placements)?.iter().map(|outcome| outcome.time.0).collect();
            Ok(times.iter().map(|time| time / times[best]).collect())
        })?;
        let predicted = placements.iter().zip(&outcomes).enumerate().map(|(index, (placement, outcome))| {
            let slowdown = (outcome.time.0 / outcomes[best].time.0).max(1.0);
            let of_samples = draws.interval(index, slowdown, 0.0);
            let error = if index == best { 0.0 } else { self.model_error };
            let at_least_1 = |interval: [f64; 2]| interval.map(|bound| bound.max(1.0));
            Predicted {
                placement: *placement,
                slowdown,
                interval: at_least_1(draws.interval(index, slowdown, error)),
                interval_of_samples: at_least_1(of_samples),
                remote_fraction: outcome.remote_fraction,
                controller: self.controller(outcome),
                link: self.link(outcome),
            }
        });
        Ok(predicted.collect())
    }

    /// The time that the program would take for the sampled traffic. It is right except for a factor that is the same for every placement.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn time(&self, placement: Placement) -> Result<Seconds, TeamError> {
        Ok(self.run(&Weights::Same, &|_| placement)?.time)
    }

    /// The time and the remote fraction, with a placement for each object by its id.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn outcome_of(&self, placement: &dyn Fn(i64) -> Placement) -> Result<(Seconds, f64), TeamError> {
        self.run(&Weights::Same, placement).map(|outcome| (outcome.time, outcome.remote_fraction))
    }

    /// The gain of placing one object differently, with everything else as it is.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn gain(&self, object: i64, placement: Placement) -> Result<Gain, TeamError> {
        self.gain_of(&|id| if id == object { placement } else { Placement::AsIs })
    }

    /// The gain of placing each object, by its id, in its own way.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn gain_of(&self, placement: &dyn Fn(i64) -> Placement) -> Result<Gain, TeamError> {
        let ratio = |weights: &Weights| -> Result<f64, TeamError> {
            let before = self.run(weights, &|_| Placement::AsIs)?;
            let after = self.run(weights, placement)?;
            Ok(before.time.0 / after.time.0)
        };
        let gain = ratio(&Weights::Same)?;
        let draws = self.draws(|weights| Ok(vec![ratio(weights)?]))?;
        Ok(Gain { gain, interval: draws.interval(0, gain, self.model_error) })
    }

    fn draws(&self, figures: impl Fn(&Weights) -> Result<Vec<f64>, TeamError>) -> Result<Resampled, TeamError> {
        let size = self.traffic.workers.len() * self.machine.nodes.len();
        let count = (WORK / size.max(1)).clamp(*DRAWS.start(), *DRAWS.end());
        Resampled::new(self.traffic, count, figures)
    }

    fn outcomes(&self, weights: &Weights, placements: &[Placement]) -> Result<Vec<Simulation>, TeamError> {
        placements.iter().map(|placement| self.run(weights, &|_| *placement)).collect()
    }

    fn run(&self, weights: &Weights, placement: &dyn Fn(i64) -> Placement) -> Result<Simulation, TeamError> {
        let count = self.machine.nodes.len();
        let places = Places { machine: self.machine, traffic: self.traffic, nodes: &self.nodes };
        let of = |placements: &PerObject, id: i64| placements.get(&id).copied().unwrap_or(Placement::AsIs);
        let mixes = places.place(&|id| match placement(id) {
            Placement::Plan => of(&self.plan, id),
            Placement::Exhaustive => of(&self.found, id),
            one => one,
        });
        let of = |phase: Phase| volumes(self.traffic, weights, |object, sample| mixes.of(object, sample), count, phase);
        let team = match self.schedule {
            Schedule::Static => simulate(self.machine, &self.threads(of(Phase::Team)), Schedule::Static)?,
            Schedule::Dynamic => simulate_pool(self.machine, &self.threads(of(Phase::TeamOwned)), &self.threads(of(Phase::TeamPool)))?,
        };
        if self.serial() <= 0.0 {
            return Ok(team);
        }
        // The time of serial phases is added, wherever in the run they are.
        Ok(simulate(self.machine, &self.threads(of(Phase::Serial)), Schedule::Static)?.then(team))
    }

    fn threads(&self, volumes: Vec<Vec<f64>>) -> Vec<Thread> {
        let places = volumes.into_iter().zip(&self.seats).zip(&self.compute);
        places
            .map(|((volumes, seat), compute)| {
                let parts = volumes.into_iter().enumerate().filter(|(_, bytes)| *bytes > 0.0);
                let work = vec![Stretch { parts: parts.map(|(node, bytes)| (node, Volume(bytes))).collect() }];
                Thread { seat: *seat, work, write_share: self.write_share, compute: *compute }
            })
            .collect()
    }

    fn controller(&self, outcome: &Simulation) -> Option<Controller> {
        let used = outcome.controllers.iter().enumerate().filter(|(_, bytes)| bytes.0 > 0.0).map(|(node, bytes)| Controller {
            node,
            utilisation: (*bytes / outcome.time).0 / self.machine.nodes[node].curve(self.write_share).limit,
        });
        used.reduce(|most, next| if next.utilisation > most.utilisation + 1e-9 { next } else { most })
    }

    fn link(&self, outcome: &Simulation) -> Option<Link> {
        let used = outcome.links.iter().zip(&self.machine.links).filter(|(bytes, _)| bytes.0 > 0.0).map(|(bytes, link)| Link {
            from: link.from,
            to: link.to,
            utilisation: (*bytes / outcome.time).0 / link.capacity.0,
        });
        used.reduce(|most, next| if next.utilisation > most.utilisation + 1e-9 { next } else { most })
    }
}

/// Dynamic if most bytes are accesses to objects without owners.
fn schedule(traffic: &Traffic) -> Schedule {
    let bytes = |dealt: bool| -> f64 {
        let objects = traffic.objects.iter().filter(|object| (object.division == Division::DealtOut) == dealt);
        objects.flat_map(ObjectTraffic::of_team).map(TrafficSample::volume).sum()
    };
    if bytes(true) > bytes(false) { Schedule::Dynamic } else { Schedule::Static }
}

/// The best placement; of several, the first.
#[must_use]
pub fn best(placements: &[Predicted]) -> Option<&Predicted> {
    placements.iter().find(|placement| placement.slowdown <= 1.0 + 1e-9)
}

/// The index of the fastest outcome; of several, the first.
fn fastest(outcomes: &[Simulation]) -> usize {
    (0..outcomes.len())
        .reduce(|best, next| if outcomes[next].time.0 < outcomes[best].time.0 * (1.0 - 1e-9) { next } else { best })
        .unwrap_or(0)
}
