//! Pins threads that no OpenMP runtime pins, with a preloaded library.

use crate::{Error, Result};
use firsttouch_native::PIN as PIN_LIBRARY;
use firsttouch_system::launch::find_program;
use firsttouch_system::preload::accepts_agent::{Agentless, accepts_agent};
use firsttouch_system::preload::cached;
use std::env;
use std::ffi::OsString;

const PIN: &str = "FIRSTTOUCH_PIN";
const SKIP: &str = "FIRSTTOUCH_PIN_SKIP";
const IDLE: &str = "FIRSTTOUCH_PIN_IDLE";
pub const PRELOAD: &str = "LD_PRELOAD";

/// The library's variables: the CPU of each thread that takes one, and the threads that it does not pin: those that the user names, by order of creation
/// without threads of runtimes, and those that a plan found idle, by number, which is the lowest that no living thread has.
pub fn variables(cpus: &[u32], skipped: &[u32], idle: &[u32]) -> Vec<(String, String)> {
    let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    // Always set all: an inherited value belongs to another program.
    vec![(PIN.to_owned(), list(cpus)), (SKIP.to_owned(), list(skipped)), (IDLE.to_owned(), list(idle))]
}

/// How a program's threads are pinned one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// The environment variable, name and value, that loads the library.
    Preloaded(String, String),
    /// The program cannot load a library; what that means for its threads, as one sentence.
    Impossible(String),
}

/// Prepares the library for a program.
///
/// # Errors
/// When the library cannot be written to the cache.
pub fn preload(program: &[OsString]) -> Result<Pinning> {
    if let Some(path) = program.first().and_then(|name| find_program(name))
        && let Err(reason) = accepts_agent(&path)
        && let Some(why) = why_not(&reason)
    {
        return Ok(Pinning::Impossible(format!(
            "{} {why}: its threads stay on the CPUs of --pin, but the kernel moves them among these, unless an OpenMP runtime places them",
            path.display()
        )));
    }
    let (name, value) = preload_before_users(vec![library("libfirsttouch_pin", PIN_LIBRARY)?]);
    Ok(Pinning::Preloaded(name, value))
}

/// `LD_PRELOAD` with these libraries before the user's.
pub fn preload_before_users(mut libraries: Vec<String>) -> (String, String) {
    // A list that is not valid UTF-8 cannot be passed on unchanged; it is dropped.
    let users = env::var(PRELOAD).unwrap_or_default();
    libraries.extend((!users.is_empty()).then_some(users));
    (PRELOAD.to_owned(), libraries.join(":"))
}

/// The path of an embedded library, written to the cache.
pub fn library(name: &str, bytes: &[u8]) -> Result<String> {
    let path = cached(name, bytes).map_err(Error::from_system)?.into_os_string();
    path.into_string().map_err(|path| Error::system(format!("cannot preload {name}: its path is not text: {}", path.display())))
}

/// Why a program cannot load a library; `None` if it can.
pub fn why_not(reason: &Agentless) -> Option<String> {
    Some(match reason {
        Agentless::Static => "is a static program, which loads no library".to_owned(),
        Agentless::ForeignLoader(loader) => format!("uses the loader {loader}, for which there is no library"),
        Agentless::Privileged => "is setuid or setgid or has file capabilities, so that the loader takes no library".to_owned(),
        Agentless::Sanitizer(library) => format!("needs {library}, which must be its first library"),
        Agentless::Unreadable => return None,
    })
}
