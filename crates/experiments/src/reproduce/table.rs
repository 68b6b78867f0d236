//! Results: figures of one quantity from several sources side by side.

use crate::Statistics;
use crate::reproduce::Effect;
use serde::Serialize;

/// Schema `firsttouch.reproduce/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduction {
    pub schema: &'static str,
    /// The experiment's name on the command line.
    pub experiment: String,
    pub title: String,
    /// The documents it was published in.
    pub sources: Vec<String>,
    #[serde(rename = "here")]
    pub measured_on: MeasuredOn,
    /// How it was run here, one sentence each.
    pub settings: Vec<String>,
    pub tables: Vec<ResultTable>,
    /// One claim each, the main one first.
    pub effects: Vec<Effect>,
    /// What the source says or draws without figures.
    pub said: Vec<String>,
    /// What could not be done here, and other doubts.
    pub notes: Vec<String>,
}

/// The machine that measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredOn {
    pub machine: String,
    pub cpus: usize,
    pub nodes: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultTable {
    pub title: String,
    pub unit: String,
    /// The meanings of a row's labels.
    pub heads: Vec<String>,
    pub columns: Vec<ResultColumn>,
    pub rows: Vec<ResultRow>,
    #[serde(skip)]
    pub drawing: Drawing,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultColumn {
    pub source: Source,
    /// Distinguishes the columns of one source: a size, a machine or a node. May be empty.
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
pub struct ResultRow {
    pub labels: Vec<String>,
    /// One cell per column; `None` if a source has no figure.
    pub cells: Vec<Option<ResultCell>>,
}

/// A figure, with the information its source gives about its reliability.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ResultCell {
    Measured {
        #[serde(flatten)]
        statistics: Statistics,
        /// Each run, in order.
        runs: Vec<f64>,
    },
    Model {
        value: f64,
        /// The range of 95 % of the possible placements, for threads that are not pinned.
        range: Option<[f64; 2]>,
    },
    Published {
        value: f64,
    },
}

/// How a table is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drawing {
    /// The table is not drawn.
    #[default]
    None,
    /// Curves over the last label, with a line for each combination of the other labels.
    Lines,
    /// The same, with the same scale for all columns.
    LinesOfOneScale,
    /// One bar per row.
    Bars,
    /// A heat map: rows against columns.
    Heat,
}

impl ResultCell {
    /// `None` without runs.
    #[must_use]
    pub fn measured(runs: &[f64]) -> Option<Self> {
        Some(Self::Measured { statistics: Statistics::of(runs)?, runs: runs.to_vec() })
    }

    #[must_use]
    pub fn published(value: f64) -> Self {
        Self::Published { value }
    }

    /// The value; the median of runs.
    #[must_use]
    pub fn value(&self) -> f64 {
        match self {
            Self::Measured { statistics, .. } => statistics.median,
            Self::Model { value, .. } | Self::Published { value } => *value,
        }
    }

    /// The least and the largest value, if there are several.
    #[must_use]
    pub fn range(&self) -> Option<[f64; 2]> {
        match self {
            Self::Measured { statistics, runs } => (runs.len() > 1).then_some([statistics.min, statistics.max]),
            Self::Model { range, .. } => *range,
            Self::Published { .. } => None,
        }
    }

    /// The largest value shown, including ranges.
    #[must_use]
    pub fn top(&self) -> f64 {
        self.range().map_or(self.value(), |[_, high]| high.max(self.value()))
    }
}

impl ResultTable {
    /// A table without columns and rows.
    pub(super) fn new(title: impl Into<String>, unit: &str, heads: &[&str], drawing: Drawing) -> Self {
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        Self { title: title.into(), unit: unit.to_owned(), heads, columns: Vec::new(), rows: Vec::new(), drawing }
    }

    /// The cells of a column, by row.
    pub fn column(&self, column: usize) -> impl Iterator<Item = Option<&ResultCell>> {
        self.rows.iter().map(move |row| row.cells.get(column).and_then(Option::as_ref))
    }

    /// Columns that have a figure.
    #[must_use]
    pub fn columns_with_figures(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|column| self.column(*column).any(|cell| cell.is_some())).collect()
    }

    /// The source of all columns, if they share one and have names.
    #[must_use]
    pub fn only_source(&self) -> Option<Source> {
        let first = self.columns.first()?.source;
        self.columns.iter().all(|column| column.source == first && !column.name.is_empty()).then_some(first)
    }
}
