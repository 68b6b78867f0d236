//! The whole step: profile -> analysis.

use crate::code_locations::CodeLocations;
use crate::evidence::{Evidence, Hit, Reader, SOURCES, Sampled, Source, SourceRef, derived_touches};
use crate::faults::Faults;
use crate::findings::{Case, Context, Program, SERIAL, figure};
use crate::groups::{Group, groups};
use crate::judge::{Judge, Subject, Usage, counted_accesses};
use crate::matrix::matrix;
use crate::names::{Language, ObjectName, names};
use crate::notes::{NoteContext, notes};
use crate::object_map::object_map;
use crate::partition::{MIN_UNITS, Partition, PartitionKind, Sight};
use crate::report::{
    Analysis, CounterView, EvidenceView, FirstTouchView, Interval, KernelView, LostView, MachineView, NodeMemoryView, NotJudged,
    ObjectView, ResidentView, ThreadView,
};
use crate::residents::{Moves, Residents};
use crate::stacks::stacks;
use crate::threads::Threads;
use crate::touch_index::TouchIndex;
use crate::touch_summary::final_node;
use crate::touches::TouchReader;
use crate::traffic::traffic;
use crate::unowned_memory::Unrecorded;
use crate::{Sources, Target};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Counter, Id, Profile};
use firsttouch_model::{Estimate, TouchCause};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// The number of objects without observed accesses that are listed; the largest are kept.
const UNUSED_LISTED: usize = 200;

/// Memory counts as written if at least one of so many samples writes it.
const WRITTEN: usize = 10;
/// The number of members of a group whose pages are looked up.
const MOST_MEMBERS: usize = 4096;

/// Judges a profile on a target.
#[must_use]
pub fn analyse(profile: &Profile, target: &Target, sources: &dyn Sources) -> Analysis {
    analyse_by(SOURCES, profile, target, sources)
}

/// As `analyse`, with the given sources of evidence.
pub(crate) fn analyse_by(list: &[&'static dyn Source], profile: &Profile, target: &Target, sources: &dyn Sources) -> Analysis {
    let derived = derived_touches(profile).map(|first_touches| Profile { first_touches, ..profile.clone() });
    let profile = derived.as_ref().unwrap_or(profile);
    let threads = Threads::new(profile, target);
    let groups = groups(profile);
    let residents = Residents::new(profile);
    let faults = Faults::new(profile);
    let index = TouchIndex::new(profile, &threads);
    let mut touch_reader = TouchReader::new(profile, &threads, &index, &residents, &faults);
    let uses = Reader::new(profile, target, &threads, &groups, &residents).read(list, &mut touch_reader);
    let places = CodeLocations { profile, sources };
    let names = names(profile, &groups, &places);
    let judge = |source| Judge { profile, target, threads: &threads, design: &uses.of(source).design, source };
    let subjects: Vec<Subject> = groups.iter().enumerate().filter_map(|(g, group)| subject(&judge, &uses, g, group)).collect();
    let remote_by = |source: SourceRef| {
        let design = &uses.of(source).design;
        let counted = || subjects.iter().filter(|subject| subject.counts);
        let guessed: f64 = counted().map(|subject| design.accesses(subject.group) * subject.touch.home_error).sum();
        let all: f64 = counted().map(|subject| design.accesses(subject.group)).sum();
        let remote = judge(source).remote(counted_hits(&subjects, &uses, source))?;
        Some(remote.widened(guessed / all.max(f64::MIN_POSITIVE)))
    };
    let (source, remote) = uses.best(remote_by, |remote| *remote).unzip();
    let remote = remote.flatten();
    let builder = Builder { profile, target, threads: &threads, uses: &uses, places: &places, names: &names, residents: &residents };
    let context = Context {
        profile,
        target,
        threads: &threads,
        uses: &uses,
        places: &places,
        counted: &|source| counted_accesses(&uses.of(source).design, &subjects),
        groups: &groups,
        names: &names,
    };
    let (mut objects, mut findings, mut merged, mut unlisted) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let (mut moves, mut variables) = (Moves::default(), BTreeMap::new());
    for subject in listed(&subjects, &groups, &stacks(profile), &mut unlisted) {
        let group = &groups[subject.group];
        let own = builder.moves(group);
        if subject.counts {
            moves.add(&own);
        }
        let view = builder.object(subject, group, &own);
        let object = &profile.objects[group.representative];
        variables.extend(object.site.zip(names[subject.group].storable_variable().map(str::to_owned)));
        if let Some(arrays) = subject.arrays_in_mapping(object.kind).filter(|_| subject.reason.is_none()) {
            merged.push((view.name.clone(), arrays));
        }
        let hits = &uses.of(subject.source).hits[subject.group];
        findings.extend(context.find(&Case { subject, group, hits, object, view: &view, moves: &own }));
        objects.push(view);
    }
    let all = Program { remote, source, moves: &moves, findings: &findings };
    let of_program = context.find_in_program(&all);
    findings.extend(of_program);
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
        command: profile.meta.command.clone(),
        exit_code: profile.meta.exit_code,
        wall_s: profile.meta.wall_s(),
        machine: MachineView { name: target.name.clone(), nodes: target.nodes, virtual_machine: target.virtual_machine },
        threads: thread_views(profile, target, &threads),
        evidence: evidence(profile, &uses),
        remote_fraction: remote.map(|r| r.value),
        remote_interval: remote.map(interval),
        remote_samples: remote.map_or(0, |r| r.samples),
        remote_evidence: source.filter(|_| remote.is_some()).map(|source| source.name()),
        matrix: source
            .map_or_else(Vec::new, |source| matrix(&uses.of(source).design, target.nodes, counted_hits(&subjects, &uses, source))),
        objects,
        findings,
        not_judged,
        kernel: kernel(profile),
        notes: notes(NoteContext { profile, target, threads: &threads, uses: &uses, index: &index, unlisted, unrecorded, merged }),
        unrecorded: unrecorded.map(|u| u.part),
        lost: profile
            .lost
            .iter()
            .map(|l| LostView { source: l.source.as_str().into(), reason: l.reason.clone(), count: l.count })
            .collect(),
        traffic: traffic(profile, &threads, &uses, &groups, &subjects, &names),
        variables,
    }
}

