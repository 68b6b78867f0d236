//! From a judged profile to a plan: a policy for each object that a finding is about, as long as the model does not predict that it
//! costs time.

mod site;

use crate::forecast::{self, Asked};
use crate::judge::Judged;
use anyhow::Result;
use firsttouch_analysis::{Finding, ObjectView};
use firsttouch_domain::traffic::{Division, ObjectTraffic, Traffic};
use firsttouch_domain::{NodeId, Pin};
use firsttouch_placement::plan::{Blocks, Entry, Gain, MOST_ENTRIES, MOST_THREADS, Place, Plan, Threads};
use firsttouch_predict::error::model_error;
use firsttouch_predict::experiments;
use firsttouch_predict::program::{self, Placement, Program, Question};
use firsttouch_profile::{Profile, meta};
use site::Sites;
pub use site::static_spot;
use std::collections::BTreeMap;

/// A plan may take this much longer than the program as it is, by the model: no more.
const WORSE: f64 = 1.01;
/// Interleaving must be this much faster than giving each thread its part.
const BETTER: f64 = 0.99;
/// Several parts of unequal size a thread are followed where there are so many samples for each.
const SAMPLES_A_PART: usize = 8;
/// Fewer huge pages than these a node, and an interleaved object is badly dealt out.
const HUGE_PAGES_A_NODE: u64 = 16;
const HUGE_PAGE: u64 = 2 << 20;

/// A plan, and what the model says of it.
pub struct Planned {
    pub plan: Plan,
    /// `None` where there was nothing to compute with.
    pub outlook: Option<Outlook>,
}

pub struct Outlook {
    /// Only its nodes are known.
    pub is_assumed: bool,
    pub remote_before: f64,
    pub remote_after: f64,
    /// Time under the plan over time as it is.
    pub time_ratio: f64,
}

/// A policy for an object, as far as it is decided.
struct Draft {
    entry: Entry,
    object: i64,
    placement: Placement,
}

/// Plans for the machine that the profile was judged on.
///
/// # Errors
/// The catalogue or the published tables cannot be read, or the model refuses the team: defects of ours.
pub fn plan(profile: &Profile, judged: &Judged, made_from: &str) -> Result<Planned> {
    let analysis = &judged.analysis;
    let sites = Sites::new(profile);
    let mut plan = Plan {
        made_from: made_from.to_owned(),
        judged_on: analysis.machine.name.clone(),
        command: analysis.command.clone(),
        nodes: u32::try_from(analysis.machine.nodes.max(1)).unwrap_or(1),
        least_bytes: profile.meta.get(meta::MIN_SIZE).and_then(|text| text.parse().ok()).unwrap_or(64 << 10),
        ..Plan::default()
    };
    let numbering = Numbering::of(judged);
    plan.threads = numbering.threads.clone();
    let (machine, is_assumed) = forecast::known_or_assumed(judged)?;
    let error = model_error(&machine, &experiments::all()?)?;
    let Asked { write_share, caps } = Asked::default();
    let question = Question { write_share, caps, model_error: error.standard() };
    let program = match Program::new(&machine, &judged.traffic, judged.memory_nodes.clone(), question) {
        Ok(program) => program,
        Err(why) => {
            plan.left_alone.push(format!("all of it: {why}"));
            return Ok(Planned { plan, outlook: None });
        }
    };
    let (as_is, remote_before) = program.outcome_of(&|_| Placement::AsIs)?;
    let mut drafts: Vec<Draft> = Vec::new();
    for finding in &analysis.findings {
        let Some(id) = finding.object.filter(|id| drafts.iter().all(|draft| draft.object != *id)) else { continue };
        let maker = Maker { profile, judged, numbering: &numbering, program: &program, as_is: as_is.0, sites: &sites };
        match maker.draft(finding, id)? {
            Ok(draft) => drafts.push(draft),
            Err(why) => plan.left_alone.push(format!("{}: {why}", finding.object_name)),
        }
    }
    if drafts.len() > MOST_ENTRIES {
        plan.left_alone.push(format!("{} objects more than a plan has room for", drafts.len() - MOST_ENTRIES));
        drafts.truncate(MOST_ENTRIES);
    }
    let time_ratio = settle(&program, as_is.0, &mut drafts, &mut plan.left_alone)?;
    let chosen: BTreeMap<i64, Placement> = drafts.iter().map(|draft| (draft.object, draft.placement)).collect();
    let under = |id: i64| chosen.get(&id).copied().unwrap_or(Placement::AsIs);
    let remote_after = program.outcome_of(&under)?.1;
    if !drafts.is_empty() {
        plan.gain = Some(gain(program.gain_of(&under)?));
    }
    plan.entries = drafts.into_iter().map(|draft| draft.entry).collect();
    plan.modules = sites.modules_of(&plan);
    let outlook = Outlook { is_assumed, remote_before, remote_after, time_ratio };
    Ok(Planned { plan, outlook: Some(outlook) })
}

