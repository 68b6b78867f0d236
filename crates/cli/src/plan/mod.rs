//! From a judged profile to a plan: a policy for each object that a finding is about, as long as the model does not predict that it
//! costs time.

mod site;

use crate::commands::usage;
use crate::forecast::{self, Asked};
use crate::judge::{Judged, is_database};
use anyhow::{Context, Result, anyhow};
use firsttouch_analysis::{Finding, ObjectView};
use firsttouch_model::rows::Profile;
use firsttouch_model::traffic::{Division, ObjectTraffic, Traffic};
use firsttouch_model::{NodeId, Pin};
use firsttouch_placement::plan::{Blocks, Entry, Gain, MOST_ENTRIES, MOST_THREADS, Origin, Place, Plan, PlanError, Threads};
use firsttouch_predict::error::model_error;
use firsttouch_predict::experiments;
use firsttouch_predict::program::{self, Candidate, Left, PerObject, Placement, Program, Question};
pub use site::{Sites, static_spot};
use std::collections::BTreeMap;
use std::path::Path;

/// Several parts of unequal size a thread are followed where there are so many samples for each.
const SAMPLES_A_PART: usize = 8;
/// Fewer huge pages than these a node, and an interleaved object is badly dealt out.
const HUGE_PAGES_A_NODE: u64 = 16;
const HUGE_PAGE: u64 = 2 << 20;
const UNORDERED: &str = "each thread owns a part, but several threads create threads at a time, and which is which changes from run to run";

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

/// An object that a plan can name, and what could be done to it.
struct Prepared<'a> {
    finding: &'a Finding,
    view: &'a ObjectView,
    object: &'a ObjectTraffic,
    blocks: Option<Blocks>,
    /// Its parts have owners, but which thread is which changes from run to run.
    has_unordered_owners: bool,
    origin: Origin,
}

impl Prepared<'_> {
    /// Interleaving must be worth more than giving each thread its part.
    fn candidate(&self) -> Candidate {
        let blocks = self.blocks.as_ref().map(|_| Placement::ParallelFirstTouch);
        Candidate { object: self.view.id, options: blocks.into_iter().chain([Placement::Interleave]).collect() }
    }

    fn place(&self, placement: Placement) -> Place {
        match (&self.blocks, placement) {
            (Some(blocks), Placement::ParallelFirstTouch) => Place::Blocked(blocks.clone()),
            _ => Place::Interleave(Vec::new()),
        }
    }
}

/// Reads a plan.
///
/// # Errors
/// A file that cannot be read, or is no plan: a wrong command line.
pub fn read(path: &Path) -> Result<Plan> {
    if is_database(path) {
        return usage(Err(anyhow!("cannot use {} as a plan: it is a profile (firsttouch plan {0} -o PLAN.toml)", path.display())));
    }
    let text = usage(std::fs::read_to_string(path).with_context(|| format!("cannot read the plan {}", path.display())))?;
    let plan: Result<Plan, PlanError> = text.parse();
    usage(plan.map_err(|error| anyhow!("cannot use the plan {}:{}: {}", path.display(), error.line, error.what)))
}

