//! Answers the analysis's questions about source code from files on this machine.

use crate::SourceRoot;
use firsttouch_analysis::{Note, PythonValue, Sources};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::metadata::Symbols;
use firsttouch_model::rows::{Frame, Owner, Profile};
use firsttouch_model::shown::one_line;
use firsttouch_symbols::{
    self as symbols, Reader, SourceCache, is_own_module, library_buffer, python_value, touch_cause, user_frame, variable_at_column,
    variable_near,
};
use firsttouch_system::calls::identity::effective_user;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

/// An allocation's statement may begin or end this many lines from its line.
const RADIUS: usize = 4;
/// The same for a list of variables.
const LIST_RADIUS: usize = 40;

/// Source files that come with firsttouch, as (end of the path, text).
pub type Bundled = &'static [(&'static str, &'static str)];

/// Source files, each read once.
#[derive(Default)]
pub struct FileSources {
    cache: RefCell<SourceCache>,
    bundled: Bundled,
    is_hidden: bool,
}

impl FileSources {
    /// Sources on this machine. The sources of bundled programs need no files.
    #[must_use]
    pub fn new(bundled: Bundled) -> Self {
        Self { bundled, ..Self::default() }
    }

    /// Leaves out the lines of files that were changed after `newest`.
    #[must_use]
    pub fn until(self, newest: SystemTime) -> Self {
        Self { cache: RefCell::new(SourceCache::until(newest)), ..self }
    }

    /// Leaves out the lines of files that are not the profile's source files. If root asks, also of those that the profile's owner could not read: the
    /// owner may have named them to have root show them.
    #[must_use]
    pub fn of(self, profile: &Profile) -> Self {
        // A profile that was not symbolised by its recorder names no files.
        let is_recorded = profile.meta.symbols == Symbols::InFile;
        let files = if is_recorded { profile.source_files.clone() } else { BTreeMap::new() };
        let reader = match profile.owner {
            _ if effective_user() != 0 => Reader::Asking,
            Owner::ROOT => Reader::Asking,
            Owner::User(user) => Reader::User(user),
            Owner::Unknown => Reader::Everybody,
        };
        let cache = self.cache.into_inner().of_recorded(&files).readable_by(reader);
        Self { cache: RefCell::new(cache), ..self }
    }

    /// Looks for files in these folders first (`--source-root`).
    #[must_use]
    pub fn found_in(self, roots: Vec<SourceRoot>) -> Self {
        let open = move |file: &Path| roots.iter().find_map(|root| root.open(file));
        Self { cache: RefCell::new(self.cache.into_inner().looking_elsewhere(Some(Box::new(open)))), ..self }
    }

    /// Shows no lines (`--no-source`). Names of variables come from them all the same.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { is_hidden: true, ..self }
    }

    /// Source files whose lines are not shown, because they were changed after the run.
    #[must_use]
    pub fn notes(&self) -> Vec<Note> {
        self.cache.borrow().changed().iter().map(|file| Note::ChangedSource(file.clone())).collect()
    }

    /// The lines from `radius` before to `radius` after a line, each with its number; empty if the file may not be shown.
    pub(crate) fn around(&self, file: &str, line: u32, radius: usize) -> Vec<(u32, String)> {
        if self.is_hidden {
            return Vec::new();
        }
        let mut cache = self.cache.borrow_mut();
        let index = line.saturating_sub(1) as usize;
        let first = index.saturating_sub(radius);
        let numbered = |lines: Vec<&str>| {
            let number = |at: usize| u32::try_from(first + at + 1).unwrap_or(u32::MAX);
            lines.iter().enumerate().map(|(at, text)| (number(at), one_line(&text.replace('\t', "        ")).into_owned())).collect()
        };
        if let Some((lines, _)) = cache.window(Path::new(file), line, radius) {
            return numbered(lines);
        }
        let lines: Vec<&str> = self.bundled(file).map_or_else(Vec::new, |text| text.lines().collect());
        if index >= lines.len() {
            return Vec::new();
        }
        numbered(lines[first..(index + radius + 1).min(lines.len())].to_vec())
    }

    fn text(&self, file: &str, line: u32) -> Option<String> {
        let mut cache = self.cache.borrow_mut();
        let line_in = |text: &'static str| text.lines().nth((line as usize).checked_sub(1)?);
        cache.line(Path::new(file), line).or_else(|| line_in(self.bundled(file)?)).map(str::to_owned)
    }

    fn bundled(&self, file: &str) -> Option<&'static str> {
        self.bundled.iter().find(|(end, _)| Path::new(file).ends_with(end)).map(|(_, text)| *text)
    }
}

impl Sources for FileSources {
    fn line(&self, file: &str, line: u32) -> Option<String> {
        if self.is_hidden { None } else { self.text(file, line).map(|line| one_line(&line).into_owned()) }
    }

    fn cause(&self, frames: &[Frame], call: Option<&str>) -> TouchCause {
        let own = user_frame(frames);
        let text = own.and_then(|frame| self.text(frame.file.as_deref()?, frame.line?));
        touch_cause(frames, call, text.as_deref())
    }

