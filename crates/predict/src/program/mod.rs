//! A recorded program on a machine: the cost of each placement of its memory.
//!
//! Samples give the program's traffic. From the traffic and a placement follow each worker's bytes to each node, and the model computes how
//! long these take. Resampling gives the interval (`interval.rs`).

mod aside;
mod caps;
mod cells;
mod choose;
mod interval;
mod place;
mod placements;
mod price;
mod sums;

pub use caps::{Caps, Moot};
pub use choose::{Candidate, Choice, Found, LEAST_GAIN, Left, PerObject, Trial};
pub use place::Placement;
pub use placements::Placements;
pub use price::Priced;

use crate::machine::MachineModel;
use crate::model::{Schedule, Seat, Simulation, Stretch, TeamError, Thread, remote_fraction, simulate, simulate_pool};
use crate::units::{Bandwidth, Seconds, Volume};
use aside::Aside;
use cells::{Cells, ObjectCells};
use firsttouch_model::prediction::Gain;
use firsttouch_model::traffic::{Division, Traffic, TrafficSample};
use place::Places;
use serde::Serialize;
use sums::{Blocks, Change, Loads, Located, Sums};

/// A worker with less than this part of the traffic of the one with the most has next to none.
const NEXT_TO_NONE: f64 = 0.02;
/// The program as it is.
static AS_IS: Placements = Placements::all(Placement::AsIs);

