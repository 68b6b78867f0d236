//! A machine as the model needs it: nodes with controllers, cores, links and routes. Made from a description by [`MachineModel::parse`].

mod assumed;
mod build;
mod catalogue;
pub mod curve;
mod file;
pub mod import;
mod interconnect;
pub mod links;
mod peak;
mod routes;
mod streams;
mod writes;

pub use assumed::assumed;
pub use catalogue::{find, names};
pub use streams::Streams;

use crate::units::{Bandwidth, Volume};
use curve::Curve;
use firsttouch_model::shown::{make_one_line, one_line};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// A machine that the model can compute with: every number is finite and positive, and every node reaches every other.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineModel {
    pub name: String,
    pub title: String,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    /// The links from memory node m to the cores of node c, at m * nodes + c.
    routes: Vec<Vec<usize>>,
    /// Numbers that are known to a range only.
    pub uncertain: Vec<Uncertain>,
    /// Latency of an idle load in ns; rows are the node of the cores.
    pub latencies: Option<Vec<Vec<f64>>>,
    /// Whether a store first reads its cache line.
    pub write_allocate: bool,
    /// The published rows that its numbers come from, as `EXPERIMENT: ROW`; `*` at the end stands for all rows with this beginning.
    pub fitted: Vec<String>,
    /// Every number of the description with its source.
    pub facts: Vec<Fact>,
    /// The explanations of the short names of sources.
    pub sources: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub package: usize,
    pub cores: usize,
    /// Hardware threads per core.
    pub smt: usize,
    pub memory: Option<Volume>,
    /// The memory that was free during the published measurement.
    pub free: Option<Volume>,
    /// One curve per measured mix, sorted by the fraction of writes; at least one.
    pub curves: Vec<Curve>,
    /// The most that one core draws from other nodes.
    pub core_remote: Bandwidth,
    /// The most that one core draws from other nodes of its package.
    pub core_in_package: Bandwidth,
}

/// A number that is known to a range only.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertain {
    /// What it is, in words.
    pub what: String,
    pub number: UncertainNumber,
    /// The ends of the range, as factors of the number.
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UncertainNumber {
    /// The capacity of these links.
    Links(Vec<usize>),
    /// What controllers deliver of writes, where only reads were measured.
    Writes,
}

/// One direction of a connection: data flows `from` one node `to` another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    pub from: usize,
    pub to: usize,
    pub capacity: Bandwidth,
}

/// A number of a description, and its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    pub what: String,
    pub value: String,
    pub source: String,
}

/// Why a description was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineError {
    /// The key, such as `controller.curves[1].points`, or a line of the file.
    pub place: String,
    pub reason: String,
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use the machine description: {}: {}", one_line(&self.place), one_line(&self.reason))
    }
}

impl std::error::Error for MachineError {}

impl MachineModel {
    /// Reads a description (docs/model.md has its format).
    ///
    /// # Errors
    /// When the description is invalid: names the place and the problem.
    pub fn parse(text: &str) -> Result<Self, MachineError> {
        let mut machine = build::build(&file::parse(text)?)?;
        machine.make_names_safe();
        Ok(machine)
    }

    /// Replaces what could control a terminal, or begin a line, in every text: a description may come from anywhere.
    pub fn make_names_safe(&mut self) {
        [&mut self.name, &mut self.title].into_iter().chain(&mut self.fitted).for_each(make_one_line);
        self.facts.iter_mut().flat_map(|fact| [&mut fact.what, &mut fact.value, &mut fact.source]).for_each(make_one_line);
        let sources = std::mem::take(&mut self.sources).into_iter();
        self.sources = sources.map(|(name, why)| (one_line(&name).into_owned(), one_line(&why).into_owned())).collect();
    }

    /// The links that data pass from the memory of node `memory` to the cores of node `cpu`; none if the nodes are the same.
    #[must_use]
    pub fn route(&self, memory: usize, cpu: usize) -> &[usize] {
        self.routes.get(memory * self.nodes.len() + cpu).map_or(&[], Vec::as_slice)
    }

    /// Whether its numbers come from this published row.
    #[must_use]
    pub fn is_fitted_to(&self, experiment: &str, row: &str) -> bool {
        let name = format!("{experiment}: {row}");
        self.fitted.iter().any(|entry| entry.strip_suffix('*').map_or(*entry == name, |start| name.starts_with(start)))
    }

    /// The machine with one of its uncertain numbers multiplied by a factor.
    #[must_use]
    pub fn with(&self, uncertain: &Uncertain, factor: f64) -> Self {
        let mut machine = self.clone();
        match &uncertain.number {
            UncertainNumber::Links(links) => {
                for index in links {
                    if let Some(link) = machine.links.get_mut(*index) {
                        link.capacity.0 *= factor;
                    }
                }
            }
            UncertainNumber::Writes => {
                let curves = machine.nodes.iter_mut().flat_map(|node| &mut node.curves);
                curves.filter(|curve| curve.write_share > 0.0).for_each(|curve| {
                    curve.core *= factor;
                    curve.limit *= factor;
                });
            }
        }
        machine
    }

    /// The machine with each uncertain number at each end of its range, one at a time.
    pub fn extremes(&self) -> impl Iterator<Item = Self> + '_ {
        self.uncertain.iter().flat_map(|one| [self.with(one, one.low), self.with(one, one.high)])
    }

    /// The number of cores of all nodes.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.nodes.iter().map(|node| node.cores).sum()
    }
}

impl Node {
    /// The controller's curve for a fraction of writes: between two measured mixes, the time per byte is interpolated linearly.
    #[must_use]
    pub fn curve(&self, write_share: f64) -> Curve {
        let above = self.curves.partition_point(|curve| curve.write_share <= write_share);
        let (Some(low), Some(high)) = (self.curves.get(above.saturating_sub(1)), self.curves.get(above.min(self.curves.len() - 1))) else {
            return Curve { write_share, core: f64::INFINITY, limit: f64::INFINITY, sharpness: f64::INFINITY };
        };
        let span = high.write_share - low.write_share;
        let part = if span > 0.0 { ((write_share - low.write_share) / span).clamp(0.0, 1.0) } else { 0.0 };
        let between = |low: f64, high: f64| 1.0 / ((1.0 - part) / low + part / high);
        Curve {
            write_share,
            core: between(low.core, high.core),
            limit: between(low.limit, high.limit),
            sharpness: between(low.sharpness, high.sharpness),
        }
    }
}
