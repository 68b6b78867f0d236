//! The program of `firsttouch demo`: the bundled DGEMV, sized for this machine and profiled in a process of its own.

use crate::Result;
use crate::error::{Context, Error, ErrorKind};
use firsttouch_system::MachineInfo;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const THREADS: u32 = 8;
/// Far larger than any cache, and fast to initialise, bytes.
const MATRIX_BYTES: u64 = 256 << 20;
/// The matrix takes at most the available memory divided by this.
const MEMORY_PART: u64 = 4;
/// Seconds of work under the profiler: long enough for samples, short enough that both runs end within 30 s.
const RUN_S: f64 = 5.0;
/// The number of products with which the speed of this machine is measured.
const TRIAL_PRODUCTS: u64 = 3;

pub struct DemoProgram {
    firsttouch: PathBuf,
    rows: u64,
    pub products: u64,
}

impl DemoProgram {
    /// Chooses the size of the matrix and the number of products for this machine.
    ///
    /// # Errors
    /// When the path of firsttouch is unknown, or the kernel fails.
    pub fn new() -> Result<Self> {
        let firsttouch = std::env::current_exe().context(ErrorKind::System, "cannot find the firsttouch program itself")?;
        let rows = rows(MachineInfo::read(Path::new("/")).map_or(0, |info| info.available_memory_bytes));
        let trial = Self { firsttouch, rows, products: TRIAL_PRODUCTS };
        let mut command = Command::new(&trial.firsttouch);
        command.args(trial.words("parallel")).arg("--json");
        let seconds = json_of(&mut command)?["seconds"]["median"].as_f64().unwrap_or(RUN_S);
        let products = ((RUN_S / seconds.max(1e-6)) as u64).clamp(TRIAL_PRODUCTS, 1_000_000);
        Ok(Self { products, ..trial })
    }

    #[must_use]
    pub fn matrix_bytes(&self) -> u64 {
        self.rows * self.rows * 8
    }

    /// The arguments of firsttouch that run the program with this initialisation.
    #[must_use]
    pub fn words(&self, init: &str) -> Vec<String> {
        let fixed = ["bench", "dgemv", "--init", init, "--repetitions", "1"].map(str::to_owned);
        let sizes = [("--m", self.rows), ("--n", self.rows), ("--iterations", self.products), ("--threads", u64::from(THREADS))];
        fixed.into_iter().chain(sizes.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_string()])).collect()
    }

    /// Profiles the program and returns the JSON that it prints. If `launcher` is not empty, `firsttouch LAUNCHER` starts the program.
    ///
    /// # Errors
    /// When the program cannot be started or fails.
    pub fn profile(&self, init: &str, profile: &Path, launcher: &[&OsStr]) -> Result<Value> {
        let mut command = Command::new(&self.firsttouch);
        command.args([OsStr::new("profile"), "--quiet".as_ref(), "-o".as_ref(), profile.as_ref(), "--".as_ref()]);
        if !launcher.is_empty() {
            command.arg(&self.firsttouch).args(launcher);
        }
        command.arg(&self.firsttouch).args(self.words(init)).arg("--json");
        json_of(&mut command)
    }
}

/// Rows and columns of a square matrix that leaves most of the memory free, with equal blocks for all threads.
fn rows(available_bytes: u64) -> u64 {
    let bytes = if available_bytes == 0 { MATRIX_BYTES } else { MATRIX_BYTES.min(available_bytes / MEMORY_PART) };
    let rows = (bytes / 8).isqrt();
    let threads = u64::from(THREADS);
    (rows / threads * threads).max(threads)
}

/// The JSON that a command prints on stdout. Its messages go to this process's stderr.
fn json_of(command: &mut Command) -> Result<Value> {
    let output = command.stderr(Stdio::inherit()).output().context(ErrorKind::System, "cannot run the bundled program")?;
    if !output.status.success() {
        return Err(Error::new(ErrorKind::Kernel, format!("the bundled program failed ({})", output.status)));
    }
    serde_json::from_slice(&output.stdout).context(ErrorKind::Kernel, "the bundled program printed no result")
}

#[cfg(test)]
mod tests {
    use super::rows;

    /// Check that the matrix fits small machines and divides evenly among the threads.
    #[test]
    fn the_matrix_fits() {
        for available in [0, 1, 64 << 20, 1 << 30, 1 << 40] {
            let rows = rows(available);
            assert_eq!(rows % 8, 0);
            assert!(available < 4096 || rows * rows * 8 <= available / 4, "{available}: {rows}");
            assert!(rows * rows * 8 <= 256 << 20);
        }
    }
}
