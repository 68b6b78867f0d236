//! Finds the machines named on the command line: in the catalogue, in a file, or as a number of nodes.

use crate::unseekable::{Readable, is_pipe};
use crate::{ErrorKind, PipelineError, Result};
use firsttouch_model::shown::make_one_line;
use firsttouch_model::topology::Topology;
use firsttouch_predict::machine::{self, MachineError, MachineModel, import};
use firsttouch_system::TargetMachine;
use firsttouch_system::read_bounded_text;
use std::path::{Path, PathBuf};

/// The largest size of a machine description or an output of mlc, bytes.
const MOST_BYTES: u64 = 16 << 20;

/// The machine given with `--machine`.
#[derive(Clone)]
pub struct RequestedMachine {
    /// The nodes on which threads and pages can be.
    pub nodes: TargetMachine,
    /// Its numbers, if they are known.
    pub description: Option<MachineModel>,
}

impl RequestedMachine {
    /// Parses `virtual:N`, a file, or a name of the catalogue. A file's format follows from its extension, else from its first bytes.
    ///
    /// # Errors
    /// When the machine cannot be used.
    pub fn parse(text: &str) -> Result<Self> {
        let mut machine = Self::read(text)?;
        // A file's name is the machine's.
        machine.description.iter_mut().for_each(MachineModel::make_names_safe);
        if let TargetMachine::Imported(file) = &mut machine.nodes {
            make_one_line(&mut file.name);
        }
        Ok(machine)
    }

    fn read(text: &str) -> Result<Self> {
        if is_pipe(Path::new(text)) {
            let cannot = |why| PipelineError::because(ErrorKind::Machine, format!("cannot read the machine description {text}"), why);
            return file(&Readable::of(Path::new(text)).map_err(cannot)?.path().display().to_string());
        }
        if text.starts_with("virtual:") {
            let nodes = parse_nodes(text).map_err(|error| error.with_kind(ErrorKind::Request))?;
            return Ok(Self { nodes, description: None });
        }
        if ends_with(text, "xml") {
            return hwloc(text);
        }
        if !ends_with(text, "toml") && !Path::new(text).is_file() {
            let found = machine::names().find(|name| *name == text).map(machine::find);
            if text.contains('/') {
                let why = if Path::new(text).exists() { "it is not a regular file" } else { "there is no such file" };
                return Err(fault(format!("cannot use machine '{text}': {why}")));
            }
            let unknown = || {
                let message = format!(
                    "cannot use machine '{text}': expected virtual:N, a file (a description, hwloc XML, the output of mlc), or one of {}",
                    names()
                );
                PipelineError::new(ErrorKind::Request, message)
            };
            return Ok(numbered(found.ok_or_else(unknown)?.map_err(|error| PipelineError::of(ErrorKind::Machine, error))?));
        }
        file(text)
    }
}

fn fault(message: String) -> PipelineError {
    PipelineError::new(ErrorKind::Machine, message)
}

fn parse_nodes(text: &str) -> Result<TargetMachine> {
    TargetMachine::parse(text).map_err(|error| PipelineError::of(ErrorKind::Machine, error))
}

/// A machine whose nodes are numbered 0..N.
fn numbered(machine: MachineModel) -> RequestedMachine {
    RequestedMachine { nodes: TargetMachine::Virtual(machine.nodes.len()), description: Some(machine) }
}

fn file(name: &str) -> Result<RequestedMachine> {
    let cannot =
        |why: std::io::Error| PipelineError::because(ErrorKind::Machine, format!("cannot read the machine description {name}"), why);
    let refused = |why: &str| cannot(std::io::Error::other(why));
    let size = std::fs::metadata(name).map_err(cannot)?;
    if !size.is_file() {
        return Err(refused("it is not a file"));
    }
    if !ends_with(name, "toml") && begins_with_tag(name) {
        return hwloc(name);
    }
    let text = read_bounded_text(Path::new(name), MOST_BYTES).map_err(cannot)?;
    let named = |error: MachineError| PipelineError::because(ErrorKind::Machine, name, error);
    if !ends_with(name, "toml") && import::is_mlc(&text) {
        return Ok(numbered(import::mlc(&stem(name), &text).map_err(named)?));
    }
    if !ends_with(name, "toml") && !text.contains("firsttouch.machine/") {
        return Err(fault(format!(
            "cannot use machine '{name}': it is neither a description (.toml), nor hwloc XML (lstopo --of xml), nor the output of mlc"
        )));
    }
    Ok(numbered(MachineModel::parse(&text).map_err(named)?))
}

/// Reads hwloc XML: the nodes, and the machine's numbers if the file has bandwidths.
fn hwloc(name: &str) -> Result<RequestedMachine> {
    let nodes = parse_nodes(name)?;
    let TargetMachine::Imported(file) = &nodes else { return Ok(RequestedMachine { nodes, description: None }) };
    let Some(found) = import::pairs(&file.name, &file.topology, &file.figures)
        .map_err(|error| PipelineError::because(ErrorKind::Machine, name, error))?
    else {
        return Ok(RequestedMachine { nodes, description: None });
    };
    // Nodes are counted by their numbers in the topology, so the description must have the same nodes.
    if !found.same_nodes { Ok(numbered(found.machine)) } else { Ok(RequestedMachine { nodes, description: Some(found.machine) }) }
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

/// A machine with known numbers.
///
/// # Errors
/// As [`RequestedMachine::parse`]; also if only the machine's nodes are known.
pub fn described_machine(name: &str) -> Result<MachineModel> {
    let named = RequestedMachine::parse(name)?;
    named.description.ok_or_else(|| match named.nodes {
        TargetMachine::Imported(file) => {
            fault(format!("{name} has no bandwidths (memory attributes), so only its nodes are known: {}", counted(&file.topology)))
        }
        _ => fault(format!("{name} has no numbers: `predict` takes those of a median machine of the catalogue for it")),
    })
}

fn counted(topology: &Topology) -> String {
    format!("{} with {} CPUs", topology.nodes.len(), topology.cpus.online.len())
}

/// The names in the catalogue, as text for a sentence.
fn names() -> String {
    machine::names().collect::<Vec<_>>().join(", ")
}

/// The user's own description of the machine with this name, if it exists: `machines/HOSTNAME.toml` in firsttouch's configuration
/// directory.
///
/// # Errors
/// When it exists and cannot be used.
pub(crate) fn own_description(hostname: &str) -> Result<Option<MachineModel>> {
    let Some(path) = own_path(hostname).filter(|path| path.is_file()) else { return Ok(None) };
    described_machine(&path.display().to_string()).map(Some)
}

/// The path that [`own_description`] reads.
fn own_path(hostname: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    let plain = !hostname.is_empty() && !hostname.contains('/');
    plain.then(|| folder.join("firsttouch/machines").join(format!("{hostname}.toml")))
}

fn ends_with(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case(ending))
}
