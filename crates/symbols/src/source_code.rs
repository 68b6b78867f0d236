//! Lines of source files, each file read once.
//!
//! The names of source files come from a profile, which may come from anywhere: a report must not show the lines of files that are no source
//! code, or that who asks for the report could not read ([`SourceCache`]).

use firsttouch_model::rows::SourceFile;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::fs::{self, Metadata, OpenOptions};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Larger files are not read as source code, bytes.
const LARGEST_FILE: u64 = 8 << 20;
/// How the names of source files end.
const ENDINGS: &str = "c cc cp cpp cxx c++ h hh hpp hxx h++ inc inl ipp tcc f for ftn f77 f90 f95 f03 f08 F FOR F77 F90 F95 F03 F08 rs go py pyx \
                       pxd java kt scala js mjs ts jl d m mm cu cuh hip cl ispc s S asm zig nim swift pas adb ads ml hs rb lua php cs vala y l";
/// Folders of headers, whose names need no ending (`vector`).
const HEADERS: [&str; 2] = ["/usr/include/", "/usr/local/include/"];

/// Opens a file of another folder than the recorded one, by the path that was recorded.
pub type Elsewhere = Box<dyn Fn(&Path) -> Option<fs::File>>;

/// Source files by path. Relative paths are relative to the current directory. Missing or too large files have no lines.
#[derive(Default)]
pub struct SourceCache {
    files: HashMap<PathBuf, Option<Source>>,
    /// Files changed later are not the ones that the program was built from.
    newest: Option<SystemTime>,
    /// Files as they were when the profile was made. Others are not read. Without it, files with the name of a source file are.
    recorded: Option<BTreeMap<String, SourceFile>>,
    /// Files that this user may not read are not read.
    reader: Option<u32>,
    /// The folders that the user names are looked at first.
    elsewhere: Option<Elsewhere>,
    changed: Vec<PathBuf>,
}

struct Source {
    text: String,
    /// The range of each line in the text, without its line end.
    lines: Vec<Range<usize>>,
}

/// What a profile keeps of a file; `None` if it is not a regular file.
#[must_use]
pub fn source_file(about: &Metadata) -> Option<SourceFile> {
    let modified_ns = about.mtime().saturating_mul(1_000_000_000).saturating_add(about.mtime_nsec());
    about.is_file().then_some(SourceFile { bytes: about.len(), modified_ns })
}

fn is_named_as_source(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.split_whitespace().any(|one| one == ending))
        || path.canonicalize().is_ok_and(|path| HEADERS.iter().any(|folder| path.starts_with(folder)))
}

/// Whether a user may read a file, by the permissions of it and the folders above it. The groups of the user are not asked for.
fn may_read(user: u32, path: &Path) -> bool {
    let allows = |path: &Path, own: u32, others: u32| {
        fs::metadata(path).is_ok_and(|about| about.mode() & if about.uid() == user { own } else { others } != 0)
    };
    let Ok(path) = path.canonicalize() else { return false };
    allows(&path, 0o400, 0o4) && path.ancestors().skip(1).all(|folder| allows(folder, 0o100, 0o1))
}

impl Source {
    fn read(path: &Path) -> Option<Self> {
        // Check the file before opening it: opening a FIFO would wait, and so would reading some files of /proc.
        fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Self::of(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?)
    }

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

    /// The same cache, which reads only files that are as they were when a profile was made, if that is known, and else only files that are named as
    /// source files are.
    #[must_use]
    pub fn of_recorded(self, files: &BTreeMap<String, SourceFile>) -> Self {
        Self { recorded: (!files.is_empty()).then(|| files.clone()), ..self }
    }

