//! The stage after the analysis: the cost of each placement of a program's memory on a machine, the best placement for each object, and the
//! gain.

use crate::experiments::{self, ExperimentError};
use crate::machine::{MachineError, MachineModel, assumed};
use crate::model::TeamError;
use crate::model_error::{ModelError, model_error};
use crate::program::{Assumptions, Candidate, Caps, Choice, Found, Moot, Placement, Placements, Predicted, Program, best};
use crate::undecided::{Undecided, widen};
use crate::validate::ValidationError;
use firsttouch_model::finding::Remedy;
use firsttouch_model::prediction::{Gain, Prediction};
use firsttouch_model::traffic::{Computing, Traffic};
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
    /// The best placements of the objects that a plan can place, and what each change gains by itself.
    pub decision: Decision,
    /// The gain of all chosen placements together.
    pub plan_gain: Gain,
    pub error: ModelError,
    pub caps: Caps,
    /// Whether the recorded speed does not tell what limits a thread: intervals cover both limits.
    pub has_doubtful_caps: bool,
    /// Why the placement may not matter at all: intervals reach to no effect.
    pub moot: Option<Moot>,
    pub write_share: f64,
    pub is_dynamic: bool,
    /// The number of threads that access memory at the same time.
    pub team: usize,
    /// Fraction of the traffic that flows while one thread works alone.
    pub serial: f64,
    /// The part of the run that no placement changes, if the predictions count it.
    pub computing: Option<Computing>,
    /// Fraction of the traffic whose node is unknown.
    pub unknown: f64,
    /// Names of objects whose users are assumed to have equal shares.
    pub evened: Vec<String>,
    /// The outcome of the search through all combinations, if it was requested.
    pub found: Option<Found>,
    /// Whether the best placement depends on a number that is assumed.
    pub undecided: Option<Undecided>,
}

impl Forecast {
    /// The prediction for the program as it is, compared with the best placement.
    #[must_use]
    pub fn prediction(&self) -> Option<Prediction> {
        let best = best(&self.placements).map_or("", |best| best.placement.name());
        self.placements.first().map(|now| Prediction { slowdown: now.slowdown, interval: now.interval, best: best.to_owned() })
    }

    /// Widens the intervals until they say that the placement may not matter.
    fn cover_no_effect(&mut self) {
        let reach = |own: &mut [f64; 2]| *own = [own[0].min(1.0), own[1].max(1.0)];
        for own in &mut self.placements {
            reach(&mut own.interval);
        }
        reach(&mut self.plan_gain.interval);
        let expected = |own: &mut Expected| own.interval.iter_mut().for_each(reach);
        for own in self.decision.findings.values_mut() {
            expected(&mut own.remedy);
            own.placed.iter_mut().for_each(expected);
        }
        self.decision.objects.values_mut().for_each(expected);
        expected(&mut self.decision.interleaved);
    }

    /// Widens the intervals to those of another forecast of the same program.
    fn cover(&mut self, other: &Self) {
        let hull = |own: &mut [f64; 2], other: [f64; 2]| *own = [own[0].min(other[0]), own[1].max(other[1])];
        for own in &mut self.placements {
            if let Some(other) = other.placements.iter().find(|other| other.placement == own.placement) {
                hull(&mut own.interval, other.interval);
                hull(&mut own.interval_of_samples, other.interval_of_samples);
            }
        }
        hull(&mut self.plan_gain.interval, other.plan_gain.interval);
        let cover = |own: &mut Expected, other: Option<&Expected>| match (&mut own.interval, other) {
            (Some(own), Some(other)) => hull(own, other.interval.unwrap_or([other.gain; 2])),
            // What is not placed where threads compute gains nothing there.
            (Some(own), None) => hull(own, [1.0; 2]),
            (None, _) => {}
        };
        for (id, own) in &mut self.decision.findings {
            let other = other.decision.findings.get(id);
            cover(&mut own.remedy, other.map(|other| &other.remedy));
            if let Some(placed) = &mut own.placed {
                cover(placed, other.and_then(|other| other.placed.as_ref()));
            }
        }
        for (id, own) in &mut self.decision.objects {
            cover(own, other.decision.objects.get(id));
        }
        cover(&mut self.decision.interleaved, Some(&other.decision.interleaved));
    }
}

/// A predicted gain. Its interval is known in a whole forecast only, because it costs much more than the gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Time as it is / time after the change.
    pub gain: f64,
    pub interval: Option<[f64; 2]>,
}

impl Expected {
    fn alone(gain: f64) -> Self {
        Self { gain, interval: None }
    }

    fn with_interval(gain: Gain) -> Self {
        Self { gain: gain.gain, interval: Some(gain.interval) }
    }
}

