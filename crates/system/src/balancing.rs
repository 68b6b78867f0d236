//! The kernel's NUMA balancing: its switch and its tunables, in the place where this kernel keeps them.

use crate::counters;
use crate::files::Reader;
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_model::system::{Balancing, Measured, TimedRun, Tunable};
use std::fs;
use std::io;
use std::path::Path;

const SWITCH: &str = "proc/sys/kernel/numa_balancing";
/// Linux 5.13 moved the tunables of scanning from the first place to the second.
const PLACES: [(&str, &str); 2] = [("proc/sys/kernel", "numa_balancing_"), ("sys/kernel/debug/sched/numa_balancing", "")];
/// Documentation/admin-guide/sysctl/kernel.rst, kernel/sched/fair.c.
const TUNABLES: [(&str, &str); 6] = [
    ("scan_delay_ms", "a thread's age when its memory is first scanned"),
    ("scan_period_min_ms", "shortest time between two scans of a thread's memory"),
    ("scan_period_max_ms", "longest time between two scans"),
    ("scan_size_mb", "memory marked in one scan, MB"),
    ("hot_threshold_ms", "tiering: a page used again within this time is hot"),
    ("promote_rate_limit_MBps", "tiering: most memory moved up in a second, MB"),
];

/// The value of the switch alone: bit 0 balances, bit 1 moves hot pages up. `None` if the kernel has no balancing.
#[must_use]
pub fn switch_value(root: &Path) -> Option<u64> {
    Reader::new(root).number(SWITCH)
}

/// Reads state and tunables below `root`.
#[must_use]
pub fn read(root: &Path) -> Balancing {
    let mut reader = Reader::new(root);
    let value = reader.number::<u64>(SWITCH);
    let nodes = reader.list("sys/devices/system/node/online").map_or_else(|| usize::from(has_sysfs(root)), |nodes| nodes.len().max(1));
    let mut tunables = Vec::new();
    for (folder, prefix) in PLACES {
        for (name, meaning) in TUNABLES {
            let relative = format!("{folder}/{prefix}{name}");
            if let Some(value) = reader.number(&relative) {
                let file = root.join(relative).display().to_string();
                tunables.push(Tunable { name: name.to_owned(), value, meaning: meaning.to_owned(), file });
            }
        }
    }
    if value.is_some() && !tunables.iter().any(|tunable| tunable.name.starts_with("scan_")) {
        reader.doubts.push(why_no_tunables(root));
    }
    Balancing { value, state: state(root, value).to_owned(), nodes, tunables, doubts: reader.doubts }
}

/// Why the tunables of scanning cannot be read.
fn why_no_tunables(root: &Path) -> String {
    let place = root.join(PLACES[1].0).display().to_string();
    let looked = fs::metadata(root.join("sys/kernel/debug/sched")).map_err(|error| error.kind());
    words(&place, looked.map(drop), has_debugfs(root))
}

fn words(place: &str, looked: std::result::Result<(), io::ErrorKind>, has_debugfs: bool) -> String {
    match looked {
        Ok(()) => format!("the scan tunables are not in {place}: this kernel has none (CONFIG_SCHED_DEBUG)"),
        Err(io::ErrorKind::PermissionDenied) => {
            format!("the scan tunables are in {place}, which only root can read: sudo firsttouch balancing")
        }
        Err(_) if has_debugfs => format!("the scan tunables are not in {place}: debugfs is mounted, but this kernel has none there"),
        Err(_) => format!(
            "the scan tunables are in {place}, but debugfs is not mounted: sudo mount -t debugfs none /sys/kernel/debug; then only root can read them"
        ),
    }
}

/// Whether debugfs is mounted.
fn has_debugfs(root: &Path) -> bool {
    let mounts = fs::read_to_string(root.join("proc/self/mounts")).unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(2) == Some("debugfs"))
}

/// Without it, nothing is known of the nodes; a kernel without NUMA has only no folder of nodes.
fn has_sysfs(root: &Path) -> bool {
    root.join("sys/devices/system/cpu").is_dir()
}

fn state(root: &Path, value: Option<u64>) -> &'static str {
    match value {
        // A bare chroot.
        None if !root.join("proc/sys/kernel").is_dir() => "unknown",
        None => "unavailable",
        Some(value) => match (value & 1 != 0, value & 2 != 0) {
            (false, false) => "off",
            (true, false) => "on",
            (false, true) => "tiering",
            (true, true) => "on, tiering",
        },
    }
}

/// Why the switch could not be set, and the least privilege that allows it.
#[derive(Debug)]
pub struct SwitchError {
    file: String,
    cause: io::Error,
}

impl std::fmt::Display for SwitchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hint = match self.cause.raw_os_error() {
            // The file belongs to root, and the kernel compares user ids here: no capability helps.
            Some(libc::EACCES) => {
                "only root (user 0 of the machine, not of a user namespace) may write it, with CAP_SYS_ADMIN: run it with sudo"
            }
            Some(libc::EPERM) => "CAP_SYS_ADMIN is missing: in a container, run it on the host, or start the container with --privileged",
            Some(libc::EROFS) => "/proc/sys is mounted read-only, as in most containers: run it on the host, as root with CAP_SYS_ADMIN",
            Some(libc::ENOENT) => "this kernel has no NUMA balancing (CONFIG_NUMA_BALANCING), or /proc/sys is hidden",
            _ => "it needs root with CAP_SYS_ADMIN",
        };
        write!(f, "cannot write {}: {}; {hint}", self.file, self.cause)
    }
}

