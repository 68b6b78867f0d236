//! Lines of source files, each file read once.
//!
//! The names of source files come from a profile, which may come from anywhere, and the profile has them from a program, which may say what it likes: a
//! report must not show the lines of files that are no source code, or that who asks for the report could not read ([`SourceCache`]).

use firsttouch_model::rows::SourceFile;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::fs::{self, Metadata, OpenOptions};
use std::io::Read;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Larger files are not read as source code, bytes.
const LARGEST_FILE: u64 = 8 << 20;
/// How the names of source files end.
const ENDINGS: &str = "c cc cp cpp cxx c++ C CC CPP CXX h hh hpp hxx h++ H HH HPP HXX inc inl ipp tcc tpp txx icc ixx cppm def f for ftn f77 f90 f95 \
                       f03 f08 f18 fpp fypp F FOR F77 F90 F95 F03 F08 F18 FPP rs go py pyx pxd pxi java kt scala js mjs ts jl d m mm cu cuh hip cl \
                       ispc s S asm zig nim swift pas adb ads ml hs rb lua php cs vala y l";
/// Folders of headers, whose names need no ending (`vector`).
const HEADERS: [&str; 2] = ["/usr/include/", "/usr/local/include/"];
/// The same of compilers that are installed elsewhere.
const STANDARD_LIBRARY: &str = "/include/c++/";
/// The first line of a script, whose name needs no ending either, is looked at so far.
const FIRST_LINE: usize = 128;

/// Opens a file of another folder than the recorded one, by the path that was recorded.
pub type Elsewhere = Box<dyn Fn(&Path) -> Option<fs::File>>;

/// Who must be able to read a file that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reader {
    /// Who asks: the kernel decides.
    #[default]
    Asking,
    User(u32),
    Everybody,
}

/// Source files by path. Relative paths are relative to the current directory. Missing or too large files have no lines, and neither have those that are not
/// named as source files are.
#[derive(Default)]
pub struct SourceCache {
    files: HashMap<PathBuf, Option<Source>>,
    /// Files changed later are not the ones that the program was built from.
    newest: Option<SystemTime>,
    /// Files as they were when the profile was made. Others are not read.
    recorded: Option<BTreeMap<String, SourceFile>>,
    reader: Reader,
    /// The folders that the user names are looked at first.
    elsewhere: Option<Elsewhere>,
    changed: Vec<PathBuf>,
}

struct Source {
    text: String,
    /// The range of each line in the text, without its line end.
    lines: Vec<Range<usize>>,
}

/// A regular file that is source code by its own name: links lead anywhere, and may be changed at any time, so that the open file counts.
struct Opened {
    file: fs::File,
    about: Metadata,
    path: PathBuf,
}

/// What a profile keeps of a source file, as it is now; `None` if it is not one.
#[must_use]
pub fn source_file(path: &Path) -> Option<SourceFile> {
    Opened::at(path).map(|opened| opened.as_recorded())
}

fn is_named_as_source(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let is_header = || HEADERS.iter().any(|folder| path.starts_with(folder)) || path.to_string_lossy().contains(STANDARD_LIBRARY);
    ending.is_some_and(|ending| ENDINGS.split_whitespace().any(|one| one == ending)) || is_header()
}

fn is_python_script(file: &fs::File) -> bool {
    let mut start = [0; FIRST_LINE];
    let read = file.read_at(&mut start, 0).unwrap_or(0);
    let first = start[..read].split(|byte| *byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"#!") && String::from_utf8_lossy(first).contains("python")
}

impl Opened {
    fn at(path: &Path) -> Option<Self> {
        // Check the file before opening it: opening a FIFO would wait, and so would reading some files of /proc.
        fs::metadata(path).ok().filter(Metadata::is_file)?;
        Self::of(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?)
    }

    fn of(file: fs::File) -> Option<Self> {
        let about = file.metadata().ok().filter(Metadata::is_file)?;
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        (is_named_as_source(&path) || is_python_script(&file)).then_some(Self { file, about, path })
    }

