//! Starts the target: a child that waits before exec, so that events can be opened before its first instruction.

use firsttouch_model::error::{Context, Error, Result};
use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why a command did not start.
#[derive(Debug)]
pub enum LaunchError {
    /// The kernel did not execute the program. Shells give that a status of its own.
    NotExecuted { command: String, errno: i32 },
    /// An argument is impossible, or the system has no process or descriptor left.
    NotPrepared(Error),
}

impl LaunchError {
    /// Why the command could not be executed, as an error number; `None` for other failures.
    #[must_use]
    pub fn not_executed(&self) -> Option<i32> {
        match self {
            Self::NotExecuted { errno, .. } => Some(*errno),
            Self::NotPrepared(_) => None,
        }
    }
}

impl From<Error> for LaunchError {
    fn from(error: Error) -> Self {
        Self::NotPrepared(error)
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (command, errno) = match self {
            Self::NotExecuted { command, errno } => (command, *errno),
            Self::NotPrepared(error) => return error.fmt(f),
        };
        let path = Path::new(command);
        let hint = match errno {
            libc::ENOENT | libc::EACCES if path.is_dir() => return write!(f, "cannot run {command}: it is a directory; name a program"),
            libc::EACCES if path.metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) => {
                ": this user may not enter a folder on the way to it"
            }
            libc::ENOENT if path.exists() && command.contains('/') => ": the interpreter it names (after #!, or its loader) is missing",
            libc::ENOENT if path.exists() => {
                return write!(f, "cannot run {command}: it is not in PATH; the one in this folder is ./{command}");
            }
            libc::ENOENT | libc::ENOTDIR => ": check the name and PATH",
            libc::EACCES => ": is it executable (chmod +x)?",
            libc::ENOEXEC => ": it is neither an ELF program nor a script with a #! line",
            _ => "",
        };
        write!(f, "cannot run {command}: {}{hint}", std::io::Error::from_raw_os_error(errno))
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotExecuted { .. } => None,
            Self::NotPrepared(error) => error.source(),
        }
    }
}

/// A forked child that has not executed its program yet.
pub struct Waiting {
    pub pid: i32,
    go: OwnedFd,
    failure: OwnedFd,
    command: String,
}

