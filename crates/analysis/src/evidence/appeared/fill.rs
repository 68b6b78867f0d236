//! How threads filled memory: by which line, or by which system call.
//!
//! A tick that hits a thread in a system call is delivered when the call ends. So at any time, a thread was in a system call if its next
//! sample was taken right behind one, and it was in the program's code if its next sample was taken there. A call that reads data ends soon after
//! the last page appears. On a loaded machine the next sample may come much later, behind another call: then nothing is known.

use super::owners::{Owner, Owners};
use super::windows::Segment;
use firsttouch_model::rows::{Id, Profile, SampleState, TimerSample};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// The next sample of a thread that filled memory comes so soon, ns. A later one may show what it did next.
const SOON_NS: u64 = 8_000_000;

/// Who filled a segment, beside its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Filler {
    pub cpu: u32,
    pub site: Option<Id>,
    pub by_kernel: bool,
}

/// Votes for what filled the memory of one object.
#[derive(Debug, Default)]
struct Votes {
    /// Samples that write it when its pages appear, by site.
    writers: BTreeMap<Id, u64>,
    /// Pages whose thread was in a system call that reads data, by the site of the call.
    calls: BTreeMap<Option<Id>, u64>,
    /// Pages whose thread was seen behind such a call, but long after its last page had appeared.
    doubtful: u64,
    /// Pages whose thread ran code, by the sampled instruction.
    code: BTreeMap<Id, u64>,
    pages: u64,
}

type Key = (Id, Owner, Option<Id>);
/// From and to, in the order of time.
type Times = Vec<(u64, u64)>;

pub(super) struct Fillers<'a> {
    samples: HashMap<Id, Vec<&'a TimerSample>>,
    owners: &'a Owners<'a>,
    /// Whether the code at a site reads data from a file or a socket.
    reads: &'a dyn Fn(Id) -> bool,
    /// When a thread touched memory of an object.
    times: HashMap<(Key, Option<Id>), Times>,
    votes: HashMap<Key, Votes>,
}

impl<'a> Fillers<'a> {
    pub fn new(profile: &'a Profile, owners: &'a Owners<'a>, reads: &'a dyn Fn(Id) -> bool, segments: &[Segment]) -> Self {
        let mut samples: HashMap<Id, Vec<&TimerSample>> = HashMap::new();
        profile.samples.iter().for_each(|sample| samples.entry(sample.thread).or_default().push(sample));
        samples.values_mut().for_each(|list| list.sort_by_key(|sample| sample.time_ns));
        let mut fillers = Self { samples, owners, reads, times: HashMap::new(), votes: HashMap::new() };
        for segment in segments {
            let key = (fillers.key(segment), segment.thread);
            fillers.times.entry(key).or_default().push((segment.from_ns, segment.to_ns));
        }
        fillers.times.values_mut().for_each(|list| list.sort_unstable());
        segments.iter().for_each(|segment| fillers.vote(segment));
        fillers
    }

    fn vote(&mut self, segment: &Segment) {
        let pages = (segment.end - segment.start) / segment.page_bytes;
        let next = self.next_sample(segment);
        let is_read = |sample: &&TimerSample| sample.state == SampleState::InKernel && sample.site.is_some_and(self.reads);
        let call = next.filter(is_read).map(|sample| (sample.site, self.is_soon(segment, sample)));
        let is_code = |sample: &&TimerSample| {
            matches!(sample.state, SampleState::Computing | SampleState::Undecoded)
                && sample.time_ns <= segment.to_ns.saturating_add(SOON_NS)
        };
        let code = next.filter(is_code).and_then(|sample| sample.site);
        let votes = self.votes.entry(self.key(segment)).or_default();
        votes.pages += pages;
        match call {
            Some((site, true)) => *votes.calls.entry(site).or_default() += pages,
            Some((_, false)) => votes.doubtful += pages,
            None => {}
        }
        if let Some(site) = code {
            *votes.code.entry(site).or_default() += pages;
        }
        if let Some(site) = segment.site {
            *votes.writers.entry(site).or_default() += 1;
        }
    }

    pub fn of(&self, segment: &Segment) -> Filler {
        let cpu = self.next_sample(segment).map_or(0, |sample| sample.cpu);
        let Some(votes) = self.votes.get(&self.key(segment)) else { return Filler { cpu, ..Filler::default() } };
        if let Some(site) = segment.site.or_else(|| most_frequent(&votes.writers)) {
            return Filler { cpu, site: Some(site), by_kernel: false };
        }
        let in_calls: u64 = votes.calls.values().sum();
        match votes.calls.iter().rev().max_by_key(|(_, pages)| **pages) {
            Some((&site, _)) if 2 * in_calls > votes.pages => Filler { cpu, site, by_kernel: true },
            _ => Filler { cpu, site: most_frequent(&votes.code), by_kernel: false },
        }
    }

    /// Neither a sample nor the end of a call shows whether code or the kernel filled it.
    pub fn is_doubtful(&self, segment: &Segment) -> bool {
        self.votes.get(&self.key(segment)).is_some_and(|votes| votes.writers.is_empty() && 2 * votes.doubtful > votes.pages)
    }

    /// The sample comes soon after the thread's last page of this object before it.
    fn is_soon(&self, segment: &Segment, sample: &TimerSample) -> bool {
        let Some(times) = self.times.get(&(self.key(segment), segment.thread)) else { return false };
        let last = times[..times.partition_point(|time| time.0 <= sample.time_ns)].last();
        last.is_some_and(|(_, to)| sample.time_ns.saturating_sub(*to) <= SOON_NS)
    }

    /// The first sample of the thread after the segment was made.
    fn next_sample(&self, segment: &Segment) -> Option<&'a TimerSample> {
        let list = self.samples.get(&segment.thread?)?;
        list.get(list.partition_point(|sample| sample.time_ns < segment.time_ns)).or_else(|| list.last()).copied()
    }

    fn key(&self, segment: &Segment) -> Key {
        let owner = self.owners.of(segment);
        // Small blocks of several threads have nothing to do with each other.
        (segment.process, owner, if owner == Owner::None { segment.thread } else { None })
    }
}

fn most_frequent(sites: &BTreeMap<Id, u64>) -> Option<Id> {
    sites.iter().rev().max_by_key(|(_, count)| **count).map(|(site, _)| *site)
}
