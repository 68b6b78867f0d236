//! A whole profile in memory.

use super::metadata::Metadata;
use super::{
    Access, Appeared, Bandwidth, Counter, Evidence, FaultCount, FaultPeriod, FirstTouch, FoldedObjects, Host, Id, Lost, Machine, Object,
    OperandCount, Owner, Page, Part, Policy, Population, Process, PythonLine, Region, Release, SampledAccess, Seen, SharedMemory, Site,
    SmallBlock, SourceFile, Thread, TimerSample, Window,
};
use crate::evidence::EvidenceSource;
use std::collections::BTreeMap;

/// A whole profile in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    pub meta: Metadata,
    pub machine: Machine,
    pub evidence: Vec<Evidence>,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub thread_cpus: BTreeMap<(Id, u32), Seen>,
    pub sites: BTreeMap<Id, Site>,
    pub objects: Vec<Object>,
    /// Of objects in memory that processes can share.
    pub shared_memory: BTreeMap<Id, SharedMemory>,
    pub folded_objects: Vec<FoldedObjects>,
    pub small_blocks: Vec<SmallBlock>,
    pub first_touches: Vec<FirstTouch>,
    /// In the order of time; empty if they were not recorded.
    pub fault_periods: Vec<FaultPeriod>,
    pub releases: Vec<Release>,
    pub populations: Vec<Population>,
    pub appeared: Vec<Appeared>,
    pub fault_counts: Vec<FaultCount>,
    pub windows: Vec<Window>,
    pub accesses: Vec<Access>,
    pub samples: Vec<TimerSample>,
    pub sampled_accesses: Vec<SampledAccess>,
    pub operand_counts: Vec<OperandCount>,
    pub python_lines: Vec<PythonLine>,
    pub pages: Vec<Page>,
    /// Policies by object.
    pub policies: BTreeMap<Id, Policy>,
    pub counters: Vec<Counter>,
    /// Of the whole system, in the order of time.
    pub bandwidth: Vec<Bandwidth>,
    pub regions: Vec<Region>,
    pub lost: Vec<Lost>,
    /// Source files that the frames name, as they were when the profile was symbolised; empty if that was not recorded.
    pub source_files: BTreeMap<String, SourceFile>,
    /// The hosts of a merged profile, in the order of their numbers; empty for the profile of one recording.
    pub hosts: Vec<Host>,
    /// The parts of a merged profile, in the order of their numbers; empty for the profile of one recording.
    pub parts: Vec<Part>,
    /// Whose source files the frames name.
    pub owner: Owner,
}

impl Profile {
    /// The index of the part of a merged profile that a process belongs to; `None` if the profile was not merged.
    #[must_use]
    pub fn index_of_part(&self, process: Id) -> Option<usize> {
        self.parts.partition_point(|part| part.first.process <= process).checked_sub(1)
    }

    /// The part of a merged profile that a process belongs to; `None` if the profile is not merged.
    #[must_use]
    pub fn part_of(&self, process: Id) -> Option<&Part> {
        self.parts[..self.parts.partition_point(|part| part.first.process <= process)].last()
    }

    /// The host of a part.
    #[must_use]
    pub fn host_of(&self, part: &Part) -> Option<&Host> {
        self.hosts.get(usize::try_from(part.host).ok()?)
    }

    /// The profile's information about one source of evidence.
    #[must_use]
    pub fn evidence_of(&self, source: &EvidenceSource) -> Option<&Evidence> {
        self.evidence.iter().find(|evidence| evidence.source == source.as_str())
    }

    /// The number of records that a source lost, for all reasons together.
    #[must_use]
    pub fn lost_by(&self, source: &EvidenceSource) -> u64 {
        self.lost.iter().filter(|lost| lost.source == source.as_str()).fold(0, |sum, lost| sum.saturating_add(lost.count))
    }

    /// Growth of a counter of the whole system, or the sum over the nodes; `None` if it was not recorded.
    #[must_use]
    pub fn grown(&self, name: &str) -> Option<u64> {
        let all = self.counters.iter().filter(|c| c.name == name);
        all.map(Counter::growth).fold(None, |sum, growth| Some(sum.unwrap_or(0).saturating_add(growth)))
    }

    /// Growth of a node's counter.
    #[must_use]
    pub fn grown_on(&self, name: &str, node: u32) -> Option<u64> {
        self.counters.iter().find(|c| c.name == name && c.node == Some(node)).map(Counter::growth)
    }
}