/// How the threads divide a group. Memory that several threads write all the time is not used in full by each of them, whatever its
/// watchpoints suggest: they would overwrite each other's results.
fn partition<'a>(judge: &impl Fn(SourceRef) -> Judge<'a>, uses: &Evidence, g: usize, group: &Group, source: SourceRef) -> Partition {
    let partition = open_partition(judge, uses, g, group, source);
    let is_written = uses.sources().any(|source| {
        let known: Vec<bool> = uses.of(source).hits[g].iter().filter_map(|hit| hit.writes).collect();
        known.len() >= MIN_UNITS && known.iter().filter(|writes| **writes).count() * WRITTEN >= known.len()
    });
    if partition.kind == PartitionKind::Shared && is_written { Partition::dealt_out_anew() } else { partition }
}

/// How the threads divide a group. A source that shows one of the threads at an address cannot tell memory that all threads use in full from
/// memory that is dealt out anew each time. A source that shows all of them can. Without one, memory that is only read counts as
/// used in full: either way a copy for each node, or pages in turn on all nodes, are the remedies.
fn open_partition<'a>(judge: &impl Fn(SourceRef) -> Judge<'a>, uses: &Evidence, g: usize, group: &Group, source: SourceRef) -> Partition {
    let hits = &uses.of(source).hits[g];
    let own = judge(source).partition(group, hits);
    if own.kind != PartitionKind::Irregular || source.sight() != Sight::One {
        return own;
    }
    let seeing = uses.sources().filter(|other| other.sight() == Sight::All && uses.of(*other).hits[g].len() >= MIN_UNITS);
    let others = seeing.map(|other| judge(other).partition(group, &uses.of(other).hits[g]));
    let is_open = |partition: &Partition| matches!(partition.kind, PartitionKind::Shared | PartitionKind::Irregular);
    others.into_iter().find(is_open).unwrap_or_else(|| {
        let is_read_only = hits.iter().all(|hit| hit.writes == Some(false));
        if is_read_only { Partition::shared() } else { own }
    })
}

/// Measures one group with the most informative source.
fn subject<'a>(judge: &impl Fn(SourceRef) -> Judge<'a>, uses: &Evidence, g: usize, group: &Group) -> Option<Subject> {
    let (source, usage) = uses.best(|source| judge(source).usage(&uses.of(source).hits[g]), Usage::main)?;
    let partition = partition(judge, uses, g, group, source);
    let subject = judge(source).measure(g, group, &uses.of(source).hits[g], usage, Some(partition), Rc::clone(&uses.summaries[g]));
    // One source gives the access share of every object, so that the shares can be compared.
    let share = uses.volumes().and_then(|volumes| uses.of(volumes).design.share(g));
    Some(Subject { access_share: share.or(subject.access_share), ..subject })
}

/// The samples of one source on the groups that count in the remote fraction and the matrix.
fn counted_hits<'a>(subjects: &'a [Subject], uses: &'a Evidence, source: SourceRef) -> impl Iterator<Item = &'a Hit> {
    subjects.iter().filter(|s| s.counts).flat_map(move |s| &uses.of(source).hits[s.group])
}

/// All groups with accesses, and the largest of the others. Stacks of threads without accesses are left out.
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
    target: &'a Target,
    residents: &'a Residents,
    threads: &'a Threads,
    uses: &'a Evidence,
    places: &'a CodeLocations<'a>,
    names: &'a [ObjectName],
}

