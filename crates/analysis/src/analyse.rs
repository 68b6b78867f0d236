//! The whole step: profile -> analysis.

use crate::NotJudgedReason;
use crate::cache;
use crate::candidates::Candidates;
use crate::coverage::Coverage;
use crate::estimator::Design;
use crate::evidence::{Counts, Evidence, Hit, Reader, SOURCES, Source, SourceRef, derived_touches, touches_of_appeared};
use crate::faults::Faults;
use crate::findings::{self, Case, Context, Program, Weight};
use crate::groups::{Group, groups};
use crate::job::{RankContext, across_ranks, each_once, find_in_ranks, hosts, missing_ranks, ranks};
use crate::judge::{Judge, Subject, speed_error};
use crate::left_behind;
use crate::matrix::matrix;
use crate::misplaced_part::{misplaced_part, misplaced_rows};
use crate::names::names;
use crate::notes::{NoteContext, notes};
use crate::own_accesses::OwnAccesses;
use crate::pictures::{MapBuilder, Pictures, Recorded, Timed, Wanted, samples, timeline};
use crate::pools::Pooled;
use crate::populated::populated;
use crate::python_lines::with_python_lines;
use crate::regions_without_frames::with_regions;
use crate::remote_of_all::RemoteOfAll;
use crate::report::{Analysis, CrossCheck, Finding, LostView, MachineView, ObjectView};
use crate::residents::{Moves, Residents};
use crate::shared_memory::Shared;
use crate::source_code::CodeLocations;
use crate::stacks::stacks;
use crate::subjects::{Measured, cross_check};
use crate::tasks::Tasks;
use crate::threads::Threads;
use crate::together::{self, Together};
use crate::touch_index::TouchIndex;
use crate::touches::TouchReader;
use crate::traffic::traffic;
use crate::turns::Turns;
use crate::unasked::Unasked;
use crate::unowned_memory::Unrecorded;
use crate::views::{Builder, evidence, interval, kernel, not_judged, thread_views};
use crate::{Sources, Target};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::Profile;
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Two sources are compared if the parts of the accesses that they leave out, because those stay in a core's cache, differ by at most this.
const MOST_CACHED: f64 = 0.1;
/// The number of objects without observed accesses that are listed; the largest are kept.
const UNUSED_LISTED: usize = 200;

/// Judges a profile on a target.
#[must_use]
pub fn analyse(profile: &Profile, target: &Target, sources: &dyn Sources) -> Analysis {
    analyse_into(SOURCES, profile, target, sources, None)
}

/// As `analyse`, with what pictures show besides.
#[must_use]
pub fn analyse_with_pictures(profile: &Profile, target: &Target, sources: &dyn Sources, wanted: Wanted) -> (Analysis, Pictures) {
    let mut pictures = Pictures::default();
    let analysis = analyse_into(SOURCES, profile, target, sources, Some((&mut pictures, wanted)));
    (analysis, pictures)
}

