//! What the program is doing, as far as sources adapt to it.

use super::agentless::Agentless;

/// Written by the source that sees it, read by others and by the session.
#[derive(Debug, Default)]
pub struct Activity {
    /// Page-fault and task events are open: faults, threads and modules are reported. Without them, threads and modules must be
    /// looked up in /proc.
    pub is_reported: bool,
    /// When the modules of a call stack were last looked up in /proc.
    pub scanned_ns: Option<u64>,
    /// When it was last looked up there what memory a new mapping shares.
    pub looked_up_shared_ns: Option<u64>,
    /// Page faults so far, sampled ones by the faults they stand for.
    pub faults: f64,
    /// Page faults were counted since the last tick.
    pub faults_counted: bool,
    /// A burst of page faults is going on.
    pub in_burst: bool,
    /// The burst has lasted long: faults are sampled only part of the time.
    pub in_storm: bool,
    /// Allocations of at least so many bytes wake firsttouch; 0: none does.
    pub wake_bytes: u64,
    /// How often they may still wake it before the next tick.
    pub wakes_left: u32,
    /// Waits of all threads so far.
    pub waits: f64,
    /// The agent samples registers; `None` if it does not.
    pub sampling: Option<Sampling>,
    /// Samples of registers in code that computes, and those of them that show every address of a loop and how far it is.
    pub computing_samples: u64,
    pub rated_samples: u64,
    /// No thread can be sampled between its ticks: perf is forbidden.
    pub has_ticks_only: bool,
    /// The program handles SIGTRAP itself, instead of the agent.
    pub handles_traps: bool,
    /// The status with which a rank called `MPI_Abort`, if it did.
    pub abort_status: Option<i32>,
    /// A process that is recorded without the agent, in a run with it; the first one, if it is one of them.
    pub agentless: Option<Agentless>,
    /// Accesses of some thread are sampled, so objects are known already.
    pub is_sampled: bool,
}

/// What the agent counts of its samples of registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Threads that got no timer.
    pub unsampled_threads: u64,
}
