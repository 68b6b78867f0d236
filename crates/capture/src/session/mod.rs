//! One profiling run: starts or attaches to the target (`start`), loops over signals, records and rounds (`run`), and
//! writes what was and was not seen (`account`).

mod account;
mod bandwidth;
mod behind;
mod counters;
mod members;
mod run;
mod start;

pub use members::SourceAccount;
pub use start::prepare;

use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::sink::Sink;
use crate::timeline::Timeline;
use crate::track::Tracker;
use crate::track::scope::Scope;
use bandwidth::BandwidthRecorder;
use counters::CounterRecorder;
use firsttouch_model::RecordingSummary;
use firsttouch_model::rows::Profile;
use firsttouch_profile::{Created, Writer};
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::launch::end_with_parent;
use firsttouch_system::proc::stat::Stat;
use members::{Member, Members};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The result of a run.
#[derive(Debug, Default)]
pub struct Recording {
    /// The profile's file, claimed for this process until it is dropped.
    pub file: Created,
    /// The program's status as a shell reports it; `None` when attached.
    pub exit_code: Option<i32>,
    /// The signal that ended the program while it was recorded.
    pub signal: Option<i32>,
    /// The status with which the program, a rank, called `MPI_Abort`, if it did.
    pub abort_status: Option<i32>,
    /// Why the profile is incomplete or missing (full disk), if it is.
    pub profile_error: Option<String>,
    /// Rows are missing in the profile for that reason, not only names.
    pub is_cut: bool,
    /// What was not seen, why, and what would help; complete sentences.
    pub messages: Vec<String>,
    pub summary: RecordingSummary,
    /// What each source observed, lost and cost.
    pub sources: Vec<SourceAccount>,
    /// The profile with names, as it was written. `None` if it could not be completed.
    pub profile: Option<Profile>,
}

struct Session<'a> {
    options: &'a Options,
    /// The profile.
    file: PathBuf,
    tracker: Tracker,
    pid: i32,
    sources: Members,
    timeline: Timeline,
    counters: CounterRecorder,
    bandwidth: BandwidthRecorder,
    start_ns: u64,
    end_ns: u64,
    last_tick_ns: u64,
    /// When the process is looked at again, where the kernel reports no mappings.
    next_scan_ns: u64,
    /// When old samples are removed next, of a live profile.
    next_forget_ns: u64,
    /// When the threads of a live profile are read next.
    next_threads_ns: u64,
    /// firsttouch's own CPU time when the program started.
    start_cpu_ns: u64,
    /// Urgent records taken since the last tick.
    urgent: usize,
    /// And those that are urgent if there are many.
    pressing: usize,
    /// When the first source wants to act.
    next_act_ns: u64,
    /// What the kernel said of the first process at its end.
    last_stat: Option<Stat>,
    /// The signal that ended it.
    signal: Option<i32>,
    /// CPU times when firsttouch attached without following children: of the process, and of each of its descendants.
    cpu_before: Option<BTreeMap<i32, u64>>,
    /// CPU time of an attached process while it was recorded.
    own_cpu_ns: u64,
    /// The kernel does not let this user observe the program.
    is_hidden: bool,
    /// Processes that still ran when the recording ended with the first process.
    behind: behind::Behind,
}

/// Runs the profile.
///
/// # Errors
/// Nothing was started. [`crate::Error::launch`] says so if the command cannot be run.
pub fn profile(options: &Options) -> Result<Recording> {
    if let Some(parent) = options.live.and_then(|live| live.parent)
        && !end_with_parent(parent)
    {
        return Err(Error::new(ErrorKind::Attach, "cannot record for a live view: that has ended"));
    }
    match options.pid {
        Some(pid) => start::attach(options, pid),
        None => start::launch(options),
    }
}

impl<'a> Session<'a> {
    fn new(options: &'a Options, writer: Writer, pid: i32, sources: Vec<Member>) -> Self {
        let now = monotonic_ns();
        let scope = Scope {
            root: PathBuf::from("/"),
            root_pid: pid,
            follow: options.follow,
            min_size: options.min_size,
            page_bytes: options.machine.page_bytes.max(4096),
            huge_page_bytes: options.machine.huge_page_bytes,
            cpu_nodes: options.cpu_nodes(),
            may_hint: options.machine.may_hint(),
            by_mapping: true,
            is_attached: options.pid.is_some(),
        };
        Self {
            options,
            file: writer.created().path,
            tracker: Tracker::new(scope, Sink::new(writer)),
            pid,
            sources: Members::new(sources),
            timeline: Timeline::default(),
            counters: CounterRecorder::default(),
            bandwidth: BandwidthRecorder::default(),
            start_ns: now,
            end_ns: now,
            last_tick_ns: now,
            next_scan_ns: now,
            next_forget_ns: now,
            next_threads_ns: now,
            start_cpu_ns: 0,
            urgent: 0,
            pressing: 0,
            next_act_ns: now,
            last_stat: None,
            signal: None,
            cpu_before: None,
            own_cpu_ns: 0,
            is_hidden: false,
            behind: behind::Behind::default(),
        }
    }
}
