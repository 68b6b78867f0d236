//! The parts of a report: objects, threads, the kernel's counters, the sources of evidence.

use crate::Target;
use crate::estimator::Design;
use crate::evidence::{Evidence, Hit, Sampled};
use crate::findings::{SERIAL, figure};
use crate::groups::Group;
use crate::judge::Subject;
use crate::names::{Language, ObjectName};
use crate::object_map::object_map;
use crate::report::{
    CodeLocation, CounterView, EvidenceView, FirstTouchView, Interval, KernelView, NodeMemoryView, NotJudged, ObjectView, ResidentView,
    ThreadView,
};
use crate::residents::{Moves, Residents};
use crate::source_code::CodeLocations;
use crate::threads::Threads;
use crate::touch_summary::{Record, TouchSummary, final_node};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Counter, Id, Policy, Profile};
use firsttouch_model::{Estimate, TouchCause};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// A piece of the map, as a part of the object, on each side of its middle.
const PARTS_OF_MAP: u64 = 64;
/// The number of members of a group whose pages are looked up.
const MOST_MEMBERS: usize = 4096;
/// Who makes the first touches at a place with a smaller part of them does not matter.
const PART_OF_A_PLACE: f64 = 0.05;
/// With fewer first touches at a place, it is not said who made them.
const LEAST_AT_A_PLACE: usize = 8;

pub fn interval(estimate: Estimate) -> Interval {
    [estimate.low, estimate.high]
}

/// Makes the views of objects.
pub struct Builder<'a> {
    pub profile: &'a Profile,
    pub target: &'a Target,
    pub residents: &'a Residents,
    pub threads: &'a Threads,
    pub uses: &'a Evidence,
    pub places: &'a CodeLocations<'a>,
}

