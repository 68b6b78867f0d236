//! `firsttouch topology`

use crate::arguments::Topology as Arguments;
use crate::exit;
use crate::output::{print, print_json, write};
use crate::terminal::style;
use anyhow::{Context, Result};
use firsttouch_model::topology::Topology;
use firsttouch_report::{TopologyJson, hwloc_xml, picture, topology_text};
use firsttouch_system::{hwloc, topology};
use std::path::Path;

pub fn run(arguments: &Arguments) -> Result<u8> {
    let topology = read(arguments.input.as_deref())?;
    if let Some(path) = &arguments.svg {
        write(path, &picture(&topology))?;
    }
    if let Some(path) = &arguments.xml {
        write(path, &hwloc_xml(&topology))?;
    }
    if arguments.json {
        print_json(&TopologyJson::new(&topology))?;
    } else if arguments.svg.is_none() && arguments.xml.is_none() {
        print(&topology_text(&topology, style(&std::io::stdout())))?;
    }
    Ok(exit::DONE)
}

fn read(input: Option<&Path>) -> Result<Topology> {
    match input {
        None => Ok(topology::read_this_system()?),
        Some(root) if root.is_dir() => {
            topology::read(root).with_context(|| format!("cannot read the machine recorded in {}", root.display()))
        }
        Some(file) => Ok(hwloc::read_file(file)?),
    }
}
