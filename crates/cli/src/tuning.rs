//! Tunes a process, or a program that is started: for `tune` and `run --tune`.

use crate::arguments::{Judge, TuneOptions};
use crate::exit::{self, unless_not_executed};
use crate::output::{Destination, Terminal, can_be_replaced, is_stdout, message, write};
use crate::request::analysis_request;
use anyhow::{Context, Result, anyhow};
use firsttouch_monitor::RecorderCommand;
use firsttouch_monitor::tuning::{Ended, Session, Wanted};
use firsttouch_placement::move_pages::refusal;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::pages::Pages;
use firsttouch_system::launch::signals::{Notice, Signals};
use firsttouch_system::launch::{become_program, raise_file_limit};
use firsttouch_system::{MachineInfo, balancing, process, topology};
use firsttouch_tune::{Budget, Distances, Outcome, Settings, text};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

const ROOT: &str = "/";
/// How long a dry run of a process watches.
const DRY_RUN: Duration = Duration::from_secs(10);
/// SIGHUP, SIGINT, SIGQUIT, SIGTERM end the tuning of a process.
const ENDING: [i32; 4] = [1, 2, 3, 15];

/// What is asked for.
pub struct Request<'a> {
    pub options: &'a TuneOptions,
    pub judge: Judge,
    pub once: bool,
    pub dry_run: bool,
    pub duration: Option<Duration>,
    pub json: Option<&'a Path>,
    pub output: Option<&'a Path>,
}

impl Request<'_> {
    fn destination(&self) -> Destination<'_> {
        Destination { json: self.json, output: self.output }
    }
}

/// Why it ended, if neither the program nor a failure ended it.
enum Why {
    Time,
    Settled,
    Signal,
}

/// Tunes a process that runs.
pub fn tune_process(pid: i32, request: &Request<'_>) -> Result<u8> {
    check(request)?;
    let wanted = match wanted(request)? {
        Ok(wanted) => wanted,
        Err(nothing) => {
            show(request, &nothing, Terminal::Stdout)?;
            return Ok(exit::DONE);
        }
    };
    if !wanted.is_virtual {
        may_move(pid)?;
    }
    let mut session = Session::attach(wanted, pid).with_context(|| format!("cannot tune process {pid}"))?;
    let signals = Signals::catch()?;
    let duration = request.duration.or_else(|| request.dry_run.then_some(DRY_RUN));
    let ended = watch(&mut session, &signals, Some(request), duration, |_, signal| ENDING.contains(&signal));
    let mut outcome = session.outcome();
    match ended {
        Ok(Why::Settled) | Err(Ended::Program(_)) => {}
        Ok(Why::Time | Why::Signal) if !outcome.settled && !outcome.dry_run => {
            outcome.notes.push("It was ended before all was settled.".to_owned());
        }
        Ok(_) => {}
        Err(Ended::Failed(why)) => {
            if outcome.processes.iter().any(|one| one.moved_pages > 0) {
                show(request, &finished(request, &session, outcome)?, Terminal::Stdout)?;
            }
            return Err(anyhow!("cannot tune process {pid}: {why}"));
        }
    }
    show(request, &finished(request, &session, outcome)?, Terminal::Stdout)?;
    Ok(exit::DONE)
}

/// Starts a program, tunes it, and returns its status.
pub fn tune_program(program: &[OsString], request: &Request<'_>) -> Result<u8> {
    check(request)?;
    let wanted = match wanted(request)? {
        Ok(wanted) => wanted,
        Err(nothing) => {
            if request.json.is_none() && request.output.is_none() {
                nothing.notes.iter().for_each(|note| message(note));
            } else {
                show(request, &nothing, Terminal::Stderr)?;
            }
            return unless_not_executed(become_program(program, &[]));
        }
    };
    let mut session = Session::launch(wanted, program).context("cannot start the recorder of the program")?;
    let signals = Signals::catch()?;
    let mut is_tuned = true;
    let status = loop {
        let ended = watch(&mut session, &signals, None, None, |session: &Session, signal| {
            session.pass_on(signal);
            false
        });
        match ended {
            Err(Ended::Program(status)) => break status,
            Err(Ended::Failed(why)) => {
                // The program goes on: what was started is not ended by what fails here.
                if std::mem::take(&mut is_tuned) {
                    message(&format!("{why}; the program goes on without tuning"));
                }
            }
            Ok(_) => {}
        }
    };
    let outcome = session.outcome();
    let code = status.map_or(exit::FAILED, of_recorder);
    if !(outcome.processes.is_empty() && [126, 127].contains(&code)) {
        show(request, &finished(request, &session, outcome)?, Terminal::Stderr)?;
    }
    Ok(code)
}

/// The program's status; a recorder that was killed does not know it.
fn of_recorder(status: ExitStatus) -> u8 {
    if let Some(code) = status.code() {
        return exit::of_program(code);
    }
    let signal = status.signal().unwrap_or(0);
    message(&format!("the recorder of the program was ended by signal {signal}, so the program's status is not known; it may go on"));
    exit::FAILED
}

