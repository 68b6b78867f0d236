//! Looks, decides and moves, until there is a reason to end.

use crate::sampling::RecorderCommand;
use crate::tuning::learnt::Learnt;
use crate::tuning::watch::{Seen, Subject, WINDOW_NS, Watch};
use firsttouch_pipeline::AnalysisRequest;
use firsttouch_placement::move_pages::refusal;
use firsttouch_plan::Plan;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::pages::Pages;
use firsttouch_system::launch::signals::{process_runs, send};
use firsttouch_tune::{Budget, Outcome, ProcessOutcome, Remote, SCHEMA, Settings, Tuner};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;

/// Time between two looks, and how much longer than a look it is at least: what a look costs. The first looks, which take this long together, are not
/// held against that: what is found early gains most.
const LOOK_NS: u64 = 250_000_000;
const PAUSE: u64 = 4;
const FIRST_LOOKS_NS: u64 = 2_000_000_000;
const LONGEST_PAUSE_NS: u64 = 2_000_000_000;
/// Time between two moves.
const MOVE_NS: u64 = 50_000_000;
/// Nothing was decided for so long: it is settled. Without any accesses, after a longer time.
const QUIET_NS: u64 = 5_000_000_000;
/// The same until names are looked up, which takes as long as many looks.
const NAMES_NS: u64 = 3_000_000_000;
const SILENT_NS: u64 = 20_000_000_000;

/// What is asked for.
pub struct Wanted {
    pub command: RecorderCommand,
    pub request: AnalysisRequest,
    pub settings: Settings,
    /// Of all processes of the program together.
    pub budget: Budget,
    pub machine: String,
    pub nodes: usize,
    pub is_virtual: bool,
    /// CPUs that the program may use.
    pub cpus: f64,
    /// Keep a plan.
    pub learns: bool,
}

/// Why a session is over.
#[derive(Debug)]
pub enum Ended {
    /// The process, or the program that was started, with its status.
    Program(Option<ExitStatus>),
    /// The recorder failed, or the kernel refuses moves; the program goes on.
    Failed(String),
}

struct Tuned {
    name: String,
    tuner: Tuner,
    has_ended: bool,
}

/// Tunes one program.
pub struct Session {
    watch: Watch,
    attached: Option<i32>,
    wanted: Wanted,
    processes: BTreeMap<i32, Tuned>,
    learnt: Learnt,
    since_ns: u64,
    next_look_ns: u64,
    /// The time that looks took so far.
    looked_ns: u64,
    seen_any: bool,
    /// The kernel refused to move pages: nothing more is moved.
    is_refused: bool,
}

impl Session {
    /// Starts to watch a process.
    ///
    /// # Errors
    /// When the recorder cannot be started.
    pub fn attach(wanted: Wanted, pid: i32) -> io::Result<Self> {
        Self::start(wanted, &Subject::Process(pid))
    }

    /// Starts a program, which keeps the streams of this process.
    ///
    /// # Errors
    /// When the recorder cannot be started.
    pub fn launch(wanted: Wanted, command: &[OsString]) -> io::Result<Self> {
        Self::start(wanted, &Subject::Program(command))
    }

    fn start(mut wanted: Wanted, subject: &Subject<'_>) -> io::Result<Self> {
        let request = std::mem::take(&mut wanted.request);
        let watch = Watch::start(&wanted.command, subject, request, wanted.is_virtual, wanted.cpus)?;
        Ok(Self {
            watch,
            attached: match subject {
                Subject::Process(pid) => Some(*pid),
                Subject::Program(_) => None,
            },
            wanted,
            processes: BTreeMap::new(),
            learnt: Learnt::default(),
            since_ns: monotonic_ns(),
            next_look_ns: 0,
            looked_ns: 0,
            seen_any: false,
            is_refused: false,
        })
    }

    /// Passes a signal on to the program that was started.
    pub fn pass_on(&self, signal: i32) {
        if self.attached.is_none() {
            send(self.watch.recorder_pid(), signal);
        }
    }

    /// Does what is due, and returns how long to wait until the next turn, ns.
    ///
    /// # Errors
    /// Why the session is over.
    pub fn turn(&mut self) -> Result<u64, Ended> {
        let now_ns = monotonic_ns();
        if now_ns >= self.next_look_ns {
            self.look(now_ns);
            let done_ns = monotonic_ns();
            self.looked_ns += done_ns - now_ns;
            let pause_ns = if self.looked_ns <= FIRST_LOOKS_NS { 0 } else { PAUSE * (done_ns - now_ns) };
            self.next_look_ns = done_ns + pause_ns.clamp(LOOK_NS, LONGEST_PAUSE_NS);
        }
        self.carry_out().map_err(Ended::Failed)?;
        if self.is_settled_for(NAMES_NS) {
            self.watch.look_up_names();
        }
        if let Some(ended) = self.over() {
            self.name_objects();
            return Err(ended);
        }
        let wait_ns = self.next_look_ns.saturating_sub(monotonic_ns()).max(1);
        Ok(if self.is_busy() { wait_ns.min(MOVE_NS) } else { wait_ns.min(LOOK_NS) })
    }

