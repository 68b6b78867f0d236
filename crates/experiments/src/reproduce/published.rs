//! The published tables and the model's machines, as cells of a reproduction.

use super::{ExperimentName, ResultCell, ResultColumn, Source};
use crate::Result;
use crate::error::{Context, ErrorKind};
use firsttouch_predict::experiments::{self, Experiment};
use firsttouch_predict::machine::{self, MachineModel};
use firsttouch_predict::runs::Predicted;

/// A published experiment and the machine that it ran on.
pub struct Published {
    pub experiment: Experiment,
    pub machine: MachineModel,
}

impl Published {
    /// # Errors
    /// When the embedded tables or machines lack the name.
    pub fn find(experiment: &str, machine: &str) -> Result<Self> {
        let experiment = experiments::find(experiment).of_kind(ErrorKind::Internal)?;
        Ok(Self { experiment, machine: machine::find(machine).of_kind(ErrorKind::Internal)? })
    }

    /// What the source says about an experiment without giving figures.
    pub fn said(&self, experiment: ExperimentName) -> Vec<String> {
        self.experiment.said.get(experiment.as_str()).cloned().unwrap_or_default()
    }

    /// The publication and the machine.
    pub fn source(&self) -> String {
        format!("{}, on {}", self.experiment.source, self.machine.title)
    }
}

/// Ranges narrower than this fraction of the value are not shown.
const NARROW: f64 = 0.001;

/// A prediction as a cell.
///
/// # Errors
/// When the machine cannot have the team.
pub fn predicted(answer: std::result::Result<Predicted, firsttouch_predict::model::TeamError>) -> Result<ResultCell> {
    let Predicted { value, range } = answer.of_kind(ErrorKind::Internal)?;
    Ok(ResultCell::Model { value, range: range.filter(|[low, high]| high - low > NARROW * value) })
}

pub fn column(source: Source, name: impl Into<String>) -> ResultColumn {
    ResultColumn { source, name: name.into() }
}