impl Builder<'_> {
    /// Where the pages of a group's members were. Empty on a virtual machine.
    fn moves(&self, group: &Group) -> Moves {
        let mut moves = Moves::default();
        if !self.target.virtual_machine {
            for &member in group.members.iter().take(MOST_MEMBERS) {
                moves.add(&self.residents.moves(&self.profile.objects[member]));
            }
        }
        moves
    }

    fn object(&self, subject: &Subject, group: &Group, moves: &Moves) -> ObjectView {
        let object = &self.profile.objects[group.representative];
        let sampled = self.uses.of(subject.source);
        let hits: &[Hit] = &sampled.hits[subject.group];
        let name = &self.names[subject.group];
        let allocated_at = self.places.place(object.site);
        let first_touch = self.first_touch(subject, object.call.as_deref());
        let file = |place: Option<&crate::CodeLocation>| place.and_then(|p| p.file.as_deref()).and_then(Language::of);
        let language = file(allocated_at.as_ref()).or_else(|| file(first_touch.at.first()));
        let weighed = hits.iter().flat_map(|h| h.sites.iter().map(|&(site, rate)| (site, rate * sampled.design.weight(h.draw))));
        ObjectView {
            id: object.id,
            name: name.shown.clone(),
            bytes: object.bytes,
            count: group.members.len(),
            total_bytes: if group.growth { object.bytes } else { group.extent() },
            kind: object.kind,
            call: object.call.clone(),
            process: object.process,
            ordinal: name.ordinal,
            language: language.map(|l| l.as_str().to_owned()),
            allocated_at,
            access_share: subject.access_share.map(|s| s.value),
            access_share_interval: subject.access_share.map(interval),
            evidence: subject.source.name(),
            windows: self.uses.named(&EvidenceSource::Watch).map_or(0, |watch| watch.found(subject.group)),
            hit_windows: self.uses.named(&EvidenceSource::Watch).map_or(0, |watch| watch.hits[subject.group].len() as u64),
            hints: self.uses.named(&EvidenceSource::Hint).map_or(0, |hint| hint.found(subject.group)),
            remote_fraction: subject.remote.map(|r| r.value),
            remote_interval: subject.remote.map(interval),
            first_touch,
            used_by_thread: subject.used_by.iter().map(|s| s.map_or(0.0, |s| s.value)).collect(),
            used_by_thread_interval: subject.used_by.iter().map(|s| s.map_or([0.0, 1.0], interval)).collect(),
            used_by_thread_samples: subject.traps.clone(),
            used_at: self.places.ranked(weighed),
            partition: subject.partition.kind,
            page_bytes: subject.touch.page_bytes,
            policy: self.profile.policies.get(&object.id).map(|p| p.policy.clone()).filter(|_| !self.target.virtual_machine),
            resident: resident_view(moves, self.target.nodes),
            judged: subject.reason.is_none(),
            reason: subject.reason.clone(),
            map: object_map(group, hits, self.threads, |position| final_node(group, &self.uses.touches, self.threads, position)),
        }
    }

    fn first_touch(&self, subject: &Subject, call: Option<&str>) -> FirstTouchView {
        let touch = &subject.touch;
        let site = touch.main_site();
        let frames = self.places.frames(site);
        let serial = touch.main_worker().is_some_and(|(_, share)| share >= SERIAL);
        let cause = if touch.by_kernel >= 0.5 && touch.sites.is_empty() {
            Some(TouchCause::Io)
        } else {
            (!frames.is_empty()).then(|| self.places.sources.cause(frames, call))
        };
        // The touching code is a loop, but a user whose object came from calloc or realloc looks for that call: name the call.
        let cause = match cause {
            Some(TouchCause::Loop) if serial => call.and_then(TouchCause::of_call).or(cause),
            _ => cause,
        };
        FirstTouchView {
            by_thread: touch.shares(self.threads.list.len()),
            at: self.places.ranked(touch.sites.iter().map(|(&site, &pages)| (site, pages))),
            partition: touch.partition.kind,
            cause,
            samples: touch.samples,
            by_kernel: touch.by_kernel,
            recycled: touch.recycled,
        }
    }
}

fn not_judged(object: &ObjectView) -> Option<NotJudged> {
    let reason = object.reason.clone()?;
    Some(NotJudged { id: object.id, name: object.name.clone(), bytes: object.total_bytes, count: object.count, reason })
}

fn thread_views(profile: &Profile, target: &Target, threads: &Threads) -> Vec<ThreadView> {
    let rows: HashMap<Id, &firsttouch_model::rows::Thread> = profile.threads.iter().map(|t| (t.id, t)).collect();
    let view = |(index, t): (usize, &crate::threads::Thread)| {
        let row = rows.get(&t.id).filter(|_| !target.virtual_machine);
        ThreadView {
            index,
            node: t.node,
            name: t.name.clone(),
            slot: t.worker,
            process: t.process,
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

fn kernel(profile: &Profile) -> Option<KernelView> {
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

fn evidence(profile: &Profile, uses: &Evidence) -> Vec<EvidenceView> {
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
