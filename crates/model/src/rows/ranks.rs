//! Ranks of an MPI job: the place of a recorded process in its job, and the parts of a profile that was merged from several.

use super::metadata::Metadata;
use super::{Counter, Evidence, Id, Lost, Machine};
use serde::{Deserialize, Serialize};

/// The place of a process in the job that a launcher (mpirun, srun) started, as its environment variables say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankPlace {
    /// Its number, from 0.
    pub rank: u32,
    /// The number of ranks of the job.
    pub size: u32,
    /// Its number among the ranks of its host; `None` if the launcher does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_rank: Option<u32>,
    /// The number of ranks on its host; `None` if the launcher does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_size: Option<u32>,
    /// The family of the launcher: `Open MPI`, `MPICH`, `MVAPICH`, `Flux`, `Slurm`, `PMI` if only PMI's own variables are set.
    pub launcher: String,
    /// The same text for all ranks of a job, and another one for another job; `None` if the launcher has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The CPUs that it was allowed to use when it started, as the kernel lists them (`0-3,8`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_cpus: Option<String>,
}

/// A host of a merged profile. Its nodes and CPUs have numbers of their own in the profile, those of the first host are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its index.
    pub id: Id,
    pub name: String,
    /// The number that its node 0 has in the profile.
    pub first_node: u32,
    /// Node numbers that it takes (its largest node number, plus one).
    pub nodes: u32,
    /// The number that its CPU 0 has in the profile.
    pub first_cpu: u32,
    /// CPU numbers that it takes.
    pub cpus: u32,
}

/// The least number of each kind that the rows of a part have. The rows of a part are those up to the least number of the next part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FirstIds {
    pub process: Id,
    pub thread: Id,
    pub site: Id,
    pub object: Id,
    pub touch: Id,
    pub window: Id,
    pub round: u64,
    pub sample: Id,
    pub region: Id,
}

/// A part of a merged profile: one profile, usually of one rank, as it was. Rows that are counted for a whole recording are here by part; the
/// tables of the merged profile have their sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Its index, in the order of host, rank and start.
    pub id: Id,
    pub host: Id,
    /// Its place in the job; `None` if it was no rank.
    pub place: Option<RankPlace>,
    /// The name of the file that it was merged from, without its folder.
    pub source: String,
    /// What was added to its times, ns, so that the first ranks of all hosts start at the same time.
    pub shift_ns: i64,
    pub first: FirstIds,
    pub meta: Metadata,
    pub machine: Machine,
    pub evidence: Vec<Evidence>,
    pub lost: Vec<Lost>,
    pub counters: Vec<Counter>,
}
