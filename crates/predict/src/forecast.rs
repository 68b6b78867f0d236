//! The stage after the analysis: the cost of each placement of a program's memory on a machine, the best placement for each object, and the
//! gain.

use crate::experiments::{self, ExperimentError};
use crate::machine::{MachineError, MachineModel, assumed};
use crate::model::TeamError;
use crate::model_error::{ModelError, model_error};
use crate::program::{Assumptions, Candidate, Caps, Choice, Found, Placement, Predicted, Program, best};
use crate::validate::ValidationError;
use firsttouch_model::finding::Remedy;
use firsttouch_model::prediction::{Gain, Prediction};
use firsttouch_model::traffic::Traffic;
use std::collections::BTreeMap;
use std::fmt;

/// The number of combinations of placements that a search may compute: a second or two.
const COMBINATIONS: usize = 5_000;

/// The machine to compute with.
#[derive(Clone, Debug)]
pub struct ForecastMachine {
    pub machine: MachineModel,
    /// Whether only the machine's nodes are known, so that its bandwidths are those of a median machine.
    pub is_assumed: bool,
    /// Nodes that have memory.
    pub memory_nodes: Vec<usize>,
}

impl ForecastMachine {
    /// A machine whose numbers are known.
    #[must_use]
    pub fn described(machine: MachineModel, memory_nodes: Vec<usize>) -> Self {
        Self { machine, is_assumed: false, memory_nodes }
    }

    /// A machine of equal nodes with room for the threads of the traffic. The ratios of its bandwidths are those of a median machine.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn assumed(name: &str, nodes: usize, traffic: &Traffic, memory_nodes: Vec<usize>) -> Result<Self, MachineError> {
        let mut seated = vec![0; nodes];
        for worker in traffic.workers.iter().filter(|worker| !worker.idle) {
            if let Some(count) = seated.get_mut(worker.node as usize) {
                *count += 1;
            }
        }
        let cores = seated.into_iter().max().unwrap_or(1).max(1);
        Ok(Self { machine: assumed(name, nodes, cores)?, is_assumed: true, memory_nodes })
    }

    /// The machine's description, if its numbers are known.
    #[must_use]
    pub fn description(&self) -> Option<&MachineModel> {
        (!self.is_assumed).then_some(&self.machine)
    }
}

/// The options of a forecast.
#[derive(Clone, Copy, Debug)]
pub struct ForecastOptions {
    /// The fraction of the traffic that is written.
    pub write_share: f64,
    pub caps: Caps,
    /// Whether to compute all combinations of placements, too.
    pub exhaustive: bool,
}

impl Default for ForecastOptions {
    fn default() -> Self {
        Self { write_share: 0.0, caps: Caps::Auto, exhaustive: false }
    }
}

/// The predictions for a program, and the assumptions behind them.
#[derive(Clone, Debug)]
pub struct Forecast {
    pub machine: MachineModel,
    /// Whether only the machine's nodes are known, so that its bandwidths are those of a median machine.
    pub is_assumed: bool,
    /// The program as it is, then the placements that it is compared with.
    pub placements: Vec<Predicted>,
    /// The best placements of the objects that a plan can place.
    pub choice: Choice,
    /// The gain of the remedy of each finding by itself, by the (first) object of the finding.
    pub gains: BTreeMap<i64, Gain>,
    /// The gain of each chosen placement by itself, by object.
    pub chosen_gains: BTreeMap<i64, Gain>,
    /// The gain of all chosen placements together.
    pub plan_gain: Gain,
    pub error: ModelError,
    pub caps: Caps,
    pub write_share: f64,
    pub is_dynamic: bool,
    /// The number of threads that access memory at the same time.
    pub team: usize,
    /// Fraction of the traffic that flows while one thread works alone.
    pub serial: f64,
    /// Fraction of the traffic whose node is unknown.
    pub unknown: f64,
    /// Names of objects whose users are assumed to have equal shares.
    pub evened: Vec<String>,
    /// The outcome of the search through all combinations, if it was requested.
    pub found: Option<Found>,
}

impl Forecast {
    /// The prediction for the program as it is, compared with the best placement.
    #[must_use]
    pub fn prediction(&self) -> Option<Prediction> {
        let best = best(&self.placements).map_or("", |best| best.placement.name());
        self.placements.first().map(|now| Prediction { slowdown: now.slowdown, interval: now.interval, best: best.to_owned() })
    }

    /// The gain of the remedy for the finding on an object; `None` if no placement of memory removes the defect.
    #[must_use]
    pub fn gain(&self, object: Option<i64>) -> Option<Gain> {
        self.gains.get(&object?).copied()
    }
}

/// Why there is no forecast.
#[derive(Clone, Debug, PartialEq)]
pub enum ForecastError {
    /// The evidence is not enough for a prediction, or does not fit the machine.
    NotPredictable(TeamError),
    /// The model refused the program during the computation.
    Model(TeamError),
    /// The published tables, from which the model's error is computed, cannot be used.
    Experiments(ExperimentError),
    Validation(ValidationError),
}

