//! The published tables and the model's machines, as cells of a reproduction.

use anyhow::Result;
use firsttouch_predict::experiments::{self, Experiment};
use firsttouch_predict::machine::{self, Machine};
use firsttouch_predict::runs::Predicted;
use firsttouch_report::{Column, ReproducedCell as Cell, Source};

/// A published experiment, and the machine that it ran on.
pub struct Published {
    pub experiment: Experiment,
    pub machine: Machine,
}

impl Published {
    /// # Errors
    /// A name of ours that is not there: tests run every experiment.
    pub fn find(experiment: &str, machine: &str) -> Result<Self> {
        Ok(Self { experiment: experiments::find(experiment)?, machine: machine::find(machine)? })
    }

    /// What it says of an experiment without figures.
    pub fn said(&self, experiment: crate::arguments::Experiment) -> Vec<String> {
        self.experiment.said.get(&super::name(experiment)).cloned().unwrap_or_default()
    }

    /// Where it was published, and of which machine.
    pub fn source(&self) -> String {
        format!("{}, on {}", self.experiment.source, self.machine.title)
    }
}

/// A range that nobody would see is none.
const NARROW: f64 = 0.001;

pub fn predicted(predicted: Predicted) -> Cell {
    let Predicted { value, range } = predicted;
    Cell::Model { value, range: range.filter(|[low, high]| high - low > NARROW * value) }
}

pub fn column(source: Source, name: impl Into<String>) -> Column {
    Column { source, name: name.into() }
}
