//! Start and end of a run: the command is launched with the agent, or a running process is attached to.

use super::{Options, Outcome, Session, cpus};
use crate::agent::ring::AgentRing;
use crate::touch::TouchEvents;
use crate::watch::slots::calibrate;
use anyhow::{Result, bail};
use firsttouch_model::metadata::Mode;
use firsttouch_profile::Writer;
use firsttouch_system::clock::monotonic_ns;
use firsttouch_system::launch::signals::{Notice, Signals, process_exists, process_runs, send};
use firsttouch_system::launch::{LaunchError, Waiting, environment, find_program, reap};
use firsttouch_system::preload::target::accepts_agent;
use firsttouch_system::preload::unpack::Unpacked;
use firsttouch_system::procfs;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

/// Slots of the agent's ring (64 bytes each).
const RING_SLOTS: usize = 1 << 16;
/// How often a program that goes on without us is looked after.
const WAIT_NS: u64 = 500_000_000;

pub(super) fn launch(options: &Options) -> Result<Outcome> {
    let Some(name) = options.command.first() else { bail!("no command given") };
    let Some(program) = find_program(name) else {
        return Err(LaunchError { command: name.to_string_lossy().into_owned(), errno: libc::ENOENT }.into());
    };
    let signals = Signals::catch()?;
    // The first performance event on a machine waits for every CPU (some 10 ms): the file is made meanwhile.
    let calibrating = std::thread::Builder::new().spawn(calibrate);
    let writer = Writer::create(&options.output)?;
    let mut environment = environment();
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
    let calibration = calibrating.map_or_else(|_| calibrate(), |thread| thread.join().unwrap_or(None));
    let waiting = match Waiting::fork(&options.command, &environment, &signals.original_mask) {
        Ok(waiting) => waiting,
        Err(error) => {
            writer.withdraw();
            return Err(error);
        }
    };
    let pid = waiting.pid;
    let mut session = Session::new(options, writer, pid, ring, agent_missing);
    session.touch = TouchEvents::open(&session.tracker.scope.root, &[pid], &cpus(&options.machine), true, options.follow);
    if let Some(ring) = &session.ring {
        ring.set_root(pid);
    }
    session.start_watch(calibration);
    session.write_head(Mode::Launch);
    session.start_ns = monotonic_ns();
    if let Err(error) = waiting.start() {
        session.tracker.sink.withdraw();
        return Err(error);
    }
    session.tracker.sink.keep();
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
    if !process_runs(pid) {
        bail!("cannot attach to process {pid}: it has ended, and only waits for its parent to take note");
    }
    if pid.unsigned_abs() == std::process::id() {
        bail!("cannot attach to process {pid}: it is firsttouch itself: name another");
    }
    let tids = procfs::threads(std::path::Path::new("/"), pid);
    match std::fs::read_link(format!("/proc/{pid}/exe")).map_err(|error| error.kind()) {
        Ok(_) if !tids.is_empty() => {}
        Err(std::io::ErrorKind::NotFound) => {
            bail!("cannot attach to process {pid}: it is a thread of the kernel, which has no memory of its own")
        }
        _ => bail!("cannot attach to process {pid}: it belongs to another user or has ended: run as that user"),
    }
    let signals = Signals::catch()?;
    let mut writer = Writer::create(&options.output)?;
    writer.keep();
    let calibration = calibrate();
    let missing = "attached to a running program, so there is no agent: objects are named by mapping, and allocations and first touches before the start were not seen";
    let mut session = Session::new(options, writer, pid, None, Some(missing.to_owned()));
    session.touch = TouchEvents::open(&session.tracker.scope.root, &tids, &cpus(&options.machine), false, options.follow);
    session.start_watch(calibration);
    session.write_head(Mode::Attach);
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
        && let Err(error) = crate::symbolize::symbolize_file(&options.output, &outcome.replaced, |done, all| {
            if let Some(progress) = options.progress {
                progress(done, all);
            }
        })
    {
        outcome.profile_error = Some(format!("{error:#}"));
    }
}

/// Names the agent in LD_PRELOAD before the user's own entries. The agent takes itself out again before main, so every variable
/// must keep its place. Of several LD_PRELOADs the last is the one the loader follows.
fn add_agent(environment: &mut Vec<CString>, library: &Unpacked, ring: &AgentRing) {
    let entry = |name: &str, value: &OsStr, rest: &[u8]| {
        let mut text = name.as_bytes().to_vec();
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(rest);
        CString::new(text).unwrap_or_default()
    };
    let library = library.library().into_os_string();
    environment.retain(|variable| !variable.as_bytes().starts_with(b"FIRSTTOUCH_AGENT="));
    match environment.iter_mut().rev().find(|variable| variable.as_bytes().starts_with(b"LD_PRELOAD=")) {
        Some(variable) => {
            let theirs = variable.as_bytes()[b"LD_PRELOAD=".len()..].to_vec();
            *variable = entry("LD_PRELOAD=", &library, &[b":", &theirs[..]].concat());
        }
        None => environment.push(entry("LD_PRELOAD=", &library, b"")),
    }
    environment.push(entry("FIRSTTOUCH_AGENT=", OsStr::new(&ring.path()), b""));
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
