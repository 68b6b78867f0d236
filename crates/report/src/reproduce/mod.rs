//! What `firsttouch reproduce` shows: what was published, what the model says of it, and what was measured here.

mod bars;
mod columns;
mod effect;
mod figure;
mod lines;
mod text;

pub use effect::{Claim, Effect, Verdict};
pub use figure::reproduction_figure;
pub use text::reproduction_text;

use crate::bench::Figure;
use serde::Serialize;

/// Schema `firsttouch.reproduce/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduction {
    pub schema: &'static str,
    /// The name it is asked for by.
    pub experiment: String,
    pub title: String,
    /// The documents it was published in.
    pub sources: Vec<String>,
    pub here: Here,
    /// How it was run here, a sentence each.
    pub settings: Vec<String>,
    pub tables: Vec<Table>,
    /// Of one claim each, the main one first.
    pub effects: Vec<Effect>,
    /// What the source says or draws without figures.
    pub said: Vec<String>,
    /// What could not be done here, and other doubts.
    pub notes: Vec<String>,
}

/// The machine that measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Here {
    pub machine: String,
    pub cpus: usize,
    pub nodes: usize,
}

/// Figures of one quantity, row by row, from several sources side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    pub title: String,
    pub unit: String,
    /// What the labels of a row are.
    pub heads: Vec<String>,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    #[serde(skip)]
    pub drawing: Drawing,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    pub source: Source,
    /// Tells columns of a source apart: a size, a machine, a node. May be empty.
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Published,
    Model,
    Measured,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub labels: Vec<String>,
    /// One a column; none where a source has none.
    pub cells: Vec<Option<Cell>>,
}

/// A figure, with what its source gives to judge it by.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    Measured {
        #[serde(flatten)]
        figure: Figure,
        /// Each run, in order.
        runs: Vec<f64>,
    },
    Model {
        value: f64,
        /// Where 95 % of the possible placements lie, for threads that are not pinned.
        range: Option<[f64; 2]>,
    },
    Published {
        value: f64,
    },
}

/// How a table is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drawing {
    /// Not at all.
    #[default]
    None,
    /// Against the last label, a line for each other combination of labels.
    Lines,
    /// The same, with one scale for all columns.
    LinesOfOneScale,
    /// A bar a row.
    Bars,
    /// Rows against columns.
    Heat,
}

impl Source {
    /// At the head of its columns.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Model => "model",
            Self::Measured => "measured here",
        }
    }
}

impl Cell {
    /// None of no runs.
    #[must_use]
    pub fn measured(runs: &[f64]) -> Option<Self> {
        Some(Self::Measured { figure: Figure::of(runs)?, runs: runs.to_vec() })
    }

    #[must_use]
    pub fn published(value: f64) -> Self {
        Self::Published { value }
    }

    /// The value; of runs the median.
    #[must_use]
    pub fn value(&self) -> f64 {
        match self {
            Self::Measured { figure, .. } => figure.median,
            Self::Model { value, .. } | Self::Published { value } => *value,
        }
    }

    /// Least and most, where there are several.
    #[must_use]
    pub fn range(&self) -> Option<[f64; 2]> {
        match self {
            Self::Measured { figure, runs } => (runs.len() > 1).then_some([figure.min, figure.max]),
            Self::Model { range, .. } => *range,
            Self::Published { .. } => None,
        }
    }

    /// The highest value that is shown.
    fn top(&self) -> f64 {
        self.range().map_or(self.value(), |[_, high]| high.max(self.value()))
    }
}

impl Table {
    /// The cells of a column, by row.
    fn column(&self, column: usize) -> impl Iterator<Item = Option<&Cell>> {
        self.rows.iter().map(move |row| row.cells.get(column).and_then(Option::as_ref))
    }

    /// Columns that have a figure.
    fn columns_with_figures(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|column| self.column(*column).any(|cell| cell.is_some())).collect()
    }

    /// The source of all columns, where these have names of their own.
    fn only_source(&self) -> Option<Source> {
        let first = self.columns.first()?.source;
        self.columns.iter().all(|column| column.source == first && !column.name.is_empty()).then_some(first)
    }
}

/// A value with three digits that count, of a magnitude.
fn digits(value: f64, magnitude: f64) -> String {
    let decimals = (2 - magnitude.abs().max(1e-9).log10().floor() as i32).clamp(0, 6);
    format!("{value:.*}", decimals as usize)
}