    /// The same cache, which reads only files that this user may read.
    #[must_use]
    pub fn readable_by(self, user: Option<u32>) -> Self {
        Self { reader: user, ..self }
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

    fn is_changed(&self, file: &Path) -> bool {
        let Ok(about) = fs::metadata(file) else { return false };
        let recorded = self.recorded.as_ref().and_then(|files| files.get(file.to_str()?));
        self.newest.is_some_and(|newest| about.modified().is_ok_and(|modified| modified > newest))
            || recorded.is_some_and(|recorded| source_file(&about).is_some_and(|now| now != *recorded))
    }

    /// Whether the file is source code that this report may show.
    fn is_allowed(&self, file: &Path) -> bool {
        let is_source = match &self.recorded {
            Some(files) => file.to_str().is_some_and(|name| files.contains_key(name)),
            None => is_named_as_source(file),
        };
        is_source && self.reader.is_none_or(|user| may_read(user, file))
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
        if !self.is_allowed(file) {
            return None;
        }
        if self.is_changed(file) {
            self.changed.push(file.to_owned());
            return None;
        }
        Source::read(file)
    }

    /// A copy of the file in a folder that the user names. Its time is another one, so only its size tells that it is the file that was recorded.
    fn read_elsewhere(&mut self, file: &Path) -> Option<Source> {
        let open = self.elsewhere.as_ref()?;
        let recorded = match &self.recorded {
            Some(files) => Some(files.get(file.to_str()?)?.bytes),
            None => None,
        };
        let copy = open(file).filter(|_| is_named_as_source(file))?;
        let about = copy.metadata().ok().filter(Metadata::is_file)?;
        if recorded.is_some_and(|bytes| bytes != about.len()) {
            self.changed.push(file.to_owned());
            return None;
        }
        Source::of(copy)
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

    /// Check which files of a folder that the user names are shown: regular ones, named as source files, as large as recorded.
    #[test]
    fn copies_are_found_elsewhere() {
        let directory = tempfile::TempDir::new().unwrap();
        let copy = directory.path().join("copy");
        fs::write(&copy, "int a;\n").unwrap();
        let cache = |bytes: u64| {
            let files = ["/build/a.c", "/etc/shadow"].map(|name| (name.to_owned(), SourceFile { bytes, modified_ns: 1 }));
            let opened = copy.clone();
            SourceCache::new().of_recorded(&BTreeMap::from(files)).looking_elsewhere(Some(Box::new(move |_| File::open(&opened).ok())))
        };
        assert_eq!(cache(7).line(Path::new("/build/a.c"), 1), Some("int a;"));
        let mut other = cache(8);
        assert_eq!(other.line(Path::new("/build/a.c"), 1), None);
        assert_eq!(other.changed().len(), 1);
        assert_eq!(cache(7).line(Path::new("/etc/shadow"), 1), None);
        assert_eq!(cache(7).line(Path::new("/build/b.c"), 1), None, "it is not in the profile");
    }

    /// Check that a profile cannot make a report show files that are no source code, that have changed, or that its owner may not read.
    #[test]
    fn other_files_are_not_shown() {
        let directory = tempfile::TempDir::new().unwrap();
        let (code, secret) = (directory.path().join("a.c"), directory.path().join("shadow"));
        fs::write(&code, "int a;\n").unwrap();
        fs::write(&secret, "root:x\n").unwrap();
        assert_eq!(SourceCache::new().line(&secret, 1), None, "it has no name of a source file");
        for name in ["/etc/shadow", "/etc/passwd", "/proc/self/environ", "/proc/self/mem"] {
            assert_eq!(SourceCache::new().line(Path::new(name), 1), None, "{name}");
        }
        let now = |path: &Path| source_file(&fs::metadata(path).unwrap()).unwrap();
        let recorded = |path: &Path, file| BTreeMap::from([(path.to_str().unwrap().to_owned(), file)]);
        let same = recorded(&code, now(&code));
        assert_eq!(SourceCache::new().of_recorded(&same).line(&code, 1), Some("int a;"));
        assert_eq!(SourceCache::new().of_recorded(&recorded(&secret, now(&secret))).line(&code, 1), None, "it is not in the profile");
        for other in [SourceFile { bytes: 8, ..now(&code) }, SourceFile { modified_ns: 0, ..now(&code) }] {
            let mut cache = SourceCache::new().of_recorded(&recorded(&code, other));
            assert_eq!(cache.line(&code, 1), None);
            assert_eq!(cache.changed().len(), 1);
        }
        let readable = |mode: u32, user: u32| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&code, fs::Permissions::from_mode(mode)).unwrap();
            let same = recorded(&code, now(&code));
            SourceCache::new().of_recorded(&same).readable_by(Some(user)).line(&code, 1).is_some()
        };
        let (own, other) = (fs::metadata(&code).unwrap().uid(), 40_000);
        let folder_for = |mode: u32| fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        folder_for(0o700);
        assert!(readable(0o644, own) && !readable(0o644, other) && !readable(0o044, own));
        folder_for(0o755);
        assert!(readable(0o644, other) && !readable(0o640, other));
    }
}
