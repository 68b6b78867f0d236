//! Which processes are sampled, and what their samples say.
//!
//! The budget is one of the whole machine: few processes are sampled at a time, those that use most CPU, in turn where there are more; they share
//! a number of samples a second, and the analysis of their rows has a part of one CPU.

mod figures;
mod recorder;

pub use figures::Figures;
pub use recorder::{Launch, RecorderCommand};
pub(crate) use {figures::threads_of, recorder::Recorded, recorder::Recorder};

use crate::facts::{Processes, tree};
use crate::pace::{Pace, Schedule};
use crate::window::Window;
use firsttouch_model::rows::Id;
use firsttouch_pipeline::{AnalysisRequest, LiveNames, analyse_window};
use firsttouch_system::leftovers::remove_old_runs;
use firsttouch_system::run_directory::RunDirectory;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Processes that are sampled at a time, besides those of a program that was started here.
const SLOTS: usize = 3;
/// Samples of all processes together, a second.
const A_SECOND: f64 = 200.0;
/// CPU time of a thread between two samples: what the recorder's own bounds are, and the longest.
const PERIODS_US: (f64, f64) = (6_300.0, 200_000.0);
/// Who uses less CPU is not sampled, unless it is looked at closely.
const LEAST_CPU: f64 = 0.05;
/// Nor who started more recently, ns: compilers and shells come and go, and a recorder has its own start to pay for.
const LEAST_AGE_NS: u64 = 5_000_000_000;
/// A process is sampled for this long before another has its turn.
const TURN_NS: u64 = 30_000_000_000;
/// Then the recorder is started anew, so that its profile does not grow without end.
const LONGEST_NS: u64 = 300_000_000_000;
/// The parts of one CPU that the analysis may take: of the process that is looked at closely, and of all others; and names of code.
const CLOSE_SHARE: f64 = 0.01;
const SHARE: f64 = 0.002;
const NAMES_SHARE: f64 = 0.01;
/// The part of one CPU that this process may take for everything: where its other work takes less, analyses follow each other sooner.
const ALL_SHARE: f64 = 0.0035;

/// The samples of processes, and what they say.
pub struct Sampling {
    command: RecorderCommand,
    directory: RunDirectory,
    request: AnalysisRequest,
    recorders: BTreeMap<i32, Recorder>,
    launched: Option<Recorder>,
    launched_status: Option<ExitStatus>,
    names: LiveNames,
    /// Processes that could not be sampled, with their start, and why.
    refused: BTreeMap<(i32, u64), String>,
    /// When a process was sampled last.
    sampled_ns: BTreeMap<i32, u64>,
    /// What is known, and since when.
    figures: BTreeMap<i32, (u64, Figures)>,
    window: Window,
    close: Option<i32>,
    schedule: Schedule,
    names_pace: Pace,
    numbered: u64,
}

impl Sampling {
    /// # Errors
    /// When no temporary directory can be made.
    pub fn new(command: RecorderCommand, request: AnalysisRequest) -> io::Result<Self> {
        remove_old_runs(&std::env::temp_dir());
        Ok(Self {
            command,
            directory: RunDirectory::temporary()?,
            request,
            recorders: BTreeMap::new(),
            launched: None,
            launched_status: None,
            names: LiveNames::default(),
            refused: BTreeMap::new(),
            sampled_ns: BTreeMap::new(),
            figures: BTreeMap::new(),
            window: Window::default(),
            close: None,
            schedule: Schedule::new([CLOSE_SHARE, SHARE], ALL_SHARE),
            names_pace: Pace::new(NAMES_SHARE),
            numbered: 0,
        })
    }

    fn stem(&mut self) -> std::path::PathBuf {
        self.numbered += 1;
        self.directory.path().join(self.numbered.to_string())
    }

    /// Starts a program. `cpus`: those of the machine.
    ///
    /// # Errors
    /// When the recorder cannot be started.
    pub fn launch(&mut self, launch: &Launch, cpus: usize) -> io::Result<i32> {
        let stem = self.stem();
        let recorder = Recorder::start(&self.command, &Recorded::Program(launch), period_us(cpus as f64, A_SECOND), &stem)?;
        let pid = recorder.pid();
        self.launched = Some(recorder);
        Ok(pid)
    }

