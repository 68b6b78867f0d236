//! The recorder of one program.

use crate::sampling::{Figures, Recorded, Recorder, RecorderCommand, threads_of};
use crate::snapshot::Remote;
use crate::tuning::uses::{Homes, Window, objects};
use firsttouch_model::rows::{Id, Page, Profile};
use firsttouch_pipeline::{AnalysisRequest, LiveNames, analyse_window};
use firsttouch_placement::move_pages::Mover;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::pages::Pages;
use firsttouch_system::leftovers::remove_old_runs;
use firsttouch_system::run_directory::RunDirectory;
use firsttouch_tune::ObjectUses;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;

/// Accesses of this time are looked at: borders between parts become exact with many.
pub const WINDOW_NS: u64 = 20_000_000_000;
/// Remote shares are those of this time, or of less since pages were moved.
const SHARE_NS: u64 = 10_000_000_000;
/// After a move, accesses of this time may still be attributed to the node that a page was on.
const AFTER_MOVE_NS: u64 = 1_000_000_000;
/// Samples a second of the whole program, and the bounds of the CPU time of a thread between two, us.
const A_SECOND: f64 = 400.0;
const PERIODS_US: (f64, f64) = (6_300.0, 100_000.0);
/// Pages of the window whose node is asked for: the most recently used ones.
const ASKED: usize = 4096;

/// What is watched.
pub enum Subject<'a> {
    Process(i32),
    Program(&'a [OsString]),
}

/// A program under its recorder.
pub struct Watch {
    recorder: Recorder,
    /// A process that ran before.
    attached: Option<i32>,
    names: LiveNames,
    request: AnalysisRequest,
    is_virtual: bool,
    period_ns: f64,
    /// The last known node of each sampled page, and the answers of the kernel: one for each page, and one for each change. By process.
    homes: BTreeMap<Id, Homes>,
    status: Option<ExitStatus>,
    // Removed last.
    _directory: RunDirectory,
}

/// What was seen of one process.
pub struct Seen {
    pub pid: i32,
    pub name: String,
    pub objects: Vec<ObjectUses>,
    pub remote: Remote,
}

impl Watch {
    /// Starts the recorder. `cpus`: those that the program may use.
    ///
    /// # Errors
    /// When no temporary directory can be made, or the recorder cannot be started.
    pub fn start(
        command: &RecorderCommand,
        subject: &Subject<'_>,
        request: AnalysisRequest,
        is_virtual: bool,
        cpus: f64,
    ) -> io::Result<Self> {
        remove_old_runs(&std::env::temp_dir());
        let directory = RunDirectory::temporary()?;
        let period_us = (cpus * 1e6 / A_SECOND).clamp(PERIODS_US.0, PERIODS_US.1);
        let recorded = match subject {
            Subject::Process(pid) => Recorded::Process(*pid),
            Subject::Program(words) => Recorded::Foreground(words),
        };
        let recorder = Recorder::start(command, &recorded, period_us as u64, &directory.path().join("1"))?;
        Ok(Self {
            recorder,
            attached: match subject {
                Subject::Process(pid) => Some(*pid),
                Subject::Program(_) => None,
            },
            names: LiveNames::default(),
            request,
            is_virtual,
            period_ns: period_us * 1e3,
            homes: BTreeMap::new(),
            status: None,
            _directory: directory,
        })
    }

    #[must_use]
    pub fn recorder_pid(&self) -> i32 {
        self.recorder.pid()
    }

    /// The status of the recorder, once it has ended: that of the program, if it started one.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.recorder.ended();
        }
        self.status
    }

    /// Why its profile cannot be read.
    #[must_use]
    pub fn profile_failure(&self) -> Option<String> {
        self.recorder.failure.clone()
    }

    /// Why the recorder failed.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.recorder.failure.clone().or_else(|| self.recorder.message())
    }

    #[must_use]
    pub fn request(&self) -> &AnalysisRequest {
        &self.request
    }

    /// What was seen lately, of each process that runs; nothing if there are no new rows. `moved_ns`: when pages of a process were moved last.
    pub fn look(&mut self, moved_ns: impl Fn(i32) -> Option<u64>) -> Vec<Seen> {
        let now_ns = monotonic_ns();
        // A plan is made from more than a window.
        if !self.recorder.refresh(now_ns.saturating_sub(3 * WINDOW_NS)) {
            return Vec::new();
        }
        let missing = self.names.missing(&self.recorder.profile);
        if !missing.is_empty() {
            self.names.look_up(&mut self.recorder.profile, &missing);
        }
        let is_meant = |pid: i32| self.attached.is_none_or(|attached| attached == pid);
        let live = self.recorder.profile.processes.iter().filter(|process| process.died_ns.is_none() && is_meant(process.pid));
        let live: Vec<(i32, Id, String)> = live.map(|process| (process.pid, process.id, name(process.exe.as_deref()))).collect();
        live.into_iter().filter_map(|(pid, process, name)| self.look_at(now_ns, pid, process, name, moved_ns(pid))).collect()
    }

    fn look_at(&mut self, now_ns: u64, pid: i32, process: Id, name: String, moved_ns: Option<u64>) -> Option<Seen> {
        let window = Window::of(&self.recorder.profile, process, now_ns.saturating_sub(WINDOW_NS), self.period_ns);
        let homes = self.homes.entry(process).or_default();
        if !self.is_virtual {
            homes.ask(&Pages::of(pid), process, &window, now_ns, moved_ns);
            self.recorder.profile.pages.extend(homes.rows().cloned());
        }
        let share_from = now_ns.saturating_sub(SHARE_NS).max(moved_ns.map_or(0, |moved| moved + AFTER_MOVE_NS));
        let analysis = analyse_window(&mut self.recorder.profile, process, share_from.min(now_ns), &self.request);
        if !self.is_virtual {
            let own = homes.rows().count();
            let kept = self.recorder.profile.pages.len() - own;
            self.recorder.profile.pages.truncate(kept);
        }
        let analysis = analysis.ok()?;
        let threads = threads_of(&self.recorder.profile, process);
        let seen_s = u32::try_from(now_ns.saturating_sub(share_from) / 1_000_000_000).unwrap_or(1).max(1);
        let remote = Figures::of(&analysis, &threads, seen_s).remote;
        let objects = objects(&self.recorder.profile, process, &analysis, &window, homes, self.is_virtual);
        Some(Seen { pid, name, objects, remote })
    }

    /// The rows so far, with the kernel's answers.
    #[must_use]
    pub fn with_homes(&self) -> Profile {
        let mut profile = self.recorder.profile.clone();
        profile.pages.extend(self.homes.values().flat_map(Homes::rows).cloned());
        profile
    }
}

/// The name of the program, without its folder.
fn name(exe: Option<&str>) -> String {
    let word = exe.unwrap_or("?");
    word.rsplit('/').next().unwrap_or(word).to_owned()
}

impl Homes {
    /// Asks where the pages of the window are. A refusal leaves them unknown: moving is refused too, and that is an error.
    fn ask(&mut self, mover: &dyn Mover, process: Id, window: &Window, now_ns: u64, moved_ns: Option<u64>) {
        let addresses = window.pages(ASKED);
        let Ok(nodes) = mover.nodes(&addresses) else { return };
        for (address, node) in addresses.into_iter().zip(nodes) {
            self.note(Page { process, object: None, address, time_ns: now_ns, node, page_bytes: 0 }, moved_ns);
        }
        self.asked(now_ns);
    }
}
