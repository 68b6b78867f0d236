//! Watch windows as evidence of use: which accesses count, by whom, to which place, where that place was.
//!
//! A window counts as use only if its page was already touched when it began; before that it sees initialising writes. Memory
//! that is initialised again and again (`generations.rs`) is left out only where a window saw that happen.

use crate::coverage::Clock;
use crate::estimator::{Design, Draw};
use crate::evidence::TouchSummary;
use crate::groups::Group;
use crate::homes::{Home, comes_later, home, home_between, observed};
use crate::residents::Residents;
use crate::threads::Threads;
use crate::touches::{BASE_PAGE, ObjectTouches, Placed, TouchReader};
use firsttouch_model::rows::{Access, Id, Profile};
use std::collections::HashMap;

/// Accesses by one thread in one window.
#[derive(Clone, Copy, Debug)]
pub struct ByThread {
    pub thread: usize,
    /// Accesses a ns.
    pub rate: f64,
    /// Traps taken.
    pub hits: u64,
    /// The hit limit cut it off.
    pub cut: bool,
    /// Where the thread ran.
    pub node: u32,
}

/// A window that was hit while it counts as use.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Index of the draw in the [`Design`].
    pub draw: usize,
    /// Object index.
    pub object: usize,
    pub offset: u64,
    /// In the group's logical range.
    pub position: u64,
    pub start: u64,
    pub end: u64,
    /// Windows of one round are held at the same time.
    pub round: u64,
    pub by_thread: Vec<ByThread>,
    /// Accesses a ns by site.
    pub sites: Vec<(Option<Id>, f64)>,
    pub home: Home,
}

impl Hit {
    /// Accesses a ns by all threads.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.by_thread.iter().map(|t| t.rate).sum()
    }
}

/// Evidence of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Watchpoints.
    Watch,
    /// The kernel's hinting faults.
    Hint,
}

impl Source {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Hint => "hint",
        }
    }
}

/// Samples of one source.
#[derive(Debug, Default)]
pub struct Sampled {
    pub design: Design,
    /// By group.
    pub hits: Vec<Vec<Hit>>,
}

/// All evidence of use.
#[derive(Debug, Default)]
pub struct Uses {
    pub watch: Sampled,
    pub hint: Sampled,
    /// Touches of the members that were read, by object index.
    pub touches: HashMap<usize, ObjectTouches>,
    /// First touches by group.
    pub summaries: Vec<TouchSummary>,
    /// Windows left out because their page was not yet touched.
    pub initialising: u64,
    /// Windows and rows that name nothing known or carry no usable number.
    pub refused: u64,
    /// Hinting faults seen.
    pub hint_records: u64,
}

impl Uses {
    #[must_use]
    pub fn of(&self, source: Source) -> &Sampled {
        match source {
            Source::Watch => &self.watch,
            Source::Hint => &self.hint,
        }
    }
}

/// Members of a group whose touches are read, at most (those that were hit come first).
const MEMBERS: usize = 4096;

/// Code this near is one loop body, bytes.
const SAME_LOOP: u64 = 64;

/// What is needed to read the windows.
pub struct Reader<'a> {
    pub profile: &'a Profile,
    pub threads: &'a Threads,
    pub groups: &'a [Group],
    pub residents: &'a Residents,
    pub real_nodes: Option<usize>,
    pub clock: Clock,
}

