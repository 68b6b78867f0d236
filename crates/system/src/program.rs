//! What a program's file says: its OpenMP runtime, and the libraries that the loader will load.
//!
//! The search follows ld.so(8): DT_RPATH or DT_RUNPATH, LD_LIBRARY_PATH, the loader's cache, the default folders. Nothing is run.

use crate::calls::mapped_file::{self, MappedFile};
use crate::preload::accepts_agent::dynamic_texts;
use firsttouch_model::facts::{Compiler, OpenMp, Program};
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const CACHE: &str = "etc/ld.so.cache";
const DEFAULT_FOLDERS: [&str; 6] = ["lib64", "usr/lib64", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib", "usr/lib"];
/// The most libraries of a program.
const MOST_LIBRARIES: usize = 4096;
/// OpenMP runtimes, by the start of their file names.
const RUNTIMES: [(&str, OpenMp); 4] =
    [("libgomp.so", OpenMp::Gnu), ("libomp.so", OpenMp::Llvm), ("libomp5.so", OpenMp::Llvm), ("libiomp5.so", OpenMp::Llvm)];
/// Variables that a runtime reads: a program with both names in it has the runtime linked in.
const BUILT_IN: [([&[u8]; 2], OpenMp); 2] =
    [([b"KMP_AFFINITY", b"KMP_BLOCKTIME"], OpenMp::Llvm), ([b"GOMP_CPU_AFFINITY", b"GOMP_SPINCOUNT"], OpenMp::Gnu)];
/// Programs that load libraries while they run, or start other programs: their file does not show the runtime.
const OPEN_ENDED: [&str; 26] = [
    "python", "pypy", "R", "Rscript", "julia", "perl", "ruby", "java", "node", "lua", "octave", "sh", "bash", "dash", "zsh", "busybox",
    "env", "time", "nice", "taskset", "numactl", "mpirun", "mpiexec", "srun", "orterun", "make",
];
/// The entry point through which a runtime finds its tool (OpenMP 5.0, 4.2.1). A runtime without OMPT does not contain the name.
const OMPT_ENTRY: &[u8] = b"ompt_start_tool";
/// What a program with allocators of its own calls: in C, and in Fortran.
const ALLOCATOR_MAKERS: [&[u8]; 3] = [b"\0omp_init_allocator\0", b"\0omp_init_allocator_\0", b"\0omp_init_allocator_8_\0"];
/// Libraries that runtimes load to place the memory of allocators, if they are installed (libgomp's manual, Memory allocation; `libomp`'s own texts).
const PLACING_LIBRARIES: [&str; 2] = ["libnuma.so", "libmemkind.so"];

/// Examines the program at `path`.
#[must_use]
pub fn look_at(path: &Path) -> Program {
    Search::new(Path::new("/"), std::env::var("LD_LIBRARY_PATH").ok().as_deref()).program(path)
}

/// Finds LLVM's compiler in `PATH`, and its OpenMP runtime where the loader would look for it.
#[must_use]
pub fn compiler() -> Compiler {
    let text = |path: PathBuf| path.display().to_string();
    let search = Search::new(Path::new("/"), std::env::var("LD_LIBRARY_PATH").ok().as_deref());
    let runtime = ["libomp.so.5", "libomp.so", "libiomp5.so"].iter().find_map(|name| search.find(name, &[], true));
    Compiler { clang: crate::launch::find_program("clang".as_ref()).map(text), libomp: runtime.map(text) }
}

/// Of the files that `LD_PRELOAD` lists, those that the loader will not find. Names with `$ORIGIN` and the like are left out.
#[must_use]
pub fn missing_preloads(list: &str, library_path: Option<&str>) -> Vec<String> {
    let search = Search::new(Path::new("/"), library_path);
    let names = list.split([':', ' ']).filter(|name| !name.is_empty() && !name.contains('$'));
    names.filter(|name| search.find(name, &[], true).is_none()).map(str::to_owned).collect()
}

/// Where the loader looks for libraries.
struct Search {
    root: PathBuf,
    /// LD_LIBRARY_PATH.
    folders: Vec<PathBuf>,
    /// Files of the loader's cache by name. Of the files that fit, the loader takes the first.
    cache: BTreeMap<String, Vec<PathBuf>>,
}

/// The part of a file that the loader reads.
struct Image {
    needed: Vec<String>,
    folders: Vec<PathBuf>,
    is_dynamic: bool,
}

impl Search {
    fn new(root: &Path, library_path: Option<&str>) -> Self {
        let folders = library_path.unwrap_or_default().split([':', ';']).filter(|folder| !folder.is_empty()).map(PathBuf::from).collect();
        Self { root: root.to_owned(), folders, cache: cached(&fs::read(root.join(CACHE)).unwrap_or_default()) }
    }

    fn program(&self, path: &Path) -> Program {
        let mut program = Program { path: path.display().to_string(), ..Program::default() };
        let Some(data) = map(path) else { return program };
        // A script: its interpreter decides what is loaded or started.
        let Some(image) = image(&data, path) else { return program };
        let open_ended = is_open_ended(path);
        program.makes_allocators = ALLOCATOR_MAKERS.iter().any(|name| holds(&data, name));
        let mut files = BTreeMap::new();
        let mut waiting: VecDeque<(String, Vec<PathBuf>)> = image.needed.iter().map(|name| (name.clone(), image.folders.clone())).collect();
        let mut seen: BTreeSet<String> = image.needed.iter().cloned().collect();
        while let Some((name, folders)) = waiting.pop_front() {
            let found = self.find(&name, &folders, false);
            if let Some((file, next)) = found.as_ref().and_then(|file| Some((file, image_of(file)?))) {
                for needed in next.needed {
                    if seen.len() < MOST_LIBRARIES && seen.insert(needed.clone()) {
                        // DT_RPATH also applies to the libraries of libraries, DT_RUNPATH does not. Searching both finds at least as much.
                        waiting.push_back((needed, next.folders.iter().chain(&folders).cloned().collect()));
                    }
                }
                files.insert(name, file.clone());
            }
        }
        program.libraries = seen.into_iter().collect();
        let runtime = program.libraries.iter().find_map(|name| Some((name.clone(), runtime(name)?)));
        match runtime {
            Some((name, openmp)) => {
                let file = files.get(&name);
                program.openmp = openmp;
                program.ompt = file.and_then(|file| Some(holds(&map(file)?, OMPT_ENTRY)));
                let places = |data: &MappedFile| PLACING_LIBRARIES.into_iter().find(|name| holds(data, name.as_bytes()));
                program.placing_library = file.and_then(|file| places(&map(file)?)).map(str::to_owned);
                program.runtime_version = file.and_then(|file| runtime_version(file, &map(file)?));
                program.runtime_file = file.map(|file| file.display().to_string());
                program.runtime = name;
            }
            None => {
                let built_in = BUILT_IN
                    .iter()
                    .find(|(variables, _)| variables.iter().all(|variable| holds(&data, variable)))
                    .map(|(_, openmp)| *openmp);
                let unlinked = if open_ended || !image.is_dynamic { OpenMp::Unknown } else { OpenMp::None };
                program.openmp = built_in.filter(|_| !open_ended).unwrap_or(unlinked);
            }
        }
        program
    }

    /// The file that the loader takes for a name; with `plain`, any file will do, because there is no program to fit.
    fn find(&self, name: &str, folders: &[PathBuf], plain: bool) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| path.is_file());
        }
        let fits = |path: &PathBuf| path.is_file() && (plain || image_of(path).is_some());
        let listed = folders.iter().chain(&self.folders).map(|folder| folder.join(name));
        let cached = self.cache.get(name).into_iter().flatten().map(|path| self.below_root(path));
        let usual = DEFAULT_FOLDERS.iter().map(|folder| self.root.join(folder).join(name));
        listed.chain(cached).chain(usual).find(fits)
    }

    fn below_root(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// The file names in the loader's cache (glibc, sysdeps/generic/dl-cache.h). After the tables come strings that end with NUL: the
/// name and the path of each library. The strings are enough; the tables only add the order of variants for processors.
fn cached(data: &[u8]) -> BTreeMap<String, Vec<PathBuf>> {
    let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for text in data.split(|byte| *byte == 0).filter(|text| text.starts_with(b"/")) {
        let Ok(text) = std::str::from_utf8(text) else { continue };
        if let Some((_, name)) = text.rsplit_once('/') {
            files.entry(name.to_owned()).or_default().push(PathBuf::from(text));
        }
    }
    files
}

fn runtime(library: &str) -> Option<OpenMp> {
    RUNTIMES.iter().find(|(start, _)| library.starts_with(start)).map(|(_, openmp)| *openmp)
}

/// Compares the file's name and that of its link target (`python3` -> `python3.11`), without version numbers.
fn is_open_ended(path: &Path) -> bool {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    [path, real.as_path()].iter().any(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        OPEN_ENDED.contains(&name)
    })
}

