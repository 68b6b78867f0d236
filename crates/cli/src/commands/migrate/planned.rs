//! Applies a plan to a running process. A profile of the process identifies the memory that each entry is about.

use super::used::{Used, nodes_of_threads, within};
use anyhow::{Context, Result, anyhow};
use firsttouch_model::rows::{Object, ObjectKind, Process, Profile};
use firsttouch_model::system::ProcessMaps;
use firsttouch_model::topology::Topology;
use firsttouch_model::{NodeId, Pin};
use firsttouch_pipeline::{ElfFiles, read_plan, read_profile, running_process};
use firsttouch_placement::move_pages::Rule;
use firsttouch_plan::{KernelPolicy, Origin, Origins, Plan, RunNodes, apply, hash};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The kernel's modes that keep memory on some nodes rather than spread it: MPOL_PREFERRED, MPOL_BIND (linux/mempolicy.h).
const KEEPING: [u32; 2] = [1, 2];

/// The spans of memory to move, according to a plan.
///
/// # Errors
/// When the plan or the profile cannot be used, the profile is of another process, or nothing of the plan is in this process.
pub fn spans(file: &Path, profile: Option<&Path>, pid: i32, maps: &ProcessMaps, machine: &Topology) -> Result<Used> {
    let mut plan = read_plan(file)?;
    let path = profile.map_or_else(|| PathBuf::from(&plan.made_from), Path::to_owned);
    let profile = read_profile(&path).with_context(|| {
        format!(
            "cannot tell which memory of process {pid} the plan is about: that takes a profile of the process (firsttouch profile --pid {pid} \
             --duration 10, then --profile FILE)"
        )
    })?;
    let process = running_process(&profile, pid)
        .map_err(|why| anyhow!("cannot use {}: it {why}; profile it (firsttouch profile --pid {pid} --duration 10)", path.display()))?;
    let has_memory = |node: &&firsttouch_model::topology::Node| node.memory.is_none_or(|memory| memory.total_bytes > 0);
    let mut nodes: Vec<u32> = machine.nodes.iter().filter(has_memory).filter(|node| !node.cpus.is_empty()).map(|node| node.id).collect();
    nodes.sort_unstable();
    let runs = nodes_of_threads(pid)?;
    seat(&mut plan, &profile, process, &nodes, &runs);
    let applied = apply(&plan, &RunNodes { nodes, ..RunNodes::default() });
    let files = ElfFiles::default();
    let origins = Origins::new(&profile, &files);
    let (mut spans, mut notes) = (Vec::new(), applied.doubts.iter().map(ToString::to_string).collect::<Vec<String>>());
    for (entry, policies) in plan.entries.iter().zip(&applied.policies) {
        let objects = objects(&entry.origin, &profile, process, &origins);
        if objects.is_empty() {
            notes.push(format!("{}: nothing of it is in the profile of this process, or it is gone: left alone.", entry.what));
        }
        for (index, object) in objects {
            for (start, end, rule) in pieces(object, index, policies) {
                spans.extend(within(maps, start, end, &rule));
            }
        }
    }
    if spans.is_empty() && !plan.is_empty() {
        return Err(anyhow!("cannot move memory by {}: nothing that it names is in process {pid}", file.display()));
    }
    Ok(Used { spans, notes })
}

/// Sets the threads' nodes to those on which they run now, rather than those to which a run under the plan would pin them.
fn seat(plan: &mut Plan, profile: &Profile, process: &Process, nodes: &[u32], runs: &BTreeMap<i32, u32>) {
    let mut own: Vec<_> = profile.threads.iter().filter(|thread| thread.process == process.id).collect();
    own.sort_unstable_by_key(|thread| thread.id);
    let logical = |thread: usize| {
        let node = own.get(thread).and_then(|thread| runs.get(&thread.tid))?;
        u32::try_from(nodes.binary_search(node).ok()?).ok()
    };
    let threads = &plan.threads;
    let spread = |thread: u32| Pin::Spread.node(threads.place(thread) as usize, threads.placed() as usize, nodes.len(), 1);
    let seats: Vec<NodeId> = (0..threads.count).map(|thread| logical(thread as usize).map_or_else(|| spread(thread), NodeId)).collect();
    if !seats.is_empty() && !nodes.is_empty() {
        plan.threads.pin = Some(Pin::Nodes(seats));
        plan.nodes = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    }
}

/// The live objects that an entry is about, in order of birth, each with its index among all objects of its site.
fn objects<'a>(origin: &Origin, profile: &'a Profile, process: &Process, origins: &Origins<'_>) -> Vec<(u64, &'a Object)> {
    let mut all: Vec<&Object> = profile.objects.iter().filter(|object| object.process == process.id).collect();
    all.sort_unstable_by_key(|object| (object.born_ns, object.id));
    let (of_entry, ordinal): (Vec<&Object>, _) = match origin {
        Origin::Symbol { name, .. } => {
            (all.into_iter().filter(|object| object.kind == ObjectKind::Static && object.name.as_ref() == Some(name)).collect(), None)
        }
        Origin::Site(site) => {
            let wanted = hash(site);
            // Cache by site: all objects of a site match or none.
            let mut known: BTreeMap<Option<i64>, bool> = BTreeMap::new();
            let is_site = |object: &&Object| {
                matches!(object.kind, ObjectKind::Heap | ObjectKind::Anonymous)
                    && *known.entry(object.site).or_insert_with(|| origins.call(object).is_ok_and(|call| hash(&call) == wanted))
            };
            (all.into_iter().filter(is_site).collect(), site.ordinal)
        }
    };
    let is_meant = |index: u64| match ordinal {
        None => true,
        Some((first, 0)) => index == u64::from(first),
        Some((first, every)) => index % u64::from(every) == u64::from(first),
    };
    let numbered = (0u64..).zip(of_entry).filter(|(index, _)| is_meant(*index)).map(|(_, object)| object);
    (0u64..).zip(numbered).filter(|(_, object)| object.died_ns.is_none()).collect()
}

