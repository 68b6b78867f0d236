//! Names for generated code, after the run: the perf maps and jitdumps of its processes are read, one process at a time.

use crate::track::generated_code::{CodeFiles, GeneratedCode, Refusal};
use firsttouch_model::generated_code::{MODULE, is_generated};
use firsttouch_model::rows::{Frame, Id, Site};
use firsttouch_symbols::jit::{CodePieces, Parsed, jitdump, perf_map};
use firsttouch_symbols::user_frame;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;

/// Read of one file, bytes. A jitdump contains the code too.
const MOST_READ: u64 = 128 << 20;
/// A child of a child ...
const MOST_ANCESTORS: usize = 8;
/// Notes of processes whose generated code has no names.
const MOST_NOTES: usize = 3;
const PAGE: u64 = 4096;

/// Adds functions and lines to the frames in generated code, and marks them as such, whether they have names or not.
pub fn name_sites(sites: &mut BTreeMap<Id, Site>, code: &GeneratedCode) {
    let mut readers: BTreeMap<Id, Vec<Id>> = BTreeMap::new();
    for process in sites.values().map(|site| site.process).collect::<BTreeSet<Id>>() {
        for source in sources(code, process) {
            readers.entry(source).or_default().push(process);
        }
    }
    // A process's own files come first: ids grow with time, so that a child's are after its parent's.
    for (source, processes) in readers.iter().rev() {
        let Some(files) = code.processes.get(source) else { continue };
        let pieces = read(files);
        for site in sites.values_mut().filter(|site| processes.contains(&site.process)) {
            for (depth, frame) in site.frames.iter_mut().enumerate() {
                name(frame, depth, &pieces);
            }
        }
    }
    for frame in sites.values_mut().flat_map(|site| &mut site.frames) {
        if frame.module.as_deref().is_some_and(|module| module != MODULE && is_generated(module)) {
            frame.offset = Some(inside(frame, 1));
            frame.module = Some(MODULE.to_owned());
        }
    }
}

/// A process and those it was forked from, as far as they have files.
fn sources(code: &GeneratedCode, process: Id) -> Vec<Id> {
    let parent = |id: &Id| code.processes.get(id).and_then(|files| files.parent);
    let known = Some(process).filter(|id| code.processes.contains_key(id));
    std::iter::successors(known, parent).take(MOST_ANCESTORS).collect()
}

/// The functions of the jitdumps, which have lines, and those of the map.
fn read(files: &CodeFiles) -> [CodePieces; 2] {
    let dumps = files.dumps.iter().filter_map(bytes).filter_map(|dump| jitdump::parse(&dump).ok());
    let map = files.map.as_ref().ok().and_then(bytes).map(|map| perf_map::parse(&map));
    let pieces = |parsed: &mut dyn Iterator<Item = Parsed>| CodePieces::new(parsed.flat_map(|parsed| parsed.pieces).collect());
    [pieces(&mut dumps.into_iter()), pieces(&mut map.into_iter())]
}

fn bytes(file: &File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MOST_READ).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn name(frame: &mut Frame, depth: usize, pieces: &[CodePieces]) {
    if frame.function.is_some() || frame.file.is_some() || !frame.module.as_deref().is_none_or(is_generated) {
        return;
    }
    let address = inside(frame, depth);
    let Some(found) = pieces.iter().find_map(|pieces| pieces.resolve(address)) else { return };
    frame.module = Some(MODULE.to_owned());
    frame.offset = Some(address);
    frame.function = found.function;
    frame.file = found.file.map(|file| file.to_string_lossy().into_owned());
    frame.line = found.line;
}

/// An address inside the frame's instruction: the one before a return address. The offset tells which it is.
fn inside(frame: &Frame, depth: usize) -> u64 {
    match frame.offset {
        Some(offset) if offset % PAGE == frame.address % PAGE => frame.address,
        None if depth == 0 => frame.address,
        _ => frame.address.wrapping_sub(1),
    }
}

/// What would give names to the code that has none: for processes that access memory in such code, or whose own code it is.
pub fn notes(sites: &BTreeMap<Id, Site>, code: &GeneratedCode) -> Vec<String> {
    let unnamed = |site: &&Site| {
        let mut shown = site.frames.first().into_iter().chain(user_frame(&site.frames));
        shown.any(|frame| frame.function.is_none() && frame.module.as_deref() == Some(MODULE))
    };
    let processes: BTreeSet<Id> = sites.values().filter(unnamed).map(|site| site.process).collect();
    processes.iter().filter_map(|id| code.processes.get(id)).take(MOST_NOTES).map(note).collect()
}

fn note(files: &CodeFiles) -> String {
    let (program, pid) = (&files.program, files.pid);
    let map = format!("/tmp/perf-{pid}.map");
    let reason = match &files.map {
        _ if !files.dumps.is_empty() => "its jitdump does not name all of it".to_owned(),
        Ok(_) => format!("{map} does not name all of it"),
        Err(Refusal::Missing) => format!("there is no {map}"),
        Err(Refusal::Foreign) => format!("{map} is not a regular file of the process's user"),
        Err(Refusal::Stale) => format!("{map} is older than the process"),
    };
    format!("Some code of {program} (process {pid}) was generated while it ran and has no names: {reason}. {}", advice(files))
}

/// How a runtime is told to write names.
fn advice(files: &CodeFiles) -> &'static str {
    let program = files.program.as_str();
    let is = |name: &str| program == name || program.strip_prefix(name).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if is("java") {
        "JDK 17 and later write them with -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit; older ones need perf-map-agent."
    } else if is("node") || is("nodejs") {
        "Run node with --perf-basic-prof."
    } else if is("dotnet") {
        "Set DOTNET_PerfMapEnabled=1."
    } else if files.has_llvmlite {
        "Numba writes no names for other programs; where a call stack reaches the Python line that calls it, the report shows that line."
    } else {
        "If its runtime can write a perf map or a jitdump, turn that on."
    }
}
