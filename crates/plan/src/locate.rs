//! Finds a plan's sites in the files that will run: at the recorded offsets in the same build (debug data are not read then), at the same lines in
//! another build.

use crate::program_files::static_array;
use crate::{Code, Entry, Found, Frame, Identity, Module, Origin, Plan, ProgramFiles, Spot, file_name};
use hashbrown::HashMap;
use std::path::{Path, PathBuf};

/// The positions of a plan in the files of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The identity of each module, in the plan's order.
    pub identities: Vec<Identity>,
    /// The position of each entry.
    pub found: Vec<Found>,
}

/// A module's file in its present state.
struct Present {
    path: PathBuf,
    /// Whether it is the build that was profiled.
    is_same: bool,
}

/// Finds the plan's modules and sites in the files that `program` will run.
#[must_use]
pub fn locate(plan: &Plan, program: Option<&Path>, files: &dyn ProgramFiles) -> Location {
    let present: Vec<Option<Present>> = plan.modules.iter().map(|module| present(module, program, files)).collect();
    let identities = present.iter().map(|file| file.as_ref().map_or_else(Identity::default, |file| identity(&file.path, files))).collect();
    let index = plan.modules.iter().enumerate().map(|(index, module)| (module.name.as_str(), index)).collect();
    let search = Search { files, present, index };
    Location { identities, found: plan.entries.iter().map(|entry| search.entry(entry).unwrap_or(Found::Missing)).collect() }
}

/// Whether the program is one of the plan's modules, by name, or a copy of one.
#[must_use]
pub fn is_in(plan: &Plan, program: &Path, files: &dyn ProgramFiles) -> bool {
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let id = files.build_id(program).unwrap_or_default();
    let is_it = |module: &Module| file_name(&module.path) == name || (!id.is_empty() && id.eq_ignore_ascii_case(&module.build_id));
    plan.modules.iter().any(is_it)
}

/// The program itself if it has the module's name; else the file that was profiled, because the program may be a launcher that starts it.
fn present(module: &Module, program: Option<&Path>, files: &dyn ProgramFiles) -> Option<Present> {
    let program = program.and_then(|path| files.canonical(path));
    let is_program = program.as_deref().and_then(Path::file_name).is_some_and(|name| name.to_string_lossy() == file_name(&module.path));
    let path = if is_program { program? } else { files.canonical(Path::new(&module.path))? };
    let is_same = !module.build_id.is_empty() && files.build_id(&path).is_some_and(|id| id.eq_ignore_ascii_case(&module.build_id));
    Some(Present { path, is_same })
}

fn identity(path: &Path, files: &dyn ProgramFiles) -> Identity {
    let digits = files.build_id(path).unwrap_or_default();
    let bytes = digits.as_bytes().chunks_exact(2).filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let (device, inode) = files.device_and_inode(path).unwrap_or((0, 0));
    Identity { build_id: bytes.collect(), device, inode }
}

struct Search<'a> {
    files: &'a dyn ProgramFiles,
    /// The present file of each module.
    present: Vec<Option<Present>>,
    /// The index of a module by its name in the plan.
    index: HashMap<&'a str, usize>,
}

impl Search<'_> {
    fn entry(&self, entry: &Entry) -> Option<Found> {
        match &entry.origin {
            Origin::Symbol { module, name } => {
                let module = *self.index.get(module.as_str())?;
                let (address, bytes) = static_array(self.files, &self.present.get(module)?.as_ref()?.path, name, entry.bytes)?;
                Some(Found::Symbol(Spot { module, address, bytes }))
            }
            Origin::Site(site) => {
                let calls = site.frames.split_inclusive(|frame| !frame.inlined);
                calls.map(|call| self.code(call, site.shares_lines)).collect::<Option<Vec<_>>>().map(Found::Site)
            }
        }
    }

    /// The code of one function with the functions inlined into it.
    fn code(&self, call: &[Frame], shares_lines: bool) -> Option<Code> {
        let module = *self.index.get(call.first()?.module.as_str())?;
        let file = self.present.get(module)?;
        let Some(offset) = call.first()?.offset else {
            // The library is at another path now: accept any code outside of the known modules.
            return Some(Code { module: if file.is_some() { module } else { usize::MAX }, ranges: Vec::new() });
        };
        let file = file.as_ref()?;
        let ranges = match (file.is_same, shares_lines) {
            (true, _) => call.iter().flat_map(|frame| frame.copies.iter().copied()).chain([(offset, offset.saturating_add(1))]).collect(),
            (false, false) => self.at_lines(file, call, offset),
            // Ambiguous: several calls share these lines.
            (false, true) => Vec::new(),
        };
        (!ranges.is_empty()).then_some(Code { module, ranges })
    }

    fn at_lines(&self, file: &Present, call: &[Frame], offset: u64) -> Vec<(u64, u64)> {
        if !call.iter().all(Frame::has_line) {
            return Vec::new();
        }
        let mut ranges = self.files.code_at(&file.path, call);
        // The line table may have no range for the call itself, for example behind an inlined function.
        if ranges.is_empty() && self.files.is_at(&file.path, offset, call) {
            ranges.push((offset, offset.saturating_add(1)));
        }
        ranges
    }
}
