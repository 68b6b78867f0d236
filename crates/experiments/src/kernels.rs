//! Runs bundled kernels in separate processes, placed by `firsttouch run`.

use crate::Result;
use crate::error::{Context, Error, ErrorKind};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Variables that users set for their own programs. They must not affect the measurement.
const USERS_VARIABLES: [&str; 6] = ["OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_SCHEDULE"];

pub struct Kernels {
    firsttouch: PathBuf,
}

impl Kernels {
    /// # Errors
    /// When the path of firsttouch is unknown.
    pub fn new() -> Result<Self> {
        let firsttouch = std::env::current_exe();
        Ok(Self { firsttouch: firsttouch.context(ErrorKind::System, "cannot find firsttouch's own file, which runs the kernels")? })
    }

    /// `run PLACEMENT -- bench KERNEL --json`; only `bench` without a placement.
    pub fn command<A: AsRef<str>, B: AsRef<str>>(&self, placement: &[A], kernel: &[B]) -> Command {
        let mut command = Command::new(&self.firsttouch);
        if !placement.is_empty() {
            command.arg("run").args(placement.iter().map(AsRef::as_ref)).arg("--").arg(&self.firsttouch);
        }
        command.arg("bench").args(kernel.iter().map(AsRef::as_ref)).arg("--json").stdin(Stdio::null());
        for name in USERS_VARIABLES {
            command.env_remove(name);
        }
        if placement.iter().any(|option| option.as_ref().starts_with("--cpunodebind")) {
            // With fewer threads than CPUs, each thread gets a core of its own.
            command.env("OMP_PROC_BIND", "spread").env("OMP_PLACES", "cores");
        }
        command
    }

    /// Runs a kernel to its end and returns the JSON that it prints.
    pub fn run<A: AsRef<str>, B: AsRef<str>>(&self, placement: &[A], kernel: &[B]) -> Result<Value> {
        parse(&self.command(placement, kernel).output().context(ErrorKind::System, "cannot start the kernel")?)
    }
}

/// The JSON that a kernel printed.
///
/// # Errors
/// When the kernel failed: the error has the first line of its message.
pub fn parse(output: &Output) -> Result<Value> {
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let line =
            stderr.lines().next().unwrap_or("the kernel gave no reason").trim_start_matches("firsttouch: ").trim_start_matches("error: ");
        return Err(Error::new(ErrorKind::Kernel, format!("{line} ({})", output.status)));
    }
    serde_json::from_slice(&output.stdout).context(ErrorKind::Kernel, "the kernel printed no result")
}
