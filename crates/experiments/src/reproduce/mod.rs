//! Repeats published experiments as far as this machine allows, and shows the published figures and the model's predictions beside the
//! results.

mod balancing;
mod dgemv;
mod dmvm;
mod effect;
mod iso3dfd;
mod map_scan;
mod published;
mod rounds;
mod sockets;
mod table;
mod triad;

pub use effect::{Claim, Effect, EffectVerdict};
pub use table::{Drawing, MeasuredOn, Reproduction, ResultCell, ResultColumn, ResultRow, ResultTable, Source};

use crate::host::{Host, machine_name};
use crate::kernels::Kernels;
use crate::{Progress, Result};
use rounds::Rounds;

/// A published experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentName {
    DgemvScaling,
    DgemvFirstTouch,
    Balancing,
    Iso3dfdFirstTouch,
    OneSocketTwoSockets,
    MapScan,
    TriadDomains,
    DmvmVariability,
}

impl ExperimentName {
    pub const ALL: [Self; 8] = [
        Self::DgemvScaling,
        Self::DgemvFirstTouch,
        Self::Balancing,
        Self::Iso3dfdFirstTouch,
        Self::OneSocketTwoSockets,
        Self::MapScan,
        Self::TriadDomains,
        Self::DmvmVariability,
    ];

    /// The name on the command line, in JSON and in the published tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DgemvScaling => "dgemv-scaling",
            Self::DgemvFirstTouch => "dgemv-first-touch",
            Self::Balancing => "balancing",
            Self::Iso3dfdFirstTouch => "iso3dfd-first-touch",
            Self::OneSocketTwoSockets => "one-socket-two-sockets",
            Self::MapScan => "map-scan",
            Self::TriadDomains => "triad-domains",
            Self::DmvmVariability => "dmvm-variability",
        }
    }

    /// One line about the experiment.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::DgemvScaling => "DGEMV by number of threads, with its matrix initialised serially and in parallel",
            Self::DgemvFirstTouch => "DGEMV on all cores, initialised serially and in parallel, with the nodes of its pages",
            Self::Balancing => "DGEMV with the kernel's NUMA balancing on and off (switched if allowed, and restored), and migrated pages",
            Self::Iso3dfdFirstTouch => {
                "The wave equation with and without first touch, schedules static and dynamic, and the spread over runs"
            }
            Self::OneSocketTwoSockets => "The quick test: the wave equation on one node, on all nodes, and as one bound process per node",
            Self::MapScan => "Bandwidth of triad for every pair of memory node and CPU node",
            Self::TriadDomains => "Triad by number of domains: parallel initialisation, all in one domain, interleaved",
            Self::DmvmVariability => "Repeated matrix-vector products: 200 to 2000 iterations, ten runs each",
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Runs of each figure; by default the experiment's own number.
    pub runs: Option<u32>,
    /// Bytes of all arrays of a run; by default the experiment's own size, limited by the free memory.
    pub array_bytes: Option<u64>,
}

/// Runs an experiment.
///
/// # Errors
/// When the arrays do not fit, no node is usable, or every kernel failed.
pub fn run(name: ExperimentName, options: Options, progress: Progress<'_>) -> Result<Reproduction> {
    let runner = Runner { name, options, host: Host::read()?, kernels: Kernels::new()?, progress };
    match name {
        ExperimentName::DgemvScaling => dgemv::scaling(&runner),
        ExperimentName::DgemvFirstTouch => dgemv::first_touch(&runner),
        ExperimentName::Balancing => balancing::run(&runner),
        ExperimentName::Iso3dfdFirstTouch => iso3dfd::first_touch(&runner),
        ExperimentName::OneSocketTwoSockets => sockets::run(&runner),
        ExperimentName::MapScan => map_scan::run(&runner),
        ExperimentName::TriadDomains => triad::run(&runner),
        ExperimentName::DmvmVariability => dmvm::run(&runner),
    }
}

/// The input of every experiment.
struct Runner<'a> {
    name: ExperimentName,
    options: Options,
    host: Host,
    kernels: Kernels,
    progress: Progress<'a>,
}

/// The results of an experiment; the rest of a [`Reproduction`] is the same for all experiments.
struct Results {
    title: &'static str,
    sources: Vec<String>,
    settings: Vec<String>,
    tables: Vec<ResultTable>,
    effects: Vec<Effect>,
    said: Vec<String>,
    notes: Vec<String>,
}

impl Runner<'_> {
    /// The number of runs of each case: the user's, else `usual`.
    fn rounds(&self, usual: u32) -> Rounds<'_> {
        Rounds { kernels: &self.kernels, runs: self.options.runs.unwrap_or(usual), progress: self.progress }
    }

    /// Bytes of all arrays of a run, and a note if caches hold too much of them.
    fn array_bytes(&self, usual: u64) -> Result<(u64, Vec<String>)> {
        let bytes = self.host.array_bytes(self.options.array_bytes, usual)?;
        Ok((bytes, self.host.note_on_size(bytes).into_iter().collect()))
    }

    /// Options of `firsttouch run` that pin a thread to each of these CPUs.
    fn pinned(cpus: &[u32]) -> Vec<String> {
        let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
        vec![format!("--pin={}", list.join(","))]
    }

    fn reproduction(&self, results: Results) -> Reproduction {
        let Results { title, sources, settings, tables, effects, said, notes } = results;
        let topology = &self.host.topology;
        Reproduction {
            schema: "firsttouch.reproduce/1",
            experiment: self.name.as_str().to_owned(),
            title: title.to_owned(),
            sources,
            measured_on: MeasuredOn { machine: machine_name(topology), cpus: topology.cpus.online.len(), nodes: topology.nodes.len() },
            settings,
            tables,
            effects,
            said,
            notes,
        }
    }
}
