//! Windows between two looks at a process: what appeared in each, which threads can have made it, and which of them samples show there.

use super::counts::{Counts, Toucher};
use firsttouch_model::rows::{Appeared, Id, Profile, SampledAccess};
use std::collections::{BTreeMap, HashMap};

const BASE_PAGE: u64 = 4096;

/// A thread wrote at this address when the page there appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub address: u64,
    pub thread: Id,
    pub is_descending: bool,
}

/// A stretch of a row that one thread made; `None`: not known which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub start: u64,
    pub end: u64,
    pub thread: Option<Id>,
}

/// Pages that appeared side by side in one window.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub start: u64,
    pub end: u64,
    pub page_bytes: u64,
    /// In the order of addresses.
    pub anchors: Vec<Anchor>,
    /// Without gaps.
    pub parts: Vec<Part>,
}

impl Row {
    pub fn faults(&self) -> u64 {
        (self.end - self.start) / self.page_bytes
    }

    pub fn is_known(&self) -> bool {
        self.parts.iter().all(|part| part.thread.is_some())
    }

    /// Returns its parts; nothing is known of it then.
    pub fn forget(&mut self) -> Vec<Part> {
        std::mem::replace(&mut self.parts, vec![Part { start: self.start, end: self.end, thread: None }])
    }

    pub fn assign(&mut self, thread: Id) {
        self.parts = vec![Part { start: self.start, end: self.end, thread: Some(thread) }];
    }

    /// The direction in which its threads go through it.
    pub fn is_descending(&self) -> bool {
        2 * self.anchors.iter().filter(|anchor| anchor.is_descending).count() > self.anchors.len()
    }
}

/// What appeared between two looks.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub process: Id,
    pub from_ns: u64,
    pub to_ns: u64,
    /// The pages that each thread can have touched, at most.
    pub capacity: BTreeMap<Toucher, u64>,
    pub rows: Vec<Row>,
}

/// A stretch of memory that one thread touched first in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub process: Id,
    pub from_ns: u64,
    pub to_ns: u64,
    pub time_ns: u64,
    /// `None`: not known.
    pub thread: Option<Id>,
    pub start: u64,
    pub end: u64,
    pub page_bytes: u64,
}

impl Window {
    /// Pages that a thread is known to have touched.
    pub fn used(&self, thread: Toucher) -> u64 {
        let known = self.rows.iter().flat_map(|row| row.parts.iter().map(move |part| (part, row.page_bytes)));
        known.filter(|(part, _)| part.thread.is_some() && part.thread == thread).map(|(part, page)| (part.end - part.start) / page).sum()
    }

    /// What a thread can have touched beside that.
    pub fn left(&self, thread: Toucher) -> u64 {
        self.capacity.get(&thread).copied().unwrap_or(0).saturating_sub(self.used(thread))
    }

    /// Pages of rows that nobody is known to have made.
    pub fn open(&self) -> u64 {
        self.rows.iter().flat_map(|row| row.parts.iter().filter(|part| part.thread.is_none()).map(|part| (part.end - part.start) / row.page_bytes)).sum()
    }

    pub fn segments(&self) -> Vec<Segment> {
        let of_part = |row: &Row, part: &Part| Segment {
            process: self.process,
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            time_ns: self.from_ns.midpoint(self.to_ns),
            thread: part.thread,
            start: part.start,
            end: part.end,
            page_bytes: row.page_bytes,
        };
        self.rows.iter().flat_map(|row| row.parts.iter().map(move |part| of_part(row, part))).collect()
    }
}

/// What appeared in a process.
#[derive(Debug)]
pub(super) struct Appearance {
    pub counts: Counts,
    /// In the order of time.
    pub windows: Vec<Window>,
}

/// What appeared in each process. `accesses`: those of each sample.
pub(super) fn appearances(profile: &Profile, accesses: &[&[SampledAccess]]) -> Vec<Appearance> {
    let process_of: HashMap<Id, Id> = profile.threads.iter().map(|thread| (thread.id, thread.process)).collect();
    let mut writes: HashMap<Id, Vec<(u64, Anchor)>> = HashMap::new();
    for (sample, own) in profile.samples.iter().zip(accesses) {
        let Some(&process) = process_of.get(&sample.thread) else { continue };
        for access in own.iter().filter(|access| access.kind.writes()) {
            let is_descending = access.stride.is_some_and(|stride| stride < 0);
            let anchor = Anchor { address: access.address, thread: sample.thread, is_descending };
            writes.entry(process).or_default().push((sample.time_ns, anchor));
        }
    }
    writes.values_mut().for_each(|list| list.sort_by_key(|(time, _)| *time));
    let mut of_process: BTreeMap<Id, Vec<&Appeared>> = BTreeMap::new();
    profile.appeared.iter().for_each(|row| of_process.entry(row.process).or_default().push(row));
    let of = |(process, rows): (Id, Vec<&Appeared>)| {
        let counts = Counts::new(profile.fault_counts.iter().filter(|row| row.process == process));
        let writes = writes.get(&process).map_or(&[][..], Vec::as_slice);
        // Memory that was followed since different looks appeared in different stretches of time.
        let mut groups: BTreeMap<(u64, Option<u64>), Vec<&Appeared>> = BTreeMap::new();
        for row in rows {
            groups.entry((row.to_ns, counts.reading_before(row.from_ns))).or_default().push(row);
        }
        let windows = groups.into_values().filter_map(|rows| window(process, &rows, &counts, writes)).collect();
        Appearance { counts, windows }
    };
    of_process.into_iter().map(of).collect()
}

fn window(process: Id, appeared: &[&Appeared], counts: &Counts, writes: &[(u64, Anchor)]) -> Option<Window> {
    let (from_ns, to_ns) = (appeared.iter().map(|row| row.from_ns).min()?, appeared.first()?.to_ns);
    let during = &writes[writes.partition_point(|(time, _)| *time < from_ns)..writes.partition_point(|(time, _)| *time <= to_ns)];
    let mut rows: Vec<Row> = Vec::new();
    let mut sorted = appeared.to_vec();
    sorted.sort_by_key(|row| row.address);
    for one in sorted.into_iter().filter(|one| one.bytes > 0) {
        let (start, end) = (one.address, one.address.saturating_add(one.bytes));
        let page_bytes = one.page_bytes.max(BASE_PAGE);
        match rows.last_mut() {
            Some(last) if last.end == start && last.page_bytes == page_bytes => last.end = end,
            Some(last) if last.end > start => {}
            _ => rows.push(Row { start, end, page_bytes, anchors: Vec::new(), parts: Vec::new() }),
        }
    }
    for row in &mut rows {
        row.parts = vec![Part { start: row.start, end: row.end, thread: None }];
        let inside = during.iter().map(|(_, anchor)| *anchor).filter(|anchor| (row.start..row.end).contains(&anchor.address));
        row.anchors = inside.collect();
        row.anchors.sort_by_key(|anchor| anchor.address);
    }
    Some(Window { process, from_ns, to_ns, capacity: counts.between(from_ns, to_ns)?, rows })
}
