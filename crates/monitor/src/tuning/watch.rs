//! The recorder of one program.

use crate::sampling::{Figures, Recorded, Recorder, RecorderCommand, threads_of};
use crate::snapshot::Remote;
use crate::tuning::uses::{Homes, Views, Window, names, objects};
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
/// On a virtual machine, threads must have had their nodes for so long.
const PLACED_NS: u64 = 2_000_000_000;
/// Remote shares are those of this time, or of less since pages were moved.
const SHARE_NS: u64 = 10_000_000_000;
/// After a move, accesses of this time may still be attributed to the node that a page was on.
const AFTER_MOVE_NS: u64 = 1_000_000_000;
/// Samples a second of the whole program, and the bounds of the CPU time of a thread between two, us.
const A_SECOND: f64 = 400.0;
const PERIODS_US: (f64, f64) = (6_300.0, 100_000.0);
/// An analysis takes much longer than a look: so many times its own time passes until the next one, within bounds.
const ANALYSES: u64 = 4;
const BETWEEN_ANALYSES_NS: (u64, u64) = (500_000_000, 2_000_000_000);
/// Objects with so many accesses that were not there at the last analysis are a reason for one, after its own time.
const MANY_USES: usize = 8;
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
    judged: BTreeMap<Id, Judged>,
    status: Option<ExitStatus>,
    // Removed last.
    _directory: RunDirectory,
}

/// What was seen of one process.
pub struct Seen {
    pub pid: i32,
    pub name: String,
    pub objects: Vec<ObjectUses>,
    /// If it was analysed in this look.
    pub remote: Option<Remote>,
}

/// The last analysis of a process. Where its threads make accesses, and where its pages are, is known without one.
#[derive(Default)]
struct Judged {
    views: Views,
    ended_ns: u64,
    took_ns: u64,
    /// On a virtual machine: since when the threads have had these nodes.
    placed_ns: u64,
}

impl Judged {
    /// Takes the place of the one before.
    fn replaces(self, before: &mut Self) {
        let placed_ns = if self.views.are_threads_where(&before.views) { before.placed_ns } else { self.ended_ns };
        *before = Self { placed_ns, ..self };
    }

    /// On a virtual machine, nodes are those of threads that work: at the start of a program, others do than later (Java's compiler).
    fn is_placed(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.placed_ns) >= PLACED_NS
    }

    fn is_due(&self, now_ns: u64, has_unknown: bool) -> bool {
        let pause_ns = (ANALYSES * self.took_ns).clamp(BETWEEN_ANALYSES_NS.0, BETWEEN_ANALYSES_NS.1);
        now_ns.saturating_sub(self.ended_ns) >= if has_unknown { self.took_ns } else { pause_ns }
    }
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
            judged: BTreeMap::new(),
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

    /// Looks up the names of new call stacks, which nothing is decided by. Returns whether there were any.
    pub fn look_up_names(&mut self) -> bool {
        let missing = self.names.missing(&self.recorder.profile);
        if !missing.is_empty() {
            self.names.look_up(&mut self.recorder.profile, &missing);
        }
        !missing.is_empty()
    }

    /// What was seen lately, of each process that runs; nothing if there are no new rows. `moved_ns`: when pages of a process were moved last.
    pub fn look(&mut self, moved_ns: impl Fn(i32) -> Option<u64>) -> Vec<Seen> {
        let now_ns = monotonic_ns();
        // A plan is made from more than a window.
        if !self.recorder.refresh(now_ns.saturating_sub(3 * WINDOW_NS)) {
            return Vec::new();
        }
        if self.is_virtual {
            // A dry run is in no hurry.
            self.look_up_names();
        }
        let is_meant = |pid: i32| self.attached.is_none_or(|attached| attached == pid);
        let live = self.recorder.profile.processes.iter().filter(|process| process.died_ns.is_none() && is_meant(process.pid));
        let live: Vec<(i32, Id, String)> = live.map(|process| (process.pid, process.id, program(process.exe.as_deref()))).collect();
        live.into_iter().filter_map(|(pid, process, name)| self.look_at(now_ns, pid, process, name, moved_ns(pid))).collect()
    }

    fn look_at(&mut self, now_ns: u64, pid: i32, process: Id, name: String, moved_ns: Option<u64>) -> Option<Seen> {
        let window = Window::of(&self.recorder.profile, process, now_ns.saturating_sub(WINDOW_NS), self.period_ns);
        let homes = self.homes.entry(process).or_default();
        if !self.is_virtual {
            homes.ask(&Pages::of(pid), process, &window, now_ns, moved_ns);
        }
        let homes = &*homes;
        let judged = self.judged.entry(process).or_default();
        let has_unknown = window.busiest(MANY_USES).any(|object| !judged.views.knows(object));
        let mut remote = None;
        // On a virtual machine, only an analysis knows the nodes.
        if self.is_virtual || judged.is_due(now_ns, has_unknown) {
            let began_ns = monotonic_ns();
            let share_from = now_ns.saturating_sub(SHARE_NS).max(moved_ns.map_or(0, |moved| moved + AFTER_MOVE_NS));
            let profile = &mut self.recorder.profile;
            let own = profile.pages.len();
            profile.pages.extend(homes.rows().filter(|_| !self.is_virtual).cloned());
            let analysis = analyse_window(profile, process, share_from.min(now_ns), &self.request);
            profile.pages.truncate(own);
            let analysis = analysis.ok()?;
            let seen_s = u32::try_from(now_ns.saturating_sub(share_from) / 1_000_000_000).unwrap_or(1).max(1);
            remote = Some(Figures::of(&analysis, &threads_of(profile, process), seen_s).remote);
            let ended_ns = monotonic_ns();
            let views = Views::new(profile, process, &analysis);
            Judged { views, ended_ns, took_ns: ended_ns.saturating_sub(began_ns), placed_ns: ended_ns }.replaces(judged);
        }
        let mut objects = objects(&self.recorder.profile, process, &judged.views, &window, homes, self.is_virtual);
        // Whether placing the others is of any use is not known yet.
        objects.retain(|object| judged.views.knows(object.id) && (!self.is_virtual || judged.is_placed(now_ns)));
        Some(Seen { pid, name, objects, remote })
    }

    /// The names and lines of a process's objects, also of those that live no more: for the words at the end.
    pub fn names(&mut self, pid: i32) -> BTreeMap<Id, (String, Option<String>)> {
        self.look_up_names();
        let profile = &mut self.recorder.profile;
        let Some(process) = profile.processes.iter().rev().find(|process| process.pid == pid).map(|process| process.id) else {
            return BTreeMap::new();
        };
        let analysis = analyse_window(profile, process, 0, &self.request);
        analysis.map(|analysis| names(profile, process, &analysis)).unwrap_or_default()
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
fn program(exe: Option<&str>) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that an analysis waits for several times its own time, within bounds, and for its own time if there is a new object.
    #[test]
    fn analyses_have_a_part_of_the_time() {
        const MS: u64 = 1_000_000;
        let after = |took_ms: u64, has_unknown: bool| {
            let judged = Judged { ended_ns: 1000 * MS, took_ns: took_ms * MS, ..Judged::default() };
            (1000..9000).find(|ms| judged.is_due(ms * MS, has_unknown)).map(|ms| ms - 1000)
        };
        assert_eq!([after(1, false), after(200, false), after(3000, false)], [Some(500), Some(800), Some(2000)]);
        assert_eq!([after(1, true), after(200, true), after(3000, true)], [Some(1), Some(200), Some(3000)]);
        assert!(Judged::default().is_due(MS * 1000, false));
    }
}
