//! The machine description as TOML: every number has a source.

use super::{MachineError, Streams};
use serde::Deserialize;
use std::collections::BTreeMap;

pub const SCHEMA: &str = "firsttouch.machine/1";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub schema: String,
    pub name: String,
    pub title: String,
    /// `intel`, `amd` or `arm`: whose machines give what the description lacks.
    #[serde(default)]
    pub vendor: Option<String>,
    /// The explanations of the short names of sources.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    #[serde(default)]
    pub fit: Fit,
    pub nodes: Nodes,
    #[serde(default)]
    pub controller: Controller,
    #[serde(default)]
    pub core: Core,
    pub interconnect: Option<Interconnect>,
    #[serde(default)]
    pub links: Vec<Link>,
    pub bandwidth: Option<Bandwidth>,
    pub latency: Option<Matrix>,
    pub distances: Option<Matrix>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    #[serde(default)]
    pub rows: Vec<String>,
}

/// One number for all nodes, or one for each.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Same(f64),
    Each(Vec<f64>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    pub value: Value,
    /// Where an assumed number may be; predictions draw it from there.
    #[serde(default)]
    pub range: Option<[f64; 2]>,
    pub source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    pub count: Number,
    pub per_package: Number,
    pub cores: Number,
    pub smt: Number,
    pub memory_mib: Option<Number>,
    pub free_mib: Option<Number>,
    /// Memory channels of a node that have memory, 8 bytes wide.
    pub channels: Option<Number>,
    /// Million transfers a second of a channel: 3200 for DDR4-3200.
    pub mega_transfers_per_s: Option<Number>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    pub write_allocate: Option<Flag>,
    #[serde(default)]
    pub curves: Vec<Curve>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    pub value: bool,
    pub source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    pub streams: Streams,
    /// (cores of one node that run, the bandwidth they report together in GB/s).
    pub points: Vec<(f64, f64)>,
    pub source: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    pub remote_gb_per_s: Option<Number>,
    /// From other nodes of its own package.
    pub within_package_gb_per_s: Option<Number>,
}

/// Links between all pairs of nodes, or what connects two packages.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interconnect {
    /// Of a link from each node to each other.
    pub gb_per_s: Option<Number>,
    /// A name of `links.toml`: the links between two packages, which all pairs of their nodes share.
    pub generation: Option<String>,
    /// Of a link between each two nodes of a package.
    pub within_package_gb_per_s: Option<Number>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub from: usize,
    pub to: usize,
    pub gb_per_s: Number,
}

/// Bandwidth of all pairs in GB/s: rows are the node of the memory, columns the node whose cores run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bandwidth {
    pub gb_per_s: Vec<Vec<f64>>,
    pub streams: Streams,
    pub source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    pub values: Vec<Vec<f64>>,
    pub source: String,
}

pub fn parse(text: &str) -> Result<File, MachineError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
        MachineError { place: format!("line {line}"), reason: error.message().to_owned() }
    })?;
    if file.schema != SCHEMA {
        return Err(MachineError { place: "schema".to_owned(), reason: format!("expected '{SCHEMA}', found '{}'", file.schema) });
    }
    Ok(file)
}
