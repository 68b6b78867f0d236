//! Published measurements (`experiments/*.toml`): what was run, on which machine of the catalogue, and the results.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

pub const SCHEMA: &str = "firsttouch.experiment/1";

/// A published table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    pub schema: String,
    pub name: String,
    pub title: String,
    pub source: String,
    /// The parts of the source that are not predicted, with reasons.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    #[serde(default)]
    pub dgemv: Vec<Dgemv>,
    #[serde(default)]
    pub iso3dfd: Vec<Iso3dfd>,
    #[serde(default)]
    pub saturation: Vec<Saturation>,
    #[serde(default)]
    pub pairs: Vec<Pairs>,
    #[serde(default)]
    pub all_local: Vec<AllLocal>,
    #[serde(default)]
    pub ratio: Vec<Ratio>,
    /// Descriptions of machines that only this table needs, by name: of most, nothing is published but these rows.
    #[serde(default)]
    pub machines: BTreeMap<String, OwnMachine>,
    #[serde(default)]
    pub speedups: Vec<Speedups>,
    #[serde(default)]
    pub migrations: Vec<Migration>,
    /// Statements and figures of the source that are not tables, by the experiment's name in `reproduce`.
    #[serde(default)]
    pub said: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub rows: String,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// One thread touches all memory first.
    Serial,
    /// Each thread first touches what it uses.
    Parallel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    Seconds,
    /// Local accesses / all accesses.
    LocalShare,
}

/// c = A b with m x m doubles in blocks of rows; threads are not pinned. Seconds, or local share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dgemv {
    pub machine: String,
    /// Distinguishes rows of the same run.
    #[serde(default)]
    pub note: Option<String>,
    pub init: Init,
    pub m: u32,
    pub threads: usize,
    pub quantity: Quantity,
    pub published: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sockets {
    /// One process on one socket, with the socket's memory.
    One,
    /// A process on each socket, at the same time.
    Each,
    /// One process on all sockets.
    All,
}

/// The stencil's throughput in million points per second; threads are pinned in order, one per core.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Iso3dfd {
    pub machine: String,
    pub name: String,
    pub sockets: Sockets,
    pub init: Init,
    pub dynamic: bool,
    pub points: f64,
    pub published_mpoints_per_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    Load,
    Copy,
    Update,
    Daxpy,
    /// a = b + c * d, four arrays.
    Triad,
    /// STREAM's a = b + s * c, three arrays.
    Stream,
}

/// Bandwidth in GB/s by number of cores, from 1 on, filled in order; each thread uses memory of its own node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saturation {
    pub machine: String,
    pub kernel: Kernel,
    pub gb_per_s: Vec<f64>,
}

/// Bandwidth of all pairs: rows are the node of the memory, columns the node whose cores run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pairs {
    pub machine: String,
    pub kernel: Kernel,
    pub threads: usize,
    pub gb_per_s: Vec<Vec<f64>>,
}

/// Bandwidth of all cores of the machine, each on its own node's memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllLocal {
    pub machine: String,
    pub kernel: Kernel,
    pub gb_per_s: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnMachine {
    /// As the files in `machines/`.
    pub description: String,
}

/// Whether a row may be looked at when the model is made, or only judges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    Fit,
    Validate,
}

/// How many times as long a loop takes with its memory elsewhere as with the memory of each thread on the thread's own node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    pub machine: String,
    pub name: String,
    #[serde(rename = "use")]
    pub purpose: Use,
    pub kernel: Kernel,
    /// The number of threads by node, one a core.
    pub threads: Vec<usize>,
    /// All memory is on this node...
    #[serde(default)]
    pub node: Option<usize>,
    /// ... or interleaved over these.
    #[serde(default)]
    pub interleave: Option<Vec<usize>>,
    /// What one thread reports alone, where it computes rather than waits: a limit in GB/s as the kernel counts.
    #[serde(default)]
    pub thread_gb_per_s: Option<f64>,
    /// With memory on each thread's own node, and elsewhere.
    pub measured: [f64; 2],
    pub unit: Unit,
}

/// The unit of a ratio's two figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Unit {
    #[serde(rename = "GB/s")]
    Bandwidth,
    #[serde(rename = "s")]
    Seconds,
}

impl Ratio {
    /// Time with the memory elsewhere / time with own memory.
    #[must_use]
    pub fn published(&self) -> f64 {
        let [own, elsewhere] = self.measured;
        match self.unit {
            Unit::Bandwidth => own / elsewhere,
            Unit::Seconds => elsewhere / own,
        }
    }
}

/// T(1) / T(p) of dgemv, as published.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speedups {
    pub init: Init,
    pub m: u32,
    pub threads: Vec<usize>,
    pub published: Vec<f64>,
}

/// What the kernel's balancing migrated while dgemv repeated its product on a serially initialised matrix.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migration {
    pub m: u32,
    pub threads: usize,
    pub repetitions: u32,
    pub pages: u64,
    pub seconds: f64,
}

