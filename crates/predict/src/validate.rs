//! Compares the model with published measurements: the prediction and its error for every row.

use crate::experiments::{Experiment, Quantity, Use};
use crate::machine::{self, MachineError, MachineModel};
use crate::model::TeamError;
use crate::ratios;
use crate::runs::{self, Memory, Predicted};
use crate::seats;
use firsttouch_model::counted;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The documentation discusses rows with a larger relative error.
pub const FAR: f64 = 0.15;

/// One published figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidationRow {
    pub experiment: String,
    pub machine: String,
    pub row: String,
    pub unit: &'static str,
    pub published: f64,
    pub predicted: f64,
    /// The range that contains 95 % of the possible placements, for threads that were not pinned; of a ratio, the range that its machine's
    /// assumed numbers leave.
    pub range: Option<[f64; 2]>,
    /// Of a ratio: the 95 % interval as `predict` has it, from that range and the errors of ratios on other machines.
    pub interval: Option<[f64; 2]>,
    /// Of a ratio: whether it only judges the model.
    #[serde(rename = "use")]
    pub purpose: Option<Use>,
    /// A ratio whose threads run on several nodes. Threads of one node, with their memory elsewhere, err otherwise.
    #[serde(skip)]
    pub is_spread: bool,
    /// predicted / published - 1
    pub error: f64,
    /// Whether numbers of the machine were fitted to this row.
    pub fitted: bool,
}

/// Absolute errors of rows to which no number was fitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The name of an experiment, or `all`.
    pub of: String,
    pub rows: usize,
    pub fitted: usize,
    pub predicted: usize,
    pub median: Option<f64>,
    pub percentile_90: Option<f64>,
    pub worst: Option<f64>,
    /// The number of rows with an error above 15 %.
    pub far: usize,
    /// The number of rows whose interval contains the published figure; `None` without intervals.
    pub covered: Option<usize>,
    /// Of ratios whose placements differ by more than 10 %: how many there are, and in how many of them the predicted better placement is the published
    /// one. `None` without ratios.
    pub better: Option<Better>,
}

/// Ratios whose placements differ by more than 10 %, and those of them with the published order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Better {
    pub rows: usize,
    pub as_published: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    pub experiment: String,
    pub rows: String,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validation {
    pub schema: &'static str,
    pub rows: Vec<ValidationRow>,
    /// The summary of all experiments, then of each one. Ratios of placements are not part of the first.
    pub summary: Vec<Summary>,
    /// Ratios of placements: all, and those that only judge the model.
    pub ratios: Vec<Summary>,
    pub left_out: Vec<LeftOut>,
}

/// Why the model cannot be compared with published measurements.
#[derive(Clone, Debug, PartialEq)]
pub enum ValidationError {
    /// The experiment's row, or its machine if there is no row.
    Row {
        experiment: String,
        fault: RowFault,
    },
    NothingPredicted,
}

/// Why a row cannot be predicted.
#[derive(Clone, Debug, PartialEq)]
pub enum RowFault {
    Machine(MachineError),
    Team {
        row: String,
        error: TeamError,
    },
    /// A figure from which no error can be computed.
    Figures {
        row: String,
        published: f64,
        predicted: f64,
    },
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(error) => error.fmt(f),
            Self::Team { row, error } => write!(f, "{row}: {error}"),
            Self::Figures { row, published, predicted } => write!(f, "{row}: published {published}, predicted {predicted}"),
        }
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot compare the model with what is published: ")?;
        match self {
            Self::Row { experiment, fault } => write!(f, "{experiment}: {fault}"),
            Self::NothingPredicted => write!(f, "no row is predicted"),
        }
    }
}

impl std::error::Error for ValidationError {}

/// Predicts every row of the experiments on machines of the catalogue.
///
/// # Errors
/// When an experiment names a machine that the catalogue lacks, or a run that its machine cannot do.
pub fn validate(experiments: &[Experiment]) -> Result<Validation, ValidationError> {
    validate_on(experiments, &machine::find)
}