    fn user_frame(&self, frames: &[Frame]) -> Option<usize> {
        let own = user_frame(frames)?;
        frames.iter().position(|frame| std::ptr::eq(frame, own))
    }

    fn is_own_module(&self, module: &str) -> bool {
        is_own_module(module)
    }

    fn library_buffer(&self, frames: &[Frame]) -> Option<String> {
        library_buffer(frames).map(str::to_owned)
    }

    fn variable(&self, file: &str, line: u32, call: &str, nth: usize) -> Option<String> {
        let mut cache = self.cache.borrow_mut();
        if let Some((lines, index)) = cache.window(Path::new(file), line, LIST_RADIUS) {
            return variable_near(&lines, index, call, nth);
        }
        let lines: Vec<&str> = self.bundled(file)?.lines().collect();
        variable_near(&lines, (line as usize).checked_sub(1)?, call, nth)
    }

    fn variable_at(&self, file: &str, line: u32, call: &str, column: u32) -> Option<String> {
        variable_at_column(&self.line(file, line)?, call, column)
    }

    fn python_value(&self, file: &str, line: u32, column: usize) -> Option<PythonValue> {
        let mut cache = self.cache.borrow_mut();
        let (lines, index) = cache.window(Path::new(file), line, RADIUS)?;
        Some(match python_value(&lines, index, column)? {
            symbols::PythonValue::Assigned(name) => PythonValue::Assigned(name),
            symbols::PythonValue::Unassigned(text) => PythonValue::Unassigned(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check lines, variables and owners in a file, and that a missing file has none.
    #[test]
    fn files_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.c");
        std::fs::write(&path, "int main(void) {\n    double *A =\n        malloc(n * sizeof *A);\n}\n").unwrap();
        let file = path.to_str().unwrap();
        let sources = FileSources::new(&[("kernels/k.c", "\ndouble *B = malloc(n);\n")]);
        assert_eq!(sources.line(file, 3).as_deref(), Some("        malloc(n * sizeof *A);"));
        let stale = FileSources::new(&[]).until(SystemTime::UNIX_EPOCH);
        assert_eq!((stale.line(file, 3), stale.variable(file, 3, "malloc", 0), stale.notes().len()), (None, None, 1));
        assert_eq!(sources.line(file, 0), None);
        assert_eq!(sources.line(file, 99), None);
        assert_eq!(sources.variable(file, 3, "malloc", 0).as_deref(), Some("A"));
        assert_eq!(sources.line("/gone/kernels/k.c", 2).as_deref(), Some("double *B = malloc(n);"));
        assert_eq!(sources.variable("/gone/kernels/k.c", 2, "malloc", 0).as_deref(), Some("B"));
        assert_eq!(sources.line("/gone/kernels/k.c", 0), None);
        assert_eq!(sources.line("/gone/otherkernels/k.c", 2), None);
        assert_eq!(sources.line("/no/such/file.c", 1), None);
        assert_eq!(sources.variable("/no/such/file.c", 1, "malloc", 0), None);

        let frame = |function: &str, module: &str, file: Option<&str>| Frame {
            module: Some(module.into()),
            function: Some(function.into()),
            file: file.map(str::to_owned),
            line: file.map(|_| 3),
            ..Frame::default()
        };
        let frames = [
            frame("__memset_avx2_unaligned_erms", "/usr/lib/x86_64-linux-gnu/libc.so.6", None),
            frame("main", "/home/me/a.out", Some(file)),
        ];
        assert_eq!(sources.user_frame(&frames), Some(1));
        assert_eq!(sources.user_frame(&[]), None);
        assert_eq!(sources.cause(&frames, Some("malloc")), TouchCause::Memset);
        // The frame of a static array has only the line of its declaration.
        let declared = [Frame { address: 0x4000, file: Some(file.into()), line: Some(2), ..Frame::default() }];
        assert_eq!(sources.user_frame(&declared), Some(0));

        let script = folder.path().join("model.py");
        std::fs::write(
            &script,
            "import numpy as np\nn = 1000\na = np.ones(n)\nb[0] = numpy.fromfile('x')\nself.c = np.zeros((n, n),\n    dtype=float)\n",
        )
        .unwrap();
        let script = script.to_str().unwrap();
        let python = |function: &str, file: &str, line| Frame { line: Some(line), ..frame(function, "python", Some(file)) };
        let stack = [
            frame("malloc", "/usr/lib/x86_64-linux-gnu/libc.so.6", None),
            frame("PyArray_NewFromDescr", "/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.so", None),
            frame("_PyEval_EvalFrameDefault", "/usr/bin/python3.11", None),
            python("ones", "/usr/lib/python3/dist-packages/numpy/core/numeric.py", 191),
            python("<module>", script, 3),
        ];
        assert_eq!(sources.user_frame(&stack), Some(4));
        for call in ["malloc", "calloc", "mmap"] {
            assert_eq!(sources.variable(script, 3, call, 0).as_deref(), Some("a"), "{call}");
            assert_eq!(sources.variable(script, 4, call, 0).as_deref(), Some("b[0]"), "{call}");
            assert_eq!(sources.variable(script, 5, call, 0).as_deref(), Some("self.c"), "{call}");
        }
    }
}
