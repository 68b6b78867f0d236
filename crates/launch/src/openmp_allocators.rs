//! Makes the partition trait of OpenMP's allocators work, with a preloaded library (native/openmp).

use crate::pin::{PRELOAD, library, preload_before_users, why_not};
use crate::{Error, Result};
use firsttouch_native::OPENMP;
use firsttouch_system::launch::find_program;
use firsttouch_system::preload::accepts_agent::accepts_agent;
use std::ffi::OsString;

/// Adds the library to a program's environment, before libraries that are preloaded already.
///
/// # Errors
/// When the program cannot load a library, or the library cannot be written to the cache. The environment stays as it is then.
pub fn preload(program: &[OsString], environment: &mut Vec<(String, String)>) -> Result<()> {
    if let Some(path) = program.first().and_then(|name| find_program(name))
        && let Err(reason) = accepts_agent(&path)
        && let Some(why) = why_not(&reason)
    {
        return Err(Error::system(format!(
            "cannot place the memory of OpenMP's allocators: {} {why}: link the program with -fopenmp and without -static",
            path.display()
        )));
    }
    let own = library("libfirsttouch_openmp", OPENMP)?;
    match environment.iter_mut().find(|(name, _)| name == PRELOAD) {
        Some((_, others)) => *others = format!("{own}:{others}"),
        None => environment.push(preload_before_users(vec![own])),
    }
    Ok(())
}