/// What a plan would do with each object, for the model.
///
/// # Errors
/// The model refuses the team.
pub fn choice(profile: &Profile, judged: &Judged, program: &Program<'_>) -> Result<PerObject> {
    let (sites, numbering) = (Sites::new(profile), Numbering::of(profile, judged));
    let maker = Maker { profile, judged, numbering: &numbering, sites: &sites };
    let candidates: Vec<Candidate> = maker.prepared(&mut Vec::new()).iter().map(Prepared::candidate).collect();
    Ok(program.choose(&candidates)?.placements)
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
        least_bytes: profile.meta.min_size_bytes.unwrap_or(64 << 10),
        ..Plan::default()
    };
    let numbering = Numbering::of(profile, judged);
    plan.threads = numbering.threads.clone();
    let (machine, is_assumed) = forecast::known_or_assumed(judged)?;
    let error = model_error(&machine, &experiments::all()?)?;
    let Asked { write_share, caps, .. } = Asked::default();
    let question = Question { write_share, caps, model_error: error.standard() };
    let mut program = match Program::new(&machine, &judged.traffic, judged.memory_nodes.clone(), question) {
        Ok(program) => program,
        Err(why) => {
            plan.left_alone.push(format!("all of it: {why}"));
            return Ok(Planned { plan, outlook: None });
        }
    };
    let maker = Maker { profile, judged, numbering: &numbering, sites: &sites };
    let mut prepared = maker.prepared(&mut plan.left_alone);
    if prepared.len() > MOST_ENTRIES {
        plan.left_alone.push(format!("{} objects more than a plan has room for", prepared.len() - MOST_ENTRIES));
        prepared.truncate(MOST_ENTRIES);
    }
    let choice = program.choose(&prepared.iter().map(Prepared::candidate).collect::<Vec<_>>())?;
    for one in &prepared {
        let Some(placement) = choice.placements.get(&one.view.id) else { continue };
        plan.entries.push(entry(one, *placement, program.gain(one.view.id, *placement)?, analysis.machine.nodes));
    }
    for one in prepared.iter().filter(|one| one.has_unordered_owners && !choice.placements.contains_key(&one.view.id)) {
        plan.left_alone.push(format!("{}: {UNORDERED}", one.view.name));
    }
    for (object, why) in &choice.left {
        let Some(one) = prepared.iter().find(|one| one.view.id == *object && !one.has_unordered_owners) else { continue };
        plan.left_alone.push(format!("{}: {}", one.view.name, told(one, why)));
    }
    plan.modules = sites.modules_of(&plan);
    program.follow(choice.placements);
    if !plan.entries.is_empty() {
        plan.gain = Some(gain(program.gain_of(&|_| Placement::Plan)?));
    }
    // As the report has it: the model takes equal shares for equal.
    let remote_before = analysis.remote_fraction.unwrap_or(choice.remote[0]);
    let remote_after = choice.remote[1];
    let outlook = Outlook { is_assumed, remote_before, remote_after, time_ratio: choice.time_ratio };
    Ok(Planned { plan, outlook: Some(outlook) })
}

fn entry(one: &Prepared<'_>, placement: Placement, predicted: program::Gain, nodes: usize) -> Entry {
    let (view, place) = (one.view, one.place(placement));
    let is_interleaved = matches!(place, Place::Interleave(_));
    Entry {
        what: view.name.clone(),
        at: view.allocated_at.as_ref().map(spot).unwrap_or_default(),
        bytes: view.bytes,
        reason: reason(one, &place),
        small_pages: is_interleaved && view.bytes < HUGE_PAGES_A_NODE * HUGE_PAGE * nodes as u64,
        place,
        gain: Some(gain(predicted)),
        origin: one.origin.clone(),
    }
}

