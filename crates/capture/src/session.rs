//! One profiling run: starts or attaches to the target, loops over signals, records and rounds, and closes the file.

use crate::agent::ring::AgentRing;
use crate::agent::target::accepts_agent;
use crate::agent::unpack::Unpacked;
use crate::kernel::perf_records::PerfRecord;
use crate::kernel::process::{LaunchError, Waiting, find_program, raise_file_limit, reap};
use crate::kernel::signals::{Notice, Signals, process_exists, send};
use crate::kernel::{monotonic_ns, residency};
use crate::procfs;
use crate::sink::Sink;
use crate::touch::TouchEvents;
use crate::track::{Scope, Tracker};
use crate::watch::rounds::Rounds;
use crate::watch::slots::{WatchedThread, calibrate_armed, calibrate_trap_ns};
use anyhow::{Result, bail};
use firsttouch_profile::{Evidence, Machine, Page, Writer, meta};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const TICK_NS: u64 = 10_000_000;
/// How often waits are counted: with watchpoints armed each costs more in a virtual machine.
const WAITS_NS: u64 = 100_000_000;
const FLUSH_NS: u64 = 500_000_000;
/// Records gone through before the rings are looked after again.
const BATCH: usize = 200;
/// A thread must be this old before watchpoints are spent on it: most of a thousand short ones never are.
const WATCH_AGE_NS: u64 = 3_000_000;
/// Threads watched at once; each needs five descriptors and a 64 KiB ring.
const WATCHED_THREADS: usize = 512;
/// Slots of the agent's ring (64 bytes each).
const RING_SLOTS: usize = 1 << 16;
/// Pages asked about in a sweep over one object, sweeps an object, objects a sweep.
const SWEEP_PAGES: u64 = 32;
const SWEEPS: u32 = 6;
const SWEPT_OBJECTS: usize = 32;

/// What to profile and how.
pub struct Options {
    pub command: Vec<OsString>,
    pub output: PathBuf,
    /// Allocations below this many bytes are not recorded.
    pub min_size: u64,
    pub follow: bool,
    pub duration: Option<Duration>,
    /// Attach to this process instead of starting `command`.
    pub pid: Option<i32>,
    /// The agent library's bytes.
    pub agent: &'static [u8],
    pub machine: Machine,
    /// Told (done, all) while names are looked up at the end.
    pub progress: Option<fn(usize, usize)>,
}

/// How it went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The program's status as a shell gives it; none when attached.
    pub exit_code: Option<i32>,
    /// Why the profile is incomplete or missing (full disk), if it is.
    pub profile_error: Option<String>,
    /// What was not seen, why, and what would help; complete sentences.
    pub messages: Vec<String>,
    pub summary: Summary,
}

#[derive(Debug, Default)]
pub struct Summary {
    pub threads: u64,
    pub wall_s: f64,
    pub watch_hits: u64,
    pub watch_windows: u64,
    pub first_touches: u64,
    /// Faults the sampled first touches stand for.
    pub touch_weight: f64,
    pub lost: u64,
}

/// The evidence sources of one run, as far as they could be had.
struct Session<'a> {
    options: &'a Options,
    tracker: Tracker,
    pid: i32,
    touch: Result<TouchEvents, String>,
    ring: Option<AgentRing>,
    agent_missing: Option<String>,
    rounds: Option<Rounds>,
    watch_missing: Option<String>,
    resident_missing: Option<String>,
    pending: Vec<(u64, PerfRecord, u64)>,
    watched: HashSet<i32>,
    start_ns: u64,
    end_ns: u64,
    file_limit: u64,
    cpu_count: usize,
    next_waits: u64,
    watch_started: bool,
}

/// Runs the profile.
///
/// # Errors
/// [`LaunchError`] (downcast) when the command cannot be run; any other error means that nothing was started.
pub fn profile(options: &Options) -> Result<Outcome> {
    match options.pid {
        Some(pid) => attach(options, pid),
        None => launch(options),
    }
}