/// A program, and the machine it would run on.
pub struct Program<'a> {
    machine: &'a MachineModel,
    traffic: &'a Traffic,
    /// The nodes that memory can be placed on.
    nodes: Vec<usize>,
    cells: Cells,
    /// The bytes of each cell, as sampled.
    bytes: Vec<f64>,
    blocks: Blocks,
    /// Those of the program as it is.
    as_is_loads: Loads,
    as_is: Sums,
    places: Places,
    /// Fraction of the traffic that flows while one thread works alone.
    serial: f64,
    seats: Vec<Seat>,
    /// The workers that access memory, and the place of each worker among them: a simulation leaves out the others, which may be many.
    active: Vec<usize>,
    among_active: Vec<usize>,
    schedule: Schedule,
    /// The fraction of the traffic that is written.
    write_share: f64,
    compute: Vec<Bandwidth>,
    caps: Caps,
    /// Whether the other limit is as likely.
    is_doubtful: bool,
    moot: Option<Moot>,
    /// The time that no placement changes, if threads are limited by the machine.
    aside: Aside,
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
        let cells = Cells::new(traffic);
        let bytes = cells.bytes();
        let mut works = vec![vec![0.0; count]; traffic.workers.len()];
        cells.cells.iter().zip(&bytes).for_each(|(cell, bytes)| works[cell.worker][cell.home] += bytes);
        let seats = seats(machine, traffic, &works)?;
        let mut accesses = vec![false; seats.len()];
        cells.cells.iter().for_each(|cell| accesses[cell.worker] = true);
        let active: Vec<usize> = (0..seats.len()).filter(|worker| accesses[*worker]).collect();
        let mut among_active = vec![0; seats.len()];
        active.iter().enumerate().for_each(|(place, worker)| among_active[*worker] = place);
        let on: Vec<usize> = seats.iter().map(|seat| seat.node).collect();
        let mut program = Self {
            machine,
            traffic,
            places: Places::new(machine, &nodes, &on, &cells),
            nodes,
            serial: serial(traffic),
            schedule: schedule(traffic, &cells),
            blocks: Blocks::new(cells.objects.len(), cells.cells.len(), count * active.len()),
            as_is_loads: Loads::default(),
            as_is: Sums::default(),
            cells,
            bytes,
            seats,
            active,
            among_active,
            write_share: assumptions.write_share,
            compute: vec![Bandwidth::UNLIMITED; traffic.workers.len()],
            caps: assumptions.caps,
            is_doubtful: false,
            moot: None,
            aside: Aside::default(),
            model_error: assumptions.model_error,
            plan: PerObject::new(),
            found: PerObject::new(),
        };
        program.as_is_loads = program.loads(&AS_IS, None);
        program.as_is = program.sums(&program.bytes, &program.locate(&AS_IS, &program.as_is_loads));
        let offered = program.outcome_by(&AS_IS)?;
        let decided = caps::decide(assumptions.caps, traffic, &works, offered.time);
        (program.caps, program.compute, program.is_doubtful) = (decided.caps, decided.bandwidths, decided.is_doubtful);
        program.moot = decided.moot;
        // The recorded speed includes the time in which a thread only computes, and a program that is said to wait for memory has none.
        if let Some(computing) = traffic.computing.filter(|_| assumptions.caps == Caps::Auto && program.caps == Caps::Machine) {
            let recorded = if computing.was_local { Placement::Local } else { Placement::AsIs };
            let at_memory = program.outcome_by(&program.everywhere(recorded))?.time;
            program.aside = Aside::new(computing, at_memory);
        }
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

    /// Whether the recorded speed does not tell what limits a thread.
    #[must_use]
    pub fn has_doubtful_caps(&self) -> bool {
        self.is_doubtful
    }

    /// Why the placement may not matter at all, so that intervals reach to no effect.
    #[must_use]
    pub fn moot(&self) -> Option<Moot> {
        self.moot
    }

    /// Whether the time counts in which the program only computes.
    #[must_use]
    pub fn counts_computing(&self) -> bool {
        self.aside.time().0 > 0.0
    }

    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.schedule == Schedule::Dynamic
    }

    /// Fraction of the traffic that flows while one thread works alone.
    #[must_use]
    pub fn serial(&self) -> f64 {
        self.serial
    }

    /// The number of workers that access memory at the same time, without those that did next to nothing or have next to none of the traffic: a main
    /// thread that waits for others looks at their results.
    #[must_use]
    pub fn team(&self) -> usize {
        let mut of_worker = vec![0.0; self.seats.len()];
        for (cell, bytes) in self.cells.cells.iter().zip(&self.bytes).filter(|(cell, _)| !cell.serial) {
            of_worker[cell.worker] += bytes;
        }
        let most = of_worker.iter().copied().fold(0.0, f64::max);
        self.cells.members.iter().filter(|worker| of_worker[**worker] > NEXT_TO_NONE * most).count()
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
        let all: Vec<usize> = (0..placements.len()).collect();
        let layouts: Vec<Placements> = placements.iter().map(|placement| self.everywhere(*placement)).collect();
        Ok(self.compare(placements, &self.price(&layouts)?, &all))
    }

    /// Compares placements of the whole program. `index`: where each is in `priced`.
    #[must_use]
    pub fn compare(&self, placements: &[Placement], priced: &Priced, index: &[usize]) -> Vec<Predicted> {
        let outcomes: Vec<&Simulation> = index.iter().map(|index| priced.outcome(*index)).collect();
        let best = fastest(&outcomes);
        let predicted = placements.iter().zip(&outcomes).enumerate().map(|(one, (placement, outcome))| {
            let slowdown = (outcome.time.0 / outcomes[best].time.0).max(1.0);
            let interval = |error: f64| priced.interval(index[one], index[best], slowdown, error).map(|bound| bound.max(1.0));
            Predicted {
                placement: *placement,
                slowdown,
                interval: interval(if one == best { 0.0 } else { self.model_error }),
                interval_of_samples: interval(0.0),
                remote_fraction: outcome.remote_fraction,
                controller: self.controller(outcome),
                link: self.link(outcome),
            }
        });
        predicted.collect()
    }

    /// The time that the program would take for the sampled traffic. It is right except for a factor that is the same for every placement.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn time(&self, placement: Placement) -> Result<Seconds, TeamError> {
        Ok(self.outcome_by(&self.everywhere(placement))?.time)
    }

    /// The time and the remote fraction under a layout.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn outcome_of(&self, layout: &Placements) -> Result<(Seconds, f64), TeamError> {
        self.outcome_by(layout).map(|outcome| (outcome.time, outcome.remote_fraction))
    }

    /// The program with all memory placed alike.
    pub fn everywhere(&self, placement: Placement) -> Placements {
        match placement {
            Placement::Plan => self.layout(&self.plan),
            Placement::Exhaustive => self.layout(&self.found),
            one => Placements::all(one),
        }
    }

    /// The program with these objects placed as given, and the rest as it is.
    pub fn layout(&self, placements: &PerObject) -> Placements {
        self.changed_in(&AS_IS, placements.iter().map(|(id, placement)| (*id, *placement)))
    }

    /// A layout with some objects, by their ids, placed differently. Objects without traffic are left out.
    pub fn changed_in(&self, layout: &Placements, changes: impl Iterator<Item = (i64, Placement)>) -> Placements {
        layout.with(changes.filter_map(|(id, placement)| Some((self.cells.index(id)?, self.resolved(id, placement)))))
    }

    /// The gain of placing one object differently, with everything else as it is.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn gain(&self, object: i64, placement: Placement) -> Result<Gain, TeamError> {
        let layout = self.layout(&PerObject::from([(object, placement)]));
        Ok(self.price(&[AS_IS.clone(), layout])?.gain(0, 1, self.model_error))
    }

    /// Prices several layouts at once. Their intervals come from the same draws.
    ///
    /// # Errors
    /// When the model refuses the team.
    pub fn price(&self, layouts: &[Placements]) -> Result<Priced, TeamError> {
        price::price(self, layouts)
    }

    /// The gain of one priced placement over another.
    #[must_use]
    pub fn gain_in(&self, priced: &Priced, before: usize, after: usize) -> Gain {
        priced.gain(before, after, self.model_error)
    }

    /// The placement of an object after [`Placement::Plan`] and [`Placement::Exhaustive`] are resolved.
    fn resolved(&self, id: i64, placement: Placement) -> Placement {
        let of = |placements: &PerObject| placements.get(&id).copied().unwrap_or(Placement::AsIs);
        match placement {
            Placement::Plan => of(&self.plan),
            Placement::Exhaustive => of(&self.found),
            one => one,
        }
    }

    /// The outcome for the sampled traffic.
    fn outcome_by(&self, layout: &Placements) -> Result<Simulation, TeamError> {
        self.outcome_near((&AS_IS, &self.as_is_loads, &self.as_is), layout)
    }

    /// The same. `near`: a layout that may differ in few objects, with what is known of it.
    fn outcome_near(&self, (near, loads, sums): (&Placements, &Loads, &Sums), layout: &Placements) -> Result<Simulation, TeamError> {
        let own = self.loads(layout, Some((near, loads)));
        let (from, at) = (self.locate(near, loads), self.locate(layout, &own));
        Ok(self.run(&self.bytes, sums, &self.change(&from, &at), &at)?.with(self.aside.time()))
    }

    /// The accesses without the time beside them. `bytes`: of each cell. `known`: the sums for them of the layout that `change` starts from.
    fn run(&self, bytes: &[f64], known: &Sums, change: &Change, at: &Located<'_>) -> Result<Simulation, TeamError> {
        let volumes = self.volumes(bytes, known, change, at);
        let of_phase = |phase: usize| {
            let length = self.machine.nodes.len() * self.active.len();
            &volumes[phase * length..][..length]
        };
        let team = match self.schedule {
            Schedule::Static => simulate(self.machine, &self.threads(of_phase(0)), Schedule::Static)?,
            Schedule::Dynamic => {
                let (own, pool) = (of_phase(0), of_phase(1));
                let team = simulate_pool(self.machine, &self.threads(own), &self.threads(pool))?;
                // As in reports: of the accesses that each thread made, whichever thread has time for them under this placement.
                let made: Vec<f64> = own.iter().zip(pool).map(|(own, pool)| own + pool).collect();
                Simulation { remote_fraction: remote_fraction(&self.threads(&made)), ..team }
            }
        };
        if self.serial <= 0.0 {
            return Ok(team);
        }
        // The time of serial phases is added, wherever in the run they are.
        Ok(simulate(self.machine, &self.threads(of_phase(self.phases() - 1)), Schedule::Static)?.then(team))
    }

    fn threads(&self, volumes: &[f64]) -> Vec<Thread> {
        let places = volumes.chunks(self.machine.nodes.len().max(1)).zip(&self.active);
        places
            .map(|(volumes, &worker)| {
                let parts = volumes.iter().enumerate().filter(|(_, bytes)| **bytes > 0.0);
                let work = vec![Stretch { parts: parts.map(|(node, bytes)| (node, Volume(*bytes))).collect() }];
                Thread { seat: self.seats[worker], work, write_share: self.write_share, compute: self.compute[worker] }
            })
            .collect()
    }

    fn controller(&self, outcome: &Simulation) -> Option<Controller> {
        let used = outcome.controllers.iter().enumerate().filter(|(_, bytes)| bytes.0 > 0.0).map(|(node, bytes)| Controller {
            node,
            utilisation: (*bytes / self.at_memory(outcome)).0 / self.machine.nodes[node].curve(self.write_share).limit,
        });
        used.reduce(|most, next| if next.utilisation > most.utilisation + 1e-9 { next } else { most })
    }

    fn link(&self, outcome: &Simulation) -> Option<Link> {
        let used = outcome.links.iter().zip(&self.machine.links).filter(|(bytes, _)| bytes.0 > 0.0).map(|(bytes, link)| Link {
            from: link.from,
            to: link.to,
            utilisation: (*bytes / self.at_memory(outcome)).0 / link.capacity.0,
        });
        used.reduce(|most, next| if next.utilisation > most.utilisation + 1e-9 { next } else { most })
    }

    fn at_memory(&self, outcome: &Simulation) -> Seconds {
        Seconds(outcome.time.0 - self.aside.time().0)
    }
}