    fn as_recorded(&self) -> SourceFile {
        let modified_ns = self.about.mtime().saturating_mul(1_000_000_000).saturating_add(self.about.mtime_nsec());
        SourceFile { bytes: self.about.len(), modified_ns }
    }

    /// Whether a user may read it, by the permissions of it and the folders above it. The groups of the user are not asked for.
    fn is_readable_by(&self, reader: Reader) -> bool {
        let allows =
            |about: &Metadata, own: u32, others: u32| about.mode() & if reader == Reader::User(about.uid()) { own } else { others } != 0;
        let enters = |folder: &Path| fs::metadata(folder).is_ok_and(|about| allows(&about, 0o100, 0o1));
        reader == Reader::Asking || allows(&self.about, 0o400, 0o4) && self.path.ancestors().skip(1).all(enters)
    }
}

impl Source {
    fn of(file: fs::File) -> Option<Self> {
        let mut bytes = Vec::new();
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > LARGEST_FILE {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut start = 0;
        let mut lines = Vec::new();
        for line in text.split_inclusive('\n') {
            lines.push(start..start + line.trim_end_matches(['\n', '\r']).len());
            start += line.len();
        }
        Some(Self { text, lines })
    }

    fn line(&self, index: usize) -> Option<&str> {
        self.text.get(self.lines.get(index)?.clone())
    }
}

impl SourceCache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty cache that ignores files changed after `newest`: their lines may have moved.
    #[must_use]
    pub fn until(newest: SystemTime) -> Self {
        Self { newest: Some(newest), ..Self::default() }
    }

    /// The same cache, which reads only files that are as they were when a profile was made, if that is known.
    #[must_use]
    pub fn of_recorded(self, files: &BTreeMap<String, SourceFile>) -> Self {
        Self { recorded: (!files.is_empty()).then(|| files.clone()), ..self }
    }

    /// The same cache, which reads only files that these may read too.
    #[must_use]
    pub fn readable_by(self, reader: Reader) -> Self {
        Self { reader, ..self }
    }

    /// The same cache, which looks for files elsewhere first.
    #[must_use]
    pub fn looking_elsewhere(self, elsewhere: Option<Elsewhere>) -> Self {
        Self { elsewhere, ..self }
    }

    /// Requested files that have changed since, in the order of the requests.
    #[must_use]
    pub fn changed(&self) -> &[PathBuf] {
        &self.changed
    }

    /// How a file was when the profile was made; `Some(None)` if that is not known of any file, `None` if it is not a file of the profile.
    fn recorded(&self, file: &Path) -> Option<Option<SourceFile>> {
        self.recorded.as_ref().map_or(Some(None), |files| files.get(file.to_str()?).copied().map(Some))
    }