impl Builder<'_> {
    /// Where the pages of a group's members were. Empty on a virtual machine.
    #[must_use]
    pub fn moves(&self, group: &Group) -> Moves {
        let mut moves = Moves::default();
        if !self.target.virtual_machine {
            for &member in group.members.iter().take(MOST_MEMBERS) {
                moves.add(&self.residents.moves(&self.profile.objects[member]));
            }
        }
        moves
    }

    /// `hits`: the samples on the group by the source of its figures.
    #[must_use]
    pub fn object(&self, subject: &Subject, group: &Group, hits: &[Hit], name: &ObjectName, moves: &Moves) -> ObjectView {
        let object = &self.profile.objects[group.representative];
        let sampled = self.uses.of(subject.source);
        let allocated_at = self.places.place(object.site);
        let first_touch = self.first_touch(subject, object.call.as_deref());
        let file = |place: Option<&crate::CodeLocation>| place.and_then(|p| p.file.as_deref()).and_then(Language::of);
        let language = file(allocated_at.as_ref()).or_else(|| file(first_touch.at.first()));
        let is_interleaved = self.profile.policies.get(&object.id).is_some_and(Policy::is_interleaved);
        ObjectView {
            id: object.id,
            name: name.shown.clone(),
            bytes: group.pool.as_ref().map_or(object.bytes, |pool| pool.block_bytes),
            count: group.pool.as_ref().map_or(group.members.len(), |pool| usize::try_from(pool.blocks).unwrap_or(usize::MAX)),
            total_bytes: if group.growth { object.bytes } else { group.extent() },
            kind: object.kind,
            call: object.call.clone(),
            process: object.process,
            is_shareable: !group.shared.is_empty(),
            shared_by: Some(group.processes()).filter(|&processes| processes > 1),
            library: name.library.clone(),
            ordinal: name.ordinal,
            language: language.map(|l| l.as_str().to_owned()),
            allocated_at,
            access_share: subject.access_share.map(|s| s.value),
            access_share_interval: subject.access_share.map(interval),
            time_share: subject.time_share.map(|s| s.value),
            time_share_interval: subject.time_share.map(interval),
            evidence: subject.source.name(),
            windows: self.uses.named(&EvidenceSource::Watch).map_or(0, |watch| watch.found(subject.group)),
            hit_windows: self.uses.named(&EvidenceSource::Watch).map_or(0, |watch| watch.hits[subject.group].len() as u64),
            hints: self.uses.named(&EvidenceSource::Hint).map_or(0, |hint| hint.found(subject.group)),
            remote_fraction: subject.remote.map(|r| r.value),
            remote_interval: subject.remote.map(interval),
            remote_interval_by_samples: subject.by_samples.map(interval).filter(|own| subject.remote.map(interval) != Some(*own)),
            speed_error: subject.speed_error,
            guessed_homes: if subject.is_same_anywhere { 0.0 } else { subject.home_error },
            is_same_anywhere: subject.is_same_anywhere,
            is_at_users: subject.is_at_users,
            is_spread: subject.is_spread,
            first_touch,
            used_by_thread: subject.used_by.map(|s| s.map_or(0.0, |s| s.value)),
            used_by_thread_interval: subject.used_by.map(|s| s.map_or([0.0, 1.0], interval)),
            used_by_thread_samples: subject.traps.clone(),
            used_at: self.used_at(hits, &sampled.design),
            partition: subject.partition.kind,
            partition_period: subject.partition.fine,
            page_bytes: subject.touch.page_bytes,
            policy: self
                .profile
                .policies
                .get(&object.id)
                .filter(|policy| !self.target.virtual_machine || policy.is_interleaved())
                .map(Policy::in_words),
            resident: resident_view(moves, self.target.nodes),
            judged: subject.reason.is_none(),
            reason: subject.reason.clone(),
            together: Vec::new(),
            map: object_map(group, hits, self.threads, &sampled.design, self.target.virtual_machine && !is_interleaved, |position| {
                self.node_at(group, position)
            }),
        }
    }

    /// The places that use an object. Loops that are compared with each other have the errors of their speeds.
    fn used_at(&self, hits: &[Hit], design: &Design) -> Vec<CodeLocation> {
        let weighed = || hits.iter().flat_map(|hit| hit.sites.iter().map(|&(site, rate)| (hit.draw, site, rate * design.weight(hit.draw))));
        let mut list = self.places.estimated(weighed().map(|(_, site, weight)| (site, weight)));
        let whole: Vec<(usize, f64)> = weighed().map(|(draw, _, weight)| (draw, weight)).collect();
        for place in &mut list {
            let Some([low, high]) = place.share_interval else { continue };
            let mut known: HashMap<Option<Id>, bool> = HashMap::new();
            let mut is_here =
                |site| *known.entry(site).or_insert_with(|| self.places.place(site).is_some_and(|one| one.is_same_line(place)));
            let part: Vec<(usize, f64)> = weighed().filter(|(_, site, _)| is_here(*site)).map(|(draw, _, weight)| (draw, weight)).collect();
            let share = Estimate { value: place.share, low, high, samples: 0 }.widened_by(design.doubt_of(&part, &whole));
            place.share_interval = Some([share.low, share.high]);
        }
        list
    }

    /// The node of a position that no sample shows, by first touches; `None` of memory that was never touched.
    fn node_at(&self, group: &Group, position: u64) -> Option<u32> {
        if let [only] = group.members[..] {
            let object = &self.profile.objects[only];
            let reach = group.extent() / PARTS_OF_MAP;
            if self.residents.are_absent(object, object.address.saturating_add(position), reach) {
                return None;
            }
        }
        final_node(group, &self.uses.touches, self.threads, position)
    }

    /// The thread that made nearly all of the first touches at a place, if enough of them are known.
    fn alone_at(&self, touch: &TouchSummary, place: &CodeLocation) -> Option<usize> {
        let is_there = |site: &Option<Id>| self.places.place(*site).is_some_and(|one| one.is_same_line(place));
        let sites: HashSet<Option<Id>> = touch.sites.keys().copied().filter(is_there).collect();
        let records: Vec<Record> = touch.placed.iter().filter(|record| sites.contains(&record.site)).copied().collect();
        let part = touch.of_part(records.iter().copied());
        let is_alone = records.len() >= LEAST_AT_A_PLACE && part.main_worker().is_some_and(|(_, share)| share >= SERIAL);
        part.main_thread().filter(|_| is_alone)
    }

    #[must_use]
    pub fn first_touch(&self, subject: &Subject, call: Option<&str>) -> FirstTouchView {
        let touch = &subject.touch;
        let site = touch.main_site();
        let frames = self.places.frames(site);
        let serial = touch.main_worker().is_some_and(|(_, share)| share >= SERIAL);
        let cause = if touch.populated.is_some() {
            touch.populated
        } else if touch.by_kernel >= 0.5 && touch.sites.is_empty() {
            Some(TouchCause::Io)
        } else {
            (!frames.is_empty()).then(|| self.places.sources.cause(frames, call))
        };
        // The touching code is a loop, but a user whose object came from calloc or realloc looks for that call: name the call.
        let cause = match cause {
            Some(TouchCause::Loop) if serial => call.and_then(TouchCause::of_call).or(cause),
            _ => cause,
        };
        let pages = touch.sites.iter().map(|(&site, &pages)| (site, pages));
        let all: f64 = touch.sites.values().sum();
        // Where each page has a record, they are counted.
        let is_counted = all <= touch.samples as f64;
        let mut at = if is_counted { self.places.ranked(pages) } else { self.places.sampled(pages, touch.samples as f64) };
        if !serial && at.len() > 1 {
            at.iter_mut().filter(|place| place.share >= PART_OF_A_PLACE).for_each(|place| place.alone = self.alone_at(touch, place));
        }
        FirstTouchView {
            by_thread: touch.shares(self.threads.list.len()).into(),
            at,
            partition: touch.partition.kind,
            cause,
            samples: touch.samples,
            by_kernel: touch.by_kernel,
            recycled: touch.recycled,
            of_misplaced_part: touch.of_misplaced_part,
            serial_allocations: touch.serial_rows.map(|rows| rows as u64),
        }
    }
}