/// Why an object that could be placed is not.
fn told(one: &Prepared<'_>, why: &Left) -> String {
    match why {
        Left::Slower(option, ratio) => {
            format!("{} would take {:.0} % longer on this machine", one.place(*option).name(), 100.0 * (ratio - 1.0))
        }
        Left::Together => "together with the other entries it is predicted to cost time on this machine".to_owned(),
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
    /// Its threads are born in the same order in every run.
    is_ordered: bool,
    /// By worker of the traffic: its number, if it is of that process.
    of_worker: Vec<Option<u32>>,
}

impl Numbering {
    fn of(profile: &Profile, judged: &Judged) -> Self {
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
        let born = profile.threads.iter().filter(|thread| thread.process == process).take(count as usize);
        let is_ordered = births_are_ordered(born.map(|thread| (thread.id, thread.parent)));
        Self { process, threads: Threads { count, pin: pinning(judged, traffic, &of_worker, count) }, is_ordered, of_worker }
    }
}

/// Whether threads, told with their creators in the order of their births, must be born in this order: one thread creates all, or each time
/// that another takes over, it was the last one born, and those before it create no more.
fn births_are_ordered(born: impl Iterator<Item = (i64, Option<i64>)>) -> bool {
    let (mut creator, mut last) = (None, None);
    for (thread, parent) in born.skip(1) {
        if parent.is_some() && creator.is_some() && parent != creator && parent != last {
            return false;
        }
        (creator, last) = (parent.or(creator), Some(thread));
    }
    true
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
    let is_asked = judged.pin_was_named;
    let has_others = judged.analysis.threads.iter().any(|view| view.node as usize >= nodes) || judged.memory_nodes.len() != nodes;
    let spread = |number: u32| Pin::Spread.node(number as usize, count as usize, nodes, 1);
    if has_others || seated.iter().all(|(number, node)| spread(*number).0 == *node) || (!is_asked && crowded(judged, &seated)) {
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
    sites: &'a Sites<'a>,
}

impl<'a> Maker<'a> {
    /// The objects of the findings, each once, as far as a plan can place them; of the others, why not.
    fn prepared(&self, left_alone: &mut Vec<String>) -> Vec<Prepared<'a>> {
        let mut list: Vec<Prepared<'a>> = Vec::new();
        for finding in &self.judged.analysis.findings {
            let Some(id) = finding.object.filter(|id| list.iter().all(|one| one.view.id != *id)) else { continue };
            match self.prepare(finding, id) {
                Ok(one) => list.push(one),
                Err(why) => left_alone.push(format!("{}: {why}", finding.object_name)),
            }
        }
        list
    }

    fn prepare(&self, finding: &'a Finding, id: i64) -> Result<Prepared<'a>, String> {
        let fixed = forecast::fixed(&finding.id).ok_or_else(|| format!("{}: no placement of its memory mends that", finding.id))?;
        let view = self.judged.analysis.objects.iter().find(|object| object.id == id).ok_or("it was not judged")?;
        let object = self.judged.traffic.objects.iter().find(|object| object.id == id);
        let object = object.ok_or("its traffic is not known, so nothing can be predicted")?;
        if view.process != self.numbering.process {
            return Err("it belongs to another process than the one that does most of the work".to_owned());
        }
        let origin = self.sites.origin(self.profile, view)?;
        let blocks = self.blocks(object).filter(|_| fixed == Placement::ParallelFirstTouch);
        let has_unordered_owners = blocks.is_some() && !self.numbering.is_ordered;
        Ok(Prepared { finding, view, object, blocks: blocks.filter(|_| !has_unordered_owners), has_unordered_owners, origin })
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

fn reason(one: &Prepared<'_>, place: &Place) -> String {
    let how = match (place, one.object.division) {
        (Place::Blocked(_), _) => "each thread's part goes to the node of that thread",
        _ if one.has_unordered_owners => return format!("{}; {UNORDERED}; its pages go round the nodes", defect(one.finding)),
        (_, Division::Shared) => "all threads use all of it: its pages go round the nodes",
        (_, Division::DealtOut) => "no thread owns a part of it: its pages go round the nodes",
        _ => "its pages go round the nodes",
    };
    format!("{}; {how}", defect(one.finding))
}

fn defect(finding: &Finding) -> String {
    format!("{}: {:.0} % of its accesses are remote", finding.id, 100.0 * finding.remote_fraction)
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

#[cfg(test)]
mod tests {
    use super::births_are_ordered;

    /// Check whose births have one order: one creator's, a chain's; not those of two creators at a time.
    #[test]
    fn births_of_several_creators() {
        let ordered = |parents: &[i64]| {
            let born = parents.iter().enumerate().map(|(index, parent)| (index as i64, (*parent >= 0).then_some(*parent)));
            births_are_ordered(born)
        };
        for parents in [&[][..], &[-1], &[-1, 0, 0, 0], &[-1, 0, 1, 2], &[-1, 0, 0, 2, 2], &[-1, -1, -1, 0, -1, 0]] {
            assert!(ordered(parents), "{parents:?}");
        }
        for parents in [&[-1, 0, 1, 0][..], &[-1, 0, 0, 1], &[-1, 0, 0, 2, 1]] {
            assert!(!ordered(parents), "{parents:?}");
        }
    }
}