impl Reader<'_> {
    /// Reads all windows.
    pub fn read(&self, touches: &mut TouchReader<'_>) -> Uses {
        let mut uses = Uses::default();
        uses.watch.hits = vec![Vec::new(); self.groups.len()];
        let group_of: HashMap<usize, usize> =
            self.groups.iter().enumerate().flat_map(|(g, group)| group.members.iter().map(move |&i| (i, g))).collect();
        let object_of: HashMap<Id, usize> = self.profile.objects.iter().enumerate().map(|(i, o)| (o.id, i)).collect();
        let rows = self.rows(&mut uses.refused);
        let mut draws = Vec::new();
        let mut hit = Vec::new();
        for window in &self.profile.windows {
            let Some(&object) = object_of.get(&window.object) else {
                uses.refused += 1;
                continue;
            };
            let this = &self.profile.objects[object];
            let words = (this.bytes / 8).max(1) as f64;
            let z = words * window.round_ns as f64 / window.inclusion;
            let offset = window.address.checked_sub(this.address).filter(|&offset| offset < this.bytes.max(8));
            let (Some(offset), true, true) = (offset, z.is_finite() && z > 0.0, window.held_ns > 0) else {
                uses.refused += 1;
                continue;
            };
            let group = group_of[&object];
            draws.push(Draw { group, round: window.round, z, held_ns: window.held_ns as f64, rate: 0.0, cut: false });
            if let Some(rows) = rows.get(&window.id) {
                let (by_thread, sites) = self.rates(rows, window.held_ns as f64);
                let position = self.groups[group].position(object, offset);
                let start = window.start_ns;
                let end = start.saturating_add(window.held_ns);
                let (draw, round) = (draws.len() - 1, window.round);
                hit.push((group, Hit { draw, object, offset, position, start, end, round, by_thread, sites, home: Home::Unknown }));
            }
        }
        self.read_touches(&hit, touches, &mut uses.touches);
        uses.summaries = self.groups.iter().map(|group| TouchSummary::new(group, &uses.touches, self.threads)).collect();
        let logical = self.logical(&hit, &uses.touches);
        for (group, mut hit) in hit {
            hit.home = self.home(&hit, group, &uses, &logical);
            if hit.home == Home::Untouched {
                uses.initialising += 1;
                continue;
            }
            draws[hit.draw].rate = hit.rate();
            draws[hit.draw].cut = hit.by_thread.iter().any(|by| by.cut);
            uses.watch.hits[group].push(hit);
        }
        uses.watch.design =
            Design::new(draws, &self.clock.exposures(self.profile, self.groups)).with_hot_error(self.profile.meta.hot_error.unwrap_or(0.0));
        uses.hint = self.hints(&uses);
        uses.hint_records = uses.touches.values().map(|own| own.hints.len() as u64).sum();
        uses
    }

    /// Usable rows by window.
    fn rows(&self, refused: &mut u64) -> HashMap<Id, Vec<&Access>> {
        let mut rows: HashMap<Id, Vec<&Access>> = HashMap::new();
        for row in &self.profile.accesses {
            if row.estimate.is_finite() && row.estimate > 0.0 && row.estimate < 1e18 && self.threads.index(row.thread).is_some() {
                rows.entry(row.window).or_default().push(row);
            } else {
                *refused += 1;
            }
        }
        rows
    }

    fn rates(&self, rows: &[&Access], held_ns: f64) -> (Vec<ByThread>, Vec<(Option<Id>, f64)>) {
        let mut by_thread: Vec<ByThread> = Vec::new();
        let mut sites: Vec<(Option<Id>, f64)> = Vec::new();
        for row in rows {
            let Some(thread) = self.threads.index(row.thread) else { continue };
            let rate = row.estimate / held_ns;
            let node = row.cpu.map_or(self.threads.list[thread].node, |cpu| self.threads.touch_node(thread, cpu));
            match by_thread.iter_mut().find(|t| t.thread == thread) {
                Some(entry) => {
                    entry.rate += rate;
                    entry.hits = entry.hits.saturating_add(row.hits);
                    entry.cut |= row.cut;
                    entry.node = node;
                }
                None => by_thread.push(ByThread { thread, rate, hits: row.hits, cut: row.cut, node }),
            }
            match sites.iter_mut().find(|(site, _)| *site == row.site) {
                Some(entry) => entry.1 += rate,
                None => sites.push((row.site, rate)),
            }
        }
        (by_thread, sites)
    }

    /// Touches of the members that were hit, and of the first others.
    fn read_touches(&self, hit: &[(usize, Hit)], reader: &mut TouchReader<'_>, touches: &mut HashMap<usize, ObjectTouches>) {
        for (group, hit) in hit {
            touches.entry(hit.object).or_insert_with(|| reader.read(&self.groups[*group], hit.object));
        }
        for group in self.groups {
            for &object in group.members.iter().take(MEMBERS) {
                touches.entry(object).or_insert_with(|| reader.read(group, object));
            }
        }
    }

    /// For groups with rows that have no record of their own: all records in the logical range.
    fn logical(&self, hit: &[(usize, Hit)], touches: &HashMap<usize, ObjectTouches>) -> HashMap<usize, ObjectTouches> {
        let mut logical = HashMap::new();
        for (group, hit) in hit {
            let bare = touches.get(&hit.object).is_none_or(|t| t.placed.is_empty() && t.kernel.is_none());
            if bare && self.groups[*group].rows > 1 {
                logical.entry(*group).or_insert_with(|| in_logical_range(&self.groups[*group], touches));
            }
        }
        logical
    }

    pub(crate) fn home(&self, hit: &Hit, group: usize, uses: &Uses, logical: &HashMap<usize, ObjectTouches>) -> Home {
        let kernel_node = |thread: usize| self.threads.list[thread].node;
        let Some(own) = uses.touches.get(&hit.object) else { return Home::Unknown };
        let nearest = match logical.get(&group).filter(|_| own.placed.is_empty() && own.kernel.is_none()) {
            Some(all) => home(all, kernel_node, hit.position, hit.start),
            None => home_between(own, kernel_node, hit.offset, (hit.start, hit.end)),
        };
        if own.history.is_none() && self.initialises(hit, own) {
            return Home::Untouched;
        }
        let object = &self.profile.objects[hit.object];
        let derived = match nearest {
            // Neighbours disagree: the rule by which the pages were touched knows better than the nearest.
            Home::Known { sure: false, .. } => {
                let lane = uses.summaries[group].partition.owner_by_rule(hit.position);
                let thread = lane.and_then(|lane| self.threads.list.iter().position(|t| t.process == object.process && t.lane == lane));
                thread.map_or(nearest, |t| Home::Known { thread: Some(t), node: kernel_node(t), first: Some(kernel_node(t)), sure: false })
            }
            _ => nearest,
        };
        let Some(nodes) = self.real_nodes else { return derived };
        observed(derived, self.residents, object, object.address.saturating_add(hit.offset), hit.start, own.page_bytes, nodes)
    }

    /// Whether a thread seen in the window was only then initialising its parts, with the code that touched first.
    fn initialises(&self, hit: &Hit, own: &ObjectTouches) -> bool {
        let same = |p: &Placed| hit.sites.iter().any(|&(site, _)| self.same_code(site, p.touch.site));
        hit.by_thread.iter().any(|by| comes_later(own, hit.offset, hit.start, by.thread, same))
    }

    /// Whether two call stacks end in the same line, or where lines are not known within a few instructions of each other.
    fn same_code(&self, a: Option<Id>, b: Option<Id>) -> bool {
        let leaf = |site: Option<Id>| site.and_then(|id| self.profile.sites.get(&id)).and_then(|site| site.frames.first());
        let (Some(a), Some(b)) = (leaf(a), leaf(b)) else { return false };
        match (a.line, b.line) {
            (Some(_), Some(_)) => (&a.file, a.line) == (&b.file, b.line),
            _ => a.module == b.module && a.address.abs_diff(b.address) <= SAME_LOOP,
        }
    }
}

/// The records of all members at their logical positions.
#[must_use]
pub fn in_logical_range(group: &Group, touches: &HashMap<usize, ObjectTouches>) -> ObjectTouches {
    let mut placed = Vec::new();
    let mut page_bytes = BASE_PAGE;
    for &object in &group.members {
        if let Some(own) = touches.get(&object) {
            page_bytes = page_bytes.max(own.page_bytes);
            placed.extend(own.placed.iter().map(|p| Placed { offset: group.position(object, p.offset), ..p.clone() }));
        }
    }
    placed.sort_by_key(|p| (p.offset, p.touch.time));
    ObjectTouches {
        address: 0,
        bytes: group.extent(),
        page_bytes,
        placed,
        hints: Vec::new(),
        history: None,
        kernel: None,
        kernel_pages: 0.0,
        incomplete: false,
    }
}
