//! `firsttouch reproduce`

mod balancing;
mod dgemv;
mod dmvm;
mod here;
mod iso3dfd;
mod map_scan;
mod published;
mod rounds;
mod sockets;
mod triad;

use super::kernels::Kernels;
use super::usage;
use crate::arguments::{Experiment, Reproduce};
use crate::output::{is_stdout, print, print_json, style, write};
use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use firsttouch_report::{Drawing, Effect, ReproducedTable, Reproduction, reproduction_figure, reproduction_text};
use here::Here;
use rounds::Rounds;
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::stdout;

pub fn run(arguments: &Reproduce) -> Result<u8> {
    if arguments.list {
        return list(arguments.json);
    }
    let name = usage(arguments.name.ok_or_else(|| anyhow!("name an experiment (--list shows them)")))?;
    if let Some(path) = arguments.svg.as_deref().filter(|path| !is_stdout(path)) {
        // Better known before the runs than after them.
        OpenOptions::new().create(true).append(true).open(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let lab = Lab { arguments, name, here: Here::read()?, kernels: Kernels::new()? };
    let reproduction = match name {
        Experiment::DgemvScaling => dgemv::scaling(&lab),
        Experiment::DgemvFirstTouch => dgemv::first_touch(&lab),
        Experiment::Balancing => balancing::run(&lab),
        Experiment::Iso3dfdFirstTouch => iso3dfd::first_touch(&lab),
        Experiment::OneSocketTwoSockets => sockets::run(&lab),
        Experiment::MapScan => map_scan::run(&lab),
        Experiment::TriadDomains => triad::run(&lab),
        Experiment::DmvmVariability => dmvm::run(&lab),
    }?;
    show(arguments, &reproduction)?;
    Ok(0)
}

/// What every experiment needs.
struct Lab<'a> {
    arguments: &'a Reproduce,
    name: Experiment,
    here: Here,
    kernels: Kernels,
}

/// What an experiment found.
struct Found {
    title: &'static str,
    sources: Vec<String>,
    settings: Vec<String>,
    tables: Vec<ReproducedTable>,
    effects: Vec<Effect>,
    said: Vec<String>,
    notes: Vec<String>,
}

impl Lab<'_> {
    /// Runs of each case, `usual` unless the user says otherwise.
    fn rounds(&self, usual: u32) -> Rounds<'_> {
        Rounds { kernels: &self.kernels, runs: self.arguments.runs.unwrap_or(usual) }
    }

    /// Bytes of all arrays of a run, and a word where that is too little for memory to matter.
    fn array_bytes(&self, usual: u64) -> Result<(u64, Vec<String>)> {
        let bytes = self.here.array_bytes(self.arguments.size, usual)?;
        Ok((bytes, self.here.doubt_on_size(bytes).into_iter().collect()))
    }

    /// Options of `firsttouch run` that put a thread on each of some CPUs.
    fn pinned(cpus: &[u32]) -> Vec<String> {
        let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
        vec![format!("--pin={}", list.join(","))]
    }

    fn reproduction(&self, found: Found) -> Reproduction {
        let Found { title, sources, settings, tables, effects, said, notes } = found;
        let experiment = name(self.name);
        let title = title.to_owned();
        let here = self.here.described();
        Reproduction { schema: "firsttouch.reproduce/1", experiment, title, sources, here, settings, tables, effects, said, notes }
    }
}

fn show(arguments: &Reproduce, reproduction: &Reproduction) -> Result<()> {
    if let Some(path) = &arguments.svg {
        write(path, &reproduction_figure(reproduction))?;
        if is_stdout(path) {
            return Ok(());
        }
    }
    if arguments.json { print_json(reproduction) } else { print(&reproduction_text(reproduction, style(&stdout()))) }
}

fn name(experiment: Experiment) -> String {
    experiment.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A line of `--list`.
#[derive(Serialize)]
struct Listed {
    name: String,
    about: String,
}

fn list(json: bool) -> Result<u8> {
    let about = |value: clap::builder::PossibleValue| value.get_help().map_or_else(String::new, ToString::to_string);
    let all = Experiment::value_variants().iter();
    let listed: Vec<Listed> =
        all.map(|one| Listed { name: name(*one), about: one.to_possible_value().map_or_else(String::new, about) }).collect();
    if json {
        print_json(&serde_json::json!({ "schema": "firsttouch.reproduce-list/1", "experiments": listed }))?;
    } else {
        let width = listed.iter().map(|one| one.name.len()).max().unwrap_or(0);
        let lines: Vec<String> = listed.iter().map(|one| format!("{:width$}  {}\n", one.name, one.about)).collect();
        print(&lines.concat())?;
    }
    Ok(0)
}

/// How a table begins that experiments fill.
fn table(title: impl Into<String>, unit: &str, heads: &[&str], drawing: Drawing) -> ReproducedTable {
    let heads = heads.iter().map(|head| (*head).to_owned()).collect();
    ReproducedTable { title: title.into(), unit: unit.to_owned(), heads, columns: Vec::new(), rows: Vec::new(), drawing }
}
