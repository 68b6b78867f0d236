//! Proposes which objects a plan can place, and how: objects of findings that a placement of memory removes, and whose origin a run can
//! recognise. The forecast then chooses among the proposals.

use crate::identify::{Origins, Unplaceable};
use crate::threads::Numbering;
use crate::{Blocks, MOST_ENTRIES, Origin, Policy, ProgramFiles};
use firsttouch_analysis::{Analysis, Finding, ObjectView};
use firsttouch_model::finding::{FindingKind, FixKind, Remedy};
use firsttouch_model::rows::{Id, Profile};
use firsttouch_model::traffic::{Division, ObjectTraffic};
use firsttouch_predict::forecast::ForecastMachine;
use firsttouch_predict::program::{Candidate, Placement};
use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::fmt;

/// Several parts of unequal size per thread are used only with this many samples per part.
const SAMPLES_A_PART: usize = 8;

/// If less than one in so many blocks is allocated by another thread than most of them, their order is known well enough.
const FEW_BY_OTHERS: usize = 20;

/// The possible contents of a plan.
pub struct Proposals<'a> {
    pub(crate) list: Vec<Proposal<'a>>,
    /// Objects of findings that no plan can place: id and reason.
    pub(crate) left_alone: Vec<(i64, Unplaceable)>,
    /// Objects of other processes that the same calls allocate as proposed objects: id, and the proposed object's. An entry of a plan holds in all
    /// processes of a run.
    pub(crate) alike: HashMap<i64, i64>,
    pub(crate) numbering: Numbering,
    pub(crate) origins: Origins<'a>,
    profile: &'a Profile,
}

/// An object that a plan can identify, and its possible placement.
pub(crate) struct Proposal<'a> {
    pub finding: &'a Finding,
    pub view: &'a ObjectView,
    pub object: &'a ObjectTraffic,
    pub blocks: Option<Blocks>,
    /// Why there are no blocks, although its parts have owners.
    pub undivided: Option<Undivided>,
    pub origin: Origin,
}

/// Why a plan cannot put each thread's part on the node of that thread, although parts have owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undivided {
    /// The order of the threads changes from run to run.
    Unordered,
    /// No rule was recognised that also holds between the samples.
    NoRule,
    /// Its owners are not all threads that a plan numbers.
    OtherOwners,
    /// Several parts per thread, and too few samples to know where they end.
    UncertainBorders,
    /// Which allocation is which changes from run to run.
    AllocatedAtOnce,
}

impl fmt::Display for Undivided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unordered => "several threads create threads at a time, and which is which changes from run to run",
            Self::NoRule => "the samples do not show where each thread's part ends",
            Self::OtherOwners => "some of its parts belong to threads of another process than the one that does most of the work",
            Self::UncertainBorders => "the samples are too few to show where each thread's parts end",
            Self::AllocatedAtOnce => "several threads allocate its blocks, in an order that changes from run to run",
        })
    }
}

impl<'a> Proposals<'a> {
    /// Proposes a placement for the objects of an analysis's findings. `pin_was_named`: whether the user gave the pinning of threads.
    #[must_use]
    pub fn new(
        profile: &'a Profile,
        analysis: &'a Analysis,
        machine: &ForecastMachine,
        pin_was_named: bool,
        files: &'a dyn ProgramFiles,
    ) -> Self {
        let mut proposals = Self {
            list: Vec::new(),
            left_alone: Vec::new(),
            alike: HashMap::new(),
            numbering: Numbering::new(profile, analysis, machine, pin_was_named),
            origins: Origins::new(profile, files),
            profile,
        };
        for finding in &analysis.findings {
            for id in finding.objects() {
                if proposals.list.iter().any(|one| one.view.id == id) {
                    continue;
                }
                match proposals.propose(analysis, finding, id) {
                    Ok(_) if proposals.list.len() >= MOST_ENTRIES => proposals.left_alone.push((id, Unplaceable::Surplus)),
                    Ok(one) => proposals.list.push(one),
                    Err(why) => proposals.left_alone.push((id, why)),
                }
            }
        }
        proposals.find_alike(analysis);
        proposals
    }

    /// Finds the objects of other processes that the entries for proposed ones place too.
    fn find_alike(&mut self, analysis: &Analysis) {
        let views: HashMap<i64, &ObjectView> = analysis.objects.iter().map(|view| (view.id, view)).collect();
        let first = |id: i64| {
            let view = views.get(&id)?;
            let origin = self.origins.origin(view).ok()?;
            self.list.iter().find(|one| one.view.bytes == view.bytes && one.origin == origin).map(|one| one.view.id)
        };
        let others = self.left_alone.iter().filter(|(_, why)| *why == Unplaceable::OtherProcess);
        self.alike = others.filter_map(|(id, _)| Some((*id, first(*id)?))).collect();
        self.left_alone.retain(|(id, _)| !self.alike.contains_key(id));
    }

    /// Whether the entry for another object places this one too.
    pub(crate) fn is_alike(&self, id: i64) -> bool {
        self.alike.contains_key(&id)
    }