    /// Names of programs that ended soon after the last decision.
    fn name_objects(&mut self) {
        for (pid, one) in &mut self.processes {
            for (id, (name, line)) in self.watch.names(*pid) {
                if let Some(known) = one.tuner.objects.get_mut(&id) {
                    (known.name, known.line) = (name, line);
                }
            }
        }
    }

    /// Whether pages are still to be moved.
    fn is_busy(&self) -> bool {
        !self.is_refused && self.processes.values().any(|one| one.tuner.carrier.is_busy())
    }

    /// Moves what the budget allows now.
    fn carry_out(&mut self) -> Result<(), String> {
        for (pid, one) in self.processes.iter_mut().filter(|(_, one)| !one.has_ended && !self.is_refused) {
            if let Err(error) = one.tuner.step(&mut self.wanted.budget, &Pages::of(*pid), &mut monotonic_ns) {
                self.is_refused = true;
                return Err(format!("cannot move pages of process {pid}: {}", refusal(&error)));
            }
        }
        Ok(())
    }

    fn over(&mut self) -> Option<Ended> {
        let status = self.watch.ended();
        match (self.attached, status) {
            (Some(pid), _) if !process_runs(pid) => Some(Ended::Program(None)),
            (Some(_), Some(_)) => Some(Ended::Failed(self.watch.failure().unwrap_or_else(|| "its recorder has ended".to_owned()))),
            (None, Some(status)) => Some(Ended::Program(Some(status))),
            (_, None) => self.watch.profile_failure().map(Ended::Failed).filter(|_| self.attached.is_some()),
        }
    }

    fn look(&mut self, now_ns: u64) {
        let moved: BTreeMap<i32, u64> =
            self.processes.iter().filter_map(|(pid, one)| Some((*pid, one.tuner.carrier.last_move_ns?))).collect();
        let seen = self.watch.look(|pid| moved.get(&pid).copied());
        if seen.is_empty() {
            return;
        }
        for (pid, one) in &mut self.processes {
            one.has_ended = !process_runs(*pid);
        }
        let mut decided = 0;
        for one in seen {
            decided += self.tune(now_ns, one);
        }
        if decided > 0 && self.wanted.learns {
            self.watch.look_up_names();
            self.learnt.learn(&self.watch, self.watch.request());
        }
    }

    fn tune(&mut self, now_ns: u64, seen: Seen) -> usize {
        let settings = &self.wanted.settings;
        let tuned = self.processes.entry(seen.pid).or_insert_with(|| Tuned {
            name: String::new(),
            tuner: Tuner::new(settings.clone()),
            has_ended: false,
        });
        tuned.name = seen.name;
        if let Some((remote, share, interval)) = seen.remote.and_then(|remote| Some((remote.clone(), remote.share?, remote.interval?))) {
            tuned.tuner.note(Remote { share, interval, samples: remote.samples, source: remote.source });
        }
        self.seen_any |= !seen.objects.is_empty();
        tuned.tuner.observe(now_ns, WINDOW_NS, seen.objects)
    }

    /// Whether nothing more is to be moved.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        if self.seen_any { self.is_settled_for(QUIET_NS) } else { monotonic_ns().saturating_sub(self.since_ns) >= SILENT_NS }
    }

    /// Whether accesses were seen, and nothing was decided or moved for so long.
    fn is_settled_for(&self, quiet_ns: u64) -> bool {
        let now_ns = monotonic_ns();
        self.seen_any && self.processes.values().filter(|one| !one.has_ended).all(|one| one.tuner.is_settled(now_ns, quiet_ns))
    }

    /// What was decided and done so far.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let is_worth = |one: &&ProcessOutcome| one.accesses > 0 || one.moved_pages > 0 || self.processes.len() == 1;
        let all: Vec<ProcessOutcome> = self.processes.iter().map(|(pid, one)| ProcessOutcome::of(*pid, &one.name, &one.tuner)).collect();
        Outcome {
            schema: SCHEMA.to_owned(),
            machine: self.wanted.machine.clone(),
            nodes: self.wanted.nodes,
            is_virtual: self.wanted.is_virtual,
            seconds: monotonic_ns().saturating_sub(self.since_ns) as f64 / 1e9,
            dry_run: self.wanted.settings.dry_run,
            settled: self.is_settled(),
            budget_bytes_per_s: self.wanted.budget.bytes_per_s(),
            processes: all.iter().filter(is_worth).cloned().collect(),
            plan: None,
            notes: Vec::new(),
        }
    }

    /// The plan that was learnt, or why no plan could be made.
    ///
    /// # Errors
    /// Why no plan could be made.
    pub fn plan(&self) -> Result<&Plan, String> {
        match (&self.learnt.plan, &self.learnt.failure) {
            (Some(plan), _) => Ok(plan),
            (None, Some(why)) => Err(why.clone()),
            (None, None) => Err("nothing was decided that a plan could say".to_owned()),
        }
    }
}