/// As [`validate`], with other machines.
///
/// # Errors
/// As [`validate`].
pub fn validate_on(
    experiments: &[Experiment],
    find: &dyn Fn(&str) -> Result<MachineModel, MachineError>,
) -> Result<Validation, ValidationError> {
    let mut comparison = Comparison { find, machines: BTreeMap::new(), rows: Vec::new() };
    for experiment in experiments {
        comparison.experiment(experiment).map_err(|fault| ValidationError::Row { experiment: experiment.name.clone(), fault })?;
    }
    let mut rows = comparison.rows;
    ratios::add_intervals(&mut rows);
    let names =
        experiments.iter().map(|experiment| experiment.name.as_str()).filter(|name| rows.iter().any(|row| row.experiment == **name));
    let summary: Vec<Summary> = std::iter::once(summarise("all", rows.iter().filter(|row| row.purpose.is_none())))
        .chain(names.map(|name| summarise(name, rows.iter().filter(|row| row.experiment == name))))
        .collect();
    let left_out = experiments.iter().flat_map(|experiment| {
        let of = |left: &crate::experiments::LeftOut| LeftOut {
            experiment: experiment.name.clone(),
            rows: left.rows.clone(),
            why: left.why.clone(),
        };
        experiment.left_out.iter().map(of)
    });
    let of = |name: &str, purpose: &[Use]| summarise(name, rows.iter().filter(|row| row.purpose.is_some_and(|own| purpose.contains(&own))));
    let ratios = vec![of("all ratios", &[Use::Fit, Use::Validate]), of("ratios to validate", &[Use::Validate])];
    Ok(Validation { schema: "firsttouch.validate/1", summary, ratios, left_out: left_out.collect(), rows })
}

struct Comparison<'a> {
    find: &'a dyn Fn(&str) -> Result<MachineModel, MachineError>,
    machines: BTreeMap<String, MachineModel>,
    rows: Vec<ValidationRow>,
}

impl Comparison<'_> {
    fn experiment(&mut self, experiment: &Experiment) -> Result<(), RowFault> {
        for run in &experiment.dgemv {
            let note = run.note.as_ref().map_or_else(String::new, |note| format!(", {note}"));
            let name = format!("{} m={} threads={}{note}", run.init.name(), run.m, run.threads);
            let unit = match run.quantity {
                Quantity::Seconds => "s",
                Quantity::LocalShare => "local share",
            };
            self.add(experiment, (&run.machine, name), unit, run.published, |machine| runs::dgemv(machine, run))?;
        }
        for run in &experiment.iso3dfd {
            let published = run.published_mpoints_per_s;
            self.add(experiment, (&run.machine, run.name.clone()), "MPoints/s", published, |machine| runs::iso3dfd(machine, run))?;
        }
        for curve in &experiment.saturation {
            for (index, published) in curve.gb_per_s.iter().enumerate() {
                let name = format!("{} {} {}", curve.machine, curve.kernel.name(), counted(index + 1, "core"));
                self.add(experiment, (&curve.machine, name), "GB/s", *published, |machine| {
                    runs::bandwidth(machine, curve.kernel, &seats::compact(machine, index + 1), Memory::Own)
                })?;
            }
        }
        for pairs in &experiment.pairs {
            for (memory, row) in pairs.gb_per_s.iter().enumerate() {
                for (cpu, published) in row.iter().enumerate() {
                    let name = format!("{} {} memory {memory} cores {cpu}", pairs.machine, pairs.kernel.name());
                    self.add(experiment, (&pairs.machine, name), "GB/s", *published, |machine| {
                        runs::bandwidth(machine, pairs.kernel, &seats::on_node(machine, cpu, pairs.threads), Memory::Node(memory))
                    })?;
                }
            }
        }
        for run in &experiment.ratio {
            self.add(experiment, (&run.machine, format!("{} {}", run.machine, run.name)), "times as long", run.published(), |machine| {
                ratios::predict(machine, run)
            })?;
            if let Some(row) = self.rows.last_mut() {
                row.purpose = Some(run.purpose);
                row.is_spread = run.threads.iter().filter(|threads| **threads > 0).count() > 1;
            }
        }
        for all in &experiment.all_local {
            let name = format!("{} {} all nodes, local", all.machine, all.kernel.name());
            self.add(experiment, (&all.machine, name), "GB/s", all.gb_per_s, |machine| {
                runs::bandwidth(machine, all.kernel, &seats::compact(machine, machine.cores()), Memory::Own)
            })?;
        }
        Ok(())
    }

    /// Adds a row of a machine.
    fn add(
        &mut self,
        experiment: &Experiment,
        (machine, row): (&str, String),
        unit: &'static str,
        published: f64,
        run: impl FnOnce(&MachineModel) -> Result<Predicted, TeamError>,
    ) -> Result<(), RowFault> {
        if !self.machines.contains_key(machine) {
            let own = experiment.machines.get(machine).map(|own| MachineModel::parse(&own.description));
            self.machines.insert(machine.to_owned(), own.unwrap_or_else(|| (self.find)(machine)).map_err(RowFault::Machine)?);
        }
        let Some(described) = self.machines.get(machine) else { return Ok(()) };
        let Predicted { value, range } = run(described).map_err(|error| RowFault::Team { row: row.clone(), error })?;
        if !(published > 0.0 && value.is_finite()) {
            return Err(RowFault::Figures { row, published, predicted: value });
        }
        let fitted = described.is_fitted_to(&experiment.name, &row);
        self.rows.push(ValidationRow {
            experiment: experiment.name.clone(),
            machine: machine.to_owned(),
            row,
            unit,
            published,
            predicted: value,
            range,
            interval: None,
            purpose: None,
            is_spread: false,
            error: value / published - 1.0,
            fitted,
        });
        Ok(())
    }
}