fn holds(data: &[u8], text: &[u8]) -> bool {
    data.windows(text.len()).any(|window| window == text)
}

/// The version of an OpenMP runtime, as far as its file shows it: the file behind its links, the newest version of its symbols (of GCC's
/// runtime `GOMP_5.1`, of both `OMP_5.0.2`), and the compiler's own comment.
fn runtime_version(path: &Path, data: &[u8]) -> Option<String> {
    let newest = |prefix: &str| {
        let versions = starts(data, prefix.as_bytes()).filter_map(|at| {
            let digits: String =
                data[at + prefix.len()..].iter().take(12).take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
            let numbers: Option<Vec<u32>> = digits.split('.').map(|part| part.parse().ok()).collect();
            // Not the end of another name: `OMP_` is also in `GOMP_`.
            numbers.filter(|_| at == 0 || data[at - 1] == 0).map(|numbers| (numbers, digits))
        });
        versions.max().map(|(_, digits)| format!("symbols up to {prefix}{digits}"))
    };
    let comment = starts(data, b"clang version ").next().map(|at| {
        data[at..].iter().take(40).take_while(|byte| **byte >= b' ' && **byte != b'(').map(|byte| char::from(*byte)).collect::<String>()
    });
    let file = fs::canonicalize(path).ok().filter(|file| file != path).map(|file| file.display().to_string());
    let parts: Vec<String> =
        [file, newest("GOMP_"), newest("OMP_"), comment].into_iter().flatten().map(|part| part.trim().to_owned()).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The places of a text.
fn starts<'a>(data: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    data.windows(text.len()).enumerate().filter(move |(_, window)| *window == text).map(|(at, _)| at)
}

