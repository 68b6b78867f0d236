//! `firsttouch map`

use crate::arguments::Map as Arguments;
use crate::exit;
use crate::output::{self, is_stdout, print, print_json};
use crate::progress;
use crate::terminal::style;
use anyhow::Result;
use firsttouch_experiments::map::{Map, Options, scan};
use firsttouch_model::topology::Topology;
use firsttouch_report::{Origin, heat_maps, machine_toml, map_text, map_xml};
use firsttouch_system::{machine, topology};
use std::path::Path;

pub fn run(arguments: &Arguments) -> Result<u8> {
    let topology = topology::read_this_system()?;
    let options = Options {
        kernels: arguments.kernels.iter().map(|kernel| (*kernel).into()).collect(),
        runs: arguments.runs,
        spread: arguments.spread,
        pairs_only: arguments.pairs_only,
        array_bytes: arguments.size,
    };
    show(arguments, &scan(&topology, &options, &progress::step)?, &topology)?;
    Ok(exit::DONE)
}

fn show(arguments: &Arguments, map: &Map, topology: &Topology) -> Result<()> {
    let mut printed = false;
    let mut write = |path: &Path, text: &str| {
        printed |= is_stdout(path);
        output::write(path, text)
    };
    if let Some(path) = &arguments.svg {
        write(path, &heat_maps(map))?;
    }
    if let Some(path) = &arguments.xml {
        write(path, &map_xml(map, topology))?;
    }
    if let Some(path) = &arguments.save {
        let name = path.file_stem().filter(|_| !is_stdout(path)).map(|stem| stem.to_string_lossy().into_owned());
        let origin = Origin { name: name.unwrap_or_else(host_name), host: host_name(), version: env!("CARGO_PKG_VERSION").to_owned() };
        write(path, &machine_toml(map, topology, &origin)?)?;
    }
    match (arguments.json, printed) {
        (true, _) => print_json(map),
        (false, false) => print(&map_text(map, style(&std::io::stdout()).width)),
        (false, true) => Ok(()),
    }
}

fn host_name() -> String {
    machine::host_name(Path::new("/")).unwrap_or_else(|| "this-machine".to_owned())
}
