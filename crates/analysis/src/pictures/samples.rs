//! The accesses behind a report, one by one, for the formats of other tools.

use crate::estimator::Design;
use crate::evidence::{Evidence, Hit, SourceRef};
use crate::groups::Group;
use crate::homes::Home;
use crate::judge::Subject;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::{Frame, Id, Profile};
use std::collections::{BTreeMap, BTreeSet};

/// Accesses of one thread at one sampled address.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessSample {
    /// Nanoseconds since the start of the program.
    pub time_ns: u64,
    /// Index of the thread, and the node that it ran on.
    pub thread: usize,
    pub thread_node: u32,
    /// The object's id in the report.
    pub object: Id,
    /// Bytes from the start of the object.
    pub position: u64,
    /// The node of the page; `None` if it is not known.
    pub home: Option<u32>,
    /// The accesses that the sample stands for.
    pub accesses: f64,
    /// Whether it counts in the report's remote fraction: the object is larger than a core's cache, and the node is known.
    pub counts: bool,
    /// The call stack, in [`AccessSamples::stacks`].
    pub site: Option<Id>,
}

/// All samples of the source that the report's remote fraction comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessSamples {
    pub source: Option<EvidenceSource>,
    /// By time, then thread.
    pub list: Vec<AccessSample>,
    /// Frames by site, leaf first.
    pub stacks: BTreeMap<Id, Vec<Frame>>,
}

impl AccessSample {
    /// Whether the memory is on another node than the thread; `None` if that is not known.
    #[must_use]
    pub fn is_remote(&self) -> Option<bool> {
        self.home.map(|home| home != self.thread_node)
    }
}

/// The samples of a source on all listed objects.
pub(crate) fn samples(
    profile: &Profile,
    uses: &Evidence,
    source: Option<SourceRef>,
    (groups, subjects): (&[Group], &[Subject]),
) -> AccessSamples {
    let Some(source) = source else { return AccessSamples::default() };
    let sampled = uses.of(source);
    let start = profile.meta.start_ns.unwrap_or(0);
    let mut list = Vec::new();
    for subject in subjects {
        let object = profile.objects[groups[subject.group].representative].id;
        for hit in &sampled.hits[subject.group] {
            push(&mut list, hit, &sampled.design, (object, subject.counts, start));
        }
    }
    list.sort_by(|a: &AccessSample, b| {
        (a.time_ns, a.thread, a.object, a.position, a.site).cmp(&(b.time_ns, b.thread, b.object, b.position, b.site))
    });
    // Each once: a copy of a stack for each sample would be larger than the profile.
    let used: BTreeSet<Id> = list.iter().filter_map(|sample| sample.site).collect();
    let stacks = used.into_iter().filter_map(|site| Some((site, profile.sites.get(&site)?.frames.clone()))).collect();
    AccessSamples { source: Some(source.name()), list, stacks }
}

/// Adds a hit: its accesses by thread, each divided among the places in the code as the whole hit is.
fn push(list: &mut Vec<AccessSample>, hit: &Hit, design: &Design, (object, counts, start): (Id, bool, u64)) {
    let by_sites: f64 = hit.sites.iter().map(|(_, rate)| rate).sum();
    let sites: &[(Option<Id>, f64)] = if by_sites > 0.0 { &hit.sites } else { &[(None, 1.0)] };
    let whole = if by_sites > 0.0 { by_sites } else { 1.0 };
    let home = match hit.home {
        Home::Known { node, .. } => Some(node),
        Home::Untouched | Home::Unknown => None,
    };
    for by in &hit.by_thread {
        for (site, rate) in sites {
            list.push(AccessSample {
                time_ns: (hit.start / 2 + hit.end / 2).saturating_sub(start),
                thread: by.thread,
                thread_node: by.node,
                object,
                position: hit.position,
                home,
                accesses: design.weight(hit.draw) * by.rate * rate / whole,
                counts: counts && home.is_some(),
                site: *site,
            });
        }
    }
}