fn map(path: &Path) -> Option<MappedFile> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()))?;
    mapped_file::map(&file).ok()
}

fn image_of(path: &Path) -> Option<Image> {
    image(&map(path)?, path)
}

/// `None` if it is not an ELF file of this word size and processor.
fn image(data: &[u8], path: &Path) -> Option<Image> {
    let header = elf::FileHeader64::<object::Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let machine = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };
    if header.e_machine(endian) != machine {
        return None;
    }
    let segments = header.program_headers(endian, data).ok()?;
    let texts = |kind| dynamic_texts(endian, segments, data, kind);
    let origin = path.parent().unwrap_or(Path::new("/")).display().to_string();
    let listed = [elf::DT_RPATH, elf::DT_RUNPATH].into_iter().flat_map(texts);
    let folders = listed.flat_map(|list| {
        let expanded = list.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
        expanded.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from).collect::<Vec<_>>()
    });
    let is_dynamic = segments.iter().any(|segment| segment.p_type(endian) == elf::PT_DYNAMIC);
    Some(Image { needed: texts(elf::DT_NEEDED), folders: folders.collect(), is_dynamic })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Builds a program or library from C; `None` without a compiler for it.
    fn built(folder: &Path, compiler: &str, name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
        let (file, out) = (folder.join(format!("{name}.c")), folder.join(name));
        fs::write(&file, source).expect("source");
        let status = Command::new(compiler).arg(&file).arg("-o").arg(&out).args(options).output().ok()?;
        status.status.success().then_some(out)
    }

    fn look(path: &Path) -> Program {
        Search::new(Path::new("/"), None).program(path)
    }

    const PARALLEL: &str =
        "int f(void) { int n = 0;\n#pragma omp parallel reduction(+:n)\nn++;\nreturn n; }\nint main(void) { return f() < 0; }\n";

    /// Check that OpenMP programs are recognised by their libraries and by the libraries of those, and that others are not.
    #[test]
    fn runtimes_are_recognised() {
        let folder = tempfile::tempdir().expect("tempdir");
        let at = folder.path();
        let Some(plain) = built(at, "gcc", "plain", "int main(void) { return 0; }", &[]) else { return };
        let program = look(&plain);
        assert_eq!((program.openmp, program.runtime.as_str()), (OpenMp::None, ""));
        assert!(program.libraries.iter().any(|name| name.starts_with("libc.so")), "{program:?}");
        if let Some(gnu) = built(at, "gcc", "gnu", PARALLEL, &["-fopenmp"]) {
            let program = look(&gnu);
            assert_eq!((program.openmp, program.runtime.as_str(), program.ompt), (OpenMp::Gnu, "libgomp.so.1", Some(false)));
            assert!(program.runtime_file.is_some());
            assert!(program.runtime_version.as_ref().is_some_and(|version| version.contains("symbols up to GOMP_")), "{program:?}");
        }
        let library = PARALLEL.replace("int main(void) { return f() < 0; }", "");
        if built(at, "gcc", "libinner.so", &library, &["-fopenmp", "-shared", "-fPIC"]).is_some() {
            let options = ["-L", &at.display().to_string(), "-linner", "-Wl,-rpath,$ORIGIN"];
            let outer = built(at, "gcc", "outer", "int f(void); int main(void) { return f() < 0; }", &options).expect("a program");
            assert_eq!(look(&outer).openmp, OpenMp::Gnu);
        }
        if let Some(llvm) = built(at, "clang", "llvm", PARALLEL, &["-fopenmp"]) {
            let program = look(&llvm);
            assert_eq!(program.openmp, OpenMp::Llvm);
            assert!(program.ompt.is_some() == program.runtime_file.is_some(), "{program:?}");
        }
        if let Some(fixed) = built(at, "gcc", "fixed", PARALLEL, &["-fopenmp", "-static"]) {
            assert_eq!(look(&fixed).openmp, OpenMp::Gnu, "a runtime in the program itself");
        }
        fs::write(at.join("script"), "#!/bin/sh\ntrue\n").expect("script");
        assert_eq!(look(&at.join("script")).openmp, OpenMp::Unknown);
        assert_eq!(look(Path::new("/bin/sh")).openmp, OpenMp::Unknown);
    }

    /// Check that a runtime which the loader would not find has a name but no file.
    #[test]
    fn missing_preloads_are_found() {
        let libc = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = libc.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("libc.so")).unwrap();
        let list = format!("/nowhere/libjemalloc.so.2:{libc} libnowhere.so:$ORIGIN/x.so:libc.so.6");
        assert_eq!(missing_preloads(&list, None), ["/nowhere/libjemalloc.so.2", "libnowhere.so"]);
    }

    /// Check that a runtime that the loader does not find is named, and has no file.
    #[test]
    fn a_missing_runtime_is_no_file() {
        let folder = tempfile::tempdir().expect("tempdir");
        let at = folder.path();
        if built(at, "gcc", "libomp.so.99", "int f(void) { return 0; }", &["-shared", "-fPIC", "-Wl,-soname,libomp.so.99"]).is_none() {
            return;
        }
        let library = at.join("libomp.so.99").display().to_string();
        let program =
            built(at, "gcc", "lost", "int f(void); int main(void) { return f(); }", &["-Wl,--no-as-needed", &library]).expect("a program");
        let lost = look(&program);
        assert_eq!((lost.openmp, lost.runtime.as_str(), lost.runtime_file, lost.ompt), (OpenMp::Llvm, "libomp.so.99", None, None));
        let found = Search::new(Path::new("/"), Some(&at.display().to_string())).program(&program);
        assert_eq!((found.runtime_file.as_deref(), found.ompt), (Some(library.as_str()), Some(false)));
    }

    /// Check that damaged programs, libraries and caches do not panic.
    #[test]
    fn damage_is_survived() {
        let folder = tempfile::tempdir().expect("tempdir");
        let whole = fs::read("/bin/sh").expect("a shell");
        let path = folder.path().join("cut");
        for cut in (0..200).chain((200..whole.len()).step_by(whole.len() / 50 + 1)) {
            fs::write(&path, &whole[..cut]).expect("write");
            let _ = look(&path);
        }
        for place in (0..64.min(whole.len())).chain((64..1024.min(whole.len())).step_by(3)) {
            let mut changed = whole.clone();
            changed[place] ^= 0xff;
            fs::write(&path, &changed).expect("write");
            let _ = look(&path);
        }
        assert_eq!(look(&folder.path().join("missing")).openmp, OpenMp::Unknown);
        assert_eq!(look(folder.path()).openmp, OpenMp::Unknown);
        for data in [&b""[..], b"/", b"\0\0/\0//\0/a/libx.so", &[0xff, b'/', 0, b'/', 0xff, 0]] {
            assert!(cached(data).len() <= 2);
        }
        assert_eq!(cached(b"glibc-ld.so.cache1.1\0libx.so\0/a/libx.so\0")["libx.so"], [PathBuf::from("/a/libx.so")]);
    }
}