/// The core of each worker. Workers that did next to nothing come last: where there are as many cores as workers with work, they share one, and do not
/// take it from a worker that needs all of it.
fn seats(machine: &MachineModel, traffic: &Traffic, works: &[Vec<f64>]) -> Result<Vec<Seat>, TeamError> {
    let mut taken = vec![0; machine.nodes.len()];
    let mut seats = vec![Seat { node: 0, core: 0 }; traffic.workers.len()];
    for idle in [false, true] {
        for (index, worker) in traffic.workers.iter().enumerate().filter(|(_, worker)| worker.idle == idle) {
            let node = worker.node as usize;
            let Some(cores) = machine.nodes.get(node).map(|node| node.cores.max(1)) else {
                return Err(TeamError::ThreadNode { node, machine: machine.name.clone(), nodes: machine.nodes.len() });
            };
            seats[index] = Seat { node, core: taken[node] % cores };
            taken[node] += usize::from(works[index].iter().any(|bytes| *bytes > 0.0));
        }
    }
    Ok(seats)
}

/// Fraction of the traffic that flows while one thread works alone.
fn serial(traffic: &Traffic) -> f64 {
    let samples = || traffic.objects.iter().flat_map(|object| &object.samples);
    let all: f64 = samples().map(TrafficSample::volume).sum();
    let serial: f64 = samples().filter(|sample| sample.serial).map(TrafficSample::volume).sum();
    if all > 0.0 { serial / all } else { 0.0 }
}

/// Dynamic if most bytes are accesses to objects whose parts are dealt out to any thread.
fn schedule(traffic: &Traffic, cells: &Cells) -> Schedule {
    let bytes = |dealt: bool| -> f64 {
        let is_dealt = |object: &ObjectCells| object.division == Division::DealtOut && !object.is_tied;
        let objects = traffic.objects.iter().zip(&cells.objects).filter(|(_, own)| is_dealt(own) == dealt);
        objects.flat_map(|(object, _)| object.of_team()).map(TrafficSample::volume).sum()
    };
    if bytes(true) > bytes(false) { Schedule::Dynamic } else { Schedule::Static }
}

/// The best placement; of several, the first.
#[must_use]
pub fn best(placements: &[Predicted]) -> Option<&Predicted> {
    placements.iter().find(|placement| placement.slowdown <= 1.0 + 1e-9)
}

/// The index of the fastest outcome; of several, the first.
fn fastest(outcomes: &[&Simulation]) -> usize {
    (0..outcomes.len())
        .reduce(|best, next| if outcomes[next].time.0 < outcomes[best].time.0 * (1.0 - 1e-9) { next } else { best })
        .unwrap_or(0)
}
