//! Allocations, threads and OpenMP regions, recorded by the agent: a small library that the target preloads (native/agent).

use crate::agent::ring::{AgentRing, SILENT_ADDRESS_SPACE, SILENT_SANDBOX, SampleInterval};
use crate::agent::waker::Waker;
use crate::options::Options;
use crate::random::Random;
use crate::source::{Account, Drain, NEVER, Occasion, Source, Target, Unavailable};
use crate::sources::sample::interval;
use crate::timeline::Timeline;
use crate::track::Tracker;
use crate::track::activity::Sampling;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::debug_exceptions::Policy;
use firsttouch_system::preload::accepts_agent::accepts_agent;
use firsttouch_system::preload::unpack::Unpacked;
use firsttouch_system::proc::limits;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Slots of the agent's ring (64 bytes each).
const RING_SLOTS: usize = 1 << 16;
/// Of the blocks below the minimum size, one is sampled for so many bytes that a thread allocates, on average, and fewer from threads that
/// allocate much.
const SMALL_MEAN_BYTES: u32 = 32 << 10;
/// Where threads are sampled in their ticks only, one of them sleeps now and then, so that its next tick comes earlier in its CPU time: the
/// analysis tells by this whether a loop keeps in step with the ticks. Time between two such sleeps, and how long they last. They take 0.2 %
/// of the time of a program whose threads wait for each other.
const SHIFTS_NS: u64 = 400_000_000;
const SHIFT_US: std::ops::Range<f64> = 100.0..1500.0;
const ATTACHED: &str = "attached to a running program, so there is no agent: objects are named by mapping, and allocations and first touches before the start were not seen";
const SANDBOXED: &str = "the program restricted its own system calls (seccomp, PR_SET_TSC), so the agent stopped recording: allocations and releases after that were not seen";
const NO_ADDRESS_SPACE: &str =
    "the limit on the program's address space is too tight for the agent: objects are named by mapping; raise it (ulimit -v)";
const OVERWRITTEN: &str =
    "the program overwrote the agent's records (it writes to memory that is not its own): allocations and samples after that were not seen";
const NOT_LOADED: &str = "the agent was not loaded by the program: objects are named by mapping";

/// The agent's library, removed when the last user drops it.
pub type Library = Rc<Unpacked>;

pub struct Agent {
    /// The program to launch, and the library's bytes; `None` when attached.
    program: Option<(PathBuf, &'static [u8])>,
    min_size: u64,
    follow: bool,
    /// The program is a rank of an MPI job.
    is_rank: bool,
    /// Which threads may get watchpoints.
    watchpoints: Policy,
    /// How often registers are sampled, if they are.
    sampling: Option<SampleInterval>,
    loaded: Option<(Library, Arc<AgentRing>)>,
    waker: Option<Waker>,
    random: Random,
    next_shift_ns: u64,
    /// Found out when the run ended.
    missing: Option<&'static str>,
}

impl Agent {
    /// `program`: the program to launch; `None` when attached.
    #[must_use]
    pub fn new(program: Option<PathBuf>, options: &Options) -> Self {
        let program = program.map(|program| (program, options.agent));
        Self {
            program,
            min_size: options.min_size,
            follow: options.follow,
            is_rank: options.rank.is_some(),
            watchpoints: options.watchpoints,
            sampling: interval(options.cpus().len(), options.live.map_or(0, |live| live.period_ns())).ok(),
            loaded: None,
            waker: None,
            random: Random::new(monotonic_ns()),
            next_shift_ns: 0,
            missing: None,
        }
    }

    /// The library, which must stay until the program has ended.
    #[must_use]
    pub fn library(&self) -> Option<Library> {
        self.loaded.as_ref().map(|(library, _)| Rc::clone(library))
    }

    /// Names the agent in LD_PRELOAD before the user's own entries. The agent removes itself before main, so every variable must keep its
    /// position. If there are several LD_PRELOADs, the loader uses the last.
    pub fn add_to(&self, environment: &mut Vec<CString>) {
        let Some((library, ring)) = &self.loaded else { return };
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
}

/// What to do about a limit on the size of files, which holds for shared memory too.
fn limit(error: &io::Error) -> String {
    if error.raw_os_error() == Some(libc::EFBIG) { limits::file_size_remedy() } else { String::new() }
}

impl Source for Agent {
    fn name(&self) -> &'static str {
        "agent"
    }

