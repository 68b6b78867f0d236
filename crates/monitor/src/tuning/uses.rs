//! From a profile and its analysis to sampled accesses by object.

use crate::sampling::threads_of;
use firsttouch_analysis::{Analysis, NotJudgedReason, ObjectView};
use firsttouch_model::rows::{Id, NO_OBJECT, Object, Page, Profile};
use firsttouch_model::shown::one_line;
use firsttouch_model::traffic::ObjectTraffic;
use firsttouch_tune::{ObjectUses, Use};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: u64 = 4096;

/// The accesses of a process since a time, in the order of time.
pub struct Window {
    accesses: Vec<Access>,
}

#[derive(Clone, Copy)]
struct Access {
    time_ns: u64,
    thread: Id,
    cpu: u32,
    object: Id,
    address: u64,
    cpu_ns: f64,
}

impl Window {
    /// `period_ns`: the CPU time between two samples of a thread.
    pub fn of(profile: &Profile, process: Id, from_ns: u64, period_ns: f64) -> Self {
        let threads: BTreeSet<Id> = profile.threads.iter().filter(|thread| thread.process == process).map(|thread| thread.id).collect();
        let first = profile.samples.partition_point(|sample| sample.time_ns < from_ns);
        let mut accesses = Vec::new();
        let mut rest = &profile.sampled_accesses[..];
        for sample in profile.samples[first..].iter().filter(|sample| threads.contains(&sample.thread)) {
            rest = &rest[rest.partition_point(|access| access.sample < sample.id)..];
            let count = rest.partition_point(|access| access.sample == sample.id);
            let own = &rest[..count];
            // The time of a sample is divided among the accesses of its loop; those to no recorded object have their part.
            let cpu_ns = period_ns * sample.weight / count.max(1) as f64;
            accesses.extend(own.iter().filter(|access| access.object != NO_OBJECT).map(|access| Access {
                time_ns: sample.time_ns,
                thread: sample.thread,
                cpu: sample.cpu,
                object: access.object,
                address: access.address,
                cpu_ns,
            }));
        }
        Self { accesses }
    }

    /// The objects with at least so many accesses.
    pub fn busiest(&self, least: usize) -> impl Iterator<Item = Id> + use<> {
        let mut counts: BTreeMap<Id, usize> = BTreeMap::new();
        self.accesses.iter().for_each(|access| *counts.entry(access.object).or_default() += 1);
        counts.into_iter().filter(move |(_, count)| *count >= least).map(|(object, _)| object)
    }

    /// The pages of the most recent accesses, ascending, each once.
    pub fn pages(&self, most: usize) -> Vec<u64> {
        let mut pages = BTreeSet::new();
        for access in self.accesses.iter().rev() {
            pages.insert(access.address / PAGE * PAGE);
            if pages.len() >= most {
                break;
            }
        }
        pages.into_iter().collect()
    }
}

/// Where sampled pages are.
#[derive(Default)]
pub struct Homes {
    last: BTreeMap<u64, i32>,
    rows: Vec<Page>,
    /// The time of the last answers.
    asked_ns: u64,
}

impl Homes {
    /// The most answers that are kept.
    const MOST: usize = 100_000;

    /// Takes note of an answer. Only changes are rows. A page that changed since the last answers, where pages were moved since, has been there since then.
    pub fn note(&mut self, mut row: Page, moved_ns: Option<u64>) {
        let before = self.last.insert(row.address, row.node);
        if before != Some(row.node) {
            if let Some(moved_ns) = moved_ns.filter(|moved_ns| before.is_some() && *moved_ns > self.asked_ns) {
                row.time_ns = row.time_ns.min(moved_ns);
            }
            if self.rows.len() >= Self::MOST {
                self.rows.drain(..Self::MOST / 2);
            }
            self.rows.push(row);
        }
    }

    pub fn asked(&mut self, now_ns: u64) {
        self.asked_ns = now_ns;
    }

    pub fn rows(&self) -> impl Iterator<Item = &Page> {
        self.rows.iter()
    }

    fn of(&self, address: u64) -> Option<u32> {
        self.last.get(&(address / PAGE * PAGE)).and_then(|node| u32::try_from(*node).ok())
    }
}

