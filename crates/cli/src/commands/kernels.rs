//! Bundled kernels in processes of their own, placed by `firsttouch run`.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// What the user set for programs of their own does not decide what is measured.
const USERS: [&str; 6] = ["OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_SCHEDULE"];

pub struct Kernels {
    firsttouch: PathBuf,
}

impl Kernels {
    /// # Errors
    /// When firsttouch's own file is not known.
    pub fn new() -> Result<Self> {
        Ok(Self { firsttouch: std::env::current_exe().context("cannot find firsttouch's own file, which runs the kernels")? })
    }

    /// `run PLACEMENT -- bench KERNEL --json`; without `run` where nothing is placed.
    pub fn command<A: AsRef<str>, B: AsRef<str>>(&self, placement: &[A], kernel: &[B]) -> Command {
        let mut command = Command::new(&self.firsttouch);
        if !placement.is_empty() {
            command.arg("run").args(placement.iter().map(AsRef::as_ref)).arg("--").arg(&self.firsttouch);
        }
        command.arg("bench").args(kernel.iter().map(AsRef::as_ref)).arg("--json").stdin(Stdio::null());
        for name in USERS {
            command.env_remove(name);
        }
        if placement.iter().any(|option| option.as_ref().starts_with("--cpunodebind")) {
            // Fewer threads than CPUs have a core each.
            command.env("OMP_PROC_BIND", "spread").env("OMP_PLACES", "cores");
        }
        command
    }
}

/// What a kernel printed.
///
/// # Errors
/// That it failed, in its own words.
pub fn printed(output: &Output) -> Result<Value> {
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        let line = told.lines().next().unwrap_or("it told no reason").trim_start_matches("firsttouch: ").trim_start_matches("error: ");
        bail!("{line} ({})", output.status);
    }
    serde_json::from_slice(&output.stdout).context("the kernel printed no result")
}
