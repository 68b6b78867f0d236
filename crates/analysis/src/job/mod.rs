//! A job of several ranks: one line for each rank, the same object over all ranks, and each finding once.
//!
//! | file | answers |
//! |---|---|
//! | `ranks.rs` | where is each rank, its memory, and what is remote of it? |
//! | `across.rs` | which objects of the ranks are the same, and which rank differs? |
//! | `once.rs` | which ranks have the same finding? |
//! | `findings.rs` | which ranks have threads or memory on the wrong node? |

mod across;
mod findings;
mod once;
mod ranks;

pub use across::{Kin, across_ranks, kin};
pub use findings::find_in_ranks;
pub use once::each_once;
pub use ranks::{RankContext, hosts, missing_ranks, ranks};

use firsttouch_model::Estimate;
use firsttouch_model::finding::FindingKind;
use serde::{Deserialize, Serialize};

use crate::{CodeLocation, Interval};

/// A host of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    pub name: String,
    /// The numbers that its nodes have in the report: the first, and how many.
    pub first_node: u32,
    pub nodes: usize,
}

/// A rank of a job, or another part of a merged profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankView {
    /// Its number; null if it is a part of a merged profile that no launcher of ranks started.
    pub rank: Option<u32>,
    /// Index into `hosts`.
    pub host: usize,
    pub pid: i32,
    /// The command that it ran: the ranks of a job may run different programs.
    #[serde(default)]
    pub command: Vec<String>,
    /// The first of its processes, and how many were recorded.
    pub process: i64,
    pub processes: usize,
    /// Index of its first thread, and the number of threads.
    pub first_thread: usize,
    pub threads: usize,
    /// The CPUs that it was allowed to use when it started, in the kernel's format; null if not recorded.
    pub bound_cpus: Option<String>,
    /// Threads that take a place.
    pub busy_threads: usize,
    /// On a virtual machine: its binding leaves it CPUs of several nodes, but not of all.
    #[serde(skip)]
    pub is_bound_across: bool,
    /// The remote fraction of its accesses to memory that it does not share.
    #[serde(skip)]
    pub own_remote: Option<Estimate>,
    /// Shares of its accesses by the node of the thread, and by the node of the page.
    pub thread_nodes: Vec<f64>,
    pub memory_nodes: Vec<f64>,
    /// Its remote accesses / its accesses with a known home; null without evidence.
    pub remote_fraction: Option<f64>,
    pub remote_interval: Option<Interval>,
    pub remote_samples: u64,
    /// Its part of all accesses seen.
    pub access_share: Option<f64>,
    /// The kinds of the findings that it has.
    pub findings: Vec<FindingKind>,
    pub wall_s: f64,
    /// As a shell gives it; null if it did not end while it was recorded.
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// The status with which it called `MPI_Abort`, if it did.
    pub abort_status: Option<i32>,
    /// Its profile has no end: its recorder was killed, or still records.
    pub unfinished: bool,
}

/// A figure over ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverRanks {
    pub min: f64,
    pub median: f64,
    pub max: f64,
    /// The rank whose figure differs from the median by more than those of the others do, and more than chance explains.
    pub outlier: Option<u32>,
}

/// One object of the program, as the ranks have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectAcrossRanks {
    pub name: String,
    pub allocated_at: Option<CodeLocation>,
    /// The ids of the ranks' objects.
    pub objects: Vec<i64>,
    pub ranks: Vec<u32>,
    /// Bytes in a rank.
    pub bytes: OverRanks,
    /// Accesses to it / all accesses of the rank.
    pub access_share: Option<OverRanks>,
    pub remote_fraction: Option<OverRanks>,
    /// How many of the ranks' objects are judged.
    pub judged: usize,
}