/// The objects that were accessed in the window and still live.
pub fn objects(profile: &Profile, process: Id, views: &Views, window: &Window, homes: &Homes, is_virtual: bool) -> Vec<ObjectUses> {
    let live = live(profile, process);
    let node_of_cpu: BTreeMap<u32, u32> =
        profile.machine.node_cpus.iter().flat_map(|(node, cpus)| cpus.iter().map(move |cpu| (*cpu, *node))).collect();
    let mut found: BTreeMap<Id, ObjectUses> = BTreeMap::new();
    for access in &window.accesses {
        let Some(object) = live.get(&access.object) else { continue };
        let node = if is_virtual { views.nodes.get(&access.thread) } else { node_of_cpu.get(&access.cpu) };
        let Some(&node) = node else { continue };
        let home = if is_virtual { views.touched.home(object, access.address) } else { homes.of(access.address) };
        let one = Use { time_ns: access.time_ns, address: access.address, thread: access.thread, node, home, cpu_ns: access.cpu_ns };
        found.entry(object.id).or_insert_with(|| views.describe(object)).uses.push(one);
    }
    found.into_values().collect()
}

/// The names and lines of all objects of a process, as an analysis has them.
pub fn names(profile: &Profile, process: Id, analysis: &Analysis) -> BTreeMap<Id, (String, Option<String>)> {
    let own = || profile.objects.iter().filter(|object| object.process == process);
    let by_id: BTreeMap<Id, View> = analysis.objects.iter().map(|view| (view.id, View::of(view))).collect();
    let by_site: BTreeMap<Id, &View> = own().filter_map(|object| Some((object.site?, by_id.get(&object.id)?))).collect();
    let view = |object: &Object| by_id.get(&object.id).or_else(|| by_site.get(&object.site?).copied());
    own()
        .filter_map(|object| {
            let view = view(object)?;
            Some((object.id, (one_line(&view.name).into_owned(), view.line.clone())))
        })
        .collect()
}

fn live(profile: &Profile, process: Id) -> BTreeMap<Id, &Object> {
    let is_live = |object: &&Object| object.process == process && object.died_ns.is_none();
    profile.objects.iter().filter(is_live).map(|object| (object.id, object)).collect()
}

/// What an analysis says of objects, and, on a virtual machine, of the nodes of threads and pages.
#[derive(Default)]
pub struct Views {
    /// Objects that lived at the time of the analysis.
    judged: BTreeSet<Id>,
    by_id: BTreeMap<Id, View>,
    /// It reports one object for several from the same line.
    by_site: BTreeMap<Id, View>,
    nodes: BTreeMap<Id, u32>,
    touched: Touched,
}

#[derive(Clone)]
struct View {
    name: String,
    line: Option<String>,
    page_bytes: u64,
    exempt: Option<String>,
}

impl Views {
    pub fn new(profile: &Profile, process: Id, analysis: &Analysis) -> Self {
        let live = live(profile, process);
        let by_id: BTreeMap<Id, View> = analysis.objects.iter().map(|view| (view.id, View::of(view))).collect();
        let by_site = by_id.iter().filter_map(|(id, view)| Some((live.get(id)?.site?, view.clone()))).collect();
        Self {
            judged: live.into_keys().collect(),
            by_id,
            by_site,
            nodes: threads_of(profile, process).iter().zip(&analysis.threads).map(|(thread, view)| (thread.id, view.node)).collect(),
            touched: Touched::new(&analysis.traffic.objects, |id| {
                analysis.objects.iter().any(|view| view.id == id && are_homes_known(view))
            }),
        }
    }

    /// Whether each thread is on the node that it has in others, if it is in both.
    pub fn are_threads_where(&self, other: &Self) -> bool {
        !other.nodes.is_empty() && self.nodes.iter().all(|(thread, node)| other.nodes.get(thread).is_none_or(|before| before == node))
    }

    /// Whether an object was there when they were made.
    pub fn knows(&self, object: Id) -> bool {
        self.judged.contains(&object)
    }

    fn describe(&self, object: &Object) -> ObjectUses {
        let view = self.by_id.get(&object.id).or_else(|| object.site.and_then(|site| self.by_site.get(&site)));
        let name = view.map(|view| view.name.clone()).or_else(|| object.name.clone());
        ObjectUses {
            id: object.id,
            name: name.map_or_else(|| format!("memory at {:#x}", object.address), |name| one_line(&name).into_owned()),
            line: view.and_then(|view| view.line.clone()),
            start: object.address,
            bytes: object.bytes,
            grain_bytes: view.map_or(PAGE, |view| view.page_bytes.max(PAGE)),
            exempt: view.and_then(|view| view.exempt.clone()),
            uses: Vec::new(),
        }
    }
}

