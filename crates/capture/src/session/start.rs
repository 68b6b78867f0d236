//! Start and end of a run: the command is launched with the agent, or a running process is attached to.

use super::{Options, Outcome, Session, cpus};
use crate::agent::ring::AgentRing;
use crate::agent::target::accepts_agent;
use crate::agent::unpack::Unpacked;
use crate::kernel::monotonic_ns;
use crate::kernel::process::{LaunchError, Waiting, find_program, reap};
use crate::kernel::signals::{Notice, Signals, process_exists, send};
use crate::procfs;
use crate::touch::TouchEvents;
use crate::watch::slots::calibrate_trap_ns;
use anyhow::{Result, bail};
use firsttouch_profile::Writer;
use std::ffi::OsString;

/// Slots of the agent's ring (64 bytes each).
const RING_SLOTS: usize = 1 << 16;
/// How often a program that goes on without us is looked after.
const WAIT_NS: u64 = 500_000_000;

pub(super) fn launch(options: &Options) -> Result<Outcome> {
    let Some(name) = options.command.first() else { bail!("no command given") };
    let Some(program) = find_program(name) else {
        return Err(LaunchError { command: name.to_string_lossy().into_owned(), errno: libc::ENOENT }.into());
    };
    let writer = Writer::create(&options.output)?;
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let (mut ring, mut unpacked, mut agent_missing) = (None, None, None);
    match accepts_agent(&program) {
        Ok(()) => {
            match Unpacked::write(options.agent).and_then(|u| Ok((u, AgentRing::create(RING_SLOTS, options.min_size, options.follow)?))) {
                Ok((library, made)) => {
                    add_agent(&mut environment, &library, &made);
                    unpacked = Some(library);
                    ring = Some(made);
                }
                Err(error) => agent_missing = Some(format!("{error:#}: objects are named by mapping")),
            }
        }
        Err(reason) => agent_missing = Some(reason.to_string()),
    }
    let trap_ns = calibrate_trap_ns();
    let signals = Signals::catch()?;
    let waiting = Waiting::fork(&options.command, &environment, &signals.original_mask)?;
    let pid = waiting.pid;
    let mut session = Session::new(options, writer, pid, ring, agent_missing);
    session.touch = TouchEvents::open(&session.tracker.scope.root, &[pid], &cpus(&options.machine), true, options.follow);
    if let Some(ring) = &session.ring {
        ring.set_root(pid);
    }
    session.start_watch(trap_ns);
    session.write_head("launch");
    session.start_ns = monotonic_ns();
    if let Err(error) = waiting.start() {
        drop(session);
        let _ = std::fs::remove_file(&options.output);
        return Err(error);
    }
    let mut exit_code = session.run(&signals, true);
    let mut outcome = session.finish(exit_code);
    if exit_code.is_none() {
        // The time asked for is over; the program goes on without us looking.
        exit_code = Some(wait_for(pid, &signals));
    }
    drop(unpacked);
    outcome.exit_code = exit_code;
    complete(options, &mut outcome);
    Ok(outcome)
}

pub(super) fn attach(options: &Options, pid: i32) -> Result<Outcome> {
    if !process_exists(pid) {
        bail!("cannot attach to process {pid}: there is no such process");
    }
    let tids = procfs::threads(std::path::Path::new("/"), pid);
    if tids.is_empty() || std::fs::read_link(format!("/proc/{pid}/exe")).is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied) {
        bail!("cannot attach to process {pid}: it belongs to another user or has ended: run as that user");
    }
    let writer = Writer::create(&options.output)?;
    let trap_ns = calibrate_trap_ns();
    let signals = Signals::catch()?;
    let missing = "attached to a running program, so there is no agent: objects are named by mapping, and allocations and first touches before the start were not seen";
    let mut session = Session::new(options, writer, pid, None, Some(missing.to_owned()));
    session.touch = TouchEvents::open(&session.tracker.scope.root, &tids, &cpus(&options.machine), false, options.follow);
    session.start_watch(trap_ns);
    session.write_head("attach");
    session.start_ns = monotonic_ns();
    session.tracker.scan_process(pid, session.start_ns);
    session.run(&signals, false);
    let mut outcome = session.finish(None);
    complete(options, &mut outcome);
    Ok(outcome)
}

/// Names for addresses, once the target needs nothing any more.
fn complete(options: &Options, outcome: &mut Outcome) {
    if outcome.profile_error.is_none()
        && let Err(error) = crate::symbolize::symbolize_file(&options.output, |done, all| {
            if let Some(progress) = options.progress {
                progress(done, all);
            }
        })
    {
        outcome.profile_error = Some(format!("{error:#}"));
    }
}

/// Names the agent in LD_PRELOAD before the user's own entries. The agent takes itself out again before main, so every variable
/// must keep its place.
fn add_agent(environment: &mut Vec<(OsString, OsString)>, library: &Unpacked, ring: &AgentRing) {
    let ours = library.library().into_os_string();
    environment.retain(|(key, _)| key != "FIRSTTOUCH_AGENT");
    match environment.iter_mut().find(|(key, _)| key == "LD_PRELOAD") {
        Some((_, value)) => {
            let theirs = std::mem::replace(value, ours);
            value.push(":");
            value.push(theirs);
        }
        None => environment.push(("LD_PRELOAD".into(), ours)),
    }
    environment.push(("FIRSTTOUCH_AGENT".into(), ring.path().into()));
}

fn wait_for(pid: i32, signals: &Signals) -> i32 {
    loop {
        if let Some(code) = reap(pid) {
            return code;
        }
        if let Some(Notice::Forward(signal)) = signals.wait(WAIT_NS, &[]) {
            send(pid, signal);
        }
    }
}