    /// Unpacks the library and makes the ring, if the program can load it.
    fn probe(&mut self) -> Result<(), Unavailable> {
        let Some((program, bytes)) = &self.program else { return Err(ATTACHED.into()) };
        accepts_agent(program).map_err(|reason| reason.to_string())?;
        let library = Unpacked::write(bytes).map_err(|error| format!("{error:#}: objects are named by mapping"))?;
        let ring = AgentRing::create(RING_SLOTS, self.min_size, self.follow).map_err(|error| {
            format!("cannot make the ring that the agent writes to: {error}{}: objects are named by mapping", limit(&error))
        })?;
        self.loaded = Some((Rc::new(library), Arc::new(ring)));
        Ok(())
    }

    fn start(&mut self, target: &Target<'_>, tracker: &mut Tracker) -> Result<(), Unavailable> {
        if let Some((_, ring)) = &self.loaded {
            ring.set_root(target.pid);
            // Without a waker, large allocations are seen at the next tick.
            self.waker = Waker::start(Arc::clone(ring)).ok();
            ring.sample_small_blocks(SMALL_MEAN_BYTES);
            if self.watchpoints == Policy::Guarded {
                ring.guard_traps();
            }
            if self.is_rank {
                ring.watch_for_abort();
            }
            tracker.scope.by_mapping = false;
            if let Some(interval) = self.sampling {
                ring.sample(interval);
                tracker.activity.sampling = Some(Sampling::default());
            }
        }
        Ok(())
    }

    fn drain(&mut self, drain: &Drain, tracker: &mut Tracker, timeline: &mut Timeline) {
        if self.waker.as_ref().is_some_and(|waker| waker.bell().take()) {
            tracker.activity.wakes_left = tracker.activity.wakes_left.saturating_sub(1);
        }
        // The ring is large: once a drain is enough.
        if let Some((_, ring)) = &self.loaded
            && drain.is_first
        {
            ring.drain(drain.now, |record| timeline.push_agent(record));
        }
    }

    fn act(&mut self, occasion: Occasion, now: u64, tracker: &mut Tracker) -> u64 {
        let Some((_, ring)) = &self.loaded else { return NEVER };
        if ring.is_damaged() {
            self.missing = Some(OVERWRITTEN);
            return NEVER;
        }
        if let Some(sampling) = &mut tracker.activity.sampling {
            sampling.unsampled_threads = ring.unsampled_threads();
        }
        tracker.activity.handles_traps |= ring.trap_handler_is_replaced();
        if occasion == Occasion::Tick && tracker.activity.has_ticks_only && now >= self.next_shift_ns {
            self.next_shift_ns = now + SHIFTS_NS;
            ring.shift_a_tick((SHIFT_US.start + (SHIFT_US.end - SHIFT_US.start) * self.random.unit()) as u32);
        }
        if occasion == Occasion::Drained
            && let Some(waker) = &self.waker
        {
            let bytes = if tracker.activity.wakes_left > 0 { tracker.activity.wake_bytes } else { 0 };
            if ring.ask_for_wake(bytes) {
                waker.bell().ring();
            }
        }
        if occasion == Occasion::End {
            self.missing = match () {
                () if ring.silent() & SILENT_ADDRESS_SPACE != 0 => Some(NO_ADDRESS_SPACE),
                () if ring.attached() == 0 => Some(NOT_LOADED),
                () => None,
            };
            tracker.activity.abort_status = ring.abort_status();
            tracker.sink.lose("agent", "records of allocations dropped because the ring was full", ring.lost());
            tracker.sink.lose("watch", "hits whose cause the hypervisor lost: held back, and not counted", ring.causeless_traps());
            tracker.sink.lose("sample", "samples that fell into the agent's own recording, or found the ring full", ring.skipped_samples());
        }
        NEVER
    }

    fn children(&self) -> (Vec<i32>, (u32, u32)) {
        self.loaded.as_ref().map_or_else(Default::default, |(_, ring)| (ring.children(), ring.forks()))
    }

    fn descriptors(&self) -> Vec<i32> {
        self.waker.iter().map(|waker| waker.bell().descriptor()).collect()
    }

    fn account(&self, tracker: &Tracker) -> Option<Account> {
        let (_, ring) = self.loaded.as_ref()?;
        let samples = if self.missing == Some(OVERWRITTEN) { 0 } else { u64::from(ring.attached()) };
        Some(match (self.missing, &tracker.activity.agentless) {
            (Some(reason), _) => Account::missing(samples, reason),
            (None, Some(process)) if process.is_root => Account::missing(samples, process.sentence.clone()),
            (None, _) if ring.silent() & SILENT_SANDBOX != 0 => {
                Account { detail: SANDBOXED.to_owned(), is_warning: true, ..Account::available(samples) }
            }
            (None, Some(process)) => Account { detail: process.sentence.clone(), is_warning: true, ..Account::available(samples) },
            (None, None) => Account::available(samples),
        })
    }
}