impl View {
    fn of(view: &ObjectView) -> Self {
        let line = view.allocated_at.as_ref().and_then(|at| {
            let file = at.file.as_deref()?;
            Some(format!("{}:{}", one_line(file.rsplit('/').next().unwrap_or(file)), at.line?))
        });
        Self { name: view.name.clone(), line, page_bytes: view.page_bytes, exempt: view.reason.as_ref().and_then(exempt) }
    }
}

/// Whether placing it is of no use, or not this process's business.
fn exempt(reason: &NotJudgedReason) -> Option<String> {
    let is = matches!(
        reason,
        NotJudgedReason::Cached { .. }
            | NotJudgedReason::TouchedPartCached { .. }
            | NotJudgedReason::UsedPartCached { .. }
            | NotJudgedReason::MappedFile
    );
    is.then(|| reason.to_string())
}

/// With a larger part of the accesses to pages of which the first toucher is guessed, and may be another one, nothing is moved.
const MOST_GUESSED: f64 = 0.05;

/// Whether first touches show where an object's pages are.
fn are_homes_known(view: &ObjectView) -> bool {
    let is_touched = view.reason.as_ref().is_none_or(|reason| !reason.is_about_touches());
    is_touched && view.guessed_homes <= MOST_GUESSED
}

/// On a virtual machine, the node of a page is that of its first toucher, as the analysis has it at each sample.
#[derive(Default)]
struct Touched {
    /// By group of objects: positions and nodes.
    homes: Vec<Vec<(f64, u32)>>,
    /// By object: its group, and where it is there.
    places: BTreeMap<Id, (usize, [f64; 2])>,
}

impl Touched {
    /// `is_known`: whether the nodes of an object's pages are known.
    fn new(objects: &[ObjectTraffic], is_known: impl Fn(Id) -> bool) -> Self {
        let mut this = Self::default();
        for (group, object) in objects.iter().filter(|object| is_known(object.id)).enumerate() {
            let mut homes: Vec<(f64, u32)> = object.samples.iter().map(|sample| (sample.position, sample.home)).collect();
            homes.sort_by(|a, b| a.0.total_cmp(&b.0));
            this.homes.push(homes);
            this.places.extend(object.members.iter().map(|member| (member.object, (group, member.range))));
        }
        this
    }

    /// By the nearest sample in the same object.
    fn home(&self, object: &Object, address: u64) -> Option<u32> {
        let &(group, [start, end]) = self.places.get(&object.id)?;
        let offset = address.saturating_sub(object.address) as f64 / object.bytes.max(1) as f64;
        let position = start + offset * (end - start);
        let homes = self.homes.get(group)?;
        let at = homes.partition_point(|(other, _)| *other < position);
        let near = homes[at.saturating_sub(1)..(at + 1).min(homes.len())].iter().filter(|(other, _)| (start..=end).contains(other));
        near.min_by(|a, b| (a.0 - position).abs().total_cmp(&(b.0 - position).abs())).map(|(_, node)| *node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::ObjectKind;
    use firsttouch_model::traffic::{Division, Member, TrafficSample, Work};

    /// Check that of objects that are one variable to the programmer, each has its own homes, and that one without samples has none.
    #[test]
    fn homes_of_each_object() {
        let sample =
            |position: f64, home: u32| TrafficSample { position, round: 0, home, owner: None, serial: false, bytes: vec![(0, 8.0)] };
        let members = (0..3).map(|at| Member { object: 7 + at, range: [at as f64 / 4.0, (at as f64 + 0.9) / 4.0] }).collect();
        let samples = vec![sample(0.26, 1), sample(0.05, 0), sample(0.2, 1), sample(0.4, 1)];
        let (name, even, parts, division) = (String::new(), Vec::new(), None, Division::Owned);
        let group = ObjectTraffic {
            id: 7,
            name,
            bytes: 4096,
            division,
            work: Work::AsSeen,
            has_fine_parts: false,
            even,
            rows: 4,
            members,
            parts,
            samples,
        };
        let touched = Touched::new(&[group], |_| true);
        let home = |id: Id, offset: u64| {
            let (kind, call, name, site, thread) = (ObjectKind::Heap, None, None, None, None);
            let object =
                Object { id, process: 1, kind, call, name, address: 1 << 20, bytes: 1000, born_ns: 0, died_ns: None, site, thread };
            touched.home(&object, (1 << 20) + offset)
        };
        assert_eq!(
            [(7, 0), (7, 400), (7, 999), (8, 0), (8, 999), (9, 500), (10, 0)].map(|(id, at)| home(id, at)),
            [Some(0), Some(0), Some(1), Some(1), Some(1), None, None]
        );
    }
}
