//! Checks whether a running process is the one that was profiled.

use firsttouch_model::rows::{Process, Profile};
use firsttouch_system::proc;
use std::fmt;
use std::path::Path;

/// Why a process is not part of a profile. Its text continues a sentence about the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotThisProcess {
    /// The profile is about other processes.
    Others { pids: Vec<i32>, wanted: i32 },
    /// The profiled process with this number has ended, and another process has the number now.
    Ended { pid: i32 },
}

impl fmt::Display for NotThisProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Others { pids, wanted } => {
                let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
                write!(f, "is a profile of process {}, not of {wanted}", pids.join(", "))
            }
            Self::Ended { pid } => write!(f, "was taken of another process {pid}, which has ended"),
        }
    }
}

impl std::error::Error for NotThisProcess {}

/// The profile's process with this number, if it is still running.
///
/// # Errors
/// When the running process is not part of the profile.
pub fn running_process(profile: &Profile, pid: i32) -> Result<&Process, NotThisProcess> {
    let Some(process) = profile.processes.iter().find(|process| process.pid == pid) else {
        return Err(NotThisProcess::Others { pids: profile.processes.iter().map(|process| process.pid).collect(), wanted: pid });
    };
    let program = proc::executable(Path::new("/"), pid).ok().map(|path| path.to_string_lossy().into_owned());
    let is_another = process.exe.as_ref().zip(program.as_ref()).is_some_and(|(recorded, now)| recorded != now);
    if process.died_ns.is_some() || is_another { Err(NotThisProcess::Ended { pid }) } else { Ok(process) }
}