impl Waiting {
    /// Forks. The child gets `environment` (whole entries), and the program starts with the signal mask `mask`.
    ///
    /// # Errors
    /// When arguments hold NUL bytes or the kernel refuses to fork.
    pub fn fork(command: &[OsString], environment: &[CString], mask: &libc::sigset_t) -> Result<Self> {
        let Some(program) = command.first() else { return Err(Error::invalid_input("no command given")) };
        let name = program.to_string_lossy().into_owned();
        let c = |s: &OsStr| CString::new(s.as_bytes()).with_context(|| format!("cannot run {name}: a NUL byte in its arguments"));
        let arguments = command.iter().map(|a| c(a)).collect::<Result<Vec<_>>>()?;
        let pointers = |list: &[CString]| list.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>();
        let (argv, envp) = (pointers(&arguments), pointers(environment));
        let (wait, go) = pipe()?;
        let (failure, report) = pipe()?;
        // SAFETY: between fork and exec the child only calls async-signal-safe functions on memory prepared before.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(std::io::Error::last_os_error()).context("cannot start a process"),
            0 => {
                // SAFETY: as above; every pointer was made before the fork and ends with a null pointer.
                unsafe {
                    libc::close(go.as_raw_fd());
                    let mut word = 0u8;
                    if libc::read(wait.as_raw_fd(), std::ptr::from_mut(&mut word).cast(), 1) != 1 {
                        libc::_exit(127); // firsttouch gave up before the start
                    }
                    super::inherited::restore();
                    super::stand_in::join_group();
                    libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
                    libc::execvpe(argv[0], argv.as_ptr(), envp.as_ptr());
                    let error = super::errno().to_ne_bytes();
                    libc::write(report.as_raw_fd(), error.as_ptr().cast(), error.len());
                    libc::_exit(127);
                }
            }
            pid => Ok(Self { pid, go, failure, command: name }),
        }
    }

    /// Lets the child execute its program; returns after exec, or says why it failed.
    ///
    /// # Errors
    /// [`LaunchError`] when exec failed (the child is reaped).
    pub fn start(self) -> Result<(), LaunchError> {
        std::fs::File::from(self.go).write_all(b"g").with_context(|| format!("cannot start {}", self.command))?;
        let mut error = Vec::new();
        std::fs::File::from(self.failure).read_to_end(&mut error).unwrap_or(0);
        if let Ok(bytes) = <[u8; 4]>::try_from(error.as_slice()) {
            // SAFETY: reaps this process's child, which is about to exit.
            unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
            return Err(LaunchError::NotExecuted { command: self.command, errno: i32::from_ne_bytes(bytes) });
        }
        Ok(())
    }

    /// Gives up: the child exits without running the program.
    pub fn abandon(self) {
        drop(self.go);
        // SAFETY: reaps this process's child, whose read on the pipe just ended.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// Executes the program in this process. Signals, standard descriptors and the environment (except for `changed`) are those that
/// firsttouch was started with. Returns only if exec failed.
pub fn become_program(command: &[OsString], changed: &[(String, String)]) -> LaunchError {
    let name = command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    let prepared = || -> Result<(Vec<CString>, Vec<CString>)> {
        let c = |bytes: &[u8]| CString::new(bytes).with_context(|| format!("cannot run {name}: a NUL byte in its arguments"));
        let arguments = command.iter().map(|argument| c(argument.as_bytes())).collect::<Result<Vec<_>>>()?;
        let names = |entry: &CString, variable: &str| {
            entry.as_bytes().strip_prefix(variable.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
        };
        let mut entries = environment();
        entries.retain(|entry| !changed.iter().any(|(variable, _)| names(entry, variable)));
        for (variable, value) in changed {
            entries.push(c(format!("{variable}={value}").as_bytes())?);
        }
        Ok((arguments, entries))
    };
    let (arguments, entries) = match prepared() {
        Ok(prepared) => prepared,
        Err(error) => return error.into(),
    };
    let pointers = |list: &[CString]| list.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>();
    let (argv, envp) = (pointers(&arguments), pointers(&entries));
    super::inherited::restore();
    super::stand_in::join_group();
    // SAFETY: strings that end with NUL, in lists that end with a null pointer; all outlive the call.
    unsafe { libc::execvpe(argv[0], argv.as_ptr(), envp.as_ptr()) };
    let errno = super::errno();
    super::inherited::undo_restore();
    LaunchError::NotExecuted { command: name, errno }
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0i32; 2];
    // SAFETY: `ends` has room for two descriptors, which nothing else owns.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(std::io::Error::last_os_error()).context("cannot create a pipe (too many open files: raise the limit, ulimit -n)");
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its status as a shell gives it (128+N for signal N).
    pub status: i32,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
}

/// Reaps the child if it has ended.
#[must_use]
pub fn reap(pid: i32) -> Option<Ended> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for the answer.
    if unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } != pid {
        return None;
    }
    let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
    Some(Ended { status: signal.map_or(libc::WEXITSTATUS(status), |signal| 128 + signal), signal })
}

/// The environment as it was passed to this process, with the entries without `=` that std's iterator leaves out.
#[must_use]
pub fn environment() -> Vec<CString> {
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    let mut entries = Vec::new();
    // SAFETY: a list of terminated strings that ends with a null pointer; no other thread changes it.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            entries.push(std::ffi::CStr::from_ptr(*entry).to_owned());
            entry = entry.add(1);
        }
    }
    entries
}

/// Finds a command as execvp does: a name with a slash as it is, else the first executable of that name in PATH.
#[must_use]
pub fn find_program(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    // Without PATH, execvp looks here (glibc's confstr(_CS_PATH)).
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|p| is_executable(p))
}

fn is_executable(path: &Path) -> bool {
    let Ok(c) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a NUL-terminated path.
    path.is_file() && unsafe { libc::access(c.as_ptr(), libc::X_OK) } == 0
}