    /// The recorder of the program that was started here.
    #[must_use]
    pub fn launched_pid(&self) -> Option<i32> {
        self.launched.as_ref().map(Recorder::pid)
    }

    /// The status of the recorder of the program that was started here, once it has ended: the program's, or a signal if the recorder was killed.
    pub fn launched_status(&mut self) -> Option<ExitStatus> {
        if self.launched_status.is_none() {
            self.launched_status = self.launched.as_mut().and_then(Recorder::ended);
            let signal = self.launched_status.and_then(|status| status.signal());
            if let Some((signal, recorder)) = signal.zip(self.launched.as_mut()) {
                recorder.failure.get_or_insert_with(|| format!("its recorder was ended by signal {signal}"));
            }
        }
        self.launched_status
    }

    /// The recorders' process numbers.
    pub fn recorder_pids(&self) -> impl Iterator<Item = i32> {
        self.recorders.values().chain(&self.launched).map(Recorder::pid)
    }

    /// Decides who is sampled, reads new rows and judges them, as far as the budget goes. `focus`: the only processes that matter, if not all do.
    pub fn tick(&mut self, now_ns: u64, processes: &Processes, focus: Option<&BTreeSet<i32>>, close: Option<i32>, window: Window) {
        if self.window != window || self.close != close {
            // What the user asks for comes at once.
            (self.window, self.close) = (window, close);
            self.schedule.hurry();
        }
        // Processes whose recorder was killed are sampled as others are.
        let launcher = self.launched_pid().filter(|_| self.launched_status.is_none());
        let started_here = launcher.map_or_else(BTreeSet::new, |pid| tree(&processes.parents(), pid));
        self.look_after(processes);
        self.choose(now_ns, processes, focus, &started_here);
        self.schedule.update(now_ns);
        let pids: Vec<i32> = self.recorders.keys().copied().collect();
        let mut order: Vec<i32> = pids.into_iter().filter(|pid| Some(*pid) != close).collect();
        order.sort_by_key(|pid| self.figures.get(pid).map_or(0, |(since, _)| *since));
        for pid in close.into_iter().chain(order) {
            self.judge(now_ns, pid);
        }
        self.judge_launched(now_ns, processes);
        let kept = |pid: &i32| processes.get(*pid).is_some();
        self.figures.retain(|pid, (since, _)| kept(pid) && now_ns.saturating_sub(*since) < Window::Long.ns());
        self.sampled_ns.retain(|pid, _| kept(pid));
        let launcher = self.launched_pid();
        self.schedule.retain(|pid| kept(&pid) || Some(pid) == launcher);
        self.refused.retain(|(pid, _), _| kept(pid));
    }

    /// Removes recorders that have ended, and those whose process has.
    fn look_after(&mut self, processes: &Processes) {
        let pids: Vec<i32> = self.recorders.keys().copied().collect();
        for pid in pids {
            let Some(recorder) = self.recorders.get_mut(&pid) else { continue };
            let ended = recorder.ended();
            let failure = recorder.failure.clone().or_else(|| ended.filter(|status| !status.success()).and_then(|_| recorder.message()));
            if let Some((why, known)) = failure.zip(processes.get(pid)) {
                self.refused.insert((pid, known.summary.start_ticks), why);
            }
            if ended.is_some() || recorder.failure.is_some() || processes.get(pid).is_none() {
                self.recorders.remove(&pid);
            }
        }
    }

    fn is_refused(&self, pid: i32, processes: &Processes) -> Option<String> {
        let known = processes.get(pid)?;
        known.refused.clone().or_else(|| self.refused.get(&(pid, known.summary.start_ticks)).cloned())
    }

