//! The origin of an object: the call or the static array that identifies it in every run.

use crate::program_files::static_array;
use crate::{Frame, MOST_COPIES, Module, Origin, ProgramFiles, Site, file_name, hash};
use firsttouch_analysis::ObjectView;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::{self as profile, Id, Object, ObjectKind, Profile};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The module name in frames of interpreted Python code.
const PYTHON: &str = "python";

/// Programs whose memory holds objects of all kinds. A version may follow the name.
const INTERPRETERS: &[&str] = &["python", "ruby", "perl", "node", "java", "jvm"];

/// The call that attaches shared memory.
const SHMAT: &str = "shmat";

const RUST_SOURCES: &str = "/rustc/";

/// Why no plan can place an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unplaceable {
    NoRemedy(FindingKind),
    NotJudged,
    NoTraffic,
    OtherProcess,
    NotInProfile,
    NoCall(ObjectKind),
    NoStaticArray(String),
    PythonCode,
    UnknownCall,
    /// The call also allocates other memory.
    MixedCall,
    /// Blocks below the minimum size.
    SmallBlocks,
    /// An interpreter's static array, or memory that it allocates for objects of all kinds.
    Interpreter,
    /// A Java virtual machine allocates it for objects of all kinds.
    Jvm,
    /// A segment of System V shared memory, which no function attaches that a run places memory in.
    Segment,
    /// The program does not load the library that places memory; why it does not.
    NoLibrary(String),
    /// Its accesses go to all nodes alike, and no thread owns a part of it.
    Spread,
    /// More objects than a plan has room for.
    Surplus,
}

impl fmt::Display for Unplaceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRemedy(kind) => write!(f, "{kind}: no placement of its memory removes that"),
            Self::NotJudged => write!(f, "it was not judged"),
            Self::NoTraffic => write!(f, "its traffic is not known, so nothing can be predicted"),
            Self::OtherProcess => write!(f, "it belongs to another process than the one that does most of the work"),
            Self::NotInProfile => write!(f, "it is not in the profile"),
            Self::NoCall(ObjectKind::File) => write!(f, "it is the memory of a file, which a run does not place"),
            Self::NoCall(ObjectKind::Mapping) => write!(f, "the call that mapped it was not seen, so a run could not follow it"),
            Self::NoCall(kind) => write!(f, "a {} has no allocating call that a run could follow", kind.as_str()),
            Self::NoStaticArray(name) => write!(f, "no file of the program has one static array '{name}' of its size"),
            Self::PythonCode => write!(f, "it is allocated by Python code, whose stacks a run does not follow"),
            Self::UnknownCall => write!(f, "the call that allocated it is not known"),
            Self::SmallBlocks => {
                write!(f, "its blocks are too small for a run to place one by one: only the fix in the report repairs it")
            }
            Self::Jvm => write!(f, "it is the JVM's own memory, which holds objects of all kinds"),
            Self::Interpreter => write!(f, "it is the interpreter's own memory, which holds objects of all kinds"),
            Self::Segment => write!(f, "shmat attached it, which a run does not follow"),
            Self::NoLibrary(why) => write!(f, "{why}; a run could not load the library that places memory either"),
            Self::Spread => write!(f, "its pages are spread over all nodes already, and no thread owns a part of it"),
            Self::Surplus => write!(f, "a plan has no room for so many objects"),
            Self::MixedCall => write!(f, "the same call allocates other memory too, without a fixed order"),
        }
    }
}

/// The calls and static arrays of a profile, with a name for each module, in the order of first use.
pub struct Origins<'a> {
    profile: &'a Profile,
    files: &'a dyn ProgramFiles,
    /// Names of modules by path.
    names: RefCell<BTreeMap<String, String>>,
    /// The hash of each site; empty until it is needed.
    hashes: RefCell<BTreeMap<Id, String>>,
}

impl<'a> Origins<'a> {
    #[must_use]
    pub fn new(profile: &'a Profile, files: &'a dyn ProgramFiles) -> Self {
        Self { profile, files, names: RefCell::default(), hashes: RefCell::default() }
    }