/// The ranges of an object (start, end), and the rule of the plan for each.
fn pieces(object: &Object, index: u64, policies: &KernelPolicy) -> Vec<(u64, u64, Rule)> {
    let (start, end) = (object.address, object.address.saturating_add(object.bytes));
    match policies {
        KernelPolicy::Leave => Vec::new(),
        KernelPolicy::Whole { mode, nodes } if KEEPING.contains(mode) => vec![(start, end, Rule::To(nodes.clone()))],
        KernelPolicy::Whole { nodes, .. } => vec![(start, end, Rule::Interleave(nodes.clone()))],
        KernelPolicy::Parts { parts, period_bytes, rows } => {
            // The rows are consecutive in the whole that is divided.
            let rows = u64::from((*rows).max(1));
            let first = (index % rows) as f64 * object.bytes as f64;
            let period = period_bytes.unwrap_or(rows as f64 * object.bytes as f64);
            divided(first, object.bytes as f64, period, parts)
                .into_iter()
                .map(|(from, to, node)| (start + from as u64, start + to as u64, Rule::To(vec![node])))
                .collect()
        }
    }
}

/// The parts of the `bytes` bytes that begin at `first`, in a whole that is divided in the same way every `period` bytes: (from, to, node),
/// as offsets from `first`.
fn divided(first: f64, bytes: f64, period: f64, parts: &[(f64, u32)]) -> Vec<(f64, f64, u32)> {
    // No placement can separate parts smaller than a page.
    const LEAST: f64 = 4096.0;
    if !(period.is_finite() && period >= LEAST && bytes > 0.0) || parts.is_empty() {
        return Vec::new();
    }
    let mut list: Vec<(f64, f64, u32)> = Vec::new();
    let mut turn = (first / period).floor() * period;
    while turn < first + bytes {
        let mut from = turn;
        for (end, node) in parts {
            let to = turn + end * period;
            let (low, high) = (from.max(first) - first, to.min(first + bytes) - first);
            if low < high {
                match list.last_mut() {
                    Some(last) if last.2 == *node => last.1 = high,
                    _ => list.push((low, high, *node)),
                }
            }
            from = to;
        }
        turn += period;
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check whole objects, repeated parts and rows: each byte is in one piece, on the node of its part.
    #[test]
    fn parts_become_ranges() {
        let halves = [(0.5, 3), (1.0, 7)];
        assert_eq!(divided(0.0, 8e6, 8e6, &halves), [(0.0, 4e6, 3), (4e6, 8e6, 7)]);
        assert_eq!(divided(0.0, 3e6, 2e6, &halves), [(0.0, 1e6, 3), (1e6, 2e6, 7), (2e6, 3e6, 3)]);
        // The second and the third of four rows, with two rows per node.
        assert_eq!(divided(1e6, 1e6, 4e6, &halves), [(0.0, 1e6, 3)]);
        assert_eq!(divided(2e6, 1e6, 4e6, &halves), [(0.0, 1e6, 7)]);
        assert_eq!(divided(0.0, 1e6, 100.0, &halves), []);
        assert_eq!(divided(0.0, 1e6, f64::NAN, &halves), []);
    }

    /// Check which pages are kept on nodes, which are spread, and which are left alone.
    #[test]
    fn policies_become_rules() {
        let object = Object {
            id: 1,
            process: 1,
            kind: ObjectKind::Heap,
            call: None,
            name: None,
            address: 0x10000,
            bytes: 0x8000,
            born_ns: 0,
            died_ns: None,
            site: None,
            thread: None,
        };
        let whole = |mode| pieces(&object, 0, &KernelPolicy::Whole { mode, nodes: vec![1, 2] });
        assert_eq!(whole(2), [(0x10000, 0x18000, Rule::To(vec![1, 2]))]);
        assert_eq!(whole(3), [(0x10000, 0x18000, Rule::Interleave(vec![1, 2]))]);
        assert_eq!(pieces(&object, 0, &KernelPolicy::Leave), []);
        let rows = KernelPolicy::Parts { parts: vec![(0.5, 0), (1.0, 1)], period_bytes: None, rows: 2 };
        assert_eq!(pieces(&object, 2, &rows), [(0x10000, 0x18000, Rule::To(vec![0]))]);
        assert_eq!(pieces(&object, 3, &rows), [(0x10000, 0x18000, Rule::To(vec![1]))]);
    }
}