    /// Gives the slots to those who use most CPU and were sampled least recently.
    fn choose(&mut self, now_ns: u64, processes: &Processes, focus: Option<&BTreeSet<i32>>, started_here: &BTreeSet<i32>) {
        let own = std::process::id().cast_signed();
        let is_old = |pid: i32| processes.get(pid).is_some_and(|known| now_ns.saturating_sub(known.since_ns) >= LEAST_AGE_NS);
        let helpers: BTreeSet<i32> = self.recorder_pids().chain([own]).collect();
        let is_wanted = |pid: i32, cpu: f64| {
            let is_in_focus = focus.is_none_or(|focus| focus.contains(&pid));
            let is_other = !helpers.contains(&pid) && !started_here.contains(&pid);
            is_other
                && is_in_focus
                && (self.close == Some(pid) || (cpu >= LEAST_CPU && (focus.is_some() || is_old(pid))))
                && self.is_refused(pid, processes).is_none()
        };
        let mut wanted: Vec<(i32, f64)> =
            processes.iter().map(|(pid, known)| (pid, known.recent_cpu)).filter(|&(pid, cpu)| is_wanted(pid, cpu)).collect();
        wanted.sort_by(|a, b| b.1.total_cmp(&a.1));
        let waits = wanted.iter().any(|(pid, _)| !self.recorders.contains_key(pid));
        let is_full = self.recorders.len() >= SLOTS;
        // Who has had a turn makes room, if another one waits; who is looked at closely stays.
        let turn = |pid: i32, recorder: &Recorder| {
            let held_ns = now_ns.saturating_sub(recorder.started_ns);
            let is_wanted = wanted.iter().any(|(one, _)| *one == pid);
            held_ns >= LONGEST_NS || (held_ns >= TURN_NS && (!is_wanted || (is_full && waits && self.close != Some(pid))))
        };
        let mut over: Vec<(u64, i32)> =
            self.recorders.iter().filter(|(pid, one)| turn(**pid, one)).map(|(pid, one)| (one.started_ns, *pid)).collect();
        over.sort_unstable();
        if let Some((_, pid)) = over.first() {
            self.recorders.remove(pid);
        }
        // Close ones first, then those who waited longest, then those who use most CPU.
        let last = |pid: i32| self.sampled_ns.get(&pid).copied().unwrap_or(0);
        wanted.sort_by(|a, b| {
            (Some(b.0) == self.close).cmp(&(Some(a.0) == self.close)).then(last(a.0).cmp(&last(b.0))).then(b.1.total_cmp(&a.1))
        });
        if let Some((pid, _)) = wanted.first().filter(|(pid, _)| Some(*pid) == self.close && !self.recorders.contains_key(pid))
            && self.recorders.len() >= SLOTS
            && let Some(oldest) = self.recorders.iter().min_by_key(|(_, one)| one.started_ns).map(|(pid, _)| *pid)
        {
            debug_assert_ne!(*pid, oldest);
            self.recorders.remove(&oldest);
        }
        let sharing = wanted.len().clamp(1, SLOTS) as f64 + if self.launched.is_some() { 1.0 } else { 0.0 };
        for (pid, cpu) in wanted {
            if self.recorders.len() >= SLOTS {
                break;
            }
            if self.recorders.contains_key(&pid) {
                continue;
            }
            let stem = self.stem();
            match Recorder::start(&self.command, &Recorded::Process(pid), period_us(cpu, A_SECOND / sharing), &stem) {
                Ok(recorder) => drop(self.recorders.insert(pid, recorder)),
                Err(error) => {
                    if let Some(known) = processes.get(pid) {
                        self.refused.insert((pid, known.summary.start_ticks), format!("no recorder could be started: {error}"));
                    }
                }
            }
        }
        for pid in self.recorders.keys() {
            self.sampled_ns.insert(*pid, now_ns);
        }
    }

    /// Judges a process that is sampled by a recorder of its own.
    fn judge(&mut self, now_ns: u64, pid: i32) {
        let Some(recorder) = self.recorders.get_mut(&pid) else { return };
        let (request, window, figures_of) = (&self.request, self.window, &mut self.figures);
        self.schedule.run(now_ns, pid, self.close == Some(pid), || {
            if recorder.refresh(now_ns.saturating_sub(Window::Long.ns()))
                && let Some(process) = recorder.profile.processes.iter().find(|process| process.pid == pid).map(|process| process.id)
            {
                figures_of.insert(pid, (now_ns, figures(recorder, process, request, window, now_ns)));
            }
        });
    }