impl std::error::Error for SwitchError {}

impl From<SwitchError> for Error {
    fn from(error: SwitchError) -> Self {
        Self::new(error.cause.kind().into(), error.to_string())
    }
}

/// Sets the switch: 0 off, 1 on, 2 tiering, 3 both.
///
/// # Errors
/// Names the privilege that is missing.
pub fn switch(root: &Path, value: u64) -> Result<(), SwitchError> {
    let path = root.join(SWITCH);
    // Do not create the file: a root without it has no balancing.
    let written = fs::OpenOptions::new().write(true).truncate(true).open(&path).and_then(|mut file| {
        use io::Write;
        file.write_all(format!("{value}\n").as_bytes())
    });
    written.map_err(|cause| SwitchError { file: path.display().to_string(), cause })
}

/// One run of the command, as the caller saw it.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    pub wall_s: f64,
    /// The exit status to stop with: the command failed, or the user interrupted it.
    pub stop: Option<i32>,
}

/// The outcome of a measurement.
#[derive(Debug)]
pub enum Measurement {
    /// The measurements with balancing on and with balancing off.
    Done(Box<[Measured; 2]>),
    /// A run failed or was interrupted.
    Stopped { exit_code: i32 },
}

/// Restores the switch when it is dropped.
struct Restored<'a> {
    root: &'a Path,
    value: u64,
    done: bool,
}

impl Restored<'_> {
    fn now(mut self) -> Result<(), SwitchError> {
        self.done = true;
        switch(self.root, self.value)
    }
}

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        if !self.done {
            // This happens only after an error, which the caller reports.
            let _ = switch(self.root, self.value);
        }
    }
}

/// Runs a command `rounds` times with balancing on and as often with it off. The order alternates from round to round, so that a
/// drift (a warm cache, a hot processor) affects both states alike. The old state is restored; the caller must make sure that
/// signals do not end this process meanwhile.
///
/// # Errors
/// When the switch cannot be set (then nothing has run), a run cannot be started, or the state cannot be restored.
pub fn measure<E: From<Error>>(root: &Path, rounds: usize, mut run: impl FnMut() -> Result<Timed, E>) -> Result<Measurement, E> {
    let Some(before) = read(root).value else {
        return Err(Error::unsupported(format!(
            "cannot measure: {} is missing: this kernel has no NUMA balancing (CONFIG_NUMA_BALANCING), or hides it",
            root.join(SWITCH).display()
        ))
        .into());
    };
    // Write the old value first: this shows whether it may be written before anything has changed.
    switch(root, before).context("cannot measure with balancing on and off")?;
    let restored = Restored { root, value: before, done: false };
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for is_on in [round % 2 == 0, round % 2 != 0] {
            switch(root, if is_on { before | 1 } else { 0 }).map_err(Error::from)?;
            let start = counters::read(root);
            let timed = run()?;
            if let Some(exit_code) = timed.stop {
                restored.now().map_err(Error::from)?;
                return Ok(Measurement::Stopped { exit_code });
            }
            let grown = counters::read(root).since(&start);
            let count = |name: &str| grown.system.get(name).copied().unwrap_or(0);
            let list = if is_on { &mut on } else { &mut off };
            list.push(TimedRun {
                wall_s: timed.wall_s,
                hint_faults: count("numa_hint_faults"),
                hint_faults_local: count("numa_hint_faults_local"),
                pages_migrated: count("numa_pages_migrated"),
            });
        }
    }
    restored.now().map_err(Error::from)?;
    Ok(Measurement::Done(Box::new([Measured::new("on", on), Measured::new("off", off)])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the reasons differ for debugfs that is not mounted, tunables that only root can read, and a kernel without tunables.
    #[test]
    fn reasons_for_missing_tunables() {
        let denied = Err(io::ErrorKind::PermissionDenied);
        let absent = Err(io::ErrorKind::NotFound);
        for (looked, has_debugfs, expected) in [
            (absent, false, "debugfs is not mounted: sudo mount -t debugfs"),
            (absent, true, "debugfs is mounted, but this kernel has none there"),
            (denied, true, "which only root can read: sudo firsttouch balancing"),
            (denied, false, "which only root can read"),
            (Ok(()), true, "CONFIG_SCHED_DEBUG"),
        ] {
            let said = words("/sys/kernel/debug/sched/numa_balancing", looked, has_debugfs);
            assert!(said.contains(expected), "{said}");
        }
        let root = tempfile::tempdir().unwrap();
        assert!(why_no_tunables(root.path()).contains("debugfs is not mounted"));
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::write(root.path().join("proc/self/mounts"), "none /sys/kernel/debug debugfs rw 0 0\n").unwrap();
        assert!(why_no_tunables(root.path()).contains("debugfs is mounted"));
    }
}