    /// The candidates for the forecast's choice.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        let others = |first: i64| self.alike.iter().filter(|(_, of)| **of == first).map(|(id, _)| *id).collect();
        self.list.iter().map(|one| Candidate { others: others(one.view.id), ..one.candidate() }).collect()
    }

    fn propose(&self, analysis: &'a Analysis, finding: &'a Finding, id: i64) -> Result<Proposal<'a>, Unplaceable> {
        let remedy = finding.kind.remedy().ok_or(Unplaceable::NoRemedy(finding.kind))?;
        let view = analysis.objects.iter().find(|object| object.id == id).ok_or(Unplaceable::NotJudged)?;
        let object = analysis.traffic.objects.iter().find(|object| object.id == id).ok_or(Unplaceable::NoTraffic)?;
        // A policy of memory that processes share holds for all of them, whichever sets it.
        if view.process != self.numbering.process && view.shared_by.is_none() {
            return Err(Unplaceable::OtherProcess);
        }
        // Its loops divide it differently, and one of them gives each thread one block.
        let is_by_loop = finding.kind == FindingKind::NoStablePartition && finding.fix_kind == FixKind::DivideFirstTouch;
        let origin = self.origins.origin(view)?;
        if view.is_spread && remedy == Remedy::Interleave && !is_by_loop {
            return Err(Unplaceable::Spread);
        }
        let is_divided = is_by_loop || (remedy == Remedy::ParallelFirstTouch && object.division == Division::Owned);
        let divided = || match (object.rows > 1 && self.are_allocated_at_once(view), is_by_loop) {
            (true, _) => Err(Undivided::AllocatedAtOnce),
            (false, true) => self.equal_blocks(object),
            (false, false) => self.blocks(object),
        };
        let (blocks, undivided) = match is_divided.then(divided) {
            None => (None, None),
            Some(Ok(blocks)) => (Some(blocks), None),
            Some(Err(why)) => (None, Some(why)),
        };
        Ok(Proposal { finding, view, object, blocks, undivided, origin })
    }

    /// Whether several threads allocate blocks at the place in the code where those of an object come from: a plan knows a block by its place in the
    /// order of allocations.
    fn are_allocated_at_once(&self, view: &ObjectView) -> bool {
        let objects = &self.profile.objects;
        let Some(own) = objects.iter().find(|object| object.id == view.id) else { return false };
        let place = own.site.map(|site| self.own_code(site)).filter(|code| !code.is_empty());
        let mut is_here: HashMap<Id, bool> = HashMap::new();
        let mut by_thread: HashMap<Id, usize> = HashMap::new();
        for object in objects.iter().filter(|object| object.process == own.process && object.bytes == own.bytes) {
            let (Some(site), Some(thread)) = (object.site, object.thread) else { continue };
            if *is_here.entry(site).or_insert_with(|| Some(self.own_code(site)) == place) {
                *by_thread.entry(thread).or_default() += 1;
            }
        }
        let (all, most) = (by_thread.values().sum::<usize>(), by_thread.values().copied().max().unwrap_or(0));
        (all - most) * FEW_BY_OTHERS > all
    }

    /// The frames of a call stack up to those of another file: in a parallel region or a task, the first thread's stack goes on in the code that started
    /// it, and the others' in the runtime.
    fn own_code(&self, site: Id) -> Vec<Option<u64>> {
        let frames = self.profile.sites.get(&site).map(|site| &site.frames[..]).unwrap_or_default();
        let module = frames.first().and_then(|first| first.module.as_ref());
        frames.iter().take_while(|frame| frame.module.as_ref() == module && module.is_some()).map(|frame| frame.offset).collect()
    }

    /// A block for each thread that uses it, in the order of threads.
    fn equal_blocks(&self, object: &ObjectTraffic) -> Result<Blocks, Undivided> {
        let workers: BTreeSet<usize> = object.of_team().flat_map(|sample| &sample.bytes).map(|(worker, _)| *worker).collect();
        let threads: Option<Vec<u32>> = workers.iter().map(|worker| self.numbering.of_worker(*worker)).collect();
        let threads = threads.ok_or(Undivided::OtherOwners)?;
        if !self.numbering.is_ordered {
            return Err(Undivided::Unordered);
        }
        let rows = u32::try_from(object.rows).unwrap_or(u32::MAX).max(1);
        Ok(Blocks { threads, until: Vec::new(), period_bytes: None, rows })
    }

    fn blocks(&self, object: &ObjectTraffic) -> Result<Blocks, Undivided> {
        let parts = object.parts.as_ref().ok_or(Undivided::NoRule)?;
        let threads: Option<Vec<u32>> = parts.workers.iter().map(|worker| self.numbering.of_worker(*worker)).collect();
        let threads = threads.ok_or(Undivided::OtherOwners)?;
        let count = threads.len() as f64;
        let equal = parts.ends.iter().enumerate().all(|(part, end)| (end - (part + 1) as f64 / count).abs() < 1e-12);
        // Borders from samples are only as precise as the distance of the samples. With one part per thread, there are few borders.
        let several_each = threads.len() > self.numbering.threads.count as usize;
        if !equal && several_each && object.samples.len() < SAMPLES_A_PART * threads.len() {
            return Err(Undivided::UncertainBorders);
        }
        if !self.numbering.is_ordered {
            return Err(Undivided::Unordered);
        }
        let until = if equal { Vec::new() } else { parts.ends.clone() };
        let rows = u32::try_from(object.rows).unwrap_or(u32::MAX).max(1);
        Ok(Blocks { threads, until, period_bytes: parts.period_bytes, rows })
    }
}

impl Proposal<'_> {
    /// Parallel first touch comes first: interleaving must gain more than giving each thread its part.
    fn candidate(&self) -> Candidate {
        let blocks = self.blocks.as_ref().map(|_| Placement::ParallelFirstTouch);
        Candidate { object: self.view.id, others: Vec::new(), options: blocks.into_iter().chain([Placement::Interleave]).collect() }
    }

    pub fn policy(&self, placement: Placement) -> Policy {
        match (&self.blocks, placement) {
            (Some(blocks), Placement::ParallelFirstTouch) => Policy::Blocked(blocks.clone()),
            _ => Policy::Interleave(Vec::new()),
        }
    }
}
