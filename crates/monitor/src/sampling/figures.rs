//! From the analysis of a window to the figures of a process.

use crate::snapshot::{LEAST_SAMPLES, ObjectRow, Remote, rounded};
use firsttouch_analysis::{Analysis, CodeLocation, Coverage, EvidenceView, ObjectView};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Profile, Thread};
use firsttouch_model::shown::one_line;
use std::collections::BTreeMap;

/// Objects that are listed, by their share of the accesses.
const LISTED: usize = 40;
/// A share is shown only if it is about this part of the accesses at least.
const LEAST_COVERED: f64 = 0.5;
/// Nor is one of an object whose pages may be anywhere, if its interval is wider.
const WIDEST: f64 = 0.2;
/// Nor is one that is about a smaller part of all accesses: the others are to memory that fits in a core's cache.
const LEAST_JUDGED: f64 = 0.05;

/// What samples say of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadFigures {
    pub node: u32,
    pub remote: Option<f64>,
    pub hottest: Option<String>,
}

/// What samples say of a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub remote: Remote,
    pub matrix: Vec<Vec<f64>>,
    /// By thread number.
    pub threads: BTreeMap<i32, ThreadFigures>,
    pub objects: Vec<ObjectRow>,
}

impl Figures {
    /// Of a process without samples.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { remote: Remote::unknown(reason), ..Self::default() }
    }

    /// `threads`: those of the profile that the analysis is of, by id.
    pub fn of(analysis: &Analysis, threads: &[&Thread], window_s: u32) -> Self {
        let nodes: Vec<u32> = analysis.threads.iter().map(|thread| thread.node).collect();
        let remote = remote(analysis, window_s);
        // A process without evidence gives no evidence on its threads.
        let shares = if remote.share.is_some() { remote_of_threads(analysis) } else { BTreeMap::new() };
        let samples = samples_of_threads(analysis);
        let hottest = hottest(analysis);
        let rows = threads.iter().zip(&nodes).enumerate();
        let of_threads = rows.map(|(index, (thread, &node))| {
            let is_enough = samples.get(&index).is_some_and(|count| *count >= LEAST_SAMPLES);
            let figures = ThreadFigures {
                node,
                remote: shares.get(&index).copied().map(rounded).filter(|_| is_enough),
                hottest: hottest.get(&index).map(|name| (*name).to_owned()),
            };
            (thread.tid, figures)
        });
        let known = analysis.matrix.iter().flatten().any(|share| *share > 0.0) && remote.share.is_some();
        let matrix = analysis.matrix.iter().map(|row| row.iter().copied().map(rounded).collect()).collect();
        Self { matrix: if known { matrix } else { Vec::new() }, threads: of_threads.collect(), objects: objects(analysis, &nodes), remote }
    }
}

/// The objects with most accesses, by number.
fn objects(analysis: &Analysis, nodes: &[u32]) -> Vec<ObjectRow> {
    let used = analysis.objects.iter().filter(|object| object.access_share.is_some()).take(LISTED);
    let mut rows: Vec<ObjectRow> = used.map(|object| row(object, nodes, analysis)).collect();
    rows.sort_by_key(|row| row.id);
    rows.dedup_by_key(|row| row.id);
    rows
}

/// The remote share of a process, or why it has none.
fn remote(analysis: &Analysis, window_s: u32) -> Remote {
    let covers = analysis.coverage.as_ref().map(covers);
    let is_known = analysis.remote_samples >= LEAST_SAMPLES && analysis.coverage.as_ref().is_none_or(is_enough);
    match (analysis.remote_fraction, analysis.remote_interval) {
        (Some(share), Some([low, high])) if is_known => Remote {
            share: Some(rounded(share)),
            interval: Some([rounded(low), rounded(high)]),
            samples: analysis.remote_samples,
            source: analysis.remote_evidence.as_ref().map(|source| source.as_str().to_owned()),
            covers,
            ..Remote::default()
        },
        _ => Remote { samples: analysis.remote_samples, covers, ..Remote::unknown(why_unknown(analysis, window_s)) },
    }
}