impl fmt::Display for ForecastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPredictable(error) | Self::Model(error) => error.fmt(f),
            Self::Experiments(error) => error.fmt(f),
            Self::Validation(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ForecastError {}

impl From<TeamError> for ForecastError {
    fn from(error: TeamError) -> Self {
        Self::Model(error)
    }
}

impl From<ExperimentError> for ForecastError {
    fn from(error: ExperimentError) -> Self {
        Self::Experiments(error)
    }
}

impl From<ValidationError> for ForecastError {
    fn from(error: ValidationError) -> Self {
        Self::Validation(error)
    }
}

/// Predicts the cost of each placement, the best placement for each candidate (an object that a plan can place), and the gain of each
/// finding's remedy. A remedy comes with the ids of its objects.
///
/// # Errors
/// When there is nothing to predict from, or the model refuses the program.
pub fn forecast(
    traffic: &Traffic,
    machine: &ForecastMachine,
    candidates: &[Candidate],
    remedies: &[(Vec<i64>, Remedy)],
    options: ForecastOptions,
) -> Result<Forecast, ForecastError> {
    let ForecastOptions { write_share, caps, exhaustive } = options;
    let error = model_error(&machine.machine, &experiments::all()?)?;
    let assumptions = Assumptions { write_share, caps, model_error: error.standard() };
    let mut program =
        Program::new(&machine.machine, traffic, machine.memory_nodes.clone(), assumptions).map_err(ForecastError::NotPredictable)?;
    let choice = program.choose(candidates)?;
    let mut compared = placements(&program);
    let mut found = None;
    if exhaustive {
        let best = program.search(&choice.placements, COMBINATIONS)?;
        program.follow_found(best.placements.clone());
        compared.push(Placement::Exhaustive);
        found = Some(best);
    }
    program.follow(choice.placements.clone());
    let mut asked: Vec<Box<dyn Fn(i64) -> Placement + '_>> = Vec::new();
    asked.push(Box::new(|_| Placement::AsIs));
    asked.push(Box::new(|_| Placement::Plan));
    asked.extend(compared.iter().map(|one| Box::new(|_| *one) as Box<_>));
    for (objects, remedy) in remedies {
        asked.push(Box::new(|id| if objects.contains(&id) { placement(*remedy) } else { Placement::AsIs }));
    }
    for (object, placement) in &choice.placements {
        asked.push(Box::new(|id| if id == *object { *placement } else { Placement::AsIs }));
    }
    let priced = program.price(&asked.iter().map(|one| one.as_ref() as _).collect::<Vec<_>>())?;
    let gain = |index: usize| program.gain_in(&priced, 0, index);
    let (first_remedy, first_chosen) = (2 + compared.len(), 2 + compared.len() + remedies.len());
    let of_remedy = |(index, (objects, _)): (usize, &(Vec<i64>, Remedy))| Some((*objects.first()?, gain(first_remedy + index)));
    Ok(Forecast {
        placements: program.compare(&compared, &priced, &(2..first_remedy).collect::<Vec<_>>()),
        gains: remedies.iter().enumerate().filter_map(of_remedy).collect(),
        chosen_gains: choice.placements.keys().enumerate().map(|(index, object)| (*object, gain(first_chosen + index))).collect(),
        plan_gain: gain(1),
        error,
        caps: program.caps(),
        write_share,
        is_dynamic: program.is_dynamic(),
        team: program.team(),
        serial: program.serial(),
        unknown: traffic.unknown,
        evened: traffic.objects.iter().filter(|object| !object.even.is_empty()).map(|object| object.name.clone()).collect(),
        is_assumed: machine.is_assumed,
        machine: machine.machine.clone(),
        found,
        choice: choice.clone(),
    })
}

/// Chooses the best placement for each candidate as [`forecast`] does, without gains and intervals, which cost much more.
///
/// # Errors
/// As [`forecast`].
pub fn choose(
    traffic: &Traffic,
    machine: &ForecastMachine,
    candidates: &[Candidate],
    options: ForecastOptions,
) -> Result<Choice, ForecastError> {
    // The model's error widens intervals only.
    let assumptions = Assumptions { write_share: options.write_share, caps: options.caps, model_error: 0.0 };
    let program = Program::new(&machine.machine, traffic, machine.memory_nodes.clone(), assumptions);
    Ok(program.map_err(ForecastError::NotPredictable)?.choose(candidates)?)
}

/// The placements that are compared; the program's own is the first.
fn placements(program: &Program<'_>) -> Vec<Placement> {
    let one = Placement::OneNode { node: program.main_node() };
    vec![Placement::AsIs, Placement::ParallelFirstTouch, Placement::Interleave, Placement::WeightedInterleave, one, Placement::Plan]
}

/// The placement that a finding's remedy gives to its object.
fn placement(remedy: Remedy) -> Placement {
    match remedy {
        Remedy::ParallelFirstTouch => Placement::ParallelFirstTouch,
        Remedy::Interleave => Placement::Interleave,
    }
}