    /// The text of a line; lines count from 1.
    pub fn line(&mut self, file: &Path, line: u32) -> Option<&str> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        self.source(file)?.line(index)
    }

    /// The lines from `radius` before to `radius` after a line, and its index among them: the input of [`crate::variable_near`].
    pub fn window(&mut self, file: &Path, line: u32, radius: usize) -> Option<(Vec<&str>, usize)> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let source = self.source(file)?;
        source.line(index)?;
        let first = index.saturating_sub(radius);
        let lines = (first..=index.saturating_add(radius)).map_while(|index| source.line(index));
        Some((lines.collect(), index - first))
    }

    fn source(&mut self, file: &Path) -> Option<&Source> {
        if !self.files.contains_key(file) {
            let found = self.read_elsewhere(file).or_else(|| self.read(file));
            self.files.insert(file.to_owned(), found);
        }
        self.files.get(file)?.as_ref()
    }

    fn read(&mut self, file: &Path) -> Option<Source> {
        let recorded = self.recorded(file)?;
        let opened = Opened::at(file).filter(|opened| opened.is_readable_by(self.reader))?;
        let is_newer = |newest| opened.about.modified().is_ok_and(|modified| modified > newest);
        if self.newest.is_some_and(is_newer) || recorded.is_some_and(|recorded| recorded != opened.as_recorded()) {
            self.changed.push(file.to_owned());
            return None;
        }
        Source::of(opened.file)
    }

    /// A copy of the file in a folder that the user names. Its time is another one, so only its size tells that it is the file that was recorded. The
    /// user names the folder, so its permissions are not asked for.
    fn read_elsewhere(&mut self, file: &Path) -> Option<Source> {
        let open = self.elsewhere.as_ref()?;
        let recorded = self.recorded(file)?;
        let copy = open(file).and_then(Opened::of)?;
        if recorded.is_some_and(|recorded| recorded.bytes != copy.about.len()) {
            self.changed.push(file.to_owned());
            return None;
        }
        Source::of(copy.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn lines_of_files() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("a.c"), b"one\r\ntwo\n\nf\xfcnf").unwrap();
        fs::write(path("empty.c"), b"").unwrap();
        File::create(path("large.c")).unwrap().set_len(LARGEST_FILE + 1).unwrap();
        let mut cache = SourceCache::new();
        for (line, text) in
            [(0, None), (1, Some("one")), (2, Some("two")), (3, Some("")), (4, Some("f\u{fffd}nf")), (5, None), (u32::MAX, None)]
        {
            assert_eq!(cache.line(&path("a.c"), line), text);
        }
        for name in ["empty.c", "large.c", "missing.c", "."] {
            assert_eq!(cache.line(&path(name), 1), None, "{name}");
        }
        assert_eq!(cache.window(&path("a.c"), 2, 1), Some((vec!["one", "two", ""], 1)));
        assert_eq!(cache.window(&path("a.c"), 1, 9).unwrap().1, 0);
        assert_eq!(cache.window(&path("a.c"), 5, 1), None);
        // Read once.
        fs::remove_file(path("a.c")).unwrap();
        assert_eq!(cache.line(&path("a.c"), 1), Some("one"));
        // Tests run in the crate's directory.
        assert_eq!(cache.line(Path::new("src/source_code.rs"), 1), Some("//! Lines of source files, each file read once."));
    }

    /// Check which files of a folder that the user names are shown: regular ones, named as source files themselves, as large as recorded.
    #[test]
    fn copies_are_found_elsewhere() {
        let directory = tempfile::TempDir::new().unwrap();
        let folder = directory.path().to_owned();
        for name in ["a.c", "b.c", "shadow"] {
            fs::write(folder.join(name), "int a;\n").unwrap();
        }
        std::os::unix::fs::symlink("shadow", folder.join("link.c")).unwrap();
        let cache = |bytes: u64| {
            let files = ["/build/a.c", "/build/link.c", "/etc/shadow"].map(|name| (name.to_owned(), SourceFile { bytes, modified_ns: 1 }));
            let folder = folder.clone();
            let open = move |file: &Path| File::open(folder.join(file.file_name()?)).ok();
            SourceCache::new().of_recorded(&BTreeMap::from(files)).looking_elsewhere(Some(Box::new(open)))
        };
        assert_eq!(cache(7).line(Path::new("/build/a.c"), 1), Some("int a;"));
        let mut other = cache(8);
        assert_eq!(other.line(Path::new("/build/a.c"), 1), None);
        assert_eq!(other.changed().len(), 1);
        assert_eq!(cache(7).line(Path::new("/etc/shadow"), 1), None);
        assert_eq!(cache(7).line(Path::new("/build/link.c"), 1), None);
        assert_eq!(cache(7).line(Path::new("/build/b.c"), 1), None, "it is not in the profile");
    }

    fn now(path: &Path) -> SourceFile {
        Opened::of(File::open(path).unwrap()).map_or_else(|| of_any(path), |opened| opened.as_recorded())
    }

    /// As a hostile profile has it.
    fn of_any(path: &Path) -> SourceFile {
        let about = fs::metadata(path).unwrap();
        SourceFile { bytes: about.len(), modified_ns: about.mtime() * 1_000_000_000 + about.mtime_nsec() }
    }

    fn recorded(path: &Path, file: SourceFile) -> BTreeMap<String, SourceFile> {
        BTreeMap::from([(path.to_str().unwrap().to_owned(), file)])
    }

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }

    /// Check that a profile cannot make a report show files that are no source code, also if it says that they were there, or that are not in it, or have
    /// changed.
    #[test]
    fn other_files_are_not_shown() {
        let directory = tempfile::TempDir::new().unwrap();
        let [code, secret, link] = ["a.c", "shadow", "x.c"].map(|name| directory.path().join(name));
        fs::write(&code, "int a;\n").unwrap();
        fs::write(&secret, "root:x\n").unwrap();
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        for file in [&secret, &link] {
            assert_eq!(SourceCache::new().line(file, 1), None, "it has no name of a source file");
            let files = recorded(file, now(file));
            assert_eq!(SourceCache::new().of_recorded(&files).line(file, 1), None, "it has no name of a source file");
            assert_eq!(SourceCache::new().of_recorded(&files).line(&code, 1), None, "it is not in the profile");
            assert_eq!(source_file(file), None, "a recorder does not store it");
        }
        for name in ["/etc/shadow", "/etc/passwd", "/proc/self/environ", "/proc/self/mem"] {
            assert_eq!(SourceCache::new().line(Path::new(name), 1), None, "{name}");
        }
        assert_eq!(source_file(&code), Some(now(&code)));
        assert_eq!(SourceCache::new().of_recorded(&recorded(&code, now(&code))).line(&code, 1), Some("int a;"));
        for other in [SourceFile { bytes: 8, ..now(&code) }, SourceFile { modified_ns: 0, ..now(&code) }] {
            let mut cache = SourceCache::new().of_recorded(&recorded(&code, other));
            assert_eq!(cache.line(&code, 1), None);
            assert_eq!(cache.changed().len(), 1);
        }
        let linked = directory.path().join("objects");
        std::os::unix::fs::symlink(&code, &linked).unwrap();
        assert_eq!(SourceCache::new().line(&linked, 1), Some("int a;"), "what it leads to is source code");
    }

    /// Check that files are shown that have no ending of a source file by custom: headers of the standard library, and Python scripts.
    #[test]
    fn some_source_files_have_no_ending() {
        let directory = tempfile::TempDir::new().unwrap();
        let headers = directory.path().join("gcc/include/c++/13.2.0");
        fs::create_dir_all(&headers).unwrap();
        for (name, text, is_shown) in [
            ("gcc/include/c++/13.2.0/vector", "class vector;\n", true),
            ("gcc/include/vector", "class vector;\n", false),
            ("solver", "#!/usr/bin/env python3\n", true),
            ("backup", "#!/bin/sh\npython\n", false),
            ("solver.C", "int main() {}\n", true),
        ] {
            let file = directory.path().join(name);
            fs::write(&file, text).unwrap();
            let files = recorded(&file, of_any(&file));
            assert_eq!(SourceCache::new().of_recorded(&files).line(&file, 1).is_some(), is_shown, "{name}");
            assert_eq!(source_file(&file).is_some(), is_shown, "{name}");
        }
    }

    /// Check whose permissions count: those of the file and of all folders above it.
    #[test]
    fn readers_must_be_allowed() {
        let directory = tempfile::TempDir::new().unwrap();
        let code = directory.path().join("a.c");
        fs::write(&code, "int a;\n").unwrap();
        let own = Reader::User(fs::metadata(&code).unwrap().uid());
        let other = Reader::User(40_000);
        for (folder, file, reader, is_shown) in [
            (0o700, 0o644, own, true),
            (0o700, 0o644, other, false),
            (0o700, 0o644, Reader::Everybody, false),
            (0o700, 0o600, Reader::Asking, true),
            (0o755, 0o644, other, true),
            (0o755, 0o644, Reader::Everybody, true),
            (0o755, 0o640, other, false),
            (0o755, 0o640, own, true),
            (0o755, 0o440, Reader::Everybody, false),
        ] {
            allow(directory.path(), folder);
            allow(&code, file);
            let mut cache = SourceCache::new().of_recorded(&recorded(&code, now(&code))).readable_by(reader);
            assert_eq!(cache.line(&code, 1).is_some(), is_shown, "{folder:o} {file:o} {reader:?}");
        }
    }
}
