//! Finds a plan's sites in the files that will run: in the same build at the recorded offsets and at the compiler's copies of these calls, in
//! another build at the same lines.

use crate::program_files::static_array;
use crate::{Code, Entry, Found, Frame, Identity, Module, Origin, Plan, ProgramFiles, Spot, file_name};
use std::collections::HashMap;
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
            (true, false) => self.copies(file, call, offset),
            (true, true) => vec![(offset, offset.saturating_add(1))],
            (false, false) => self.at_lines(file, call, offset),
            // Ambiguous: several calls share these lines.
            (false, true) => Vec::new(),
        };
        (!ranges.is_empty()).then_some(Code { module, ranges })
    }

    /// The call itself, and its copies: with other arguments, the program may take another path through the function.
    fn copies(&self, file: &Present, call: &[Frame], offset: u64) -> Vec<(u64, u64)> {
        let mut ranges = vec![(offset, offset.saturating_add(1))];
        if call.iter().all(Frame::has_line) {
            ranges.extend(self.files.copies(&file.path, offset, call).into_iter().filter(|(from, to)| !(*from..*to).contains(&offset)));
        }
        ranges
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;

    /// A file in the build that was profiled, with two copies of the call at 100.
    struct OneFile;

    impl ProgramFiles for OneFile {
        fn canonical(&self, path: &Path) -> Option<PathBuf> {
            Some(path.to_owned())
        }

        fn build_id(&self, _: &Path) -> Option<String> {
            Some("aa".into())
        }

        fn modified_unix_s(&self, _: &Path) -> Option<i64> {
            None
        }

        fn device_and_inode(&self, _: &Path) -> Option<(u64, u64)> {
            None
        }

        fn static_arrays(&self, _: &Path, _: &str) -> Vec<(u64, u64)> {
            Vec::new()
        }

        fn code_at(&self, _: &Path, _: &[Frame]) -> Vec<(u64, u64)> {
            panic!("the build is the same")
        }

        fn copies(&self, _: &Path, offset: u64, _: &[Frame]) -> Vec<(u64, u64)> {
            if offset == 100 { vec![(95, 101), (200, 206), (300, 306)] } else { Vec::new() }
        }

        fn is_at(&self, _: &Path, _: u64, _: &[Frame]) -> bool {
            false
        }
    }

    /// Check that a call is also found where the compiler copied it, unless other calls of the program share its lines or it has none.
    #[test]
    fn copies_of_a_call() {
        let found = |line: u32, shares_lines: bool| {
            let frame =
                Frame { module: "st".into(), offset: Some(100), function: "main".into(), file: "st.c".into(), line, ..Frame::default() };
            let origin = Origin::Site(Site { frames: vec![frame], shares_lines, ..Site::default() });
            let (what, at, reason) = (String::new(), String::new(), String::new());
            let policy = crate::Policy::Interleave(vec![]);
            let entry = Entry { what, at, bytes: 1 << 20, policy, small_pages: false, reason, gain: None, origin };
            let module = Module { name: "st".into(), path: "/st".into(), build_id: "AA".into() };
            let plan = Plan { modules: vec![module], entries: vec![entry], ..Plan::default() };
            match locate(&plan, None, &OneFile).found[..] {
                [Found::Site(ref code)] => code[0].ranges.clone(),
                ref other => panic!("{other:?}"),
            }
        };
        assert_eq!(found(14, false), [(100, 101), (200, 206), (300, 306)]);
        assert_eq!(found(14, true), [(100, 101)]);
        assert_eq!(found(0, false), [(100, 101)]);
    }
}
