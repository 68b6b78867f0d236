//! Findings on ranks, on a machine with several nodes:
//!
//! - `rank-memory-elsewhere`: a rank's threads are on one node (four fifths of its accesses come from there), and most of its accesses to memory that it does not
//!   share go to other nodes (the interval lies above one half). Its memory was bound to another node, or the rank moved after it touched it.
//! - `rank-straddles-nodes`: a rank's threads make at least a tenth of its accesses on each of two nodes, although one node has cores for all of them, and
//!   more than 5 % of its accesses (lower end) are remote. On a virtual machine only where the launcher's binding says so: otherwise ranks are put on one node each.
//! - `ranks-unbound`: the launcher bound no rank (each may run on several nodes), and one of the two above holds for a rank, or threads moved between nodes
//!   (`unpinned-threads`), which it replaces: the remedy is the launcher's binding. On the recorded machine only.
//!
//! Ranks that stay on their nodes have none of these, bound or not.

use super::RankView;
use crate::findings::{capital, digits, percent};
use crate::report::{Analysis, Finding};
use crate::{Interval, Target};
use firsttouch_model::cpu_list;
use firsttouch_model::finding::{FindingKind, FixKind, Severity};
use firsttouch_model::rows::{Profile, RankPlace};
use std::collections::{BTreeMap, BTreeSet};

/// The part of its accesses that a rank makes from its main node, if its threads are on one node.
const ON_ONE_NODE: f64 = 0.8;
/// More than this part of its accesses go elsewhere (lower end).
const ELSEWHERE_BAR: f64 = 0.5;
/// A rank is on a node if it makes this part of its accesses from there.
const ON_A_NODE: f64 = 0.1;
const REMOTE_BAR: f64 = 0.05;
/// Fewer samples say nothing about a rank.
const LEAST_SAMPLES: u64 = 16;

/// Adds the findings on ranks to an analysis that has its ranks.
pub fn find_in_ranks(analysis: &mut Analysis, profile: &Profile, target: &Target) {
    if target.nodes < 2 || analysis.ranks.len() < 2 {
        return;
    }
    let elsewhere: Vec<usize> = indices(analysis, is_elsewhere);
    let straddling: Vec<usize> = indices(analysis, |rank| straddles(rank, target) && (!target.virtual_machine || rank.is_bound_across));
    let options = profile.parts.iter().find_map(|part| part.place.as_ref()).map_or("", RankPlace::binding_options);
    let fix = format!("bind each rank to a node: {options}");
    let mut found = Vec::new();
    let make = |kind: FindingKind, ranks: &[usize], message: String| finding(analysis, kind, ranks, message, fix.clone());
    if !elsewhere.is_empty() {
        let message = elsewhere_message(analysis, profile, &elsewhere);
        found.push(make(FindingKind::RankMemoryElsewhere, &elsewhere, message));
    }
    if !straddling.is_empty() {
        let message = straddling_message(analysis, target, &straddling);
        found.push(make(FindingKind::RankStraddlesNodes, &straddling, message));
    }
    let is_moving = |finding: &Finding| finding.kind == FindingKind::UnpinnedThreads;
    let moves = analysis.findings.iter().any(is_moving);
    if !target.virtual_machine && is_unbound(profile) && (moves || !found.is_empty()) {
        let all: Vec<usize> = (0..analysis.ranks.len()).collect();
        let message = format!(
            "The launcher bound no rank to a node: each of the {} ranks may run on all CPUs of its host, so the kernel moves ranks away from their memory.",
            all.len()
        );
        found.push(make(FindingKind::RanksUnbound, &all, message));
        analysis.findings.retain(|finding| !(is_moving(finding) && finding.object.is_none()));
    }
    analysis.findings.extend(found);
}

fn indices(analysis: &Analysis, holds: impl Fn(&RankView) -> bool) -> Vec<usize> {
    analysis.ranks.iter().enumerate().filter(|(_, rank)| rank.rank.is_some() && holds(rank)).map(|(index, _)| index).collect()
}

fn is_elsewhere(rank: &RankView) -> bool {
    let main = rank.thread_nodes.iter().copied().fold(0.0, f64::max);
    main >= ON_ONE_NODE && rank.own_remote.is_some_and(|own| own.samples >= LEAST_SAMPLES && own.low > ELSEWHERE_BAR)
}

fn straddles(rank: &RankView, target: &Target) -> bool {
    let nodes = rank.thread_nodes.iter().filter(|share| **share >= ON_A_NODE).count();
    let is_remote = rank.remote_interval.is_some_and(|[low, _]| low > REMOTE_BAR);
    nodes > 1 && rank.busy_threads <= target.cores_per_node && is_remote && rank.remote_samples >= LEAST_SAMPLES
}

