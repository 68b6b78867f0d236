//! A profile's process that still runs.

use firsttouch_model::rows::{Process, Profile};

/// The profile's process with this number, if it is the one that runs now.
///
/// # Errors
/// Says why it is not, as the end of a sentence on the file.
pub fn process(profile: &Profile, pid: i32) -> Result<&Process, String> {
    let Some(process) = profile.processes.iter().find(|process| process.pid == pid) else {
        let pids: Vec<String> = profile.processes.iter().map(|process| process.pid.to_string()).collect();
        return Err(format!("is a profile of process {}, not of {pid}", pids.join(", ")));
    };
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok().map(|path| path.to_string_lossy().into_owned());
    let is_another = process.exe.as_ref().zip(program.as_ref()).is_some_and(|(recorded, now)| recorded != now);
    if process.died_ns.is_some() || is_another {
        return Err(format!("was taken of another process {pid}, which has ended"));
    }
    Ok(process)
}
