//! How threads filled memory: by which line, or by which system call.
//!
//! A tick that hits a thread in a system call is delivered when the call ends. So at any time, a thread was in a system call if its next
//! sample was taken right behind one, and it was in the program's code if its next sample was taken there.

use super::owners::Owners;
use super::windows::Segment;
use firsttouch_model::rows::{Id, Profile, SampleState, SampledAccess, TimerSample};
use std::collections::{BTreeMap, HashMap};

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
    /// Pages whose thread was in a system call, by the site of the call.
    calls: BTreeMap<Option<Id>, u64>,
    pages: u64,
}

pub(super) struct Fillers<'a> {
    samples: HashMap<Id, Vec<&'a TimerSample>>,
    owners: &'a Owners<'a>,
    votes: HashMap<(Id, Key), Votes>,
    /// By segment: the site that most of its own samples show.
    own: HashMap<(u64, u64), Id>,
}

/// What was filled: the objects of one site, one object, or other memory of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Site(Id),
    Object(Id),
    Thread(Id),
}

impl<'a> Fillers<'a> {
    pub fn new(profile: &'a Profile, owners: &'a Owners<'a>, accesses: &[&[SampledAccess]], segments: &[Segment]) -> Self {
        let mut samples: HashMap<Id, Vec<&TimerSample>> = HashMap::new();
        profile.samples.iter().for_each(|sample| samples.entry(sample.thread).or_default().push(sample));
        samples.values_mut().for_each(|list| list.sort_by_key(|sample| sample.time_ns));
        let mut fillers = Self { samples, owners, votes: HashMap::new(), own: HashMap::new() };
        let mut writes: HashMap<Id, Vec<(u64, u64, Id)>> = HashMap::new();
        for (sample, own) in profile.samples.iter().zip(accesses) {
            let sites = own.iter().filter(|access| access.kind.writes()).filter_map(|access| Some((access.address, access.site?)));
            writes.entry(sample.thread).or_default().extend(sites.map(|(address, site)| (sample.time_ns, address, site)));
        }
        writes.values_mut().for_each(|list| list.sort_unstable());
        for segment in segments {
            fillers.vote(segment, segment.thread.and_then(|thread| writes.get(&thread)).map_or(&[][..], Vec::as_slice));
        }
        fillers
    }

    fn vote(&mut self, segment: &Segment, writes: &[(u64, u64, Id)]) {
        let pages = (segment.end - segment.start) / segment.page_bytes;
        let next = self.next_sample(segment);
        let call = next.filter(|sample| sample.state == SampleState::InKernel).map(|sample| sample.site);
        let votes = self.votes.entry((segment.process, self.key(segment))).or_default();
        votes.pages += pages;
        if let Some(call) = call {
            *votes.calls.entry(call).or_default() += pages;
        }
        let from = writes.partition_point(|write| write.0 < segment.from_ns);
        let during = writes[from..].iter().take_while(|write| write.0 <= segment.to_ns);
        let mut own: BTreeMap<Id, u64> = BTreeMap::new();
        for (_, _, site) in during.filter(|write| (segment.start..segment.end).contains(&write.1)) {
            *votes.writers.entry(*site).or_default() += 1;
            *own.entry(*site).or_default() += 1;
        }
        self.own.extend(most_frequent(&own).map(|site| ((segment.start, segment.time_ns), site)));
    }

    pub fn of(&self, segment: &Segment) -> Filler {
        let cpu = self.next_sample(segment).map_or(0, |sample| sample.cpu);
        let Some(votes) = self.votes.get(&(segment.process, self.key(segment))) else { return Filler { cpu, ..Filler::default() } };
        let own = self.own.get(&(segment.start, segment.time_ns)).copied();
        if let Some(site) = own.or_else(|| most_frequent(&votes.writers)) {
            return Filler { cpu, site: Some(site), by_kernel: false };
        }
        let in_calls: u64 = votes.calls.values().sum();
        match votes.calls.iter().rev().max_by_key(|(_, pages)| **pages) {
            Some((&site, _)) if 2 * in_calls > votes.pages => Filler { cpu, site, by_kernel: true },
            _ => Filler { cpu, ..Filler::default() },
        }
    }

    /// The first sample of the thread after the segment was made.
    fn next_sample(&self, segment: &Segment) -> Option<&'a TimerSample> {
        let list = self.samples.get(&segment.thread?)?;
        list.get(list.partition_point(|sample| sample.time_ns < segment.time_ns)).or_else(|| list.last()).copied()
    }

    fn key(&self, segment: &Segment) -> Key {
        match self.owners.of(segment.process, (segment.start, segment.end), segment.time_ns) {
            Some(object) => object.site.map_or(Key::Object(object.id), Key::Site),
            None => Key::Thread(segment.thread.unwrap_or_default()),
        }
    }
}

fn most_frequent(sites: &BTreeMap<Id, u64>) -> Option<Id> {
    sites.iter().rev().max_by_key(|(_, count)| **count).map(|(site, _)| *site)
}
