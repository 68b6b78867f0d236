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

impl RankPlace {
    /// The options of its launcher that bind each rank to a node; of an unknown launcher, those of the usual ones.
    #[must_use]
    pub fn binding_options(&self) -> &'static str {
        match self.launcher.as_str() {
            "Open MPI" => "mpirun --map-by numa --bind-to numa",
            "MPICH" => "mpiexec -bind-to numa",
            "MVAPICH" => "MV2_CPU_BINDING_POLICY=scatter MV2_CPU_BINDING_LEVEL=numanode",
            "Slurm" => "srun --cpu-bind=ldoms --mem-bind=local",
            "Flux" => "flux run -o cpu-affinity=per-task",
            _ => "mpirun --bind-to numa (Open MPI), mpiexec -bind-to numa (MPICH), srun --cpu-bind=ldoms (Slurm)",
        }
    }
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
    /// Its place in the job, as in its `meta`; `None` if it was no rank.
    pub place: Option<RankPlace>,
    /// The name of the file that it was merged from, without its folder.
    pub source: String,
    /// What was added to its times in the tables, ns, so that the first ranks of all hosts start at the same time.
    pub shift_ns: i64,
    pub first: FirstIds,
    /// As it was: times without the shift, CPUs and nodes as its host numbers them, also in the fields that follow. Without `variables`, which are
    /// in the merged profile's only.
    pub meta: Metadata,
    pub machine: Machine,
    pub evidence: Vec<Evidence>,
    pub lost: Vec<Lost>,
    pub counters: Vec<Counter>,
}

/// Some parts of a profile in words: `rank 3 of 8`, `ranks 0 to 5 and 7 of 64`, or the names of the files of parts that are no ranks of one job.
/// `None` if they are all of its parts. Both lists are in the order of the parts' numbers.
#[must_use]
pub fn in_words(some: &[&Part], all: &[Part]) -> Option<String> {
    if some.len() >= all.len() {
        return None;
    }
    let Some((ranks, size)) = ranks_of_one_job(some, all) else {
        let names: Vec<String> = some.iter().map(|part| part.source.clone()).collect();
        return Some(listed(names));
    };
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let word = if some.len() == 1 { "rank" } else { "ranks" };
    let names = runs.into_iter().flat_map(|(first, last)| match last - first {
        0 => vec![first.to_string()],
        1 => vec![first.to_string(), last.to_string()],
        _ => vec![format!("{first} to {last}")],
    });
    Some(format!("{word} {} of {size}", listed(names.collect())))
}

/// A damaged profile may say anything about the size of its job: so many missing ranks are listed at most.
pub const MOST_MISSING_RANKS: usize = 10_000;

/// Commands of the parts of a merged profile that are named; of more, the first ones.
pub const MOST_COMMANDS: usize = 8;

/// Ranks of a job that no part is of, from the first to the last of those next to each other; none if the parts are not the ranks of one job.
#[must_use]
pub fn missing_ranks(parts: &[Part]) -> Vec<(u32, u32)> {
    let all: Vec<&Part> = parts.iter().collect();
    let Some((ranks, size)) = ranks_of_one_job(&all, parts) else { return Vec::new() };
    let ends = ranks.iter().map(|rank| rank.saturating_add(1));
    let gaps = std::iter::once(0).chain(ends).zip(ranks.iter().copied().chain([size]));
    gaps.filter(|(from, to)| from < to).map(|(from, to)| (from, to - 1)).collect()
}

/// The sorted ranks of some parts and the size of their job, if all parts are different ranks of one job.
fn ranks_of_one_job(some: &[&Part], all: &[Part]) -> Option<(Vec<u32>, u32)> {
    let place = |part: &Part| part.place.as_ref().map(|place| (place.rank, (place.job.clone(), place.size)));
    let (_, job) = place(all.first()?)?;
    let mut everyone =
        all.iter().map(|part| place(part).filter(|(_, own)| *own == job).map(|(rank, _)| rank)).collect::<Option<Vec<_>>>()?;
    everyone.sort_unstable();
    if everyone.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let mut ranks: Vec<u32> = some.iter().filter_map(|part| Some(part.place.as_ref()?.rank)).collect();
    ranks.sort_unstable();
    Some((ranks, job.1))
}

/// `a`, `a and b`, `a, b and c`; of more than [`MOST_NAMES`] only the first.
fn listed(mut names: Vec<String>) -> String {
    if names.len() > MOST_NAMES {
        let more = names.len() - (MOST_NAMES - 1);
        names.truncate(MOST_NAMES - 1);
        names.push(format!("{more} more"));
    }
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

/// Names in a sentence.
const MOST_NAMES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(ranks: &[u32]) -> Vec<Part> {
        let place = |rank| Some(RankPlace { rank, size: 64, ..RankPlace::default() });
        ranks.iter().map(|rank| Part { place: place(*rank), source: format!("rank-{rank}.ftp"), ..Part::default() }).collect()
    }

    /// Check how ranks are named: those next to each other together, whatever the order of the parts, and other parts by their files.
    #[test]
    fn parts_are_named() {
        let all = ranks(&[0, 1, 2, 3, 5, 9, 8, 60]);
        let named = |which: &[usize], all: &[Part]| in_words(&which.iter().map(|at| &all[*at]).collect::<Vec<_>>(), all);
        assert_eq!(named(&[4], &all).as_deref(), Some("rank 5 of 64"));
        assert_eq!(named(&[0, 1, 2, 3, 4], &all).as_deref(), Some("ranks 0 to 3 and 5 of 64"));
        assert_eq!(named(&[1, 4, 5, 6], &all).as_deref(), Some("ranks 1, 5, 8 and 9 of 64"));
        assert_eq!(named(&[0, 1, 2, 3, 4, 5, 6, 7], &all), None);
        let scattered = ranks(&(0..30).map(|rank| 2 * rank).collect::<Vec<_>>());
        let words = named(&(0..29).collect::<Vec<_>>(), &scattered).unwrap();
        assert_eq!(words, "ranks 0, 2, 4, 6, 8, 10, 12 and 22 more of 64");
        assert_eq!(missing_ranks(&all), [(4, 4), (6, 7), (10, 59), (61, 63)]);
        assert_eq!((missing_ranks(&ranks(&[3, 70])), missing_ranks(&[])), (vec![(0, 2), (4, 69)], Vec::new()));
        let twice = ranks(&[0, 1, 1]);
        assert!(missing_ranks(&twice).is_empty());
        assert_eq!(named(&[0, 2], &twice).as_deref(), Some("rank-0.ftp and rank-1.ftp"));
        let mut other = ranks(&[0, 1]);
        other[1].place = None;
        assert_eq!(named(&[1], &other).as_deref(), Some("rank-1.ftp"));
    }
}
