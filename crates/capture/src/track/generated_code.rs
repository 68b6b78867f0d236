//! What processes write about the code that they generate: perf maps and jitdumps. While a process lives, only handles are kept,
//! because its root directory (of a container) vanishes with it; the files are read after the run.

use firsttouch_model::generated_code::is_generated;
use firsttouch_model::rows::Id;
use firsttouch_system::proc;
use firsttouch_system::proc::status::Status;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Processes whose files are kept open.
const MOST_PROCESSES: usize = 256;
/// Clocks of file systems are this coarse.
const CLOCK_ERROR: Duration = Duration::from_secs(2);

/// The files of all processes that generated code.
#[derive(Default)]
pub struct GeneratedCode {
    pub(crate) processes: BTreeMap<Id, CodeFiles>,
}

/// The files of one process.
pub(crate) struct CodeFiles {
    pub program: String,
    /// The process's id, as it sees itself.
    pub pid: i32,
    /// The process that it was forked from: it runs the code that its parent generated.
    pub parent: Option<Id>,
    /// Its perf map, or why it is not read. Opened when the process ends: runtimes may write it last.
    pub map: Result<File, Refusal>,
    /// Its jitdumps, opened when they are mapped.
    pub dumps: Vec<File>,
    /// LLVM for Python (numba) is loaded.
    pub has_llvmlite: bool,
    is_open: bool,
    owner: Option<u32>,
    born: SystemTime,
    temporary: Option<File>,
}

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Missing,
    /// Not a regular file of the process's user or of root: it may be another user's.
    Foreign,
    /// Older than the process.
    Stale,
}

impl GeneratedCode {
    /// A process mapped executable memory. Notes it if the memory is for generated code, or a jitdump.
    pub(super) fn mapped(&mut self, root: &Path, (process, pid): (Id, i32), path: &str) {
        if is_generated(path) {
            if !self.processes.contains_key(&process) && self.processes.len() < MOST_PROCESSES {
                self.processes.insert(process, CodeFiles::new(root, pid, None));
            }
        } else if is_jitdump(path) && self.processes.len() < MOST_PROCESSES {
            let files = self.processes.entry(process).or_insert_with(|| CodeFiles::new(root, pid, None));
            files.add_dump(root, pid, path);
        } else if path.contains("llvmlite")
            && let Some(files) = self.processes.get_mut(&process)
        {
            files.has_llvmlite = true;
        }
    }

    /// A child has the code that its parent generated.
    pub(super) fn forked(&mut self, root: &Path, parent: Id, child: Id, pid: i32) {
        if let Some(from) = self.processes.get(&parent).filter(|_| self.processes.len() < MOST_PROCESSES) {
            let has_llvmlite = from.has_llvmlite;
            self.processes.insert(child, CodeFiles { has_llvmlite, ..CodeFiles::new(root, pid, Some(parent)) });
        }
    }

    /// The process replaced its program, and with it all generated code.
    pub(super) fn executed(&mut self, process: Id) {
        self.processes.remove(&process);
    }

    pub(super) fn ended(&mut self, root: &Path, process: Id) {
        if let Some(files) = self.processes.get_mut(&process) {
            files.open_map(root);
        }
    }

    /// The profile ends: takes the files of all processes.
    pub(super) fn take(&mut self, root: &Path) -> Self {
        self.processes.values_mut().for_each(|files| files.open_map(root));
        std::mem::take(self)
    }
}

/// `jit-7.dump`: runtimes map it only to be found.
fn is_jitdump(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let number = name.strip_prefix("jit-").and_then(|name| name.strip_suffix(".dump"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl CodeFiles {
    fn new(root: &Path, pid: i32, parent: Option<Id>) -> Self {
        let status = Status::of_process(root, pid);
        let exe = proc::executable(root, pid).ok();
        let program =
            exe.as_deref().and_then(Path::file_name).map_or_else(|| "the program".to_owned(), |n| n.to_string_lossy().into_owned());
        let age = proc::stat::age(root, pid).unwrap_or_default();
        Self {
            program,
            pid: status.as_ref().and_then(Status::innermost_id).unwrap_or(pid),
            parent,
            map: Err(Refusal::Missing),
            dumps: Vec::new(),
            has_llvmlite: proc::maps::has_mapped(root, pid, "libllvmlite.so"),
            is_open: false,
            owner: status.as_ref().and_then(Status::effective_user),
            born: SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH),
            temporary: folder(&root.join(format!("proc/{pid}/root/tmp"))),
        }
    }

    fn add_dump(&mut self, root: &Path, pid: i32, path: &str) {
        const MOST_DUMPS: usize = 16;
        let inside = root.join(format!("proc/{pid}/root")).join(path.trim_start_matches('/'));
        let opened = self.open(&inside).or_else(|_| self.open(&root.join(path.trim_start_matches('/'))));
        if let Ok(file) = opened
            && self.dumps.len() < MOST_DUMPS
        {
            self.dumps.push(file);
        }
    }

    fn open_map(&mut self, root: &Path) {
        if std::mem::replace(&mut self.is_open, true) {
            return;
        }
        // The handle leads to the process's /tmp even after its end.
        let folder = self.temporary.take();
        let path =
            folder.as_ref().map_or_else(|| root.join("tmp"), |folder| PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())));
        self.map = self.open(&path.join(format!("perf-{}.map", self.pid)));
    }

    /// Opens a file of the process, and refuses what another user could have put there.
    fn open(&self, path: &Path) -> Result<File, Refusal> {
        let is_own = |meta: &fs::Metadata| {
            let owner = self.owner.unwrap_or_else(|| fs::metadata("/proc/self").map_or(0, |own| own.uid()));
            meta.is_file() && (meta.uid() == 0 || meta.uid() == owner)
        };
        // Before it is opened: opening a device may act.
        let before = fs::symlink_metadata(path).map_err(|_| Refusal::Missing)?;
        is_own(&before).then_some(()).ok_or(Refusal::Foreign)?;
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|_| Refusal::Foreign)?;
        let meta = file.metadata().ok().filter(is_own).ok_or(Refusal::Foreign)?;
        let is_stale = meta.modified().is_ok_and(|modified| modified + CLOCK_ERROR < self.born);
        if is_stale { Err(Refusal::Stale) } else { Ok(file) }
    }
}

