//! The analysis of the last seconds of a profile that is still written, for live views.

use crate::{AnalysisRequest, FileSources, Result};
use firsttouch_analysis::{Analysis, analyse};
use firsttouch_model::rows::{Id, Profile, Site};
use firsttouch_symbols::frames::symbolize_sites;
use hashbrown::HashSet;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// Names of code that were looked up for a live profile.
#[derive(Default)]
pub struct LiveNames {
    sites: HashSet<Id>,
}

impl LiveNames {
    /// Call stacks that allocated objects and have no names yet.
    #[must_use]
    pub fn missing(&self, profile: &Profile) -> Vec<Id> {
        let mut sites: Vec<Id> =
            profile.objects.iter().filter_map(|object| object.site).filter(|site| !self.sites.contains(site)).collect();
        sites.sort_unstable();
        sites.dedup();
        sites
    }

    /// Looks up the functions and lines of these call stacks.
    pub fn look_up(&mut self, profile: &mut Profile, sites: &[Id]) {
        let mut wanted: BTreeMap<Id, Site> = sites.iter().filter_map(|site| Some((*site, profile.sites.remove(site)?))).collect();
        symbolize_sites(&mut wanted, |_| false, |_, _| {});
        profile.sites.append(&mut wanted);
        self.sites.extend(sites);
    }
}

/// Judges one process of a profile by the samples since `from_ns`. `profile`: its rows so far, which stay as they are.
///
/// On a virtual machine, the threads of the process are spread over all nodes, whatever other processes do.
///
/// # Errors
/// When the pinning does not fit the machine of the profile.
pub fn analyse_window(profile: &mut Profile, process: Id, from_ns: u64, request: &AnalysisRequest) -> Result<Analysis> {
    let first = profile.samples.partition_point(|sample| sample.time_ns < from_ns);
    let recent = profile.samples.split_off(first);
    let first_id = recent.first().map_or(Id::MAX, |sample| sample.id);
    let first = profile.sampled_accesses.partition_point(|access| access.sample < first_id);
    let accesses = profile.sampled_accesses.split_off(first);
    let older = (std::mem::replace(&mut profile.samples, recent), std::mem::replace(&mut profile.sampled_accesses, accesses));
    let analysed = analyse_process(profile, process, request);
    let recent = (std::mem::replace(&mut profile.samples, older.0), std::mem::replace(&mut profile.sampled_accesses, older.1));
    profile.samples.extend(recent.0);
    profile.sampled_accesses.extend(recent.1);
    analysed
}

fn analyse_process(profile: &Profile, process: Id, request: &AnalysisRequest) -> Result<Analysis> {
    let own = (profile.processes.len() > 1).then(|| only(profile, process));
    let profile = own.as_ref().unwrap_or(profile);
    let target = request.target_of(profile)?;
    let start = profile.meta.start_unix_s.map(|start| SystemTime::UNIX_EPOCH + Duration::from_secs(start.min(u64::from(u32::MAX))));
    let sources = FileSources::new(firsttouch_native::SOURCES).until(start.unwrap_or_else(SystemTime::now) + Duration::from_secs(1));
    let sources = sources.of(profile);
    Ok(analyse(profile, &target, &sources))
}

/// The rows of one process.
fn only(profile: &Profile, process: Id) -> Profile {
    let mut own = profile.clone();
    own.processes.retain(|one| one.id == process);
    own.threads.retain(|one| one.process == process);
    let threads: HashSet<Id> = own.threads.iter().map(|thread| thread.id).collect();
    own.thread_cpus.retain(|(thread, _), _| threads.contains(thread));
    own.objects.retain(|one| one.process == process);
    let objects: HashSet<Id> = own.objects.iter().map(|object| object.id).collect();
    own.shared_memory.retain(|object, _| objects.contains(object));
    own.policies.retain(|object, _| objects.contains(object));
    own.first_touches.retain(|one| one.process == process);
    own.releases.retain(|one| one.process == process);
    own.populations.retain(|one| one.process == process);
    own.appeared.retain(|one| one.process == process);
    own.fault_counts.retain(|one| one.process == process);
    own.small_blocks.retain(|one| one.process == process);
    own.pages.retain(|one| one.process == process);
    own.regions.retain(|one| one.process == process);
    own.samples.retain(|one| threads.contains(&one.thread));
    let samples: HashSet<Id> = own.samples.iter().map(|sample| sample.id).collect();
    own.sampled_accesses.retain(|one| samples.contains(&one.sample));
    own
}
