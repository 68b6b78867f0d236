//! One line for each rank.

use super::{HostView, RankView};
use crate::Target;
use crate::evidence::{Evidence, Hit, SourceRef};
use crate::judge::{Judge, Subject};
use crate::matrix::matrix;
use crate::threads::Threads;
use firsttouch_model::rows::{self, Id, MOST_MISSING_RANKS, Part, Profile};
use std::collections::BTreeSet;

/// The input of the views.
pub struct RankContext<'a> {
    pub profile: &'a Profile,
    pub target: &'a Target,
    pub threads: &'a Threads,
    pub uses: &'a Evidence,
    pub subjects: &'a [Subject],
    pub judge: &'a dyn Fn(SourceRef) -> Judge<'a>,
    /// The source of the remote fraction.
    pub source: Option<SourceRef>,
}

impl RankContext<'_> {
    /// Whether processes share an object.
    fn is_shared(&self, object: usize) -> bool {
        self.profile.shared_memory.contains_key(&self.profile.objects[object].id)
    }
}

/// The ranks of a merged profile, in order; empty if it was not merged.
#[must_use]
pub fn ranks(context: &RankContext<'_>) -> Vec<RankView> {
    let own = own_hits(context);
    let shares = shares(context);
    let all: f64 = shares.iter().sum();
    let view = |(index, part): (usize, &Part)| {
        let access_share = (all > 0.0).then(|| shares[index] / all);
        RankView { access_share, ..view(context, index, part, &own[index]) }
    };
    context.profile.parts.iter().enumerate().map(view).collect()
}

/// What each part makes of the accesses: of each object's share, as the report has it, what the part's threads make of the object's accesses.
fn shares(context: &RankContext<'_>) -> Vec<f64> {
    let RankContext { profile, threads, uses, subjects, .. } = *context;
    let mut shares = vec![0.0; profile.parts.len()];
    for subject in subjects.iter().filter(|subject| subject.counts) {
        let share = subject.access_share.map_or(0.0, |share| share.value);
        let sampled = uses.of(subject.source);
        let mut by_part = vec![0.0; shares.len()];
        for hit in &sampled.hits[subject.group] {
            for by in &hit.by_thread {
                if let Some(part) = profile.index_of_part(threads.list[by.thread].process) {
                    by_part[part] += sampled.design.weight(hit.draw) * by.rate;
                }
            }
        }
        let all: f64 = by_part.iter().sum();
        if all > 0.0 {
            shares.iter_mut().zip(by_part).for_each(|(sum, own)| *sum += share * own / all);
        }
    }
    shares
}

/// The samples of each part on objects that count. A sample of several ranks' threads counts for none.
fn own_hits<'a>(context: &RankContext<'a>) -> Vec<Vec<&'a Hit>> {
    let RankContext { profile, threads, uses, subjects, .. } = *context;
    let mut own = vec![Vec::new(); profile.parts.len()];
    let Some(source) = context.source else { return own };
    for subject in subjects.iter().filter(|subject| subject.counts) {
        for hit in &uses.of(source).hits[subject.group] {
            let part = |thread: usize| profile.index_of_part(threads.list[thread].process);
            let parts: BTreeSet<Option<usize>> = hit.by_thread.iter().map(|by| part(by.thread)).collect();
            if let (1, Some(Some(part))) = (parts.len(), parts.first()) {
                own[*part].push(hit);
            }
        }
    }
    own
}

fn view(context: &RankContext<'_>, index: usize, part: &Part, hits: &[&Hit]) -> RankView {
    let RankContext { profile, target, threads, uses, .. } = *context;
    let is_own = |process: Id| profile.index_of_part(process) == Some(index);
    let processes: Vec<_> = profile.processes.iter().filter(|process| is_own(process.id)).collect();
    let indices: Vec<usize> = (0..threads.list.len()).filter(|&thread| is_own(threads.list[thread].process)).collect();
    let remote_of = |hits: &[&Hit]| context.source.and_then(|source| (context.judge)(source).remote(hits.iter().copied()));
    let remote = remote_of(hits);
    let is_private = |hit: &&Hit| !context.is_shared(hit.object);
    let private: Vec<&Hit> = hits.iter().copied().filter(is_private).collect();
    let by_node = context.source.map(|source| matrix(&uses.of(source).design, target.nodes, hits.iter().copied())).unwrap_or_default();
    let columns = by_node.first().map_or(0, Vec::len);
    RankView {
        rank: part.place.as_ref().map(|place| place.rank),
        host: usize::try_from(part.host).unwrap_or(0),
        pid: processes.first().map_or(0, |process| process.pid),
        command: part.meta.command.clone(),
        process: part.first.process,
        processes: processes.len(),
        first_thread: indices.first().copied().unwrap_or(0),
        threads: indices.len(),
        busy_threads: indices.iter().filter(|&&thread| !threads.list[thread].idle).count(),
        is_bound_across: threads.seats.is_bound_across && threads.seats.nodes(part.first.process).len() > 1,
        own_remote: remote_of(&private),
        bound_cpus: part.place.as_ref().and_then(|place| place.bound_cpus.clone()),
        thread_nodes: by_node.iter().map(|row| row.iter().sum()).collect(),
        memory_nodes: (0..columns).map(|page| by_node.iter().map(|row| row[page]).sum()).collect(),
        remote_fraction: remote.map(|remote| remote.value),
        remote_interval: remote.map(crate::views::interval),
        remote_samples: remote.map_or(0, |remote| remote.samples),
        access_share: None,
        findings: Vec::new(),
        wall_s: part.meta.wall_s(),
        exit_code: part.meta.exit_code,
        signal: part.meta.signal,
        abort_status: part.meta.abort_status,
        unfinished: part.meta.is_unfinished(),
    }
}

/// The hosts of a merged profile, with their nodes on the target.
#[must_use]
pub fn hosts(profile: &Profile, target: &Target) -> Vec<HostView> {
    let view = |(index, host): (usize, &firsttouch_model::rows::Host)| {
        let (own, first_node) = target.of_host(index);
        HostView { name: host.name.clone(), first_node, nodes: own.nodes }
    };
    profile.hosts.iter().enumerate().map(view).collect()
}

/// The ranks of the job that are not in the profile: none is missing if the parts are of several jobs, or of no job.
#[must_use]
pub fn missing_ranks(profile: &Profile) -> Vec<u32> {
    rows::missing_ranks(&profile.parts).into_iter().flat_map(|(first, last)| first..=last).take(MOST_MISSING_RANKS).collect()
}