fn summarise<'a>(of: &str, rows: impl Iterator<Item = &'a ValidationRow>) -> Summary {
    let (fitted, predicted): (Vec<&ValidationRow>, Vec<&ValidationRow>) = rows.partition(|row| row.fitted);
    let mut errors: Vec<f64> = predicted.iter().map(|row| row.error.abs()).collect();
    errors.sort_by(f64::total_cmp);
    // Nearest rank.
    let rank = |part: f64| errors.get(((part * errors.len() as f64).ceil() as usize).saturating_sub(1)).copied();
    Summary {
        of: of.to_owned(),
        rows: fitted.len() + predicted.len(),
        fitted: fitted.len(),
        predicted: predicted.len(),
        median: rank(0.5),
        percentile_90: rank(0.9),
        worst: errors.last().copied(),
        covered: covered(&predicted, |row| row.interval),
        better: better(&predicted),
        far: errors.iter().filter(|error| **error > FAR).count(),
    }
}

/// A ratio says which of two placements is better if they differ by more than this.
const DIFFERS: f64 = 0.1;

fn better(rows: &[&ValidationRow]) -> Option<Better> {
    let ratios = || rows.iter().filter(|row| row.purpose.is_some());
    let differing = || ratios().filter(|row| row.published > 1.0 + DIFFERS || row.published < 1.0 / (1.0 + DIFFERS));
    let as_published = differing().filter(|row| (row.predicted > 1.0) == (row.published > 1.0)).count();
    ratios().next().map(|_| Better { rows: differing().count(), as_published })
}

/// The number of rows with an interval that contains the published figure; `None` if no row has an interval.
fn covered(rows: &[&ValidationRow], interval: impl Fn(&ValidationRow) -> Option<[f64; 2]>) -> Option<usize> {
    let contains = |row: &&ValidationRow| interval(row).map(|[low, high]| low <= row.published && row.published <= high);
    let known: Vec<bool> = rows.iter().filter_map(contains).collect();
    (!known.is_empty()).then(|| known.into_iter().filter(|contains| *contains).count())
}
