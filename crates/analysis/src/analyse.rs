//! The whole step: profile -> analysis.

use crate::coverage::Clock;
use crate::evidence::final_node;
use crate::findings::{Case, Context, SERIAL};
use crate::groups::{Group, groups};
use crate::judge::{Judge, Subject, counted_accesses};
use crate::matrix::matrix;
use crate::names::{Language, names};
use crate::notes::{Doubts, notes};
use crate::places::Places;
use crate::report::{
    Analysis, EvidenceView, FirstTouchView, Interval, LostView, MachineView, NotJudged, ObjectView, REPORT_SCHEMA, ThreadView,
};
use crate::residents::Residents;
use crate::stacks::stacks;
use crate::strip::strip;
use crate::threads::Threads;
use crate::touches::{TouchIndex, TouchReader};
use crate::unrecorded::Unrecorded;
use crate::uses::{Hit, Reader, Uses};
use crate::{Sources, Target};
use firsttouch_domain::Estimate;
use firsttouch_profile::{Profile, meta};
use std::collections::{HashMap, HashSet};

/// Objects without any access seen that are listed, at most (the largest).
const UNUSED_LISTED: usize = 200;

/// Judges a profile on a target.
#[must_use]
pub fn analyse(profile: &Profile, target: &Target, sources: &dyn Sources) -> Analysis {
    let threads = Threads::new(profile, target);
    let groups = groups(profile);
    let residents = Residents::new(profile);
    let index = TouchIndex::new(profile, &threads);
    let mut touch_reader = TouchReader { profile, threads: &threads, index: &index, residents: &residents, owned: HashMap::new() };
    let real_nodes = (!target.virtual_machine).then_some(target.nodes.max(1));
    let reader = Reader { profile, threads: &threads, groups: &groups, residents: &residents, real_nodes, clock: Clock::new(profile) };
    let uses = reader.read(&mut touch_reader);
    let places = Places { profile, sources };
    let names = names(profile, &groups, &places);
    let judge = Judge { profile, target, threads: &threads, design: &uses.design };
    let subjects: Vec<Subject> =
        groups.iter().enumerate().map(|(g, group)| judge.measure(g, group, &uses.hits[g], uses.summaries[g].clone())).collect();
    let counted = || subjects.iter().filter(|s| s.counts).flat_map(|s| &uses.hits[s.group]);
    let remote = judge.remote(counted());
    let builder = Builder { profile, threads: &threads, uses: &uses, places: &places, names: &names };
    let context = Context {
        profile,
        target,
        threads: &threads,
        design: &uses.design,
        places: &places,
        counted: counted_accesses(&uses.design, &subjects),
        groups: &groups,
        names: &names,
    };
    let (mut objects, mut findings, mut merged, mut unlisted) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for subject in listed(&subjects, &groups, &stacks(profile), &mut unlisted) {
        let group = &groups[subject.group];
        let view = builder.object(subject, group);
        let object = &profile.objects[group.representative];
        if let Some(arrays) = subject.arrays_in_mapping(object.kind).filter(|_| subject.reason.is_none()) {
            merged.push((view.name.clone(), arrays));
        }
        findings.extend(context.find(&Case { subject, group, hits: &uses.hits[subject.group], object, view: &view }));
        objects.push(view);
    }
    objects.sort_by(|a, b| {
        b.access_share
            .unwrap_or(0.0)
            .total_cmp(&a.access_share.unwrap_or(0.0))
            .then(b.total_bytes.cmp(&a.total_bytes))
            .then(a.id.cmp(&b.id))
    });
    findings.sort_by(|a, b| b.remote_share.total_cmp(&a.remote_share).then(a.object.cmp(&b.object)));
    let not_judged = objects.iter().filter_map(not_judged).collect();
    let unrecorded = (target.nodes > 1 && !threads.alone()).then(|| Unrecorded::of(profile, &residents)).flatten();
    Analysis {
        schema: REPORT_SCHEMA.to_owned(),
        command: command(profile),
        exit_code: profile.meta.get(meta::EXIT_CODE).and_then(|text| text.parse().ok()),
        wall_s: wall_s(profile),
        machine: MachineView { name: target.name.clone(), nodes: target.nodes, virtual_machine: target.virtual_machine },
        threads: thread_views(&threads),
        evidence: evidence(profile),
        remote_fraction: remote.map(|r| r.value),
        remote_interval: remote.map(interval),
        remote_samples: remote.map_or(0, |r| r.samples),
        matrix: matrix(&uses.design, &threads, target.nodes, counted()),
        prediction: None,
        objects,
        findings,
        not_judged,
        notes: notes(&Doubts { profile, target, threads: &threads, uses: &uses, index: &index, unlisted, unrecorded, merged }),
        unrecorded: unrecorded.map(|u| u.part),
        lost: profile.lost.iter().map(|l| LostView { source: l.source.clone(), reason: l.reason.clone(), count: l.count }).collect(),
    }
}

/// All groups with accesses, and the largest of the others; stacks without accesses are no objects.
fn listed<'a>(subjects: &'a [Subject], groups: &[Group], stacks: &HashSet<usize>, unlisted: &mut usize) -> Vec<&'a Subject> {
    let (used, mut unused): (Vec<&Subject>, Vec<&Subject>) = subjects.iter().partition(|s| s.hit_windows > 0);
    unused.retain(|s| !stacks.contains(&groups[s.group].representative));
    unused.sort_by_key(|s| std::cmp::Reverse(groups[s.group].extent()));
    *unlisted = unused.len().saturating_sub(UNUSED_LISTED);
    unused.truncate(UNUSED_LISTED);
    used.into_iter().chain(unused).collect()
}

