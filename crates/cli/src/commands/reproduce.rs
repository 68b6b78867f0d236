//! `firsttouch reproduce`

use crate::arguments::Reproduce;
use crate::exit;
use crate::output::{is_stdout, print, print_json, write};
use crate::progress;
use crate::terminal::style;
use anyhow::{Context, Result};
use firsttouch_experiments::reproduce::{ExperimentName, Options, Reproduction, run as reproduce};
use firsttouch_report::{described, reproduction_figure, reproduction_text};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::stdout;

pub fn run(arguments: &Reproduce) -> Result<u8> {
    let Some(name) = arguments.name else {
        list(arguments.json)?;
        return Ok(exit::DONE);
    };
    if let Some(path) = arguments.svg.as_deref().filter(|path| !is_stdout(path)) {
        // Fail before the runs rather than after them.
        OpenOptions::new().create(true).append(true).open(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let options = Options { runs: arguments.runs, array_bytes: arguments.size };
    show(arguments, &reproduce(name, options, &progress::step)?)?;
    Ok(exit::DONE)
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

fn list(is_json: bool) -> Result<()> {
    let all = ExperimentName::ALL;
    if is_json {
        let listed: Vec<Value> = all.iter().map(|one| json!({"name": one.as_str(), "about": one.about()})).collect();
        return print_json(&json!({"schema": "firsttouch.reproduce-list/1", "experiments": listed}));
    }
    let lines: Vec<(&str, &str)> = all.iter().map(|one| (one.as_str(), one.about())).collect();
    print(&described(&lines, style(&stdout()).width))
}