    /// The origin of an object.
    ///
    /// # Errors
    /// Why a run could not recognise the object.
    pub fn origin(&self, view: &ObjectView) -> Result<Origin, Unplaceable> {
        if let Some(why) = self.no_library() {
            return Err(Unplaceable::NoLibrary(why));
        }
        if view.kind == ObjectKind::Pool {
            return Err(if view.language.as_deref() == Some("python") { Unplaceable::PythonCode } else { Unplaceable::SmallBlocks });
        }
        let object = self.profile.objects.iter().find(|object| object.id == view.id).ok_or(Unplaceable::NotInProfile)?;
        match object.kind {
            ObjectKind::Static => self.symbol(object),
            ObjectKind::Heap | ObjectKind::Anonymous if object.call.as_deref() == Some(SHMAT) => Err(Unplaceable::Segment),
            ObjectKind::Heap | ObjectKind::Anonymous => self.site(object, view).map(Origin::Site),
            ObjectKind::Pool => Err(Unplaceable::SmallBlocks),
            ObjectKind::Stack | ObjectKind::File | ObjectKind::Mapping => Err(Unplaceable::NoCall(object.kind)),
        }
    }

    /// Why the program did not load the agent; `None` if it did, or was running already.
    fn no_library(&self) -> Option<String> {
        let agent = self.profile.evidence.iter().find(|evidence| evidence.source == EvidenceSource::Agent.as_str())?;
        let has_recorded = self.profile.objects.iter().any(|object| object.kind == ObjectKind::Heap);
        let is_missing = !agent.available && !has_recorded && !self.profile.meta.is_attached();
        // The sentence goes on with what that means for the names of objects.
        is_missing.then(|| agent.detail.split(": ").next().unwrap_or_default().to_owned())
    }

    fn symbol(&self, object: &Object) -> Result<Origin, Unplaceable> {
        let name = object.name.clone().unwrap_or_default();
        let exe = self.profile.processes.iter().find(|process| process.id == object.process).and_then(|process| process.exe.clone());
        let modules = self.profile.sites.values().flat_map(|site| &site.frames).filter_map(|frame| frame.module.clone());
        let mut paths: Vec<String> = modules.filter(|path| !is_system(path) && path.starts_with('/')).collect();
        paths.sort_unstable();
        paths.dedup();
        let holds = |path: &String| static_array(self.files, Path::new(path), &name, object.bytes).is_some();
        match exe.into_iter().chain(paths).find(holds) {
            Some(path) if is_interpreter(&path) => Err(Unplaceable::Interpreter),
            Some(path) => Ok(Origin::Symbol { module: self.name(&path), name }),
            None => Err(Unplaceable::NoStaticArray(name)),
        }
    }

    fn site(&self, object: &Object, view: &ObjectView) -> Result<Site, Unplaceable> {
        let call = self.call(object)?;
        let shares_lines = self.shares_lines(object, &call);
        Ok(Site { ordinal: self.ordinal(object, view)?, shares_lines, ..call })
    }

    /// Whether another allocating call has the same lines.
    fn shares_lines(&self, object: &Object, call: &Site) -> bool {
        let mut known = self.hashes.borrow_mut();
        if known.is_empty() {
            let kinds = [ObjectKind::Heap, ObjectKind::Anonymous];
            for other in self.profile.objects.iter().filter(|other| kinds.contains(&other.kind)) {
                if let (Some(site), Ok(call)) = (other.site, self.call(other)) {
                    known.entry(site).or_insert_with(|| hash(&call));
                }
            }
        }
        let own = hash(call);
        known.iter().any(|(site, other)| Some(*site) != object.site && *other == own)
    }