fn interval(estimate: Estimate) -> Interval {
    [estimate.low, estimate.high]
}

struct Builder<'a> {
    profile: &'a Profile,
    threads: &'a Threads,
    uses: &'a Uses,
    places: &'a Places<'a>,
    names: &'a [(String, usize)],
}

impl Builder<'_> {
    fn object(&self, subject: &Subject, group: &Group) -> ObjectView {
        let object = &self.profile.objects[group.representative];
        let hits: &[Hit] = &self.uses.hits[subject.group];
        let (name, ordinal) = self.names[subject.group].clone();
        let allocated_at = self.places.place(object.site);
        let first_touch = self.first_touch(subject, object.call.as_deref());
        let file = |place: Option<&crate::Place>| place.and_then(|p| p.file.as_deref()).and_then(Language::of);
        let language = file(allocated_at.as_ref()).or_else(|| file(first_touch.at.first()));
        let weighed = hits.iter().flat_map(|h| h.sites.iter().map(|&(site, rate)| (site, rate * self.uses.design.weight(h.draw))));
        ObjectView {
            id: object.id,
            name,
            bytes: object.bytes,
            count: group.members.len(),
            total_bytes: if group.growth { object.bytes } else { group.extent() },
            kind: object.kind.as_str().to_owned(),
            call: object.call.clone(),
            process: object.process,
            ordinal,
            language: language.map(|l| l.as_str().to_owned()),
            allocated_at,
            access_share: subject.access_share.map(|s| s.value),
            access_share_interval: subject.access_share.map(interval),
            windows: self.uses.design.windows(subject.group) as u64,
            hit_windows: subject.hit_windows as u64,
            remote_fraction: subject.remote.map(|r| r.value),
            remote_interval: subject.remote.map(interval),
            first_touch,
            used_by_thread: subject.used_by.iter().map(|s| s.map_or(0.0, |s| s.value)).collect(),
            used_by_thread_interval: subject.used_by.iter().map(|s| s.map_or([0.0, 1.0], interval)).collect(),
            used_by_thread_samples: subject.traps.clone(),
            used_at: self.places.ranked(weighed),
            partition: subject.partition.kind,
            page_bytes: subject.touch.page_bytes,
            judged: subject.reason.is_none(),
            reason: subject.reason.clone(),
            map: strip(group, hits, self.threads, |position| final_node(group, &self.uses.touches, self.threads, position)),
        }
    }

    fn first_touch(&self, subject: &Subject, call: Option<&str>) -> FirstTouchView {
        let touch = &subject.touch;
        let site = touch.main_site();
        let frames = self.places.frames(site);
        let serial = touch.main_lane().is_some_and(|(_, share)| share >= SERIAL);
        let cause = if touch.by_kernel >= 0.5 && touch.sites.is_empty() {
            Some("io".to_owned())
        } else {
            (!frames.is_empty()).then(|| self.places.sources.cause(frames, call)).filter(|c| !c.is_empty())
        };
        // One thread writes first what calloc or realloc gave it: those who wonder look for the call.
        let cause = match (cause.as_deref(), call) {
            (Some("loop"), Some("calloc" | "realloc")) if serial => call.map(str::to_owned),
            _ => cause,
        };
        FirstTouchView {
            by_thread: touch.shares(self.threads.list.len()),
            at: self.places.ranked(touch.sites.iter().map(|(&site, &pages)| (site, pages))),
            partition: touch.partition.kind,
            cause,
            samples: touch.records as u64,
            by_kernel: touch.by_kernel,
            recycled: touch.recycled,
        }
    }
}

fn not_judged(object: &ObjectView) -> Option<NotJudged> {
    let reason = object.reason.clone()?;
    Some(NotJudged { id: object.id, name: object.name.clone(), bytes: object.total_bytes, count: object.count, reason })
}

fn command(profile: &Profile) -> Vec<String> {
    let Some(text) = profile.meta.get(meta::COMMAND) else { return Vec::new() };
    serde_json::from_str(text).unwrap_or_else(|_| vec![text.clone()])
}

fn wall_s(profile: &Profile) -> f64 {
    let number = |key: &str| profile.meta.get(key).and_then(|text| text.parse::<u64>().ok());
    number(meta::START_NS).zip(number(meta::END_NS)).map_or(0.0, |(start, end)| end.saturating_sub(start) as f64 / 1e9)
}

fn thread_views(threads: &Threads) -> Vec<ThreadView> {
    let view = |(index, t): (usize, &crate::threads::Thread)| ThreadView {
        index,
        node: t.node,
        name: t.name.clone(),
        slot: t.lane,
        process: t.process,
        omp_number: t.omp_number,
    };
    threads.list.iter().enumerate().map(view).collect()
}

fn evidence(profile: &Profile) -> Vec<EvidenceView> {
    let lost = |source: &str| profile.lost.iter().filter(|l| l.source == source).fold(0u64, |sum, l| sum.saturating_add(l.count));
    let view = |e: &firsttouch_profile::Evidence| EvidenceView {
        source: e.source.clone(),
        available: e.available,
        samples: e.samples,
        lost: lost(&e.source),
        detail: e.detail.clone(),
    };
    profile.evidence.iter().map(view).collect()
}