/// Takes turns until there is a reason to end. `ends`: of a process that ran before, which goes on. `on_signal`: returns whether a signal ends it.
fn watch(
    session: &mut Session,
    signals: &Signals,
    ends: Option<&Request<'_>>,
    duration: Option<Duration>,
    on_signal: impl Fn(&Session, i32) -> bool,
) -> std::result::Result<Why, Ended> {
    let start = Instant::now();
    loop {
        let wait_ns = match session.turn() {
            // Ctrl-C reaches the recorder too, which may end first.
            Err(Ended::Failed(why)) if ends.is_some() => {
                let is_ended = matches!(signals.wait(1, &mut Vec::new()), Some(Notice::Terminal(signal) | Notice::Forward(signal)) if ENDING.contains(&signal));
                return if is_ended { Ok(Why::Signal) } else { Err(Ended::Failed(why)) };
            }
            turned => turned?,
        };
        let left = duration.map(|duration| duration.saturating_sub(start.elapsed()));
        if left == Some(Duration::ZERO) {
            return Ok(Why::Time);
        }
        if ends.is_some_and(|request| request.once) && session.is_settled() {
            return Ok(Why::Settled);
        }
        let left_ns = left.map_or(u64::MAX, |left| u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
        match signals.wait(wait_ns.min(left_ns), &mut Vec::new()) {
            Some(Notice::Forward(signal)) if on_signal(session, signal) => return Ok(Why::Signal),
            // A program that was started is in the same group, and has got it.
            Some(Notice::Terminal(signal)) if ends.is_some() && ENDING.contains(&signal) => return Ok(Why::Signal),
            _ => {}
        }
    }
}

fn check(request: &Request<'_>) -> Result<()> {
    request.destination().check()?;
    match &request.options.save_plan {
        Some(path) if !is_stdout(path) => can_be_replaced(path, "schema = \"firsttouch.plan/1\"\n"),
        _ => Ok(()),
    }
}

/// What a session needs; an outcome that says why there is nothing to do.
fn wanted(request: &Request<'_>) -> Result<std::result::Result<Wanted, Outcome>> {
    let analysis = analysis_request(&request.judge)?;
    let info = MachineInfo::read(Path::new(ROOT))?;
    analysis.check(&info.machine)?;
    let machine = topology::read_outline(Path::new(ROOT))?;
    let (name, nodes, is_virtual) = analysis.judged_machine(&info.machine)?;
    if machine.nodes.len() < 2 && request.judge.machine.is_none() {
        let note = "This machine has one node: there is nowhere to move pages. To see what would be moved on another machine: firsttouch tune --dry-run \
                    --machine virtual:2 -- PROGRAM";
        return Ok(Err(Outcome {
            schema: firsttouch_tune::SCHEMA.to_owned(),
            machine: info.machine.hostname.clone(),
            nodes: 1,
            dry_run: request.dry_run,
            settled: true,
            notes: vec![note.to_owned()],
            ..Outcome::default()
        }));
    }
    raise_file_limit();
    let known: Vec<u32> = machine.nodes.iter().map(|node| node.id).collect();
    let pairs = known.iter().flat_map(|from| known.iter().map(move |to| (*from, *to)));
    let distance = |(from, to)| Some(((from, to), machine.distances.as_ref()?.between(from, to)?));
    Ok(Ok(Wanted {
        command: RecorderCommand {
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("firsttouch")),
            arguments: vec!["record-live".into(), "--tuning".into()],
        },
        request: analysis,
        budget: Budget::new(request.options.budget as f64 * 1e6),
        settings: Settings {
            distances: Distances(if is_virtual { [].into() } else { pairs.filter_map(distance).collect() }),
            dry_run: request.dry_run,
            began_ns: monotonic_ns(),
        },
        machine: name,
        nodes,
        is_virtual,
        cpus: std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64),
        learns: request.options.save_plan.is_some(),
    }))
}

/// Checks that the kernel answers for this process: it would refuse to move pages too.
fn may_move(pid: i32) -> Result<()> {
    let asked = Pages::of(pid).nodes(&[0]);
    asked.map(drop).map_err(|error| {
        let why = match error.raw_os_error() {
            Some(3) => "it has ended".to_owned(),
            Some(1) => format!("{}; {}", process::forbidden(Path::new(ROOT), pid), refusal(&error)),
            _ => refusal(&error),
        };
        anyhow!("cannot tune process {pid}: {why}")
    })
}

/// Writes the plan, and adds what is to be said of the system.
fn finished(request: &Request<'_>, session: &Session, mut outcome: Outcome) -> Result<Outcome> {
    if let Some(path) = &request.options.save_plan {
        match session.plan() {
            Ok(plan) if !plan.is_empty() => {
                write(path, &plan.to_string())?;
                outcome.plan = Some(path.display().to_string());
            }
            Ok(plan) => {
                let why = plan.left_alone.first().cloned().unwrap_or_else(|| "no object can be recognised in another run".to_owned());
                outcome.notes.push(format!("No plan was written: {why}"));
            }
            Err(why) => outcome.notes.push(format!("No plan was written: {why}.")),
        }
    }
    if !outcome.is_virtual && balancing::read(Path::new(ROOT)).value.is_some_and(|value| value & 1 == 1) {
        outcome.notes.push(
            "The kernel's NUMA balancing is on (kernel.numa_balancing), so that both move pages; Linux cannot switch it off for one process (firsttouch balancing)."
                .to_owned(),
        );
    }
    Ok(outcome)
}

fn show(request: &Request<'_>, outcome: &Outcome, terminal: Terminal) -> Result<()> {
    let destination = request.destination();
    if !destination.shows_text() {
        outcome.notes.iter().for_each(|note| message(note));
    }
    destination.show(outcome, |_| text(outcome), terminal)
}
