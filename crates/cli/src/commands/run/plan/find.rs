//! Where a plan's sites are in the files that will run: at the recorded offsets in the same build, at the same lines in another.

use crate::plan::static_spot;
use firsttouch_placement::plan::{Code, Entry, Found, Frame, Identity, Module, Origin, Plan, file_name};
use firsttouch_symbols::{Line, LineSearch, build_id};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A module's file as it is now.
struct Present {
    path: PathBuf,
    /// The build that was profiled.
    is_same: bool,
    /// Read when it is first needed; `None` inside where it cannot be.
    lines: Option<Option<LineSearch>>,
}

/// The identities of the plan's modules, in their order, and where each entry is.
pub fn find(plan: &Plan, program: Option<&Path>) -> (Vec<Identity>, Vec<Found>) {
    let mut files: Vec<Option<Present>> = plan.modules.iter().map(|module| present(module, program)).collect();
    let identities = files.iter().map(|file| file.as_ref().map_or_else(Identity::default, |file| identity(&file.path))).collect();
    let index: HashMap<&str, usize> = plan.modules.iter().enumerate().map(|(index, module)| (module.name.as_str(), index)).collect();
    let found = plan.entries.iter().map(|entry| found(entry, &index, &mut files).unwrap_or(Found::Missing)).collect();
    (identities, found)
}

/// Whether the program is one of the plan's modules, by its name, or a copy of one.
pub fn is_in(plan: &Plan, program: &Path) -> bool {
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let id = build_id(program).unwrap_or_default();
    let is_it = |module: &Module| file_name(&module.path) == name || (!id.is_empty() && id.eq_ignore_ascii_case(&module.build_id));
    plan.modules.iter().any(is_it)
}

/// The program itself where it has the module's name, else the file that was profiled: a launcher may start that.
fn present(module: &Module, program: Option<&Path>) -> Option<Present> {
    let program = program.and_then(|path| path.canonicalize().ok());
    let is_program = program.as_deref().and_then(Path::file_name).is_some_and(|name| name.to_string_lossy() == file_name(&module.path));
    let path = if is_program { program? } else { PathBuf::from(&module.path).canonicalize().ok()? };
    let is_same = !module.build_id.is_empty() && build_id(&path).is_some_and(|id| id.eq_ignore_ascii_case(&module.build_id));
    Some(Present { path, is_same, lines: None })
}

fn identity(path: &Path) -> Identity {
    let digits = build_id(path).unwrap_or_default();
    let bytes = digits.as_bytes().chunks_exact(2).filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let file = std::fs::metadata(path).ok();
    let (device, inode) = file.map_or((0, 0), |file| (file.dev(), file.ino()));
    Identity { build_id: bytes.collect(), device, inode }
}

fn found(entry: &Entry, index: &HashMap<&str, usize>, files: &mut [Option<Present>]) -> Option<Found> {
    match &entry.origin {
        Origin::Symbol { module, name } => {
            let module = *index.get(module.as_str())?;
            let (address, bytes) = static_spot(&files.get(module)?.as_ref()?.path, name, entry.bytes)?;
            Some(Found::Symbol(firsttouch_placement::plan::Spot { module, address, bytes }))
        }
        Origin::Site(site) => {
            let calls = site.frames.split_inclusive(|frame| !frame.inlined);
            calls.map(|call| code(call, site.shares_lines, index, files)).collect::<Option<Vec<_>>>().map(Found::Site)
        }
    }
}

/// The code of one function and those inlined into it.
fn code(call: &[Frame], shares_lines: bool, index: &HashMap<&str, usize>, files: &mut [Option<Present>]) -> Option<Code> {
    let module = *index.get(call.first()?.module.as_str())?;
    let file = files.get_mut(module)?;
    let Some(offset) = call.first()?.offset else {
        // A library that is elsewhere now: any code outside of the modules that are known.
        return Some(Code { module: if file.is_some() { module } else { usize::MAX }, ranges: Vec::new() });
    };
    let file = file.as_mut()?;
    let ranges = match (file.is_same, shares_lines) {
        (true, _) => vec![(offset, offset.saturating_add(1))],
        (false, false) => file.at_lines(call, offset),
        // Whose of several calls on these lines it is cannot be told.
        (false, true) => Vec::new(),
    };
    (!ranges.is_empty()).then_some(Code { module, ranges })
}

impl Present {
    fn at_lines(&mut self, call: &[Frame], offset: u64) -> Vec<(u64, u64)> {
        if !call.iter().all(Frame::has_line) {
            return Vec::new();
        }
        let lines: Vec<Line> =
            call.iter().map(|frame| Line { function: frame.function.clone(), file: frame.file.clone(), line: frame.line }).collect();
        let search = self.lines.get_or_insert_with(|| LineSearch::open(&self.path).ok());
        let Some(search) = search else { return Vec::new() };
        let mut ranges = search.find(&lines);
        // Code may be between the ranges that the line table has for it, as behind an inlined function.
        if ranges.is_empty() && search.is_at(offset, &lines) {
            ranges.push((offset, offset.saturating_add(1)));
        }
        ranges
    }
}