/// The judged part of the accesses whose node matters: without those to memory that fits in a core's cache.
fn covers(coverage: &Coverage) -> f64 {
    let all = 1.0 - coverage.cached;
    if all > 0.0 { rounded((coverage.judged / all).clamp(0.0, 1.0)) } else { 0.0 }
}

/// Whether a remote share is about enough of the accesses to be shown.
fn is_enough(coverage: &Coverage) -> bool {
    coverage.judged >= LEAST_JUDGED && covers(coverage) >= LEAST_COVERED
}

fn why_unknown(analysis: &Analysis, window_s: u32) -> String {
    if analysis.machine.nodes < 2 {
        return "the machine has one node".to_owned();
    }
    let samples = |evidence: &&EvidenceView| evidence.source == EvidenceSource::Sample;
    if let Some(missing) = analysis.evidence.iter().find(samples).filter(|evidence| !evidence.available && !evidence.detail.is_empty()) {
        return one_line(&missing.detail).into_owned();
    }
    if analysis.coverage.is_none() && analysis.remote_samples == 0 {
        return format!("no accesses to its larger objects were sampled in the last {window_s} s");
    }
    if let Some(object) = analysis.heavy_not_judged().first()
        && let Some(reason) = &object.reason
    {
        return format!("{} ({:.0} % of its accesses): {reason}", one_line(&object.name), 100.0 * object.access_share.unwrap_or(0.0));
    }
    if analysis.coverage.as_ref().is_some_and(|coverage| coverage.cached > 0.5) {
        return "its accesses are to memory that fits in a core's cache".to_owned();
    }
    // All that it uses was there before.
    if analysis.is_attached() && analysis.coverage.as_ref().is_some_and(is_enough) && analysis.remote_samples == 0 {
        return "the nodes of the pages that it uses are not known: they were touched before firsttouch came".to_owned();
    }
    if let Some(coverage) = analysis.coverage.as_ref().filter(|coverage| !is_enough(coverage)) {
        return format!(
            "only {:.0} % of the accesses sampled in the last {window_s} s are to objects judged so far",
            100.0 * coverage.judged
        );
    }
    format!("{} samples in the last {window_s} s are too few", analysis.remote_samples)
}

/// The remote share of each thread, by index: of the workers whose traffic is known.
fn remote_of_threads(analysis: &Analysis) -> BTreeMap<usize, f64> {
    let traffic = &analysis.traffic;
    let mut sums = vec![(0.0, 0.0); traffic.workers.len()];
    for sample in traffic.objects.iter().flat_map(|object| &object.samples) {
        for &(worker, bytes) in &sample.bytes {
            let (Some(sum), Some(one)) = (sums.get_mut(worker), traffic.workers.get(worker)) else { continue };
            sum.0 += if one.node == sample.home { 0.0 } else { bytes };
            sum.1 += bytes;
        }
    }
    let shares = traffic.workers.iter().zip(&sums).filter(|(_, (_, all))| *all > 0.0);
    shares.flat_map(|(worker, (remote, all))| worker.threads.iter().map(move |thread| (*thread, remote / all))).collect()
}