/// Takes entries out until all of them together are not predicted to cost time; returns the time relative to the program as it is.
fn settle(program: &Program<'_>, as_is: f64, drafts: &mut Vec<Draft>, left_alone: &mut Vec<String>) -> Result<f64> {
    let time_without = |drafts: &[Draft], left: Option<usize>| -> Result<f64> {
        let of = |id: i64| drafts.iter().enumerate().find(|(index, draft)| draft.object == id && Some(*index) != left);
        let (time, _) = program.outcome_of(&|id| of(id).map_or(Placement::AsIs, |(_, draft)| draft.placement))?;
        Ok(time.0 / as_is)
    };
    loop {
        let ratio = time_without(drafts, None)?;
        if ratio <= WORSE || drafts.is_empty() {
            return Ok(ratio);
        }
        let mut best: Option<(usize, f64)> = None;
        for index in 0..drafts.len() {
            let without = time_without(drafts, Some(index))?;
            if best.is_none_or(|(_, time)| without < time) {
                best = Some((index, without));
            }
        }
        if let Some((index, _)) = best {
            let draft = drafts.remove(index);
            left_alone.push(format!("{}: together with the other entries it is predicted to cost time on this machine", draft.entry.what));
        }
    }
}

fn gain(gain: program::Gain) -> Gain {
    // More digits would say more than the model knows.
    let [value, low, high] = [gain.gain, gain.interval[0], gain.interval[1]].map(|ratio| (ratio * 1e4).round() / 1e4);
    Gain { value, low, high }
}

/// Numbers of the threads of the process that is planned for: the one with most traffic.
struct Numbering {
    process: i64,
    threads: Threads,
    /// By worker of the traffic: its number, if it is of that process.
    of_worker: Vec<Option<u32>>,
}

impl Numbering {
    fn of(judged: &Judged) -> Self {
        let (views, traffic) = (&judged.analysis.threads, &judged.traffic);
        let view = |worker: usize| traffic.workers.get(worker)?.threads.first().and_then(|thread| views.get(*thread));
        let mut volumes: BTreeMap<i64, f64> = BTreeMap::new();
        for (worker, bytes) in traffic.objects.iter().flat_map(|object| &object.samples).flat_map(|sample| &sample.bytes) {
            if let Some(view) = view(*worker) {
                *volumes.entry(view.process).or_default() += bytes;
            }
        }
        let most = volumes.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(process, _)| *process);
        let process = most.or_else(|| views.first().map(|view| view.process)).unwrap_or(0);
        let number = |worker: usize| view(worker).filter(|view| view.process == process).and_then(|view| u32::try_from(view.slot).ok());
        let of_worker: Vec<Option<u32>> = (0..traffic.workers.len()).map(number).collect();
        let count = of_worker.iter().flatten().max().map_or(1, |last| last + 1).min(MOST_THREADS);
        Self { process, threads: Threads { count, pin: pinning(judged, traffic, &of_worker, count) }, of_worker }
    }
}

/// As judged: spread, or the node of each thread. A single thread is left to the kernel.
fn pinning(judged: &Judged, traffic: &Traffic, of_worker: &[Option<u32>], count: u32) -> Option<Pin> {
    let nodes = judged.analysis.machine.nodes.max(1);
    let seated: BTreeMap<u32, u32> =
        traffic.workers.iter().zip(of_worker).filter_map(|(worker, number)| Some(((*number)?, worker.node))).collect();
    if count < 2 {
        return None;
    }
    // Nodes without CPUs are no logical nodes of a run: where the numbers could mean others, spread.
    let has_others = judged.analysis.threads.iter().any(|view| view.node as usize >= nodes) || judged.memory_nodes.len() != nodes;
    let spread = |number: u32| Pin::Spread.node(number as usize, count as usize, nodes, 1);
    if has_others || seated.iter().all(|(number, node)| spread(*number).0 == *node) || crowded(judged, &seated) {
        return Some(Pin::Spread);
    }
    Some(Pin::Nodes((0..count).map(|number| seated.get(&number).map_or_else(|| spread(number), |node| NodeId(*node))).collect()))
}

/// Whether the kernel had put more threads on a node than it has cores: unpinned threads move.
fn crowded(judged: &Judged, seated: &BTreeMap<u32, u32>) -> bool {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    seated.values().for_each(|node| *counts.entry(*node).or_default() += 1);
    let even = seated.len().div_ceil(judged.analysis.machine.nodes.max(1));
    counts.values().any(|count| *count > even)
        && judged
            .described
            .as_ref()
            .is_none_or(|m| counts.iter().any(|(node, count)| m.nodes.get(*node as usize).is_none_or(|node| *count > node.cores)))
}