/// What the changes for one finding gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FindingGains {
    /// The remedy by itself.
    pub remedy: Expected,
    /// The remedy, where the chosen placements of all other findings are in place already.
    pub beside_others: f64,
    /// The chosen placements of its own objects by themselves; `None` if none was chosen.
    pub placed: Option<Expected>,
    /// Time as it is / time with its objects interleaved, and the rest as it is.
    pub interleaved: f64,
}

/// The placements that were chosen, and what each change gains by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub choice: Choice,
    /// Whether only the machine's nodes are known, so that its bandwidths are those of a median machine.
    pub is_assumed: bool,
    pub caps: Caps,
    /// By the (first) object of the finding.
    pub findings: BTreeMap<i64, FindingGains>,
    /// The chosen placement by itself, by object.
    pub objects: BTreeMap<i64, Expected>,
    /// All memory of the program interleaved, as `firsttouch run --interleave` does.
    pub interleaved: Expected,
}

impl Decision {
    fn new(
        program: &Program<'_>,
        candidates: &[Candidate],
        remedies: &[(Vec<i64>, Remedy)],
        is_assumed: bool,
        model_error: &dyn Fn() -> Result<f64, ForecastError>,
    ) -> Result<Self, ForecastError> {
        let groups: Vec<&[i64]> = remedies.iter().map(|(objects, _)| &objects[..]).collect();
        let mut choice = program.leave_what_is_spread_in_vain(program.choose(candidates)?, model_error)?;
        // What an assumed machine gains says little about a real one. What costs time there does not, because there is a better placement.
        if !is_assumed {
            choice = program.leave_what_gains_nothing(&groups, choice)?;
        }
        let unchanged = Placements::all(Placement::AsIs);
        let alone = |objects: &mut dyn Iterator<Item = (i64, Placement)>| -> Result<f64, TeamError> {
            Ok(program.outcome_of(&program.changed_in(&unchanged, objects))?.0.0)
        };
        let as_is = program.outcome_of(&unchanged)?.0.0;
        let chosen = |id: &i64| choice.placements.get(id).copied();
        let beside_chosen = program.trial(program.layout(&choice.placements))?;
        let mut findings = BTreeMap::new();
        for (objects, remedy) in remedies {
            let Some(first) = objects.first() else { continue };
            let own = |to: Placement| objects.iter().map(move |id| (*id, to));
            let others = beside_chosen.time_with(own(Placement::AsIs))?;
            let beside = beside_chosen.time_with(own(placement(*remedy)))?;
            let is_placed = objects.iter().any(|id| choice.placements.contains_key(id));
            let placed = || alone(&mut objects.iter().filter_map(|id| Some((*id, chosen(id)?))));
            let gains = FindingGains {
                remedy: Expected::alone(as_is / alone(&mut own(placement(*remedy)))?),
                beside_others: others / beside,
                placed: if is_placed { Some(Expected::alone(as_is / placed()?)) } else { None },
                interleaved: as_is / alone(&mut own(Placement::Interleave))?,
            };
            findings.insert(*first, gains);
        }
        let mut objects = BTreeMap::new();
        for (object, to) in &choice.placements {
            objects.insert(*object, Expected::alone(as_is / alone(&mut [(*object, *to)].into_iter())?));
        }
        let interleaved = Expected::alone(as_is / program.outcome_of(&Placements::all(Placement::Interleave))?.0.0);
        Ok(Self { choice, is_assumed, caps: program.caps(), findings, objects, interleaved })
    }