    /// The call that allocated an object, without regard to which of its allocations that was.
    ///
    /// # Errors
    /// Why a run could not recognise the call.
    pub fn call(&self, object: &Object) -> Result<Site, Unplaceable> {
        let recorded = object.site.and_then(|site| self.profile.sites.get(&site));
        let recorded = recorded.map_or(&[][..], |site| &site.frames);
        if recorded.iter().any(|frame| frame.module.as_deref() == Some(PYTHON)) {
            return Err(Unplaceable::PythonCode);
        }
        if recorded.first().and_then(|frame| frame.module.as_deref()).is_some_and(|path| file_name(path) == "libjvm.so") {
            return Err(Unplaceable::Jvm);
        }
        // The C library's own functions may come first.
        if recorded.iter().filter_map(|frame| frame.module.as_deref()).find(|path| !is_system(path)).is_some_and(is_interpreter) {
            return Err(Unplaceable::Interpreter);
        }
        let frames = self.frames(recorded);
        if frames.is_empty() {
            return Err(Unplaceable::UnknownCall);
        }
        Ok(Site { call: object.call.clone().unwrap_or_default(), frames, ..Site::default() })
    }

    /// The frames from the leaf to the outermost one that identifies the site. A frame without a line matches any code of its file, because
    /// the functions inside a library differ between versions. If no frame has a line, offsets identify the site: so too if only Rust's runtime has
    /// lines, as in a program that was built without -g.
    fn frames(&self, recorded: &[profile::Frame]) -> Vec<Frame> {
        let is_lined =
            |frame: &profile::Frame| frame.line.is_some() && frame.file.is_some() && !frame.module.as_deref().is_none_or(is_system);
        let is_rust = |frame: &profile::Frame| frame.file.as_deref().is_some_and(|file| file.starts_with(RUST_SOURCES));
        let has_lines = recorded.iter().any(|frame| is_lined(frame) && !is_rust(frame));
        let mut frames: Vec<Frame> = Vec::new();
        let mut keep = 0;
        // Keep a function together with the functions inlined into it.
        for call in recorded.split_inclusive(|frame| !frame.inlined) {
            let Some((module, offset)) = call.first().and_then(|frame| frame.module.clone().zip(frame.offset)) else { continue };
            let name = self.name(&module);
            if if has_lines { is_lined(&call[0]) } else { !is_system(&module) } {
                let frame = |frame: &profile::Frame| Frame {
                    module: name.clone(),
                    offset: Some(offset),
                    copies: Vec::new(),
                    inlined: frame.inlined,
                    function: frame.function.clone().unwrap_or_default(),
                    file: frame.file.clone().filter(|_| has_lines).unwrap_or_default(),
                    line: frame.line.filter(|_| has_lines).unwrap_or(0),
                };
                frames.extend(call.iter().map(frame));
                if let Some(last) = frames.last_mut() {
                    last.inlined = false;
                }
                // Leave out Rust's runtime around main: it differs between compilers.
                if !frames.last().is_some_and(|outer| outer.file.starts_with(RUST_SOURCES)) {
                    keep = frames.len();
                }
            } else if frames.last().is_none_or(|last| !(last.is_any() && last.module == name)) {
                frames.push(Frame { module: name, ..Frame::default() });
            }
        }
        frames.truncate(keep);
        frames
    }

    /// Which of the site's allocations are meant; `None` if all are.
    fn ordinal(&self, object: &Object, view: &ObjectView) -> Result<Option<(u32, u32)>, Unplaceable> {
        let same = |other: &&Object| other.site == object.site && other.process == object.process && other.kind == object.kind;
        let mut all: Vec<(u64, Id, u64)> = self.profile.objects.iter().filter(same).map(|o| (o.born_ns, o.id, o.bytes)).collect();
        let folded = self.profile.folded_objects.iter().any(|f| Some(f.site) == object.site && f.bytes != object.bytes);
        if all.len() <= view.count && !folded {
            return Ok(None);
        }
        all.sort_unstable();
        let mine: Vec<usize> = all.iter().enumerate().filter(|(_, other)| other.2 == object.bytes).map(|(index, _)| index).collect();
        let every = mine.windows(2).map(|pair| pair[1] - pair[0]).next().unwrap_or(0);
        let first = mine.first().copied().unwrap_or(0);
        let regular = mine.iter().enumerate().all(|(k, index)| *index == first + k * every);
        let complete = every == 0 || first + mine.len() * every >= all.len();
        if folded || !regular || !complete || (every != 0 && first >= every) {
            return Err(Unplaceable::MixedCall);
        }
        Ok(u32::try_from(first).ok().zip(u32::try_from(every).ok()))
    }