fn launch(options: &Options) -> Result<Outcome> {
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

fn attach(options: &Options, pid: i32) -> Result<Outcome> {
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

fn cpus(machine: &Machine) -> Vec<u32> {
    let mut list: Vec<u32> = machine.node_cpus.values().flatten().copied().collect();
    if list.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        list = (0..u32::try_from(count).unwrap_or(1)).collect();
    }
    list.sort_unstable();
    list.dedup();
    list
}

fn wait_for(pid: i32, signals: &Signals) -> i32 {
    loop {
        if let Some(code) = reap(pid) {
            return code;
        }
        if let Some(Notice::Forward(signal)) = signals.wait(FLUSH_NS, &[]) {
            send(pid, signal);
        }
    }
}

impl<'a> Session<'a> {
    fn new(options: &'a Options, writer: Writer, pid: i32, ring: Option<AgentRing>, agent_missing: Option<String>) -> Self {
        let now = monotonic_ns();
        let scope = Scope {
            root: PathBuf::from("/"),
            root_pid: pid,
            follow: options.follow,
            min_size: options.min_size,
            page_bytes: options.machine.page_bytes.max(4096),
            huge_page_bytes: options.machine.huge_page_bytes,
            by_mapping: ring.is_none(),
        };
        Self {
            options,
            tracker: Tracker::new(scope, Sink::new(writer), now ^ u64::from(pid.unsigned_abs()) << 32),
            pid,
            touch: Err(String::new()),
            ring,
            agent_missing,
            rounds: None,
            watch_missing: None,
            resident_missing: None,
            pending: Vec::new(),
            watched: HashSet::new(),
            start_ns: now,
            end_ns: now,
            file_limit: raise_file_limit(),
            cpu_count: cpus(&options.machine).len(),
            next_waits: 0,
            watch_started: false,
        }
    }

    fn start_watch(&mut self, trap_ns: Option<f64>) {
        match trap_ns {
            Some(trap_ns) => {
                let seed = monotonic_ns().rotate_left(17) ^ u64::from(self.pid.unsigned_abs());
                self.rounds = Some(Rounds::new(seed, trap_ns, calibrate_armed(trap_ns), cpus(&self.options.machine).len()));
            }
            None => {
                let error = WatchedThread::open(0, 0, 0).err().unwrap_or_else(|| std::io::Error::from_raw_os_error(libc::ENODEV));
                let reason = crate::touch::explain(&self.tracker.scope.root, &error);
                self.watch_missing = Some(if error.raw_os_error() == Some(libc::ENOSPC) {
                    "cannot set watchpoints (all debug registers are taken): end the debugger that holds them".to_owned()
                } else {
                    reason
                });
            }
        }
    }

    fn write_head(&mut self, mode: &str) {
        let command: Vec<String> = self.options.command.iter().map(|c| c.to_string_lossy().into_owned()).collect();
        let command = if command.is_empty() { vec![format!("pid {}", self.pid)] } else { command };
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let entries = [
            (meta::COMMAND, json_strings(&command)),
            (meta::START_NS, monotonic_ns().to_string()),
            (meta::START_UNIX_S, unix.to_string()),
            (meta::MIN_SIZE, self.options.min_size.to_string()),
            (meta::TOOL_VERSION, env!("CARGO_PKG_VERSION").to_owned()),
            (meta::MODE, mode.to_owned()),
        ];
        let machine = &self.options.machine;
        let trap = self.rounds.as_ref().map(|r| r.trap_ns);
        self.tracker.sink.write(|w| {
            w.machine(machine)?;
            for (key, value) in &entries {
                w.meta(key, value)?;
            }
            if let Some(trap) = trap {
                w.meta(meta::TRAP_NS, &format!("{trap:.0}"))?;
            }
            Ok(())
        });
        self.write_evidence();
        self.tracker.sink.flush();
    }

    /// The loop. Returns the program's status when it ended, none when the time was up (or an attached one was left).
    fn run(&mut self, signals: &Signals, ours: bool) -> Option<i32> {
        let deadline = self.options.duration.map(|d| self.start_ns + u64::try_from(d.as_nanos()).unwrap_or(u64::MAX / 2));
        let (mut next_tick, mut next_turn, mut next_flush) = (self.start_ns, self.start_ns + 2_000_000, self.start_ns + FLUSH_NS / 4);
        let rings = self.touch.as_ref().map_or(Vec::new(), TouchEvents::descriptors);
        loop {
            let now = monotonic_ns();
            self.end_ns = now;
            if now >= next_tick {
                self.tick(now);
                next_tick = monotonic_ns() + TICK_NS;
            }
            if now >= next_turn {
                next_turn = self.turn(now);
            }
            if now >= next_flush {
                self.flush(now);
                next_flush = monotonic_ns() + FLUSH_NS;
            }
            if deadline.is_some_and(|d| now >= d) {
                return None;
            }
            let wake = next_tick.min(next_turn).min(next_flush).min(deadline.unwrap_or(u64::MAX));
            match signals.wait(wake.saturating_sub(monotonic_ns()), &rings) {
                Some(Notice::Forward(signal)) if ours => send(self.pid, signal),
                Some(Notice::Forward(signal) | Notice::Terminal(signal)) if !ours && signal != libc::SIGWINCH => return None,
                Some(_) => {}
                None if monotonic_ns() < wake => self.drain(monotonic_ns(), false), // a ring fills
                None => {}
            }
            if ours {
                if let Some(code) = reap(self.pid) {
                    self.end_ns = monotonic_ns();
                    return Some(code);
                }
            } else if !process_exists(self.pid) {
                return None;
            }
        }
    }

    /// Takes in what the rings hold.
    fn tick(&mut self, now: u64) {
        self.drain(now, true);
        let has_agent = self.tracker.processes.get(&self.pid).is_some_and(|p| p.has_agent);
        if self.touch.is_err() {
            // Nobody tells us of threads and modules: look.
            self.tracker.scan_process(self.pid, now);
        }
        if self.ring.is_none() || (!has_agent && now.saturating_sub(self.start_ns) > 10 * TICK_NS) {
            let pids: Vec<i32> = self.tracker.processes.values().filter(|p| !p.has_agent).map(|p| p.pid).collect();
            let due = now.saturating_sub(self.start_ns) / (20 * TICK_NS) != now.saturating_sub(self.start_ns + TICK_NS) / (20 * TICK_NS);
            for pid in pids.into_iter().filter(|_| due || self.watched.is_empty()) {
                self.tracker.refresh_mappings(pid, now);
            }
        }
        // Symbol tables take milliseconds to read: when nothing else waits, or at the end.
        if self.pending.len() < BATCH {
            self.tracker.add_waiting_statics(1);
        }
        self.watch_new_threads(now);
        if let Some(rounds) = &mut self.rounds {
            if now >= self.next_waits {
                self.tracker.read_waits();
                self.next_waits = now + WAITS_NS;
            }
            let cpus = self.tracker.threads.len().min(self.cpu_count);
            rounds.pace.observe(now, self.tracker.touch_weight, self.tracker.waits, cpus);
        }
    }

    /// Takes in what the rings hold. The agent's is read first but told last: whatever its records speak of (threads, a new
    /// program) is in the kernel's rings by then, in order of time.
    fn drain(&mut self, now: u64, ticked: bool) {
        let mut told = Vec::new();
        if let Some(ring) = &mut self.ring {
            ring.drain(now, |record| told.push(record));
        }
        if let Ok(touch) = &mut self.touch {
            // What is newer than the start of this drain may still have predecessors in another CPU's ring.
            let horizon = if now == u64::MAX { now } else { monotonic_ns() };
            let mut ticked = ticked;
            loop {
                // Going through records takes longer than writing them: look after the rings (and the period) in between.
                let pending = &mut self.pending;
                let seconds = horizon.min(monotonic_ns()).saturating_sub(self.start_ns) as f64 / 1e9;
                touch.drain(seconds, std::mem::take(&mut ticked), |record, weight| pending.push((time_of(&record), record, weight)));
                self.pending.sort_by_key(|(time, ..)| *time);
                let ready = self.pending.partition_point(|(time, ..)| *time <= horizon);
                for (_, record, weight) in self.pending.drain(..ready.min(BATCH)) {
                    self.tracker.perf(record, weight);
                }
                if ready <= BATCH {
                    break;
                }
            }
        }
        for record in told {
            self.tracker.agent(record);
        }
    }

    fn watch_new_threads(&mut self, now: u64) {
        let Some(rounds) = &mut self.rounds else { return };
        self.watched.retain(|tid| self.tracker.threads.contains_key(tid));
        if self.watched.len() == self.tracker.threads.len() {
            return;
        }
        let room = usize::try_from(self.file_limit.saturating_sub(128) / 5).unwrap_or(0).min(WATCHED_THREADS);
        let mut unwatched: Vec<(i64, i32, i64)> = self
            .tracker
            .threads
            .values()
            .filter(|t| !self.watched.contains(&t.tid) && now.saturating_sub(t.born_ns) >= WATCH_AGE_NS)
            .map(|t| (t.id, t.tid, t.process))
            .collect();
        unwatched.sort_unstable();
        for (id, tid, process) in unwatched {
            self.watched.insert(tid);
            if rounds.threads.len() >= room {
                self.tracker.lose("watch", "threads beyond the limit on watchpoints were not watched", 1);
                continue;
            }
            match WatchedThread::open(id, tid, process) {
                Ok(thread) => rounds.threads.push(thread),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => {
                    self.tracker.lose("watch", "threads whose debug registers are taken by a debugger", 1);
                }
                Err(error) => {
                    self.tracker.lose("watch", "threads on which no watchpoint could be set", 1);
                    self.watch_missing.get_or_insert_with(|| crate::touch::explain(&self.tracker.scope.root, &error));
                }
            }
        }
    }

    fn turn(&mut self, now: u64) -> u64 {
        if self.rounds.as_ref().is_some_and(|r| r.threads.is_empty()) {
            return now + TICK_NS / 4;
        }
        // Deaths of objects must be known before their windows are judged.
        self.drain(now, false);
        let Some(rounds) = &mut self.rounds else { return u64::MAX };
        if !self.watch_started {
            self.watch_started = true;
            self.tracker.sink.write(|w| w.meta(meta::WATCH_START_NS, &now.to_string()));
        }
        rounds.turn(&mut self.tracker)
    }

    fn flush(&mut self, now: u64) {
        self.tracker.read_threads();
        self.sweep_pages(now);
        let pids: Vec<i32> = self.tracker.processes.keys().copied().collect();
        for pid in pids {
            self.tracker.write_live_objects(pid);
        }
        self.tracker.sink.write(|w| w.meta(meta::END_NS, &now.to_string()));
        self.write_evidence();
        self.tracker.sink.flush();
    }

    /// Where are the pages of the large objects? A few random ones each, more often while an object is young.
    fn sweep_pages(&mut self, now: u64) {
        if self.resident_missing.is_some() {
            return;
        }
        let mut random = crate::watch::design::Random::new(now);
        let mut rows = Vec::new();
        for process in self.tracker.processes.values_mut() {
            let (id, pid) = (process.id, process.pid);
            let due = process.objects.by_address.iter_mut().filter(|(_, o)| o.watchable() && o.page_sweeps < SWEEPS).take(SWEPT_OBJECTS);
            for (&address, object) in due {
                object.page_sweeps += 1;
                object.has_evidence = true;
                let addresses: Vec<u64> =
                    (0..SWEEP_PAGES.min(object.bytes / 4096 + 1)).map(|_| address + (random.unit() * object.bytes as f64) as u64).collect();
                match residency::nodes_of(pid, &addresses) {
                    Ok(nodes) => {
                        for (&a, node) in addresses.iter().zip(nodes) {
                            let page_bytes = if node >= 0 { process.page_sizes.at(a) } else { 0 };
                            rows.push(Page { process: id, object: Some(object.id), address: a, time_ns: now, node, page_bytes });
                        }
                    }
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => {
                        self.resident_missing = Some(format!(
                            "cannot ask where pages are (move_pages: {error}): run as the target's user, and allow move_pages in the container's seccomp profile"
                        ));
                    }
                }
            }
        }
        if self.resident_missing.is_some()
            && let Some(rounds) = &mut self.rounds
        {
            rounds.residency = false;
        }
        self.tracker.pages_queried += rows.len() as u64;
        self.tracker.sink.write(|w| rows.iter().try_for_each(|r| w.page(r)));
    }

    fn write_evidence(&mut self) {
        let t = &self.tracker;
        let touch_detail = match &self.touch {
            Err(reason) => format!("{reason}; continuing without first-touch evidence"),
            Ok(touch) if !touch.sees_kernel => "faults in system calls are not seen at this privilege (perf_event_paranoid > 1): memory filled by read() is inferred from pages without a record; set perf_event_paranoid to 1 or run with CAP_PERFMON to see them".to_owned(),
            Ok(_) => String::new(),
        };
        let watch_detail = self.watch_missing.as_ref().map_or(String::new(), |r| format!("{r}; continuing without access evidence"));
        let rows = [
            Evidence { source: "touch".to_owned(), available: self.touch.is_ok(), samples: t.touch_samples, detail: touch_detail },
            Evidence {
                source: "watch".to_owned(),
                available: self.rounds.is_some() && self.watch_missing.is_none(),
                samples: self.rounds.as_ref().map_or(0, |r| r.hits),
                detail: watch_detail,
            },
            Evidence {
                source: "resident".to_owned(),
                available: self.resident_missing.is_none(),
                samples: t.pages_queried,
                detail: self.resident_missing.clone().unwrap_or_default(),
            },
            Evidence {
                source: "agent".to_owned(),
                available: self.agent_missing.is_none(),
                samples: self.ring.as_ref().map_or(0, |r| u64::from(r.attached())),
                detail: self.agent_missing.clone().unwrap_or_default(),
            },
        ];
        self.tracker.sink.write(|w| rows.iter().try_for_each(|e| w.evidence(e)));
    }

    /// Closes the file and says how it went.
    fn finish(mut self, exit_code: Option<i32>) -> Outcome {
        if let Ok(touch) = &mut self.touch {
            touch.stop();
        }
        self.drain(u64::MAX, false);
        self.tracker.add_waiting_statics(usize::MAX);
        if let Some(rounds) = &mut self.rounds {
            rounds.stop(&mut self.tracker);
        }
        let mut agent_lost = 0;
        if let Some(ring) = &self.ring {
            agent_lost = ring.lost();
            if ring.attached() == 0 && self.agent_missing.is_none() {
                self.agent_missing = Some("the agent was not loaded by the program: objects are named by mapping".to_owned());
            }
        }
        self.tracker.lose("agent", "records of allocations dropped because the ring was full", agent_lost);
        let end = self.end_ns;
        self.tracker.finish(end);
        self.write_evidence();
        self.tracker.sink.write(|w| w.meta(meta::END_NS, &end.to_string()));
        if let Some(code) = exit_code {
            self.tracker.sink.write(|w| w.meta(meta::EXIT_CODE, &code.to_string()));
        }
        self.tracker.sink.write(|w| w.meta(meta::START_NS, &self.start_ns.to_string()));
        self.tracker.sink.finish();
        let t = &self.tracker;
        let mut messages: Vec<String> = Vec::new();
        if let Err(reason) = &self.touch {
            messages.push(format!("{reason}; continuing without first-touch evidence"));
        }
        messages.extend(self.watch_missing.iter().map(|r| format!("{r}; continuing without access evidence")));
        messages.extend(self.agent_missing.clone());
        messages.extend(self.resident_missing.clone());
        messages.dedup();
        Outcome {
            exit_code: None,
            profile_error: t.sink.failure.as_ref().map(|e| format!("{e:#}")),
            messages,
            summary: Summary {
                threads: t.threads_seen.unsigned_abs(),
                wall_s: self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9,
                watch_hits: self.rounds.as_ref().map_or(0, |r| r.hits),
                watch_windows: self.rounds.as_ref().map_or(0, |r| r.windows),
                first_touches: t.touch_samples,
                touch_weight: t.touch_weight,
                lost: t.lost.values().sum(),
            },
        }
    }
}

fn time_of(record: &PerfRecord) -> u64 {
    match record {
        PerfRecord::Sample(s) => s.time,
        PerfRecord::Fork { time, .. } | PerfRecord::Exit { time, .. } | PerfRecord::Comm { time, .. } | PerfRecord::Map { time, .. } => {
            *time
        }
        PerfRecord::Lost { .. } | PerfRecord::Throttled => 0,
    }
}

fn json_strings(list: &[String]) -> String {
    serde_json::to_string(list).unwrap_or_default()
}
