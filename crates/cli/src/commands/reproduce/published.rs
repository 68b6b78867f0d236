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

    /// Where it was published, and of which machine.
    pub fn source(&self) -> String {
        format!("{}, on {}", self.experiment.source, self.machine.title)
    }
}

pub fn predicted(predicted: Predicted) -> Cell {
    Cell::Model { value: predicted.value, range: predicted.range }
}

pub fn column(source: Source, name: impl Into<String>) -> Column {
    Column { source, name: name.into() }
}