    fn name(&self, path: &str) -> String {
        let mut names = self.names.borrow_mut();
        if let Some(name) = names.get(path) {
            return name.clone();
        }
        let base = file_name(path);
        let mut name = base.to_owned();
        let mut number = 1;
        while names.values().any(|taken| *taken == name) {
            number += 1;
            name = format!("{base}#{number}");
        }
        names.insert(path.to_owned(), name.clone());
        name
    }

    /// An origin with the copies that the compiler made of its calls: with other arguments, the program may take another path through a function. The
    /// debug data are read here, so that a run need not. If other calls have the same lines, only the recorded one is meant.
    pub(crate) fn with_copies(&self, origin: Origin) -> Origin {
        let Origin::Site(mut site) = origin else { return origin };
        let calls = site.frames.chunk_by_mut(|inner, _| inner.inlined).filter(|_| !site.shares_lines);
        for call in calls.filter(|call| call.iter().all(Frame::has_line)) {
            let path = self.path(&call[0].module).filter(|path| self.is_as_profiled(Path::new(path)));
            let Some((path, offset)) = path.zip(call[0].offset) else { continue };
            let mut copies = self.files.copies(Path::new(&path), offset, call);
            copies.retain(|(from, to)| !(*from..*to).contains(&offset));
            copies.truncate(MOST_COPIES);
            call[0].copies = copies;
        }
        Origin::Site(site)
    }

    /// The file of a module.
    fn path(&self, module: &str) -> Option<String> {
        self.names.borrow().iter().find(|(_, name)| *name == module).map(|(path, _)| path.clone())
    }

    /// A file that was rebuilt since the run is not the file that was profiled.
    fn is_as_profiled(&self, file: &Path) -> bool {
        let start = self.profile.meta.start_unix_s.and_then(|start| i64::try_from(start).ok()).unwrap_or(i64::MAX);
        self.files.modified_unix_s(file).is_some_and(|modified| modified <= start)
    }

    /// The modules that have a name and are used.
    pub(crate) fn modules(&self, is_used: impl Fn(&str) -> bool) -> Vec<Module> {
        let names = self.names.borrow();
        let modules = names.iter().filter(|(_, name)| is_used(name)).map(|(path, name)| {
            let file = Path::new(path);
            let build_id = if self.is_as_profiled(file) { self.files.build_id(file).unwrap_or_default() } else { String::new() };
            Module { name: name.clone(), path: path.clone(), build_id }
        });
        modules.collect()
    }
}

/// Whether a file is an interpreter or its library.
fn is_interpreter(path: &str) -> bool {
    let name = file_name(path);
    let name = name.strip_prefix("lib").unwrap_or(name);
    INTERPRETERS.iter().any(|known| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '3'])))
}

