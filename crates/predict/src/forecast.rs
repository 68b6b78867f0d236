//! The stage after the analysis: what each placement of a program's memory costs on a machine, what is best done with each object, and
//! what that gains.

use crate::experiments::{self, ExperimentError};
use crate::machine::{Machine, MachineError, assumed};
use crate::model::TeamError;
use crate::model_error::{ModelError, model_error};
use crate::program::{Assumptions, Candidate, Caps, Choice, Found, Placement, Predicted, Program, best};
use crate::validate::ValidationError;
use firsttouch_analysis::{Analysis, Finding};
use firsttouch_model::finding::Remedy;
use firsttouch_model::prediction::{Gain, Prediction};
use std::collections::BTreeMap;
use std::fmt;

/// Combinations of placements that a search may compute: a second or two.
const COMBINATIONS: usize = 5_000;

/// The machine to compute with.
#[derive(Clone, Debug)]
pub struct ForecastMachine {
    pub machine: Machine,
    /// Only the machine's nodes are known; its bandwidths are those of a median machine.
    pub is_assumed: bool,
    /// Nodes that have memory.
    pub memory_nodes: Vec<usize>,
}

impl ForecastMachine {
    /// A machine whose numbers are known.
    #[must_use]
    pub fn described(machine: Machine, memory_nodes: Vec<usize>) -> Self {
        Self { machine, is_assumed: false, memory_nodes }
    }

    /// Equal nodes with room for the threads of the analysis; their bandwidths compare as on a median machine.
    ///
    /// # Errors
    /// The catalogue cannot be read.
    pub fn assumed(analysis: &Analysis, memory_nodes: Vec<usize>) -> Result<Self, MachineError> {
        let target = &analysis.machine;
        let mut seated = vec![0; target.nodes];
        for worker in &analysis.traffic.workers {
            if let Some(count) = seated.get_mut(worker.node as usize) {
                *count += 1;
            }
        }
        let cores = seated.into_iter().max().unwrap_or(1).max(1);
        Ok(Self { machine: assumed(&target.name, target.nodes, cores)?, is_assumed: true, memory_nodes })
    }

    /// The machine's numbers, where they are known.
    #[must_use]
    pub fn description(&self) -> Option<&Machine> {
        (!self.is_assumed).then_some(&self.machine)
    }
}

/// What a forecast is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ForecastOptions {
    /// The part of the traffic that is written.
    pub write_share: f64,
    pub caps: Caps,
    /// Whether all combinations of placements are compared, too.
    pub exhaustive: bool,
}

impl Default for ForecastOptions {
    fn default() -> Self {
        Self { write_share: 0.0, caps: Caps::Auto, exhaustive: false }
    }
}

/// What is predicted for a program, and what that rests on.
#[derive(Clone, Debug)]
pub struct Forecast {
    pub machine: Machine,
    /// Only the machine's nodes are known; its bandwidths are those of a median machine.
    pub is_assumed: bool,
    /// The program as it is, then the placements it is compared with.
    pub placements: Vec<Predicted>,
    /// What is best done with the objects that a plan can place.
    pub choice: Choice,
    /// What the remedy of each finding gains by itself, by object.
    pub gains: BTreeMap<i64, Gain>,
    /// What each chosen placement gains by itself, by object.
    pub chosen_gains: BTreeMap<i64, Gain>,
    /// What all chosen placements gain together.
    pub plan_gain: Gain,
    pub error: ModelError,
    pub caps: Caps,
    pub write_share: f64,
    pub is_dynamic: bool,
    /// Threads that move anything at the same time.
    pub team: usize,
    /// Part of the traffic that flows while one thread works alone.
    pub serial: f64,
    /// Part of the traffic whose node is not known.
    pub unknown: f64,
    /// Names of objects whose users' shares were taken as equal.
    pub evened: Vec<String>,
    /// The outcome of the search through all combinations, where it was asked for.
    pub found: Option<Found>,
}

impl Forecast {
    /// The program as it is, against the best placement.
    #[must_use]
    pub fn prediction(&self) -> Option<Prediction> {
        let best = best(&self.placements).map_or("", |best| best.placement.name());
        self.placements.first().map(|now| Prediction { slowdown: now.slowdown, interval: now.interval, best: best.to_owned() })
    }

    /// What the finding's remedy gains; `None` if no placement of memory removes the defect.
    #[must_use]
    pub fn gain(&self, finding: &Finding) -> Option<Gain> {
        finding.kind.remedy()?;
        self.gains.get(&finding.object?).copied()
    }
}

/// Why there is no forecast.
#[derive(Clone, Debug, PartialEq)]
pub enum ForecastError {
    /// The evidence gives nothing to predict from, or does not fit the machine.
    NotPredictable(TeamError),
    /// The model refused the program in the course of the computation.
    Model(TeamError),
    /// The published tables, which tell the model's error, cannot be used.
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

/// Predicts what each placement costs, and what is best done with the candidates: objects that a plan can place.
///
/// # Errors
/// Nothing to predict from; a program that the model refuses.
pub fn forecast(
    analysis: &Analysis,
    machine: &ForecastMachine,
    candidates: &[Candidate],
    options: ForecastOptions,
) -> Result<Forecast, ForecastError> {
    let ForecastOptions { write_share, caps, exhaustive } = options;
    let traffic = &analysis.traffic;
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
    let mut gains = BTreeMap::new();
    for finding in &analysis.findings {
        if let (Some(object), Some(remedy)) = (finding.object, finding.kind.remedy()) {
            gains.insert(object, program.gain(object, placement(remedy))?);
        }
    }
    let mut chosen_gains = BTreeMap::new();
    for (object, placement) in &choice.placements {
        chosen_gains.insert(*object, program.gain(*object, *placement)?);
    }
    Ok(Forecast {
        placements: program.predict(&compared)?,
        gains,
        chosen_gains,
        plan_gain: program.gain_of(&|_| Placement::Plan)?,
        choice,
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
    })
}

/// The placements that are compared, the one that is there first.
fn placements(program: &Program<'_>) -> Vec<Placement> {
    let one = Placement::OneNode { node: program.main_node() };
    vec![Placement::AsIs, Placement::ParallelFirstTouch, Placement::Interleave, Placement::WeightedInterleave, one, Placement::Plan]
}

/// What a finding's remedy does to its object.
fn placement(remedy: Remedy) -> Placement {
    match remedy {
        Remedy::ParallelFirstTouch => Placement::ParallelFirstTouch,
        Remedy::Interleave => Placement::Interleave,
    }
}