    /// The gain of the remedy for the finding on an object; `None` if no placement of memory removes the defect.
    #[must_use]
    pub fn remedy(&self, object: Option<i64>) -> Option<Expected> {
        self.findings.get(&object?).map(|gains| gains.remedy)
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
/// finding's remedy. A remedy comes with the ids of its objects. Where the recorded speed does not tell whether threads wait for memory or compute, the
/// intervals cover the predictions of both; where how much the program moves is not known, they reach to no effect.
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
    let mut first = forecast_with(traffic, machine, candidates, remedies, options)?;
    if first.has_doubtful_caps {
        let other = ForecastOptions { caps: Caps::Recorded, ..options };
        first.cover(&forecast_with(traffic, machine, candidates, remedies, other)?);
    }
    widen(&mut first, traffic, machine, remedies, options)?;
    if first.moot.is_some() {
        first.cover_no_effect();
    }
    Ok(first)
}

/// Predicts the cost of each placement, the best placement for each candidate (an object that a plan can place), and the gain of each
/// finding's remedy. A remedy comes with the ids of its objects.
///
/// # Errors
/// When there is nothing to predict from, or the model refuses the program.
fn forecast_with(
    traffic: &Traffic,
    machine: &ForecastMachine,
    candidates: &[Candidate],
    remedies: &[(Vec<i64>, Remedy)],
    options: ForecastOptions,
) -> Result<Forecast, ForecastError> {
    let ForecastOptions { write_share, caps, exhaustive } = options;
    let error = model_error(&machine.machine, &experiments::all()?)?;
    let assumptions = Assumptions { write_share, caps, model_error: error.standard_of_each() };
    let mut program =
        Program::new(&machine.machine, traffic, machine.memory_nodes.clone(), assumptions).map_err(ForecastError::NotPredictable)?;
    let mut decision = Decision::new(&program, candidates, remedies, machine.is_assumed, &|| Ok(error.standard()))?;
    let choice = &decision.choice;
    let mut compared = placements(&program);
    let mut found = None;
    if exhaustive {
        let best = program.search(&choice.placements, COMBINATIONS)?;
        program.follow_found(best.placements.clone());
        compared.push(Placement::Exhaustive);
        found = Some(best);
    }
    program.follow(choice.placements.clone());
    let mut asked = vec![program.everywhere(Placement::AsIs), program.everywhere(Placement::Plan)];
    asked.extend(compared.iter().map(|one| program.everywhere(*one)));
    let alone = |objects: &[i64], placement: Placement| program.layout(&objects.iter().map(|id| (*id, placement)).collect());
    asked.extend(remedies.iter().map(|(objects, remedy)| alone(objects, placement(*remedy))));
    asked.extend(remedies.iter().map(|(objects, _)| alone(objects, Placement::Plan)));
    asked.extend(choice.placements.iter().map(|(object, placement)| alone(&[*object], *placement)));
    let priced = program.price(&asked)?;
    let gain = |index: usize| program.gain_in(&priced, 0, index);
    let first_remedy = 2 + compared.len();
    let (first_placed, first_chosen) = (first_remedy + remedies.len(), first_remedy + 2 * remedies.len());
    for (index, (objects, _)) in remedies.iter().enumerate() {
        if let Some(gains) = objects.first().and_then(|first| decision.findings.get_mut(first)) {
            gains.remedy = Expected::with_interval(gain(first_remedy + index));
            gains.placed = gains.placed.map(|_| Expected::with_interval(gain(first_placed + index)));
        }
    }
    for (index, expected) in decision.objects.values_mut().enumerate() {
        *expected = Expected::with_interval(gain(first_chosen + index));
    }
    if let Some(index) = compared.iter().position(|one| *one == Placement::Interleave) {
        decision.interleaved = Expected::with_interval(gain(2 + index));
    }
    Ok(Forecast {
        placements: program.compare(&compared, &priced, &(2..first_remedy).collect::<Vec<_>>()),
        plan_gain: gain(1),
        error,
        caps: program.caps(),
        has_doubtful_caps: program.has_doubtful_caps(),
        moot: program.moot(),
        write_share,
        is_dynamic: program.is_dynamic(),
        team: program.team(),
        serial: program.serial(),
        computing: traffic.computing.filter(|_| program.counts_computing()),
        unknown: traffic.unknown,
        evened: traffic.objects.iter().filter(|object| !object.even.is_empty()).map(|object| object.name.clone()).collect(),
        is_assumed: machine.is_assumed,
        machine: machine.machine.clone(),
        found,
        decision,
        undecided: None,
    })
}

/// Chooses the best placement for each candidate as [`forecast`] does, without intervals, which cost much more.
///
/// # Errors
/// As [`forecast`].
pub fn choose(
    traffic: &Traffic,
    machine: &ForecastMachine,
    candidates: &[Candidate],
    remedies: &[(Vec<i64>, Remedy)],
    options: ForecastOptions,
) -> Result<Decision, ForecastError> {
    // The model's error widens intervals only.
    let assumptions = Assumptions { write_share: options.write_share, caps: options.caps, model_error: 0.0 };
    let program = Program::new(&machine.machine, traffic, machine.memory_nodes.clone(), assumptions);
    let error = || Ok(model_error(&machine.machine, &experiments::all()?)?.standard());
    Decision::new(&program.map_err(ForecastError::NotPredictable)?, candidates, remedies, machine.is_assumed, &error)
}

/// The placements that are compared; the program's own is the first.
fn placements(program: &Program<'_>) -> Vec<Placement> {
    let one = Placement::OneNode { node: program.main_node() };
    vec![Placement::AsIs, Placement::ParallelFirstTouch, Placement::Interleave, Placement::WeightedInterleave, one, Placement::Plan]
}

/// The placement that a finding's remedy gives to its object.
pub(crate) fn placement(remedy: Remedy) -> Placement {
    match remedy {
        Remedy::ParallelFirstTouch => Placement::ParallelFirstTouch,
        Remedy::Local => Placement::Local,
        Remedy::Interleave => Placement::Interleave,
    }
}
