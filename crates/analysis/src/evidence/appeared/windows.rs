//! Windows between two looks at a process: what appeared in each, which threads can have made it, and which of them samples show there.

use super::counts::{Counts, Toucher};
use firsttouch_model::rows::{Appeared, Id, Profile, SampledAccess};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Pages of unknown size count as base pages.
pub(super) const BASE_PAGE: u64 = 4096;
/// A thread that had no more faults than this since a window made the end of a row if it writes within so many pages of it.
const LATE_FAULTS: u64 = 2;
const FRONT_PAGES: u64 = 2;

/// A thread wrote at this address when the page there appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub address: u64,
    pub thread: Id,
    pub is_descending: bool,
    pub site: Option<Id>,
    /// The thread's page-fault count then.
    pub faults: Option<u64>,
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
    /// Since when it is looked at: memory of several objects may appear in one window.
    from_ns: u64,
    pub page_bytes: u64,
    /// In the order of addresses.
    pub anchors: Vec<Anchor>,
    /// Without gaps.
    pub parts: Vec<Part>,
    is_descending: bool,
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

    /// The page of an anchor is the last one that its thread touched.
    fn is_at_front(&self, anchor: &Anchor) -> bool {
        let pages = if anchor.is_descending { anchor.address - self.start } else { self.end - 1 - anchor.address };
        pages < FRONT_PAGES * self.page_bytes
    }

    pub fn assign(&mut self, thread: Id) {
        self.parts = self.whole(thread);
    }

    /// The row as one part.
    pub fn whole(&self, thread: Id) -> Vec<Part> {
        vec![Part { start: self.start, end: self.end, thread: Some(thread) }]
    }

    /// The thread that made all of it.
    pub fn maker(&self) -> Option<Id> {
        if let [part] = self.parts[..] { part.thread } else { None }
    }

    /// The direction in which its threads go through it; that of most samples of the program if none is of this row.
    pub fn is_descending(&self) -> bool {
        self.is_descending
    }
}

/// What appeared between two looks.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub process: Id,
    pub from_ns: u64,
    pub to_ns: u64,
    /// When the counts were read before it, ns.
    pub read_ns: u64,
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
    /// The instruction that wrote it, if a sample shows it.
    pub site: Option<Id>,
}

impl Window {
    /// Pages that a thread is known to have touched.
    pub fn used(&self, thread: Toucher) -> u64 {
        let known = self.rows.iter().flat_map(|row| row.parts.iter().map(move |part| (part, row.page_bytes)));
        known.filter(|(part, _)| part.thread.is_some() && part.thread == thread).map(|(part, page)| (part.end - part.start) / page).sum()
    }

    /// The other window lies between the readings of this one.
    fn holds(&self, other: &Self) -> bool {
        self.read_ns <= other.from_ns && other.to_ns <= self.to_ns
    }

    /// Pages of rows that nobody is known to have made.
    fn open(&self) -> u64 {
        let parts = self.rows.iter().flat_map(|row| row.parts.iter().map(move |part| (part, row.page_bytes)));
        parts.filter(|(part, _)| part.thread.is_none()).map(|(part, page)| (part.end - part.start) / page).sum()
    }

    pub fn segments(&self) -> Vec<Segment> {
        self.rows.iter().flat_map(|row| row.parts.iter().map(move |part| self.of_part(row, part))).collect()
    }

    /// A row as a segment whose thread is not known.
    pub fn segment(&self, row: &Row) -> Segment {
        self.of_part(row, &Part { start: row.start, end: row.end, thread: None })
    }

    fn of_part(&self, row: &Row, part: &Part) -> Segment {
        let is_own = |one: &&Anchor| Some(one.thread) == part.thread && (part.start..part.end).contains(&one.address);
        Segment {
            process: self.process,
            from_ns: row.from_ns,
            to_ns: self.to_ns,
            time_ns: row.from_ns.midpoint(self.to_ns),
            thread: part.thread,
            start: part.start,
            end: part.end,
            page_bytes: row.page_bytes,
            site: row.anchors.iter().find(is_own).and_then(|one| one.site),
        }
    }
}

/// A window among all windows of its process, in the order of their ends: memory that is followed since different times appears in windows
/// that overlap.
#[derive(Clone, Copy)]
pub(super) struct Among<'a> {
    windows: &'a [Window],
    at: usize,
}

impl<'a> Among<'a> {
    pub fn new(windows: &'a [Window], at: usize) -> Self {
        Self { windows, at }
    }

