//! Machines that are named on the command line: of the catalogue, described by a file, or of which only the nodes are known.

use anyhow::{Context, Result, anyhow};
use firsttouch_model::topology::Topology;
use firsttouch_predict::machine::{self, Machine, import};
use firsttouch_system::TargetMachine;
use std::path::{Path, PathBuf};

/// Larger files are no descriptions, and no output of mlc.
const MOST_BYTES: u64 = 16 << 20;

/// A machine that `--machine` names.
#[derive(Clone)]
pub struct Named {
    /// Where threads and pages can be.
    pub nodes: TargetMachine,
    /// Its numbers, where they are known.
    pub described: Option<Machine>,
}

impl Named {
    /// `virtual:N`, a file, or a name of the catalogue. Files are told by their ending, else by what they begin with.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self> {
        if text.starts_with("virtual:") {
            return Ok(Self { nodes: TargetMachine::parse(text)?, described: None });
        }
        if ends_with(text, "xml") {
            return hwloc(text);
        }
        if !ends_with(text, "toml") && !Path::new(text).is_file() {
            let found = machine::names().find(|name| *name == text).map(machine::find);
            let unknown = || {
                anyhow!(
                    "cannot use machine '{text}': expected virtual:N, a file (a description, hwloc XML, the output of mlc), or one of {}",
                    names()
                )
            };
            return Ok(numbered(found.ok_or_else(unknown)??));
        }
        file(text)
    }
}

/// A machine whose nodes are numbered as on a virtual one.
fn numbered(machine: Machine) -> Named {
    Named { nodes: TargetMachine::Virtual(machine.nodes.len()), described: Some(machine) }
}

fn file(name: &str) -> Result<Named> {
    let cannot = || format!("cannot read the machine description {name}");
    let size = std::fs::metadata(name).with_context(cannot)?;
    if !size.is_file() {
        return Err(anyhow!("it is not a file")).with_context(cannot);
    }
    if !ends_with(name, "toml") && begins_with_tag(name) {
        return hwloc(name);
    }
    if size.len() > MOST_BYTES {
        return Err(anyhow!("it is too large for one")).with_context(cannot);
    }
    let text = String::from_utf8(std::fs::read(name).with_context(cannot)?).map_err(|_| anyhow!("it is not text")).with_context(cannot)?;
    if !ends_with(name, "toml") && import::is_mlc(&text) {
        return Ok(numbered(import::mlc(&stem(name), &text).with_context(|| name.to_owned())?));
    }
    if !ends_with(name, "toml") && !text.contains("firsttouch.machine/") {
        return Err(anyhow!(
            "cannot use machine '{name}': it is neither a description (.toml), nor hwloc XML (lstopo --of xml), nor the output of mlc"
        ));
    }
    Ok(numbered(Machine::parse(&text).with_context(|| name.to_owned())?))
}

/// hwloc's XML: its nodes, and its numbers where it has bandwidths.
fn hwloc(name: &str) -> Result<Named> {
    let nodes = TargetMachine::parse(name)?;
    let TargetMachine::Imported(file) = &nodes else { return Ok(Named { nodes, described: None }) };
    let Some(found) = import::pairs(&file.name, &file.topology, &file.figures).with_context(|| name.to_owned())? else {
        return Ok(Named { nodes, described: None });
    };
    // Threads and pages are counted by the machine's own nodes, so both must have the same.
    if !found.same_nodes { Ok(numbered(found.machine)) } else { Ok(Named { nodes, described: Some(found.machine) }) }
}

fn begins_with_tag(name: &str) -> bool {
    use std::io::Read;
    let mut start = [0; 64];
    let read = std::fs::File::open(name).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    start[..read].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<')
}

fn stem(name: &str) -> String {
    Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A machine whose numbers are known.
///
/// # Errors
/// As [`Named::parse`]; and one of which only the nodes are known.
pub fn read(name: &str) -> Result<Machine> {
    let named = Named::parse(name)?;
    named.described.ok_or_else(|| match named.nodes {
        TargetMachine::Imported(file) => {
            anyhow!("{name} has no bandwidths (memory attributes), so only its nodes are known: {}", counted(&file.topology))
        }
        _ => anyhow!("{name} has no numbers: `predict` takes those of a median machine of the catalogue for it"),
    })
}

fn counted(topology: &Topology) -> String {
    format!("{} with {} CPUs", topology.nodes.len(), topology.cpus.online.len())
}

/// The catalogue's names, as a sentence has them.
pub fn names() -> String {
    machine::names().collect::<Vec<_>>().join(", ")
}

/// The user's own description of the machine of this name, if there is one: `machines/HOSTNAME.toml` in firsttouch's
/// configuration directory.
///
/// # Errors
/// When it is there and cannot be used.
pub fn own(hostname: &str) -> Result<Option<Machine>> {
    let Some(path) = own_path(hostname).filter(|path| path.is_file()) else { return Ok(None) };
    read(&path.display().to_string()).map(Some)
}

/// Where [`own`] looks.
pub fn own_path(hostname: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    let plain = !hostname.is_empty() && !hostname.contains('/');
    plain.then(|| folder.join("firsttouch/machines").join(format!("{hostname}.toml")))
}

fn ends_with(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case(ending))
}
