//! Reads the figures of a scrape. A collector that fails costs its own figures only.

mod cgroups;
mod kernel;
mod nodes;
mod processes;

pub use processes::{ProcessOptions, Watcher};

use crate::catalogue as metric;
use crate::exposition::{Batch, Exposition};
use firsttouch_system::calls::clock::{monotonic_ns, process_cpu_ns};
use firsttouch_system::calls::sysconf::page_bytes;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Which control groups are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cgroups {
    #[default]
    All,
    None,
    /// These and those below them.
    Below(Vec<String>),
}

/// What is collected.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where /proc and /sys are: `/`, or a recorded machine.
    pub root: PathBuf,
    pub cgroups: Cgroups,
    pub max_series: usize,
    pub version: &'static str,
}

/// What a collector found.
#[derive(Default)]
struct Found {
    batches: Vec<Batch>,
    /// Why figures are missing.
    doubts: Vec<String>,
    /// Series that are not among the batches, because nobody read them.
    left_out: usize,
}

/// Reads figures, again and again.
pub struct Collector {
    options: Options,
    watcher: Option<Watcher>,
    start_s: f64,
}

impl Collector {
    /// `watcher`: what looks at processes, if that is wanted.
    #[must_use]
    pub fn new(options: Options, watcher: Option<Watcher>) -> Self {
        let start_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        Self { options, watcher, start_s }
    }

    /// The figures now. `own`: further figures about the exporter.
    #[must_use]
    pub fn collect(&self, own: Batch) -> Exposition {
        let began_ns = monotonic_ns();
        let mut exposition = Exposition::new(self.options.max_series);
        let mut about = own;
        let root = self.options.root.as_path();
        // Control groups last: they are the many.
        self.run("memory", &mut exposition, &mut about, || nodes::memory(root));
        self.run("counters", &mut exposition, &mut about, || kernel::counters(root));
        self.run("pressure", &mut exposition, &mut about, || kernel::pressure(root));
        if let Some(watcher) = &self.watcher {
            self.run("processes", &mut exposition, &mut about, || watcher.found());
            about.add(&metric::RECORDERS, &[], watcher.recorders());
        }
        if self.options.cgroups != Cgroups::None {
            self.run("cgroups", &mut exposition, &mut about, || cgroups::read(root, &self.options.cgroups));
        }
        self.add_own(&mut about);
        for (collector, series) in exposition.dropped() {
            about.add(&metric::SERIES_DROPPED, &[collector], *series);
        }
        about.add(&metric::SERIES, &[], exposition.series());
        about.add(&metric::SERIES_LIMIT, &[], exposition.limit());
        about.add(&metric::SCRAPE_DURATION, &[], seconds_since(began_ns));
        exposition.take_always(about);
        exposition
    }

    fn run(&self, name: &'static str, exposition: &mut Exposition, about: &mut Batch, read: impl FnOnce() -> Found) {
        let began_ns = monotonic_ns();
        let found = read();
        about.add(&metric::COLLECTOR_DURATION, &[name], seconds_since(began_ns));
        about.add(&metric::COLLECTOR_SUCCESS, &[name], found.doubts.is_empty());
        exposition.drop_more(name, found.left_out);
        for batch in found.batches {
            exposition.take(name, batch);
        }
        exposition.doubts.extend(found.doubts);
    }

    fn add_own(&self, about: &mut Batch) {
        about.add(&metric::BUILD, &[self.options.version], 1_u64);
        about.add(&metric::START_TIME, &[], (self.start_s * 1e3).round() / 1e3);
        about.add(&metric::EXPORTER_CPU, &[], process_cpu_ns() as f64 / 1e9);
        about.add_known(&metric::EXPORTER_MEMORY, &[], own_memory());
    }
}

fn seconds_since(began_ns: u64) -> f64 {
    monotonic_ns().saturating_sub(began_ns) as f64 / 1e9
}

/// Resident memory of this process.
fn own_memory() -> Option<u64> {
    let statm = std::fs::read_to_string(Path::new("/proc/self/statm")).ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(page_bytes() as u64)
}

#[cfg(test)]
mod tests;
