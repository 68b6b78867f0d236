//! Start and end of a run: the command is launched with the agent, or a running process is attached to.

use super::account::cpu_times;
use super::{Member, Recording, Session};
use crate::error::{Error, ErrorKind, Result, convert};
use crate::options::Options;
use crate::perf::tick_cost::tick_cost_ns;
use crate::source::{Source, Target};
use crate::sources::agent::Agent;
use crate::sources::hint::Hint;
use crate::sources::resident::Resident;
use crate::sources::sample::TimerSamples;
use crate::sources::touch::Touch;
use crate::sources::watch::{Calibration, Watch, calibrate};
use crate::track::generated_code::GeneratedCode;
use firsttouch_model::rows::metadata::Mode;
use firsttouch_profile::Writer;
use firsttouch_system::calls::clock::{monotonic_ns, process_cpu_ns};
use firsttouch_system::calls::identity::effective_user;
use firsttouch_system::launch::signals::{Notice, Signals, process_exists, process_runs, send};
use firsttouch_system::launch::{LaunchError, Waiting, environment, find_program, raise_file_limit, reap};
use firsttouch_system::preload::accepts_agent::{Agentless, accepts_agent};
use firsttouch_system::proc;
use firsttouch_system::process::forbidden;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// How often firsttouch checks on a program that goes on after the profile.
const WAIT_NS: u64 = 500_000_000;

/// What events cost on this machine.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    watch: Option<Calibration>,
    /// A tick of a thread's clock, ns.
    tick_ns: Option<f64>,
}

fn costs() -> Costs {
    let ticks = Builder::new().spawn(tick_cost_ns);
    let watch = calibrate();
    Costs { watch, tick_ns: ticks.map_or_else(|_| tick_cost_ns(), |thread| thread.join().unwrap_or_default()) }
}

/// The measurement of costs that [`prepare`] began.
static CALIBRATING: Mutex<Option<JoinHandle<Costs>>> = Mutex::new(None);

/// Begins to measure what events cost here, so that a later [`super::profile`] need not wait for it: the first event on a machine waits
/// some 10 ms for every CPU.
pub fn prepare() {
    *CALIBRATING.lock().unwrap_or_else(PoisonError::into_inner) = Builder::new().spawn(costs).ok();
}

fn prepared_costs() -> Costs {
    let calibrating = CALIBRATING.lock().unwrap_or_else(PoisonError::into_inner).take();
    calibrating.and_then(|thread| thread.join().ok()).unwrap_or_else(costs)
}

/// A live view needs no costs of watchpoints and ticks, and is started often.
fn costs_for(options: &Options) -> Costs {
    if options.live.is_some() { Costs::default() } else { prepared_costs() }
}

/// The sources of a run, in the order in which they start.
///
/// Page faults come first, because every event that is open later would add to the first fault. The agent and the calibration of the
/// watchpoints are ready before the target exists: the agent is part of its environment, and the first performance event on a machine
/// waits for every CPU (some 10 ms), while the profile is created.
fn sources(options: &Options, costs: Costs, agent: Member) -> Vec<Member> {
    let samples = TimerSamples::new(options.cpus().len(), costs.tick_ns);
    let mut members = vec![Member::new(Touch::new(options))];
    if options.live.is_none() {
        members.push(Member::new(Watch::new(costs.watch, options)));
    }
    members.extend([
        agent,
        Member::new(match &options.live {
            Some(live) => samples.unthinned(live.period_ns(), live.effort),
            None => samples,
        }),
        Member::new(Resident::default()),
        Member::new(Hint::new(options.machine.clone())),
    ]);
    members
}

pub(super) fn launch(options: &Options) -> Result<Recording> {
    let Some(name) = options.command.first() else { return Err(Error::new(ErrorKind::Launch, "no command given")) };
    let Some(program) = find_program(name) else {
        return Err(LaunchError::NotExecuted { command: name.to_string_lossy().into_owned(), errno: libc::ENOENT }.into());
    };
    let signals = Signals::catch().map_err(convert::system)?;
    let writer = Writer::create_at(&options.output).map_err(convert::profile)?;
    let file = writer.created();
    let is_hidden = effective_user() != 0 && matches!(accepts_agent(&program), Err(Agentless::Privileged));
    let mut agent = Agent::new(Some(program), options);
    let probed = agent.probe();
    let mut environment = environment();
    agent.add_to(&mut environment);
    let library = agent.library();
    let costs = costs_for(options);
    let waiting = match Waiting::fork(&options.command, &environment, &signals.original_mask) {
        Ok(waiting) => waiting,
        Err(error) => {
            writer.withdraw();
            return Err(convert::launch(error));
        }
    };
    // Not before the fork: the target keeps the user's limit.
    raise_file_limit();
    let pid = waiting.pid;
    let mut session = Session::new(options, writer, pid, sources(options, costs, Member::probed(agent, probed)));
    session.is_hidden = is_hidden;
    session.sources.start(&Target { pid, tids: &[pid], is_launched: true }, &mut session.tracker);
    session.write_head(Mode::Launch);
    session.begin();
    if let Err(error) = waiting.start() {
        session.tracker.sink.withdraw();
        return Err(convert::launch(error));
    }
    session.tracker.sink.keep();
    let mut exit_code = session.run(&signals, true);
    let mut recording = session.finish(exit_code);
    let replaced = session.tracker.modules.replaced();
    let generated = session.tracker.take_generated_code();
    // Closes all events and the agent's ring, but not the library, which child processes may still load.
    drop(session);
    if exit_code.is_none() {
        // The duration is over; the program goes on unobserved.
        exit_code = Some(wait_for(pid, &signals));
    }
    drop(library);
    recording.exit_code = exit_code;
    recording.file = file;
    complete(options, &replaced, &generated, &mut recording);
    Ok(recording)
}

