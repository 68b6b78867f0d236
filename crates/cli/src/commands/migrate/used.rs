//! Places memory according to a profile of the running process: each part of an object goes to the node on which its thread runs now.

use anyhow::{Result, anyhow};
use firsttouch_model::rows::Id;
use firsttouch_model::system::ProcessMaps;
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest, running_process};
use firsttouch_placement::move_pages::{Rule, Span};
use firsttouch_system::process;
use std::collections::BTreeMap;
use std::path::Path;

pub struct Used {
    pub spans: Vec<Span>,
    pub notes: Vec<String>,
}

/// The spans of memory to move, according to a profile.
///
/// # Errors
/// When the file is not a profile of this process, or no part was used by a single thread that still runs.
pub fn spans(file: &Path, pid: i32, maps: &ProcessMaps) -> Result<Used> {
    let AnalysedProfile { profile, analysis, .. } = AnalysedProfile::open(file, &AnalysisRequest::default())?;
    let own = running_process(&profile, pid).map_err(|why| anyhow!("cannot use {}: it {why}", file.display()))?;
    let runs = nodes_of_threads(pid)?;
    let mut threads: Vec<(Id, i32)> = profile.threads.iter().map(|thread| (thread.id, thread.tid)).collect();
    threads.sort_unstable();
    let node_of = |thread: i64| {
        let (_, tid) = usize::try_from(thread).ok().and_then(|index| threads.get(index))?;
        runs.get(tid).copied()
    };
    let (mut spans, mut shared, mut gone) = (Vec::new(), 0u64, 0u64);
    for view in analysis.objects.iter().filter(|view| view.process == own.id && view.count == 1) {
        let Some(object) = profile.objects.iter().find(|object| object.id == view.id && object.died_ns.is_none()) else { continue };
        let pieces = view.map.users.len() as u64;
        for (number, &user) in (0u64..).zip(&view.map.users) {
            let at = |number: u64| object.address + (u128::from(object.bytes) * u128::from(number) / u128::from(pieces.max(1))) as u64;
            let (start, end) = (at(number), at(number + 1));
            match (user, node_of(user)) {
                (0.., Some(node)) => spans.extend(within(maps, start, end, &Rule::To(vec![node]))),
                (0.., None) => gone += end - start,
                _ => shared += end - start,
            }
        }
    }
    if spans.is_empty() {
        return Err(anyhow!(
            "cannot choose nodes for process {pid} from {}: no part of an object is used by one thread that still runs. Profile it for \
             longer, or name nodes with --to or --interleave",
            file.display()
        ));
    }
    let size = firsttouch_model::format_bytes;
    let mut notes = Vec::new();
    if shared > 0 {
        notes.push(format!("{} stay where they are: several threads use them, or their use is unknown.", size(shared)));
    }
    if gone > 0 {
        notes.push(format!("{} stay: the threads that used them have ended.", size(gone)));
    }
    Ok(Used { spans, notes })
}

/// The node that each thread last ran on.
///
/// # Errors
/// When the process has ended or belongs to another user.
pub fn nodes_of_threads(pid: i32) -> Result<BTreeMap<i32, u32>> {
    let threads = process::threads(Path::new("/"), pid)?.threads;
    Ok(threads.into_iter().filter_map(|thread| Some((thread.tid, thread.node?))).collect())
}

/// The whole pages of a range, by mapping. A page at a border follows its first byte.
pub fn within(maps: &ProcessMaps, start: u64, end: u64, rule: &Rule) -> Vec<Span> {
    let overlapping = maps.mappings.iter().filter(|mapping| mapping.start < end && start < mapping.end);
    let span = |mapping: &firsttouch_model::system::Mapping| {
        let page_bytes = mapping.page_bytes.filter(|bytes| *bytes > 0)?;
        let up = |address: u64| address.div_ceil(page_bytes).saturating_mul(page_bytes);
        let (start, end) = (up(start.max(mapping.start)), up(end).min(mapping.end));
        let grain_bytes = super::grain_bytes(mapping, page_bytes);
        (start < end).then(|| Span { start, end, page_bytes, grain_bytes, present: None, rule: rule.clone() })
    };
    overlapping.filter_map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::system::Mapping;

    /// Check that neighbouring pieces share no page, and that parts outside mappings are left out.
    #[test]
    fn pieces_are_whole_pages() {
        let mapping = Mapping { start: 0x10000, end: 0x20000, page_bytes: Some(4096), ..Mapping::default() };
        let maps = ProcessMaps { mappings: vec![mapping], ..ProcessMaps::default() };
        let ranges =
            |start, end| within(&maps, start, end, &Rule::To(vec![1])).iter().map(|span| (span.start, span.end)).collect::<Vec<_>>();
        assert_eq!((ranges(0x10010, 0x12800), ranges(0x12800, 0x14000)), (vec![(0x11000, 0x13000)], vec![(0x13000, 0x14000)]));
        assert_eq!(ranges(0x1f000, 0x30000), [(0x1f000, 0x20000)]);
        assert_eq!(ranges(0x30000, 0x40000), []);
    }
}
