//! Facts about a system, its environment and a program that affect where memory is placed: the input of `firsttouch doctor`. Any of
//! them may be unknown; unknown facts are not judged.

use crate::rows::RankPlace;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// The input of the doctor's checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub topology: Topology,
    pub kernel: Kernel,
    /// Memory of each node that holds files (`FilePages` of its meminfo), bytes.
    pub file_bytes: BTreeMap<u32, u64>,
    pub swap: Option<Swap>,
    /// Frequency governor of each CPU that has one.
    pub governors: BTreeMap<u32, String>,
    pub cpu_quota: Option<CpuQuota>,
    pub bandwidth_counters: BandwidthCounters,
    /// Libraries of `/etc/ld.so.preload`.
    pub preloaded_everywhere: Vec<String>,
    /// Environment variables that affect placement; `None` for a recorded system, whose environment is unknown.
    pub environment: Option<BTreeMap<String, String>>,
    /// Files of `LD_PRELOAD` that the loader will not find.
    pub missing_preloads: Vec<String>,
    /// Limits on the resources of a process; `None` for a recorded system.
    pub limits: Option<Limits>,
    pub probes: Probes,
    pub compiler: Compiler,
    /// The program that the user asks about.
    pub program: Option<Program>,
    /// The part of the command line that confines the program to the allowed CPUs (`taskset -c 0`), if one does.
    pub launcher: Option<String>,
    /// The place of this process in a job, if a launcher of ranks started it.
    pub rank: Option<RankPlace>,
    /// What could not be read, with its file.
    pub doubts: Vec<String>,
}

/// Settings of the kernel; `None` if a file is missing (older kernel, feature not built in, masked in a container).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// kernel.numa_balancing: 0 off, 1 on, 2 memory tiering, 3 both.
    pub numa_balancing: Option<i64>,
    /// vm.zone_reclaim_mode: bits; 0 is off.
    pub zone_reclaim_mode: Option<i64>,
    pub perf_event_paranoid: Option<i64>,
    /// The chosen word of transparent_hugepage/enabled: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    pub huge_page_bytes: Option<u64>,
    /// Seccomp mode of this process: 0 none, 1 strict, 2 a filter (a container usually has one).
    pub seccomp: Option<i64>,
}

/// What a process may use (`ulimit`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Files that may be open at once, at most (`ulimit -Hn`); `None` without a limit.
    pub open_files: Option<u64>,
    /// Address space, bytes (`ulimit -v`); `None` without a limit.
    pub address_space_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swap {
    pub total_bytes: u64,
    pub free_bytes: u64,
}

/// CPU time that the control group allows.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuQuota {
    /// CPU seconds per second.
    pub cpus: f64,
    /// The file with the quota, from the root, and its contents.
    pub file: String,
    pub value: String,
}

/// Whether counters of the system's memory bandwidth can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BandwidthCounters {
    #[default]
    Unknown,
    /// The kernel shows none.
    Missing,
    /// What is read.
    Readable(String),
    /// There are some. `remedy` is empty if nothing is known to help.
    Refused { why: String, remedy: String },
}

/// Results of harmless test calls to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probes {
    pub get_mempolicy: Probe,
    pub set_mempolicy: Probe,
    pub mbind: Probe,
    pub move_pages: Probe,
    /// perf_event_open for page faults in user mode, and for a watchpoint.
    pub page_faults: Probe,
    pub watchpoint: Probe,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// The call was not tried, for example on a recorded machine.
    #[default]
    NotTried,
    Allowed,
    /// The kernel refused the call with this errno.
    Refused(i32),
}

impl Probe {
    /// The errno if the call was refused.
    #[must_use]
    pub fn refused(self) -> Option<i32> {
        if let Self::Refused(errno) = self { Some(errno) } else { None }
    }
}

/// LLVM's compiler and its OpenMP runtime, as far as they are installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiler {
    pub clang: Option<String>,
    pub libomp: Option<String>,
}

/// A program, by its file and the libraries that are loaded with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub path: String,
    pub openmp: OpenMp,
    /// File name of the OpenMP runtime it needs; empty if the runtime is linked into the program, or it needs no runtime.
    pub runtime: String,
    /// The file in which the loader finds that runtime; `None` if it does not find it.
    pub runtime_file: Option<String>,
    /// What that file says about its version.
    pub runtime_version: Option<String>,
    /// Whether that runtime reports parallel regions to tools (OMPT, OpenMP 5.0 chapter 4); `None` if unknown.
    pub ompt: Option<bool>,
    /// The program makes OpenMP allocators of its own (`omp_init_allocator`).
    pub makes_allocators: bool,
    /// The library through which that runtime places the memory of allocators, as its file names it; `None` if it places none.
    pub placing_library: Option<String>,
    /// All libraries loaded with it, by file name.
    pub libraries: Vec<String>,
}

/// Whose OpenMP runtime a program uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenMp {
    /// GCC's libgomp.
    Gnu,
    /// LLVM's libomp, or Intel's libiomp5, which has the same code base.
    Llvm,
    /// It does not use OpenMP.
    None,
    /// Unknown: a script, an interpreter or a launcher.
    #[default]
    Unknown,
}