pub(super) fn attach(options: &Options, pid: i32) -> Result<Recording> {
    let refuse = |reason: &str| Err(Error::new(ErrorKind::Attach, format!("cannot attach to process {pid}: {reason}")));
    if !process_exists(pid) {
        return refuse("there is no such process");
    }
    if !process_runs(pid) {
        return refuse("it has ended and waits for its parent to collect its exit status");
    }
    if pid.unsigned_abs() == std::process::id() {
        return refuse("it is firsttouch itself: name another");
    }
    let mut tids = proc::thread_ids(Path::new("/"), pid);
    match proc::executable(Path::new("/"), pid).map_err(|error| error.kind()) {
        Ok(_) if !tids.is_empty() => {}
        Err(std::io::ErrorKind::NotFound) => return refuse("it is a thread of the kernel, which has no memory of its own"),
        Err(std::io::ErrorKind::PermissionDenied) => {
            // It names the process itself.
            return Err(Error::new(ErrorKind::Attach, format!("cannot attach: {}", forbidden(Path::new("/"), pid))));
        }
        _ => return refuse("it has ended"),
    }
    // Processes of other users cannot be recorded, and firsttouch itself may be one of the process's children.
    let is_recorded = |child: i32| child.unsigned_abs() != std::process::id() && proc::executable(Path::new("/"), child).is_ok();
    let children = if options.follow { proc::descendants(Path::new("/"), pid) } else { Vec::new() };
    let children: Vec<(i32, i32)> = children.into_iter().filter(|(child, _)| is_recorded(*child)).collect();
    tids.extend(children.iter().flat_map(|(child, _)| proc::thread_ids(Path::new("/"), *child)));
    let signals = Signals::catch().map_err(convert::system)?;
    let mut writer = Writer::create_at(&options.output).map_err(convert::profile)?;
    let file = writer.created();
    writer.keep();
    let costs = costs_for(options);
    raise_file_limit();
    let mut session = Session::new(options, writer, pid, sources(options, costs, Member::new(Agent::new(None, options))));
    session.sources.start(&Target { pid, tids: &tids, is_launched: false }, &mut session.tracker);
    session.write_head(Mode::Attach);
    session.begin();
    session.tracker.scan_process(pid, session.start_ns);
    for (child, parent) in children {
        session.tracker.found_child(child, parent, session.start_ns);
    }
    session.cpu_before = (!options.follow).then(|| cpu_times(pid));
    for &child in session.cpu_before.iter().flat_map(|before| before.keys()).filter(|&&child| child != pid) {
        session.tracker.family.found(child);
    }
    session.run(&signals, false);
    let mut recording = session.finish(None);
    recording.file = file;
    let replaced = session.tracker.modules.replaced();
    let generated = session.tracker.take_generated_code();
    drop(session);
    complete(options, &replaced, &generated, &mut recording);
    Ok(recording)
}

impl Session<'_> {
    /// The target starts now.
    fn begin(&mut self) {
        if self.options.live.is_none() {
            self.bandwidth.open(monotonic_ns());
        }
        self.start_ns = monotonic_ns();
        self.next_act_ns = self.start_ns;
        self.start_cpu_ns = process_cpu_ns();
    }
}

/// Names for addresses, after the target has ended.
fn complete(options: &Options, replaced: &[String], generated: &GeneratedCode, recording: &mut Recording) {
    if recording.profile_error.is_some() || options.live.is_some() {
        return;
    }
    let progress = |done, all| {
        if let Some(progress) = options.progress {
            progress(done, all);
        }
    };
    match crate::symbolize::symbolize_file(&recording.file.path, replaced, generated, progress) {
        Ok(profile) => recording.profile = Some(profile),
        Err(error) => recording.profile_error = Some(format!("{error:#}")),
    }
}

fn wait_for(pid: i32, signals: &Signals) -> i32 {
    loop {
        if let Some(ended) = reap(pid) {
            return ended.status;
        }
        if let Some(Notice::Forward(signal)) = signals.wait(WAIT_NS, &mut Vec::new()) {
            send(pid, signal);
        }
    }
}
