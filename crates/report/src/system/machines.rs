//! `firsttouch machines`: the catalogue, and one machine with the source of every number.

use super::{Lines, row};
use crate::text::Style;
use crate::topology::table::Align::{Left, Right};
use firsttouch_predict::machine::{Fact, MachineModel};
use serde::Serialize;
use std::collections::BTreeMap;

/// The JSON of `firsttouch machines list`.
#[derive(Serialize)]
pub struct MachinesJson<'a> {
    pub schema: &'static str,
    pub machines: Vec<Listed<'a>>,
}

#[derive(Serialize)]
pub struct Listed<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub nodes: usize,
    pub cores: usize,
    /// The published measurements that its numbers come from; empty if there are none.
    pub fitted_to: &'a [String],
}

impl<'a> MachinesJson<'a> {
    #[must_use]
    pub fn new(machines: &'a [MachineModel]) -> Self {
        let listed = |machine: &'a MachineModel| Listed {
            name: &machine.name,
            title: &machine.title,
            nodes: machine.nodes.len(),
            cores: machine.cores(),
            fitted_to: &machine.fitted,
        };
        Self { schema: "firsttouch.machines/1", machines: machines.iter().map(listed).collect() }
    }
}

/// The JSON of `firsttouch machines show`.
#[derive(Serialize)]
pub struct MachineJson<'a> {
    pub schema: &'static str,
    pub name: &'a str,
    pub title: &'a str,
    pub nodes: usize,
    pub cores: usize,
    pub numbers: &'a [Fact],
    pub sources: &'a BTreeMap<String, String>,
    pub fitted_to: &'a [String],
}

impl<'a> MachineJson<'a> {
    #[must_use]
    pub fn new(machine: &'a MachineModel) -> Self {
        Self {
            schema: "firsttouch.machine-shown/1",
            name: &machine.name,
            title: &machine.title,
            nodes: machine.nodes.len(),
            cores: machine.cores(),
            numbers: &machine.facts,
            sources: &machine.sources,
            fitted_to: &machine.fitted,
        }
    }
}

/// The catalogue as text.
#[must_use]
pub fn machines_text(machines: &[MachineModel], style: Style) -> String {
    let mut out = Lines::new(style);
    let mut rows = vec![row(["name", "nodes", "cores", "machine"])];
    for machine in machines {
        rows.push(vec![machine.name.clone(), machine.nodes.len().to_string(), machine.cores().to_string(), machine.title.clone()]);
    }
    out.table(&rows, &[Left, Right, Right, Left]);
    out.text()
}

/// One machine as text.
#[must_use]
pub fn machine_text(machine: &MachineModel, style: Style) -> String {
    let mut out = Lines::new(style);
    out.heading(&format!("{}: {}", machine.name, machine.title));
    let mut rows = vec![row(["number", "value", "source"])];
    rows.extend(machine.facts.iter().map(|fact| vec![fact.what.clone(), fact.value.clone(), fact.source.clone()]));
    out.table(&rows, &[Left, Left, Left]);
    if !machine.sources.is_empty() {
        out.heading("Sources");
        let rows: Vec<Vec<String>> = machine.sources.iter().map(|(name, text)| vec![name.clone(), text.clone()]).collect();
        out.table(&rows, &[Left, Left]);
    }
    if !machine.fitted.is_empty() {
        out.heading("Published rows its numbers come from");
        machine.fitted.iter().for_each(|entry| out.sentence(entry));
    }
    out.text()
}