/// An experiment that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExperimentError {
    Toml(String),
    /// The schema is not that of experiments.
    Schema(String),
    /// A run of speed-ups lacks a figure for some number of threads.
    Speedups {
        m: u32,
    },
    /// A ratio says neither one node nor several to interleave over, or both.
    Placement {
        row: String,
    },
    Unknown(String),
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use the experiment: ")?;
        match self {
            Self::Toml(message) => f.write_str(message),
            Self::Schema(found) => write!(f, "expected the schema '{SCHEMA}', found '{found}'"),
            Self::Speedups { m } => write!(f, "speedups of m = {m}: as many figures as numbers of threads are needed"),
            Self::Placement { row } => write!(f, "ratio {row}: give either a node or nodes to interleave over"),
            Self::Unknown(name) => write!(f, "there is no '{name}'"),
        }
    }
}

impl std::error::Error for ExperimentError {}

impl Experiment {
    /// # Errors
    /// When the file is invalid: names the line and the problem.
    pub fn parse(text: &str) -> Result<Self, ExperimentError> {
        let experiment: Self = toml::from_str(text).map_err(|error| ExperimentError::Toml(error.to_string()))?;
        if experiment.schema != SCHEMA {
            return Err(ExperimentError::Schema(experiment.schema));
        }
        if let Some(odd) = experiment.speedups.iter().find(|speedups| speedups.threads.len() != speedups.published.len()) {
            return Err(ExperimentError::Speedups { m: odd.m });
        }
        if let Some(odd) = experiment.ratio.iter().find(|row| row.node.is_some() == row.interleave.is_some()) {
            return Err(ExperimentError::Placement { row: odd.name.clone() });
        }
        Ok(experiment)
    }

    /// The rows measured on one machine.
    #[must_use]
    pub fn on(&self, machine: &str) -> Self {
        fn of<T: Clone>(rows: &[T], keep: impl Fn(&T) -> bool) -> Vec<T> {
            rows.iter().filter(|row| keep(row)).cloned().collect()
        }
        Self {
            schema: self.schema.clone(),
            name: self.name.clone(),
            title: self.title.clone(),
            source: self.source.clone(),
            left_out: Vec::new(),
            dgemv: of(&self.dgemv, |row| row.machine == machine),
            iso3dfd: of(&self.iso3dfd, |row| row.machine == machine),
            saturation: of(&self.saturation, |row| row.machine == machine),
            pairs: of(&self.pairs, |row| row.machine == machine),
            all_local: of(&self.all_local, |row| row.machine == machine),
            ratio: of(&self.ratio, |row| row.machine == machine),
            machines: self.machines.clone(),
            // These are not predicted row by row.
            speedups: Vec::new(),
            migrations: Vec::new(),
            said: BTreeMap::new(),
        }
    }
}

impl Init {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Parallel => "parallel",
        }
    }
}

impl Kernel {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Copy => "copy",
            Self::Update => "update",
            Self::Daxpy => "daxpy",
            Self::Triad => "triad",
            Self::Stream => "stream triad",
        }
    }

    /// The numbers of arrays read, of arrays written, and of arrays written that were not read.
    #[must_use]
    pub fn streams(self) -> (f64, f64, f64) {
        match self {
            Self::Load => (1.0, 0.0, 0.0),
            Self::Copy => (1.0, 1.0, 1.0),
            Self::Update => (1.0, 1.0, 0.0),
            Self::Daxpy => (2.0, 1.0, 0.0),
            Self::Triad => (3.0, 1.0, 1.0),
            Self::Stream => (2.0, 1.0, 1.0),
        }
    }
}

/// One of the published tables that come with firsttouch.
///
/// # Errors
/// When the name is unknown. Internal error: an embedded table is invalid.
pub fn find(name: &str) -> Result<Experiment, ExperimentError> {
    let found = all()?.into_iter().find(|experiment| experiment.name == name);
    found.ok_or_else(|| ExperimentError::Unknown(name.to_owned()))
}

/// The published tables that come with firsttouch.
///
/// # Errors
/// Internal error: an embedded table is invalid. A test reads them all.
pub fn all() -> Result<Vec<Experiment>, ExperimentError> {
    [
        include_str!("../experiments/dgemv-e5620.toml"),
        include_str!("../experiments/balancing-e5-2620v4.toml"),
        include_str!("../experiments/iso3dfd-e5-2699v4.toml"),
        include_str!("../experiments/map-epyc-7451.toml"),
        include_str!("../experiments/mlc-vsc.toml"),
        include_str!("../experiments/saturation-kerncraft.toml"),
        include_str!("../experiments/ratios-2026.toml"),
        include_str!("../experiments/ratios-2026-b.toml"),
        include_str!("../experiments/perfctr-ivybridge.toml"),
        include_str!("../experiments/triad-domains.toml"),
        include_str!("../experiments/dmvm-variability.toml"),
    ]
    .into_iter()
    .map(Experiment::parse)
    .collect()
}
