//! Processes and threads.

use super::Id;

#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub id: Id,
    pub pid: i32,
    pub parent: Option<Id>,
    pub exe: Option<String>,
    pub born_ns: u64,
    pub died_ns: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Ascending in order of birth over all processes; 0 is the main thread of the program.
    pub id: Id,
    pub process: Id,
    pub tid: i32,
    pub parent: Option<Id>,
    pub name: Option<String>,
    pub born_ns: u64,
    pub died_ns: Option<u64>,
    /// CPU time used, if it could be read.
    pub cpu_ns: Option<u64>,
    /// The thread's number in its OpenMP team, if OMPT reported it.
    pub omp_number: Option<u32>,
    /// Page faults taken in user mode (first touches by the program), estimated from the samples.
    pub user_faults: Option<u64>,
    /// All minor page faults of the thread, including those of the kernel on its behalf.
    pub all_faults: Option<u64>,
    /// CPUs that it may run on, in the kernel's list format (`0-3,8`), at the last reading.
    pub allowed_cpus: Option<String>,
    /// The number of readings at which it was on another node than at the reading before.
    pub node_moves: u64,
}

/// How often a thread was seen on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// At sampled faults and at regular readings.
    pub samples: u64,
    /// At regular readings, if the thread had used CPU time since the reading before.
    pub looks: u64,
}