/// As `analyse`, with the given sources of evidence.
#[cfg(test)]
pub(crate) fn analyse_by(list: &[&'static dyn Source], profile: &Profile, target: &Target, sources: &dyn Sources) -> Analysis {
    analyse_into(list, profile, target, sources, None)
}

/// `pictures`: where to put what pictures show, if it is asked for.
fn analyse_into(
    list: &[&'static dyn Source],
    profile: &Profile,
    target: &Target,
    sources: &dyn Sources,
    mut pictures: Option<(&mut Pictures, Wanted)>,
) -> Analysis {
    let reads = |site| sources.cause(CodeLocations { profile, sources }.frames(Some(site)), None) == TouchCause::Io;
    let touches = touches_of_appeared(profile, &reads);
    let appeared = (!touches.is_empty()).then(|| Profile { first_touches: touches, ..profile.clone() });
    let profile = appeared.as_ref().unwrap_or(profile);
    let lined = with_python_lines(profile, sources);
    let profile = lined.as_ref().unwrap_or(profile);
    let with_regions = with_regions(profile, sources);
    let profile = with_regions.as_ref().unwrap_or(profile);
    let pooled = Pooled::new(profile, sources);
    let profile = pooled.as_ref().map_or(profile, |pooled| &pooled.profile);
    let shared = Shared::new(profile);
    let joined = shared.as_ref().map_or(profile, |shared| &shared.profile);
    let turns = Turns::new(profile, joined);
    let is_shared = |object| shared.as_ref().is_some_and(|shared| shared.sharing.contains_key(&object));
    let ended = turns.with_ends(joined, is_shared);
    let profile = ended.as_ref().unwrap_or(joined);
    let threads = Threads::new(profile, target, shared.as_ref().map_or(&HashMap::new(), |shared| &shared.teams), &turns);
    let mut groups = groups(profile, pooled.as_ref().map(|pooled| &pooled.pools), &turns);
    if let Some(shared) = &shared {
        shared.mark(&mut groups);
    }
    let residents = Residents::new(profile);
    let faults = Faults::new(profile);
    let populated = populated(profile, &residents);
    let places = CodeLocations { profile, sources };
    let tasks = Tasks::new(&places);
    let goes_to_any_thread = |site| tasks.goes_to_any_thread(site);
    let (uses, refused_touches, most_touches) = {
        let mut derived = derived_touches(profile, &threads, &residents, &goes_to_any_thread);
        derived.retain(|touch| !populated.precedes(touch));
        let index = TouchIndex::new(profile, &derived, &populated.touches, &threads);
        let mut touch_reader = TouchReader::new(profile, &threads, &index, &residents, &faults);
        let reader = Reader::new(profile, target, &threads, &groups, &residents).with_source(&goes_to_any_thread);
        let uses = reader.read(list, &mut touch_reader);
        (uses, index.refused, touch_reader.held.map(|held| held.fewest()))
    };
    let names = names(profile, &groups, &places);
    let pushed_out = cache::pushed_out(&uses, &groups, &threads, target);
    let judge = |source| {
        let design = &uses.of(source).design;
        Judge { profile, target, threads: &threads, design, residents: &residents, source, pushed_out: &pushed_out }
    };
    let mut subjects: Vec<Subject> = Measured { judge: &judge, uses: &uses, groups: &groups, tasks: &tasks }.subjects();
    for subject in &mut subjects {
        let group = &groups[subject.group];
        let object = &profile.objects[group.representative];
        let part = misplaced_part(subject, object.kind, object.process, &threads);
        if let Some(part) = part.or_else(|| misplaced_rows(subject, group, object.process, &threads)) {
            subject.touch = Arc::new(part);
        }
    }
    let builder = Builder { profile, target, threads: &threads, uses: &uses, places: &places, residents: &residents };
    let is_input = |subject: &Subject| builder.first_touch(subject, None).cause == Some(TouchCause::Io);
    let weights: HashMap<usize, Weight> = {
        let own = OwnAccesses::new(profile, &groups, &uses, &subjects);
        let rules = Context { profile, target, threads: &threads, places: &places, own: &own, groups: &groups, names: &names, cases: &[] };
        subjects.iter().filter_map(|subject| Some((subject.group, rules.weight(subject)?))).collect()
    };
    let together = together::Context {
        profile,
        threads: &threads,
        uses: &uses,
        groups: &groups,
        judge: &judge,
        tasks: &tasks,
        is_input: &is_input,
        weights,
    };
    let together = together.find(&subjects);
    let judged_alone: HashSet<usize> = subjects.iter().filter(|subject| subject.reason.is_none()).map(|subject| subject.group).collect();
    together.iter().for_each(|set| set.apply(&groups, &mut subjects));
    let remote_by = |source: SourceRef| RemoteOfAll::of(&judge, &uses, &subjects, source);
    let figure_by = |source: SourceRef| remote_by(source).filter(|_| uses.sees_all(source)).map(|remote| remote.figure());
    let (source, remote) = uses.best(figure_by, |remote| *remote).unzip();
    let remote = remote.flatten();
    let by_samples = source.and_then(remote_by);
    let cross_checks: Vec<CrossCheck> = source.zip(remote).map_or_else(Vec::new, |(source, remote)| {
        // Only samples of registers show what stays in a cache.
        let counts_alike = |other: SourceRef| (uses.of(source).cached_part() - uses.of(other).cached_part()).abs() <= MOST_CACHED;
        let is_comparable =
            |other: &SourceRef| *other != source && other.counts() == Counts::Accesses && uses.sees_threads(*other) && counts_alike(*other);
        let others = uses.sources().filter(is_comparable);
        // What comes from the other source in part is not compared with it.
        let remote = RemoteOfAll::alone(&judge, &uses, &subjects, source).map_or(remote, |remote| remote.figure());
        others.filter_map(|other| cross_check(remote, other, figure_by(other)?)).collect()
    });
    let contradicting = cross_checks.iter().filter(|check| !check.agrees && CrossCheck::is_precise(check.interval));
    let remote = remote.map(|remote| contradicting.fold(remote, |sum, check| sum.covering(check.interval)));
    // What is unknown may be remote or not, wherever it is.
    let missing_addresses = source.map_or(0.0, |source| uses.of(source).design.missing());
    let used_in_turn = source.map_or(0.0, |source| part_in_turn(&subjects, &uses.of(source).design));
    let remote = remote.map(|remote| {
        let open = |part: f64| [remote.value * part, (1.0 - remote.value) * part];
        remote.stretched_by(open(missing_addresses)).stretched_by([used_in_turn; 2])
    });
    let own = OwnAccesses::new(profile, &groups, &uses, &subjects);
    let (mut objects, mut viewed, mut merged, mut unlisted) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let (mut moves, mut variables) = (Moves::default(), BTreeMap::new());
    for subject in listed(&subjects, &groups, &stacks(profile), &mut unlisted) {
        let group = &groups[subject.group];
        let own = builder.moves(group);
        if subject.counts {
            moves.add(&own);
        }
        let hits = &uses.of(subject.source).hits[subject.group];
        let partners = together.iter().find(|set| set.members.contains(&subject.group));
        let view = ObjectView {
            together: partners.map_or_else(Vec::new, |set| set.ids(profile, &groups, subject.group)),
            ..builder.object(subject, group, hits, &names[subject.group], &own)
        };
        let object = &profile.objects[group.representative];
        if let Some((pictures, Wanted::Pictures)) = &mut pictures {
            let design = &uses.of(subject.source).design;
            let builder = MapBuilder { threads: &threads, places: &places, touches: &uses.touches, design };
            pictures.maps.extend(builder.map(object.id, group, hits, &uses.summaries[subject.group]));
        }
        variables.extend(object.site.zip(names[subject.group].storable_variable().map(str::to_owned)));
        if let Some(arrays) = subject.arrays_in_mapping(object.kind).filter(|_| subject.reason.is_none()) {
            merged.push((view.name.clone(), arrays));
        }
        objects.push(view);
        viewed.push((subject, own));
    }
    let case = |((subject, moves), view)| {
        let (subject, group): (&Subject, &Group) = (subject, &groups[subject.group]);
        let hits = &uses.of(subject.source).hits[subject.group];
        Case { subject, group, hits, object: &profile.objects[group.representative], view, moves, together: None }
    };
    let cases: Vec<Case<'_>> = viewed.iter().map(|(subject, moves)| (*subject, moves)).zip(&objects).map(case).collect();
    let context = Context { profile, target, threads: &threads, places: &places, own: &own, groups: &groups, names: &names, cases: &cases };
    let (mut findings, mut of_members) = (Vec::new(), HashMap::new());
    for case in &cases {
        let (found, group) = (context.find(case), case.subject.group);
        if together.iter().any(|set| set.members.contains(&group)) {
            of_members.extend(found.filter(|_| judged_alone.contains(&group)).map(|found| (group, found)));
        } else {
            findings.extend(found);
        }
    }
    for set in &together {
        let Together { group, subject, members } = set;
        let hits = &set.hits(&uses);
        let (own, names) = (builder.moves(group), together::names(members, &names));
        let view = builder.object(subject, group, hits, &context.names[subject.group], &own);
        let object = &profile.objects[group.representative];
        // The name is that of one member, and so are the lines; the figures are those of all.
        let view = match objects.iter().find(|one| one.id == object.id) {
            Some(one) => ObjectView { first_touch: one.first_touch.clone(), used_at: one.used_at.clone(), ..view },
            None => view,
        };
        let found = context.find(&Case { subject, group, hits, object, view: &view, moves: &own, together: Some(&names) });
        match found {
            Some(found) => findings.push(Finding { together: set.ids(profile, &groups, subject.group), ..found }),
            None => findings.extend(members.iter().filter_map(|g| of_members.remove(g))),
        }
    }
    let all = Program { remote, source, moves: &moves, findings: &findings };
    let of_program = context.find_in_program(&all);
    findings.extend(of_program);
    if profile.meta.write_failure.is_some() {
        // What is missing may show the opposite.
        findings.clear();
    }
    if let Some((pictures, wanted)) = pictures {
        if wanted == Wanted::Samples {
            pictures.samples = samples(profile, &uses, source.or_else(|| uses.volumes()), (&groups, &subjects));
        }
        if wanted == Wanted::Pictures {
            let (groups, subjects, maps, nodes) = (&groups, &subjects, &pictures.maps, target.nodes);
            pictures.by_time = Timed { profile, uses: &uses, groups, subjects, maps, nodes, source }.sums();
        }
        let recorded = Recorded { profile, target, uses: &uses, places: &places };
        let hits = source.map(|source| (&uses.of(source).design, counted_hits(&subjects, &uses, source)));
        pictures.timeline = timeline(&recorded, hits);
    }
    objects.sort_by(|a, b| {
        b.access_share
            .unwrap_or(0.0)
            .total_cmp(&a.access_share.unwrap_or(0.0))
            .then(b.total_bytes.cmp(&a.total_bytes))
            .then(a.id.cmp(&b.id))
    });
    findings.sort_by(|a, b| b.remote_share.total_cmp(&a.remote_share).then(a.object.cmp(&b.object)));
    findings::name_shared_changes(&mut findings);
    let found: HashSet<i64> = findings.iter().flat_map(Finding::objects).collect();
    let is_settled = |subject: &Subject| {
        let is_together = || together.iter().any(|set| set.members.contains(&subject.group));
        found.contains(&profile.objects[groups[subject.group].representative].id) || is_together()
    };
    let candidates = (target.nodes > 1).then(|| Candidates::of(profile, &threads, &groups, &names, &subjects, &is_settled)).flatten();
    let not_judged = objects.iter().filter_map(not_judged).collect();
    let unrecorded = (target.nodes > 1 && !threads.alone()).then(|| Unrecorded::of(profile, &residents, pooled.as_ref())).flatten();
    let of_ranks = RankContext { profile, target, threads: &threads, uses: &uses, subjects: &subjects, judge: &judge, source };
    let ranks = ranks(&of_ranks);
    let coverage = Coverage::of(&uses, &subjects);
    // Of so few accesses to memory whose node matters, no share is worth a figure.
    let is_in_caches = coverage.as_ref().is_some_and(Coverage::is_nearly_cached);
    let remote = remote.filter(|remote| remote.samples >= crate::verdict::LEAST_SAMPLES || !is_in_caches);
    let analysis = Analysis {
        command: profile.meta.command.clone(),
        exit_code: profile.meta.exit_code,
        signal: profile.meta.signal,
        wall_s: profile.meta.wall_s(),
        machine: MachineView { name: target.name.clone(), nodes: target.nodes, virtual_machine: target.virtual_machine },
        threads: thread_views(profile, target, &threads),
        evidence: evidence(profile, &uses),
        remote_fraction: remote.map(|r| r.value),
        remote_interval: remote.map(interval),
        remote_interval_by_samples: by_samples.map(|own| interval(own.chance)).filter(|own| remote.map(interval) != Some(*own)),
        guessed_homes: by_samples.map_or(0.0, |own| own.guessed),
        speed_error: by_samples.map_or(0.0, |own| speed_error(own.all, own.chance)),
        missing_addresses,
        used_in_turn,
        remote_samples: remote.map_or(0, |r| r.samples),
        remote_evidence: source.filter(|_| remote.is_some()).map(|source| source.name()),
        cross_checks,
        matrix: source
            .map_or_else(Vec::new, |source| matrix(&uses.of(source).design, target.nodes, counted_hits(&subjects, &uses, source))),
        objects,
        findings,
        not_judged,
        coverage,
        kernel: kernel(profile),
        notes: notes(NoteContext {
            profile,
            target,
            threads: &threads,
            uses: &uses,
            refused_touches,
            most_touches,
            unlisted,
            unrecorded,
            candidates,
            merged,
        }),
        unrecorded: unrecorded.map(|u| u.part),
        unasked: Unasked::of(profile, target),
        attached: profile.meta.is_attached(),
        unprofiled: unprofiled(profile),
        processes_left: left_behind::working(profile),
        // Threads that end soon are not all looked at; the process's time counts ticks of 10 ms.
        ran_s: Some(profile.meta.threads_ran_ns.max(profile.meta.own_cpu_ns.unwrap_or(0)) as f64 / 1e9).filter(|ran_s| *ran_s > 0.0),
        has_waited: profile.meta.has_waited,
        write_failure: profile.meta.write_failure.clone().map(|cause| (cause, profile.meta.missing_rows)),
        unfinished: profile.meta.is_unfinished(),
        lost: profile
            .lost
            .iter()
            .map(|l| LostView { source: l.source.as_str().into(), reason: l.reason.clone(), count: l.count })
            .collect(),
        traffic: traffic(profile, target, &threads, &uses, &groups, &subjects, &names),
        variables,
        hosts: hosts(profile, target),
        ranks,
        missing_ranks: missing_ranks(profile),
        across_ranks: Vec::new(),
    };
    with_ranks(analysis, profile, target)
}

/// Adds what only a job of several ranks has.
fn with_ranks(mut analysis: Analysis, profile: &Profile, target: &Target) -> Analysis {
    if !analysis.ranks.is_empty() {
        analysis.across_ranks = across_ranks(&analysis);
        if analysis.write_failure.is_none() {
            find_in_ranks(&mut analysis, profile, target);
        }
        each_once(&mut analysis);
    }
    analysis
}

/// The part of the CPU time that processes used which the program started and which were not profiled; `None` if it is too little to matter. Where
/// the program shares memory, a little matters: they may use the same.
fn unprofiled(profile: &Profile) -> Option<f64> {
    let meta = &profile.meta;
    // Children that were profiled are among the processes, and count as the program's own. A job has a process for each rank.
    let (own, children) = meta.own_cpu_ns.zip(meta.children_cpu_ns).filter(|_| profile.processes.len() <= profile.parts.len().max(1))?;
    let part = children as f64 / own.saturating_add(children).max(1) as f64;
    let matters = if profile.shared_memory.is_empty() { 0.1 } else { 0.01 };
    (part > matters).then_some(part)
}

/// The part of the accesses that count which go to memory that threads use one after the other.
fn part_in_turn(subjects: &[Subject], design: &Design) -> f64 {
    let counted = || subjects.iter().filter(|subject| subject.counts);
    let is_in_turn = |subject: &&Subject| matches!(subject.reason, Some(NotJudgedReason::InTurn { .. }));
    let accesses = |subject: &Subject| design.accesses(subject.group);
    let all: f64 = counted().map(accesses).sum();
    if all > 0.0 { counted().filter(is_in_turn).map(accesses).sum::<f64>() / all } else { 0.0 }
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