/// The samples of each thread, by index.
fn samples_of_threads(analysis: &Analysis) -> BTreeMap<usize, u64> {
    let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
    for object in &analysis.objects {
        for (thread, &count) in object.used_by_thread_samples.counting(|count| *count > 0) {
            let sum = counts.entry(thread).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    counts
}

/// The object that each thread uses most, by index.
fn hottest(analysis: &Analysis) -> BTreeMap<usize, &str> {
    let mut best: BTreeMap<usize, (f64, &str)> = BTreeMap::new();
    for object in &analysis.objects {
        let share = object.access_share.unwrap_or(0.0);
        for (thread, &part) in object.used_by_thread.counting(|part| *part > 0.0) {
            let known = best.entry(thread).or_insert((0.0, &object.name));
            if share * part > known.0 {
                *known = (share * part, &object.name);
            }
        }
    }
    best.into_iter().filter(|(_, (share, _))| *share > 0.0).map(|(thread, (_, name))| (thread, name)).collect()
}

fn row(object: &ObjectView, nodes: &[u32], analysis: &Analysis) -> ObjectRow {
    let count = analysis.machine.nodes;
    let mut users = vec![0.0; count];
    for (thread, &part) in object.used_by_thread.counting(|part| *part > 0.0) {
        if let Some(sum) = nodes.get(thread).and_then(|node| users.get_mut(*node as usize)) {
            *sum += part;
        }
    }
    let samples = samples(object);
    // What it would be if threads of all nodes used it alike, with the nodes of its pages unknown.
    let is_guess = object.is_same_anywhere && object.remote_interval.is_some_and(|[low, high]| high - low > WIDEST);
    let remote = match (object.remote_fraction, object.remote_interval, &object.reason) {
        (Some(share), Some([low, high]), None) if samples >= LEAST_SAMPLES && !is_guess => Remote {
            share: Some(rounded(share)),
            interval: Some([rounded(low), rounded(high)]),
            samples,
            source: Some(object.evidence.as_str().to_owned()),
            ..Remote::default()
        },
        _ if is_guess && object.reason.is_none() => Remote { samples, ..Remote::unknown("the nodes of its pages are not known") },
        (_, _, Some(reason)) => Remote { samples, ..Remote::unknown(reason.to_string()) },
        _ => Remote { samples, ..Remote::unknown(too_few(samples)) },
    };
    ObjectRow {
        id: object.id,
        name: one_line(&object.name).into_owned(),
        line: object.allocated_at.as_ref().and_then(line),
        bytes: object.total_bytes,
        share: object.access_share.map(rounded),
        pages_by_node: pages_by_node(object, count),
        users_by_node: normalised(&users),
        remote,
    }
}

/// The samples of an object, whatever their source.
fn samples(object: &ObjectView) -> u64 {
    let by_threads = object.used_by_thread_samples.counting(|count| *count > 0).map(|(_, count)| *count).fold(0, u64::saturating_add);
    by_threads.max(object.hit_windows).max(object.hints)
}

fn too_few(samples: u64) -> String {
    format!("{samples} samples are too few")
}

/// `solver.c:41`.
fn line(at: &CodeLocation) -> Option<String> {
    let file = at.file.as_deref()?;
    let name = file.rsplit('/').next().unwrap_or(file);
    Some(format!("{}:{}", one_line(name), at.line?))
}

/// Shares of the pages: as the kernel said last; on a virtual machine, of the pieces whose first toucher is known.
fn pages_by_node(object: &ObjectView, nodes: usize) -> Vec<f64> {
    if let Some(resident) = &object.resident {
        return resident.nodes_last.iter().copied().map(rounded).collect();
    }
    let mut pieces = vec![0.0; nodes];
    for home in &object.map.homes {
        if let Some(sum) = usize::try_from(*home).ok().and_then(|home| pieces.get_mut(home)) {
            *sum += 1.0;
        }
    }
    normalised(&pieces)
}

/// Shares; empty if there is nothing to share.
fn normalised(parts: &[f64]) -> Vec<f64> {
    let all: f64 = parts.iter().sum();
    if all > 0.0 { parts.iter().map(|part| rounded(part / all)).collect() } else { Vec::new() }
}

/// The threads of one process of a profile, by id, as the analysis numbers them.
pub fn threads_of(profile: &Profile, process: i64) -> Vec<&Thread> {
    let mut threads: Vec<&Thread> = profile.threads.iter().filter(|thread| thread.process == process).collect();
    threads.sort_by_key(|thread| thread.id);
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a share that is about few of the accesses is not shown, and that memory in a cache does not count against it.
    #[test]
    fn shares_need_evidence() {
        let coverage = |judged: f64, cached: f64| Coverage {
            judged,
            cached,
            not_judged: 1.0 - judged - cached,
            elsewhere: None,
            evidence: EvidenceSource::Sample,
        };
        for (judged, cached, covered, expected) in [
            (0.0, 0.0, 0.0, false),
            (0.0, 1.0, 0.0, false),
            (0.3, 0.0, 0.3, false),
            (0.01, 0.99, 1.0, false),
            (0.48, 0.5, 0.96, true),
            (0.6, 0.0, 0.6, true),
        ] {
            let coverage = coverage(judged, cached);
            assert!((covers(&coverage) - covered).abs() < 0.002, "{coverage:?}");
            assert_eq!(is_enough(&coverage), expected, "{coverage:?}");
        }
    }
}