    /// Judges the processes of the program that was started here.
    fn judge_launched(&mut self, now_ns: u64, processes: &Processes) {
        let Some(recorder) = &mut self.launched else { return };
        let (request, window, figures_of) = (&self.request, self.window, &mut self.figures);
        let (names, names_pace) = (&mut self.names, &mut self.names_pace);
        self.schedule.run(now_ns, recorder.pid(), true, || {
            if !recorder.refresh(now_ns.saturating_sub(Window::Long.ns())) {
                return;
            }
            let missing = names.missing(&recorder.profile);
            if !missing.is_empty() {
                names_pace.run(now_ns, || names.look_up(&mut recorder.profile, &missing));
            }
            let live = recorder.profile.processes.iter().filter(|process| process.died_ns.is_none());
            let live: Vec<(i32, Id)> =
                live.map(|process| (process.pid, process.id)).filter(|(pid, _)| processes.get(*pid).is_some()).collect();
            for (pid, process) in live {
                figures_of.insert(pid, (now_ns, figures(recorder, process, request, window, now_ns)));
            }
        });
    }

    /// What is known of a process, or why nothing is.
    #[must_use]
    pub fn of(&self, now_ns: u64, pid: i32, processes: &Processes) -> Figures {
        if let Some(why) = self.is_refused(pid, processes) {
            return Figures::unknown(why);
        }
        let oldest_ns = TURN_NS.max(self.window.ns());
        if let Some((_, figures)) = self.figures.get(&pid).filter(|(since, _)| now_ns.saturating_sub(*since) <= oldest_ns) {
            return figures.clone();
        }
        if let Some(recorder) = self.recorders.get(&pid) {
            return Figures::unknown(format!("sampled for {} s so far", now_ns.saturating_sub(recorder.started_ns) / 1_000_000_000));
        }
        if let Some(why) = self.launched.as_ref().and_then(|recorder| recorder.failure.clone()) {
            return Figures::unknown(why);
        }
        let cpu = processes.get(pid).map_or(0.0, |known| known.recent_cpu);
        Figures::unknown(if cpu < LEAST_CPU {
            format!("not sampled: it uses less than {:.0} % of a CPU", 100.0 * LEAST_CPU)
        } else if processes.get(pid).is_some_and(|known| now_ns.saturating_sub(known.since_ns) < LEAST_AGE_NS) {
            "not sampled: it was seen for less than 5 s".to_owned()
        } else {
            format!("it waits for its turn: {SLOTS} processes are sampled at a time")
        })
    }

    /// Processes that are sampled now.
    #[must_use]
    pub fn sampled(&self) -> usize {
        self.recorders.len() + usize::from(self.launched.is_some() && self.launched_status.is_none())
    }
}

/// A time of the monotonic clock as seconds since 1970, to a tenth.
fn since_1970(time_ns: u64, now_ns: u64) -> f64 {
    let ago = Duration::from_nanos(now_ns.saturating_sub(time_ns));
    let time = SystemTime::now().checked_sub(ago).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    (10.0 * time.unwrap_or_default().as_secs_f64()).round() / 10.0
}

/// CPU time between two samples of a thread, us, so that this many CPUs give so many samples a second.
fn period_us(cpus: f64, a_second: f64) -> u64 {
    (cpus * 1e6 / a_second).clamp(PERIODS_US.0, PERIODS_US.1) as u64
}

fn figures(recorder: &mut Recorder, process: Id, request: &AnalysisRequest, window: Window, now_ns: u64) -> Figures {
    let seen_ns = now_ns.saturating_sub(recorder.started_ns);
    let seen_s = window.seconds().min(u32::try_from(seen_ns.div_ceil(1_000_000_000)).unwrap_or(u32::MAX)).max(1);
    let until_ns = recorder.profile.meta.end_ns.unwrap_or_else(|| recorder.profile.samples.last().map_or(0, |sample| sample.time_ns));
    match analyse_window(&mut recorder.profile, process, until_ns.saturating_sub(window.ns()), request) {
        Ok(analysis) => {
            let mut figures = Figures::of(&analysis, &threads_of(&recorder.profile, process), seen_s);
            figures.remote.until_s = Some(since_1970(until_ns, now_ns)).filter(|_| until_ns > 0);
            figures
        }
        Err(error) => Figures::unknown(format!("{error:#}")),
    }
}
