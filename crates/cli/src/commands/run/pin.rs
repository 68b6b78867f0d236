//! Threads that no OpenMP runtime places: by the library of native/pin, which the program preloads.

use crate::output::message;
use anyhow::{Context, Result};
use firsttouch_native::PIN as PIN_LIBRARY;
use firsttouch_system::launch::find_program;
use firsttouch_system::preload::cached;
use firsttouch_system::preload::target::{Agentless, accepts_agent};
use std::env;
use std::ffi::OsString;

const PIN: &str = "FIRSTTOUCH_PIN";
const SKIP: &str = "FIRSTTOUCH_PIN_SKIP";
const PRELOAD: &str = "LD_PRELOAD";

/// What the library reads: the CPU of each thread, and the threads, by order of creation, that are left alone.
pub fn variables(cpus: &[u32], skipped: &[u32]) -> Vec<(String, String)> {
    let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    // An inherited one would be another program's.
    vec![(PIN.to_owned(), list(cpus)), (SKIP.to_owned(), list(skipped))]
}

/// The variable that has the library loaded, before what the user preloads; nothing, after a warning, for programs that load none.
pub fn preload(program: &[OsString]) -> Result<Option<(String, String)>> {
    if let Some(path) = program.first().and_then(|name| find_program(name))
        && let Err(reason) = accepts_agent(&path)
        && let Some(why) = why_not(&reason)
    {
        message(&format!(
            "warning: {} {why}: its threads keep to the CPUs of --pin, but the kernel moves them among these, unless an OpenMP runtime places them",
            path.display()
        ));
        return Ok(None);
    }
    let own = cached("libfirsttouch_pin", PIN_LIBRARY)?.into_os_string();
    let own = own.into_string().ok().context("cannot preload the library that pins threads: its path is no text")?;
    // What is no text cannot be handed on unchanged; nobody has such a list.
    let users = env::var(PRELOAD).unwrap_or_default();
    Ok(Some((PRELOAD.to_owned(), if users.is_empty() { own } else { format!("{own}:{users}") })))
}

pub fn why_not(reason: &Agentless) -> Option<String> {
    Some(match reason {
        Agentless::Static => "is a static program, which loads no library".to_owned(),
        Agentless::ForeignLoader(loader) => format!("uses the loader {loader}, for which there is no library"),
        Agentless::Privileged => "is setuid or setgid or has file capabilities, so that the loader takes no library".to_owned(),
        Agentless::Sanitizer(library) => format!("needs {library}, which must be its first library"),
        // It may well load one.
        Agentless::Unreadable => return None,
    })
}