    pub fn window(self) -> &'a Window {
        &self.windows[self.at]
    }

    /// The windows that lie between its readings.
    fn held(self) -> impl Iterator<Item = &'a Window> {
        let this = self.window();
        let end = self.windows.partition_point(|other| other.to_ns <= this.to_ns);
        self.windows[..end].iter().rev().take_while(|other| other.to_ns > this.read_ns).filter(|other| this.holds(other))
    }

    /// What a thread can have touched beside what it is known to have touched.
    pub fn left(self, thread: Toucher) -> u64 {
        let used = self.held().map(|window| window.used(thread)).sum();
        self.window().capacity.get(&thread).copied().unwrap_or(0).saturating_sub(used)
    }

    /// Pages that nobody is known to have touched.
    pub fn open(self) -> u64 {
        self.held().map(Window::open).sum()
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
    let mut writes: HashMap<Id, BTreeMap<Id, Vec<Tick>>> = HashMap::new();
    for (sample, own) in profile.samples.iter().zip(accesses) {
        let Some(&process) = process_of.get(&sample.thread) else { continue };
        let anchor = |access: &SampledAccess| {
            let is_descending = access.stride.is_some_and(|stride| stride < 0);
            Anchor { address: access.address, thread: sample.thread, is_descending, site: access.site, faults: None }
        };
        let anchors = own.iter().filter(|access| access.kind.writes()).map(anchor).collect();
        writes.entry(process).or_default().entry(sample.thread).or_default().push(Tick { time_ns: sample.time_ns, anchors });
    }
    writes.values_mut().flat_map(BTreeMap::values_mut).for_each(|list| list.sort_by_key(|tick| tick.time_ns));
    let none = BTreeMap::new();
    let mut of_process: BTreeMap<Id, Vec<&Appeared>> = BTreeMap::new();
    profile.appeared.iter().for_each(|row| of_process.entry(row.process).or_default().push(row));
    let of = |(process, rows): (Id, Vec<&Appeared>)| {
        let counts = Counts::new(profile.fault_counts.iter().filter(|row| row.process == process));
        let ticks = writes.get(&process).unwrap_or(&none);
        // Memory that was followed since different looks appeared in different stretches of time.
        let mut groups: BTreeMap<(u64, Option<u64>), Vec<&Appeared>> = BTreeMap::new();
        for row in rows {
            groups.entry((row.to_ns, counts.reading_before(row.from_ns))).or_default().push(row);
        }
        let mut windows: Vec<Window> = groups.into_values().filter_map(|rows| window(process, &rows, &counts, ticks)).collect();
        let rows = || windows.iter().flat_map(|window| &window.rows);
        let usual = is_descending(rows().flat_map(|row| &row.anchors));
        for row in windows.iter_mut().flat_map(|window| &mut window.rows) {
            row.is_descending = if row.anchors.is_empty() { usual } else { is_descending(row.anchors.iter()) };
        }
        Appearance { counts, windows }
    };
    of_process.into_iter().map(of).collect()
}

/// Most of these samples were taken in loops that go downwards.
fn is_descending<'a>(anchors: impl Iterator<Item = &'a Anchor>) -> bool {
    let (down, all) = anchors.fold((0, 0), |(down, all), anchor| (down + usize::from(anchor.is_descending), all + 1));
    2 * down > all
}

/// What a thread wrote at a tick.
#[derive(Debug)]
struct Tick {
    time_ns: u64,
    anchors: Vec<Anchor>,
}

fn window(process: Id, appeared: &[&Appeared], counts: &Counts, ticks: &BTreeMap<Id, Vec<Tick>>) -> Option<Window> {
    let (from_ns, to_ns) = (appeared.iter().map(|row| row.from_ns).min()?, appeared.first()?.to_ns);
    let mut rows: Vec<Row> = Vec::new();
    let mut sorted = appeared.to_vec();
    sorted.sort_by_key(|row| row.address);
    for one in sorted.into_iter().filter(|one| one.bytes > 0) {
        let (start, end) = (one.address, one.address.saturating_add(one.bytes));
        let page_bytes = one.page_bytes.max(BASE_PAGE);
        match rows.last_mut() {
            Some(last) if last.end == start && last.page_bytes == page_bytes => {
                (last.end, last.from_ns) = (end, last.from_ns.max(one.from_ns));
            }
            Some(last) if last.end > start => {}
            _ => rows.push(Row {
                start,
                end,
                from_ns: one.from_ns,
                page_bytes,
                anchors: Vec::new(),
                parts: Vec::new(),
                is_descending: false,
            }),
        }
    }
    let capacity = counts.between(from_ns, to_ns)?;
    for row in &mut rows {
        row.parts = vec![Part { start: row.start, end: row.end, thread: None }];
    }
    for (&thread, list) in ticks.iter().filter(|(thread, _)| capacity.contains_key(&Some(**thread))) {
        let (from, to) = (list.partition_point(|tick| tick.time_ns < from_ns), list.partition_point(|tick| tick.time_ns <= to_ns));
        let mut add = |tick: &Tick, anchor: &Anchor, is_late: bool| {
            let at = rows.partition_point(|row| row.end <= anchor.address);
            let row = rows.get_mut(at).filter(|row| row.start <= anchor.address && (!is_late || row.is_at_front(anchor)));
            let faults = counts.exactly_at(thread, tick.time_ns);
            row.into_iter().for_each(|row| row.anchors.push(Anchor { faults, ..*anchor }));
        };
        list[from..to].iter().for_each(|tick| tick.anchors.iter().for_each(|anchor| add(tick, anchor, false)));
        // A tick that takes the CPU from its thread is delivered when the thread runs again: it has touched no page since.
        let late = list.get(to).filter(|tick| counts.at(Some(thread), tick.time_ns) <= counts.at(Some(thread), to_ns) + LATE_FAULTS);
        late.into_iter().for_each(|tick| tick.anchors.iter().for_each(|anchor| add(tick, anchor, true)));
    }
    rows.iter_mut().for_each(|row| row.anchors.sort_by_key(|anchor| anchor.address));
    let read_ns = counts.reading_before(from_ns).unwrap_or(0);
    Some(Window { process, from_ns, to_ns, read_ns, capacity, rows })
}