/// Whether a file is part of the system: its debug information is not read, and an update replaces it.
fn is_system(path: &str) -> bool {
    ["/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/", "["].iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A file with three copies of the call at 100.
    struct OneFile;

    impl ProgramFiles for OneFile {
        fn canonical(&self, path: &Path) -> Option<PathBuf> {
            Some(path.to_owned())
        }

        fn build_id(&self, _: &Path) -> Option<String> {
            Some("aa".into())
        }

        fn modified_unix_s(&self, path: &Path) -> Option<i64> {
            Some(if path.ends_with("rebuilt") { 2_000 } else { 500 })
        }

        fn device_and_inode(&self, _: &Path) -> Option<(u64, u64)> {
            None
        }

        fn static_arrays(&self, _: &Path, _: &str) -> Vec<(u64, u64)> {
            Vec::new()
        }

        fn code_at(&self, _: &Path, _: &[Frame]) -> Vec<(u64, u64)> {
            Vec::new()
        }

        fn copies(&self, _: &Path, offset: u64, lines: &[Frame]) -> Vec<(u64, u64)> {
            if offset == 100 && lines.len() == 2 { vec![(95, 101), (200, 206), (300, 306)] } else { Vec::new() }
        }

        fn is_at(&self, _: &Path, _: u64, _: &[Frame]) -> bool {
            false
        }
    }

    /// Check that the copies of a call are stored once for the functions inlined into each other, and none for a call without lines, for one whose lines
    /// other calls share, or from a file that was rebuilt.
    #[test]
    fn copies_are_stored() {
        let mut profile = Profile::default();
        profile.meta.start_unix_s = Some(1_000);
        let origins = Origins::new(&profile, &OneFile);
        let copies = |path: &str, line: u32, shares_lines: bool| {
            let frame = |inlined: bool, offset: u64| Frame {
                module: origins.name(path),
                offset: Some(offset),
                inlined,
                file: "st.c".into(),
                line,
                ..Frame::default()
            };
            let frames = vec![frame(true, 100), frame(false, 100), frame(false, 100)];
            match origins.with_copies(Origin::Site(Site { frames, shares_lines, ..Site::default() })) {
                Origin::Site(site) => site.frames.into_iter().map(|frame| frame.copies).collect::<Vec<_>>(),
                Origin::Symbol { .. } => panic!("a symbol"),
            }
        };
        assert_eq!(copies("/st", 14, false), [vec![(200, 206), (300, 306)], vec![], vec![]]);
        for none in [copies("/st", 0, false), copies("/st", 14, true), copies("/rebuilt", 14, false)] {
            assert!(none.iter().all(Vec::is_empty), "{none:?}");
        }
    }

    /// Check that a Rust program without debug data is identified by its offsets, although the runtime around its main function has lines: two calls
    /// differ, and lines identify one with debug data.
    #[test]
    fn rust_without_lines() {
        let call = |own: Option<u32>, offset: u64| {
            let frame = |offset: u64, file: Option<&str>, line: Option<u32>| profile::Frame {
                module: Some("/home/me/grow".into()),
                offset: Some(offset),
                file: file.map(str::to_owned),
                line,
                ..profile::Frame::default()
            };
            let runtime = frame(900, Some("/rustc/5980/library/std/src/rt.rs"), Some(171));
            let frames = vec![frame(offset, own.map(|_| "src/main.rs"), own), frame(800, None, None), runtime, frame(950, None, None)];
            let mut profile = Profile::default();
            profile.sites.insert(7, profile::Site { id: 7, process: 1, frames });
            let object = Object {
                id: 1,
                process: 1,
                kind: ObjectKind::Heap,
                call: Some("realloc".into()),
                name: None,
                address: 0,
                bytes: 1 << 24,
                born_ns: 0,
                died_ns: None,
                site: Some(7),
                thread: None,
            };
            Origins::new(&profile, &OneFile).call(&object).unwrap()
        };
        let offsets = |site: &Site| site.frames.iter().map(|frame| frame.offset.unwrap_or(0)).collect::<Vec<_>>();
        let (one, other, lined) = (call(None, 100), call(None, 200), call(Some(7), 100));
        assert_eq!((offsets(&one), offsets(&other)), (vec![100, 800, 900, 950], vec![200, 800, 900, 950]));
        assert!(!one.frames.iter().any(Frame::has_line) && hash(&one) != hash(&other));
        assert_eq!((offsets(&lined), lined.frames[0].line), (vec![100], 7));
    }

    /// Check which files count as interpreters.
    #[test]
    fn interpreters_have_versions() {
        for path in ["/usr/bin/python3.11", "/opt/lib/libpython3.12.so.1.0", "/usr/bin/perl", "/opt/node", "/opt/jdk/lib/server/libjvm.so"]
        {
            assert!(is_interpreter(path), "{path}");
        }
        for path in ["/home/me/nodes", "/home/me/pythonic", "/usr/lib/libc.so.6", "python_solver", "/home/me/javelin"] {
            assert!(!is_interpreter(path), "{path}");
        }
    }
}