fn folder(path: &Path) -> Option<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_PATH).open(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// A root with a process 7 (3 in its container) that started a second ago.
    fn system() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        let user = fs::metadata("/proc/self").map_or(0, |own| own.uid());
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, text).expect("a file");
        };
        write("proc/uptime", "100.00 1.00");
        write("proc/7/stat", &format!("7 (java) S {} 9900 0 0", "0 ".repeat(18).trim_end()));
        write("proc/7/status", &format!("Name:\tjava\nUid:\t{user}\t{user}\t{user}\t{user}\nNSpid:\t7\t3\n"));
        write("proc/7/root/tmp/keep", "");
        write("proc/7/root/work/jit-3.dump", "dump");
        symlink("/opt/jdk/bin/java", root.path().join("proc/7/exe")).expect("a link");
        root
    }

    fn text(file: &Result<File, Refusal>) -> String {
        let mut text = String::new();
        file.as_ref().expect("a file").read_to_string(&mut text).expect("text");
        text
    }

    /// Check that the map that a process writes at its end is found in its container, after its root directory has vanished.
    #[test]
    fn the_map_of_a_process_that_ended() {
        let root = system();
        let mut code = GeneratedCode::default();
        code.mapped(root.path(), (1, 7), "/usr/lib/libc.so.6");
        assert!(code.processes.is_empty());
        code.mapped(root.path(), (1, 7), "//anon");
        code.mapped(root.path(), (1, 7), "/work/jit-3.dump");
        fs::write(root.path().join("proc/7/root/tmp/perf-3.map"), "10 20 f").expect("a map");
        fs::rename(root.path().join("proc/7/root"), root.path().join("gone")).expect("the end");
        code.forked(root.path(), 1, 2, 8);
        code.ended(root.path(), 1);
        let mut taken = code.take(root.path());
        let files = taken.processes.remove(&1).expect("files");
        assert_eq!((files.pid, files.program.as_str(), files.dumps.len()), (3, "java", 1));
        assert_eq!(text(&files.map), "10 20 f");
        let child = taken.processes.remove(&2).expect("the child's files");
        assert_eq!((child.pid, child.parent, child.map.err()), (8, Some(1), Some(Refusal::Missing)));
        // A new program has new code.
        code.mapped(root.path(), (1, 7), "//anon");
        code.executed(1);
        assert!(code.processes.is_empty());
    }

    /// Check that links, folders, FIFOs, and files of an earlier process are not read.
    #[test]
    fn files_that_are_not_of_the_process() {
        let root = system();
        let map = root.path().join("proc/7/root/tmp/perf-3.map");
        let opened = || {
            let mut files = CodeFiles::new(root.path(), 7, None);
            files.open_map(root.path());
            files.map.err()
        };
        assert_eq!(opened(), Some(Refusal::Missing));
        symlink(root.path().join("proc/uptime"), &map).expect("a link");
        assert_eq!(opened(), Some(Refusal::Foreign));
        fs::remove_file(&map).expect("removed");
        fs::create_dir(&map).expect("a folder");
        assert_eq!(opened(), Some(Refusal::Foreign));
        fs::remove_dir(&map).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&map).status();
        if made.is_ok_and(|status| status.success()) {
            assert_eq!(opened(), Some(Refusal::Foreign));
            fs::remove_file(&map).expect("removed");
        }
        fs::write(&map, "10 20 f").expect("a map");
        assert_eq!(opened(), None);
        let file = OpenOptions::new().write(true).open(&map).expect("the map");
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).expect("a time");
        assert_eq!(opened(), Some(Refusal::Stale));
    }

    #[test]
    fn names_of_jitdumps() {
        assert!(is_jitdump("/root/.debug/jit/x/jit-12.dump") && is_jitdump("jit-1.dump"));
        for other in ["/jit-.dump", "/jit-x.dump", "/jit-1.dump.so", "/ajit-1.dump", ""] {
            assert!(!is_jitdump(other), "{other}");
        }
    }
}