/// Whether each rank may run on CPUs of several nodes of its host.
fn is_unbound(profile: &Profile) -> bool {
    let mut places = profile.parts.iter().filter_map(|part| Some((part.place.as_ref()?, &part.machine.node_cpus))).peekable();
    places.peek().is_some()
        && places.all(|(place, nodes)| {
            let allowed = place.bound_cpus.as_deref().and_then(cpu_list::parse).unwrap_or_default();
            nodes.values().filter(|cpus| cpus.iter().any(|cpu| allowed.contains(cpu))).count() > 1
        })
}

fn finding(analysis: &Analysis, kind: FindingKind, ranks: &[usize], message: String, fix: String) -> Finding {
    let of = |index: &usize| &analysis.ranks[*index];
    let share = |rank: &RankView| rank.access_share.unwrap_or(0.0);
    let all: f64 = ranks.iter().map(of).map(share).sum();
    let remote = |rank: &RankView| share(rank) * rank.remote_fraction.unwrap_or(0.0);
    let remote_share: f64 = ranks.iter().map(of).map(remote).sum();
    let value = if all > 0.0 { remote_share / all } else { 0.0 };
    let error = |end: usize| {
        let half = |rank: &RankView| {
            let interval: Interval = rank.remote_interval.unwrap_or([0.0, 1.0]);
            share(rank) / all.max(f64::MIN_POSITIVE) * (interval[end] - rank.remote_fraction.unwrap_or(0.5))
        };
        ranks.iter().map(of).map(half).map(|half| half * half).sum::<f64>().sqrt()
    };
    Finding {
        kind,
        object: None,
        together: Vec::new(),
        object_name: "ranks".to_owned(),
        severity: Severity::of(remote_share),
        message,
        fix,
        fix_edits: Vec::new(),
        fix_otherwise: None,
        library: None,
        fix_kind: FixKind::NotMemory,
        cause: None,
        misplaced_at: None,
        remote_fraction: value,
        interval: [(value - error(0)).max(0.0), (value + error(1)).min(1.0)],
        remote_share,
        figures: BTreeMap::new(),
        ranks: ranks.iter().filter_map(|index| of(index).rank).collect(),
        in_ranks: Vec::new(),
    }
}

/// `1 rank: its threads run on node 0, and 98 % [96, 99] of its accesses go to memory on other nodes, most of them to node 1.`
fn elsewhere_message(analysis: &Analysis, profile: &Profile, ranks: &[usize]) -> String {
    let one = |&index: &usize| {
        let rank = &analysis.ranks[index];
        let main = |shares: &[f64]| (0..shares.len()).max_by(|a, b| shares[*a].total_cmp(&shares[*b])).unwrap_or(0);
        let (here, there) = (analysis.node_name(main(&rank.thread_nodes)), analysis.node_name(main(&rank.memory_nodes)));
        let remote = rank.remote_fraction.zip(rank.remote_interval).map_or(String::new(), |(value, interval)| shown(value, interval));
        format!("rank {} runs on node {here}, its memory is on node {there} ({remote} of its accesses are remote)", rank.rank.unwrap_or(0))
    };
    let named: Vec<String> = ranks.iter().take(MOST_NAMED).map(one).collect();
    let more = ranks.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let policies: BTreeSet<&str> = profile
        .objects
        .iter()
        .filter(|object| profile.index_of_part(object.process).is_some_and(|part| ranks.contains(&part)))
        .filter_map(|object| profile.policies.get(&object.id))
        .filter(|policy| !policy.is_first_touch())
        .map(|policy| policy.policy.as_str())
        .collect();
    let why = match policies.first() {
        Some(policy) => format!(
            " Their memory policy is {policy}: it was set by the command that started them (numactl, srun --mem-bind), or by the program."
        ),
        None => " They touched their memory on another node than they run on since.".to_owned(),
    };
    format!("{}{more}.{why}", capital(&named.join("; ")))
}

fn straddling_message(analysis: &Analysis, target: &Target, ranks: &[usize]) -> String {
    let one = |&index: &usize| {
        let rank = &analysis.ranks[index];
        let on: Vec<String> = (0..rank.thread_nodes.len())
            .filter(|node| rank.thread_nodes[*node] >= ON_A_NODE)
            .map(|node| analysis.node_name(node))
            .collect();
        let remote = rank.remote_fraction.zip(rank.remote_interval).map_or(String::new(), |(value, interval)| shown(value, interval));
        format!("rank {} on nodes {} ({remote} remote)", rank.rank.unwrap_or(0), on.join(" and "))
    };
    let named: Vec<String> = ranks.iter().take(MOST_NAMED).map(one).collect();
    let more = ranks.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("The threads of a rank are on several nodes, although a node has {} cores: {}{more}.", target.cores_per_node, named.join(", "))
}

/// Ranks that a message names.
const MOST_NAMED: usize = 4;

fn shown(value: f64, [low, high]: Interval) -> String {
    format!("{} [{}, {}]", percent(value), digits(low), digits(high))
}