#[must_use]
pub fn not_judged(object: &ObjectView) -> Option<NotJudged> {
    let reason = object.reason.clone()?;
    Some(NotJudged { id: object.id, name: object.name.clone(), bytes: object.total_bytes, count: object.count, reason })
}

#[must_use]
pub fn thread_views(profile: &Profile, target: &Target, threads: &Threads) -> Vec<ThreadView> {
    let rows: HashMap<Id, &firsttouch_model::rows::Thread> = profile.threads.iter().map(|t| (t.id, t)).collect();
    let sharing: HashSet<Id> = threads.list.iter().filter(|t| t.team != t.turn).map(|t| t.team).collect();
    let taking_turns: HashSet<Id> = threads.list.iter().filter(|t| t.turn != t.process).map(|t| t.turn).collect();
    let view = |(index, t): (usize, &crate::threads::Thread)| {
        let row = rows.get(&t.id).filter(|_| !target.virtual_machine);
        ThreadView {
            index,
            node: t.node,
            idle: t.idle,
            name: t.name.clone(),
            slot: t.slot,
            process: t.process,
            turn: Some(t.turn).filter(|turn| taking_turns.contains(turn)),
            team: Some(t.team).filter(|team| sharing.contains(team)),
            omp_number: t.omp_number,
            allowed_cpus: row.and_then(|row| row.allowed_cpus.clone()),
            seen_on_nodes: if target.virtual_machine { Vec::new() } else { threads.looks(profile, t.id, target.nodes) },
            node_moves: row.map_or(0, |row| row.node_moves),
        }
    };
    threads.list.iter().enumerate().map(view).collect()
}

/// The shares of the pages by node, and the parts of the pages queried more than once that moved and returned.
fn resident_view(moves: &Moves, nodes: usize) -> Option<ResidentView> {
    if moves.pages == 0 {
        return None;
    }
    let shares = |by_node: &BTreeMap<u32, u64>| {
        let share = |node: usize| by_node.get(&(node as u32)).copied().unwrap_or(0) as f64 / moves.pages as f64;
        (0..nodes).map(share).collect()
    };
    let figure = |part| moves.part(part).map(|e| figure(e, EvidenceSource::Resident));
    Some(ResidentView {
        pages: moves.pages,
        nodes_first: shares(&moves.first),
        nodes_last: shares(&moves.last),
        moved: figure(moves.moved),
        returned: figure(moves.returned),
    })
}

#[must_use]
pub fn kernel(profile: &Profile) -> Option<KernelView> {
    if profile.counters.is_empty() {
        return None;
    }
    let is_memory = |c: &&Counter| c.name.starts_with("memory_");
    let of_node = |node: u32, name: &str| profile.counters.iter().find(|c| c.node == Some(node) && c.name == name);
    let nodes = profile.machine.node_cpus.keys().filter_map(|&node| {
        let (total, free) = (of_node(node, "memory_total_bytes")?, of_node(node, "memory_free_bytes")?);
        Some(NodeMemoryView { node, total_bytes: total.at_end, free_at_start: free.at_start, free_at_end: free.at_end })
    });
    let grown = profile.counters.iter().filter(|c| !is_memory(c) && c.growth() > 0);
    Some(KernelView {
        numa_balancing: profile.machine.numa_balancing,
        counters: grown.map(|c| CounterView { name: c.name.clone(), node: c.node, growth: c.growth() }).collect(),
        nodes: nodes.collect(),
    })
}

#[must_use]
pub fn evidence(profile: &Profile, uses: &Evidence) -> Vec<EvidenceView> {
    let view = |e: &firsttouch_model::rows::Evidence| {
        let source = EvidenceSource::from(e.source.as_str());
        EvidenceView {
            available: e.available,
            // The profile counts every fault on a mapped page, but some of them were writes; prefer the number of hints found.
            samples: uses.named(&source).and_then(Sampled::all_found).unwrap_or(e.samples),
            lost: profile.lost_by(&source),
            detail: e.detail.clone(),
            source,
        }
    };
    profile.evidence.iter().map(view).collect()
}
