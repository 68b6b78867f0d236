//! The arguments of `firsttouch reproduce`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use firsttouch_experiments::reproduce::ExperimentName;
use firsttouch_model::quantity::parse_size;
use std::path::PathBuf;

/// Repeat a published experiment on this machine, and compare it with the publication and the model
#[derive(Debug, Args)]
#[command(
    long_about = "Runs a published experiment on memory placement as far as this machine allows (CPUs, nodes, memory). It shows side by side \
        the published figures, the model's predictions for the published machine, and what was measured here. A sentence says whether the \
        effect appears here: it does if every run of one case is faster than every run of the other. If it cannot appear here, the sentence \
        says why. By default an experiment takes up to two minutes; dmvm-variability, with ten runs of 2000 products, takes several.",
    after_help = "Examples:\n  \
        firsttouch reproduce\n  \
        firsttouch reproduce dgemv-first-touch\n  \
        firsttouch reproduce dgemv-scaling --size 3G --svg scaling.svg\n  \
        firsttouch reproduce iso3dfd-first-touch --runs 4 --json | jq '.effects[].sentence'"
)]
pub struct Reproduce {
    /// The experiment; without it, the experiments are listed
    #[arg(value_parser = experiment_parser(), value_name = "NAME")]
    pub name: Option<ExperimentName>,
    /// List the experiments
    #[arg(long, conflicts_with = "name")]
    pub list: bool,
    /// Runs of each figure; fewer than 4 give no verdict [default: 5; 10 if the publication has ten]
    #[arg(long, value_name = "N", requires = "name", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// Memory of all arrays of a run (K, M, G: powers of 1024) [default: a size that runs in two minutes, at most a quarter of the free
    /// memory]
    #[arg(long, value_name = "BYTES", requires = "name", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Print the results as JSON (schema firsttouch.reproduce/1)
    #[arg(long)]
    pub json: bool,
    /// Draw the figure to FILE (- for stdout)
    #[arg(long, value_name = "FILE", requires = "name")]
    pub svg: Option<PathBuf>,
}

fn experiment_parser() -> impl TypedValueParser<Value = ExperimentName> {
    let values = ExperimentName::ALL.map(|experiment| PossibleValue::new(experiment.as_str()).help(experiment.about()));
    let find = |name: String| ExperimentName::ALL.into_iter().find(|experiment| experiment.as_str() == name);
    PossibleValuesParser::new(values).try_map(move |name| find(name).ok_or("no such experiment"))
}