struct Maker<'a> {
    profile: &'a Profile,
    judged: &'a Judged,
    numbering: &'a Numbering,
    program: &'a Program<'a>,
    as_is: f64,
    sites: &'a Sites<'a>,
}

impl Maker<'_> {
    /// The better of the policies that could mend a finding; else why there is none.
    fn draft(&self, finding: &Finding, id: i64) -> Result<Result<Draft, String>> {
        let Some(fixed) = forecast::fixed(&finding.id) else {
            return Ok(Err(format!("{}: no placement of its memory mends that", finding.id)));
        };
        let Some(view) = self.judged.analysis.objects.iter().find(|object| object.id == id) else {
            return Ok(Err("it was not judged".to_owned()));
        };
        let Some(object) = self.judged.traffic.objects.iter().find(|object| object.id == id) else {
            return Ok(Err("its traffic is not known, so nothing can be predicted".to_owned()));
        };
        if view.process != self.numbering.process {
            return Ok(Err("it belongs to another process than the one that does most of the work".to_owned()));
        }
        let origin = match self.sites.origin(self.profile, view) {
            Ok(origin) => origin,
            Err(why) => return Ok(Err(why)),
        };
        let time = |placement: Placement| -> Result<f64> {
            let (time, _) = self.program.outcome_of(&|other| if other == id { placement } else { Placement::AsIs })?;
            Ok(time.0 / self.as_is)
        };
        let interleaved = (time(Placement::Interleave)?, Place::Interleave(Vec::new()), Placement::Interleave);
        let blocks = self.blocks(object).filter(|_| fixed == Placement::ParallelFirstTouch);
        let best = match blocks {
            Some(blocks) => {
                let blocked = time(Placement::ParallelFirstTouch)?;
                let is_blocked = blocked * BETTER <= interleaved.0;
                if is_blocked { (blocked, Place::Blocked(blocks), Placement::ParallelFirstTouch) } else { interleaved }
            }
            None => interleaved,
        };
        let (time, place, placement) = best;
        if time > WORSE {
            return Ok(Err(format!("{} would take {:.0} % longer on this machine", place.name(), 100.0 * (time - 1.0))));
        }
        let is_interleaved = matches!(place, Place::Interleave(_));
        let entry = Entry {
            what: view.name.clone(),
            at: view.allocated_at.as_ref().map(spot).unwrap_or_default(),
            bytes: view.bytes,
            reason: reason(finding, &place, object),
            small_pages: is_interleaved && view.bytes < HUGE_PAGES_A_NODE * HUGE_PAGE * self.judged.analysis.machine.nodes as u64,
            place,
            gain: Some(gain(self.program.gain(id, placement)?)),
            origin,
        };
        Ok(Ok(Draft { entry, object: id, placement }))
    }

    fn blocks(&self, object: &ObjectTraffic) -> Option<Blocks> {
        let parts = object.parts.as_ref().filter(|_| object.division == Division::Owned)?;
        let number =
            |worker: &usize| self.numbering.of_worker.get(*worker).copied().flatten().filter(|n| *n < self.numbering.threads.count);
        let threads: Vec<u32> = parts.workers.iter().map(number).collect::<Option<_>>()?;
        let count = threads.len() as f64;
        let equal = parts.ends.iter().enumerate().all(|(part, end)| (end - (part + 1) as f64 / count).abs() < 1e-12);
        // Borders as seen are worth what was seen on either side of them; with one part a thread they are few.
        let several_each = threads.len() > self.numbering.threads.count as usize;
        if !equal && several_each && object.samples.len() < SAMPLES_A_PART * threads.len() {
            return None;
        }
        let until = if equal { Vec::new() } else { parts.ends.clone() };
        let rows = u32::try_from(object.rows).unwrap_or(u32::MAX).max(1);
        Some(Blocks { threads, until, period_bytes: parts.period_bytes, rows })
    }
}

fn reason(finding: &Finding, place: &Place, object: &ObjectTraffic) -> String {
    let how = match (place, object.division) {
        (Place::Blocked(_), _) => "each thread's part goes to the node of that thread",
        (_, Division::Shared) => "all threads use all of it: its pages go round the nodes",
        (_, Division::DealtOut) => "no thread owns a part of it: its pages go round the nodes",
        _ => "its pages go round the nodes",
    };
    format!("{}: {:.0} % of its accesses are remote; {how}", finding.id, 100.0 * finding.remote_fraction)
}

/// `file:line`
fn spot(place: &firsttouch_analysis::Place) -> String {
    let file = place.file.as_deref().map(firsttouch_placement::plan::file_name);
    match (file, place.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => place.function.clone().unwrap_or_default(),
    }
}

/// Of an object, what the summary tells.
#[must_use]
pub fn is_well_placed(analysis: &firsttouch_analysis::Analysis) -> bool {
    analysis.findings.is_empty() && analysis.objects.iter().any(|object: &ObjectView| object.judged)
}
