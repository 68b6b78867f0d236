//! The analysis of the last seconds of a profile that is still written, for live views.

use crate::{AnalysisRequest, FileSources, Result};
use firsttouch_analysis::{Analysis, Missing, analyse};
use firsttouch_model::rows::{Id, Object, Profile, Site, Thread, TimerSample};
use firsttouch_symbols::frames::symbolize_sites;
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::ops::Range;
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

/// CPU times that threads had when a window began, ns. What they did before does not count: a thread that compiled a Java program, and sleeps since, has
/// no place beside those that compute.
struct Before(HashMap<Id, u64>);

impl Before {
    /// By the last sample of each thread before the window, else by its first one in it. `older`, `recent`: all samples, in the order of time.
    fn new(older: &[TimerSample], recent: &[TimerSample], threads: &[Thread], from_ns: u64) -> Self {
        let of_time = |sample: &&TimerSample| sample.weight > 0.0;
        let mut before: HashMap<Id, u64> = HashMap::new();
        for sample in older.iter().filter(of_time) {
            before.insert(sample.thread, sample.cpu_ns);
        }
        let old: HashSet<Id> = threads.iter().filter(|thread| thread.born_ns < from_ns).map(|thread| thread.id).collect();
        for sample in recent.iter().filter(of_time).filter(|sample| old.contains(&sample.thread)) {
            before.entry(sample.thread).or_insert(sample.cpu_ns);
        }
        Self(before)
    }

    /// CPU times since then instead of those since birth, and back.
    fn subtract(&self, samples: &mut [TimerSample], threads: &mut [Thread]) -> Vec<Option<u64>> {
        samples.iter_mut().for_each(|sample| sample.cpu_ns = sample.cpu_ns.wrapping_sub(self.of(sample.thread)));
        let read = threads.iter().map(|thread| thread.cpu_ns).collect();
        threads.iter_mut().for_each(|thread| thread.cpu_ns = thread.cpu_ns.map(|ns| ns.saturating_sub(self.of(thread.id))));
        read
    }

    fn add(&self, samples: &mut [TimerSample], threads: &mut [Thread], read: Vec<Option<u64>>) {
        samples.iter_mut().for_each(|sample| sample.cpu_ns = sample.cpu_ns.wrapping_add(self.of(sample.thread)));
        threads.iter_mut().zip(read).for_each(|(thread, read)| thread.cpu_ns = read);
    }

    fn of(&self, thread: Id) -> u64 {
        self.0.get(&thread).copied().unwrap_or(0)
    }
}

/// Judges one process of a profile by the samples since `from_ns`, and by the CPU times since then. `profile`: its rows so far, which stay as they are.
///
/// On a virtual machine, the threads of the process are spread over all nodes, whatever other processes do; those that do nothing now have no place.
///
/// # Errors
/// When the pinning does not fit the machine of the profile.
pub fn analyse_window(profile: &mut Profile, process: Id, from_ns: u64, request: &AnalysisRequest) -> Result<Analysis> {
    let first = profile.samples.partition_point(|sample| sample.time_ns < from_ns);
    let recent = profile.samples.split_off(first);
    let first_id = recent.first().map_or(Id::MAX, |sample| sample.id);
    let first = profile.sampled_accesses.partition_point(|access| access.sample < first_id);
    let accesses = profile.sampled_accesses.split_off(first);
    let before = Before::new(&profile.samples, &recent, &profile.threads, from_ns);
    let older = (std::mem::replace(&mut profile.samples, recent), std::mem::replace(&mut profile.sampled_accesses, accesses));
    let read = before.subtract(&mut profile.samples, &mut profile.threads);
    let analysed = analyse_process(profile, process, request);
    before.add(&mut profile.samples, &mut profile.threads, read);
    let recent = (std::mem::replace(&mut profile.samples, older.0), std::mem::replace(&mut profile.sampled_accesses, older.1));
    profile.samples.extend(recent.0);
    profile.sampled_accesses.extend(recent.1);
    analysed
}

fn analyse_process(whole: &Profile, process: Id, request: &AnalysisRequest) -> Result<Analysis> {
    let common = shared_with_others(whole, process);
    let own = (whole.processes.len() > 1).then(|| only(whole, process, &common));
    let profile = own.as_ref().unwrap_or(whole);
    let target = request.target_of(profile)?;
    let start = profile.meta.start_unix_s.map(|start| SystemTime::UNIX_EPOCH + Duration::from_secs(start.min(u64::from(u32::MAX))));
    let sources = FileSources::new(firsttouch_native::SOURCES).until(start.unwrap_or_else(SystemTime::now) + Duration::from_secs(1));
    let sources = sources.of(profile);
    let mut analysis = analyse(profile, &target, &sources);
    let common: HashSet<Id> = common.iter().map(|object| object.id).collect();
    for object in analysis.objects.iter_mut().filter(|object| common.contains(&object.id)) {
        if let Some(reason) = &mut object.reason {
            reason.explain(&Missing::SharedMemory);
        }
    }
    Ok(analysis)
}

/// The rows of one process. In memory that it shares with others of the profile, its page faults are no first touches: one of them may have touched the
/// pages before, and the process only maps them.
fn only(profile: &Profile, process: Id, common: &[&Object]) -> Profile {
    let mut own = profile.clone();
    let common: Vec<Range<u64>> = common.iter().map(|object| object.address..object.address.saturating_add(object.bytes)).collect();
    own.processes.retain(|one| one.id == process);
    own.threads.retain(|one| one.process == process);
    let threads: HashSet<Id> = own.threads.iter().map(|thread| thread.id).collect();
    own.thread_cpus.retain(|(thread, _), _| threads.contains(thread));
    own.objects.retain(|one| one.process == process);
    let objects: HashSet<Id> = own.objects.iter().map(|object| object.id).collect();
    own.shared_memory.retain(|object, _| objects.contains(object));
    own.policies.retain(|object, _| objects.contains(object));
    let is_common = |address: u64| common.iter().any(|object| object.contains(&address));
    own.first_touches.retain(|one| one.process == process && !is_common(one.address));
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

/// The process's objects in memory that objects of other processes lie in too.
fn shared_with_others(profile: &Profile, process: Id) -> Vec<&Object> {
    let memory = |object: &Object| profile.shared_memory.get(&object.id).map(|shared| shared.memory.as_str());
    let others: HashSet<&str> = profile.objects.iter().filter(|object| object.process != process).filter_map(memory).collect();
    let own = profile.objects.iter().filter(|object| object.process == process);
    own.filter(|object| memory(object).is_some_and(|memory| others.contains(memory))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{FirstTouch, ObjectKind, SampleState, SharedMemory};

    fn sample(id: Id, thread: Id, time_ns: u64, cpu_ns: u64) -> TimerSample {
        let state = SampleState::Computing;
        TimerSample { id, thread, time_ns, cpu: 0, cpu_ns, weight: 1.0, site: None, state, around: None, unknown: 0, elsewhere: 0.0 }
    }

    fn thread(id: Id, born_ns: u64, cpu_ns: u64) -> Thread {
        Thread { id, process: 1, tid: 1, born_ns, cpu_ns: Some(cpu_ns), ..Thread::default() }
    }

    /// Check that a window has the CPU times since it began, of threads with samples before it, without, and that were born in it; and that all rows are
    /// as before afterwards.
    #[test]
    fn windows_have_their_own_cpu_times() {
        let older = [sample(1, 0, 10, 300), sample(2, 0, 20, 310)];
        let mut recent = [sample(3, 1, 105, 4000), sample(4, 0, 110, 320), sample(5, 2, 120, 7), sample(6, 1, 130, 4010)];
        let mut threads = [thread(0, 0, 325), thread(1, 0, 4015), thread(2, 101, 9), thread(3, 0, 8)];
        let (samples_before, threads_before) = (recent.clone(), threads.clone());
        let before = Before::new(&older, &recent, &threads, 100);
        let read = before.subtract(&mut recent, &mut threads);
        assert_eq!(recent.iter().map(|sample| sample.cpu_ns).collect::<Vec<_>>(), [0, 10, 7, 10]);
        assert_eq!(threads.iter().map(|thread| thread.cpu_ns.unwrap()).collect::<Vec<_>>(), [15, 15, 9, 8]);
        before.add(&mut recent, &mut threads, read);
        assert_eq!((recent.to_vec(), threads.to_vec()), (samples_before.to_vec(), threads_before.to_vec()));
    }

    /// Check that a process's page faults in memory that another one has too are no first touches, and that those in its own memory are.
    #[test]
    fn faults_in_shared_memory_are_no_first_touches() {
        let object = |id: Id, process: Id, address: u64| Object {
            id,
            process,
            kind: ObjectKind::Mapping,
            call: None,
            name: None,
            address,
            bytes: 8192,
            born_ns: 0,
            died_ns: None,
            site: None,
            thread: None,
        };
        let touch = |id: Id, process: Id, address: u64| FirstTouch {
            id,
            process,
            time_ns: 1,
            thread: process,
            cpu: 0,
            address,
            weight: 1.0,
            by_kernel: false,
            site: None,
            mapped_bytes: None,
            node: None,
        };
        let memory = |name: &str| SharedMemory { memory: name.into(), offset: 0, present: None };
        let profile = Profile {
            objects: vec![object(1, 1, 0x1000), object(2, 2, 0x1000), object(3, 2, 0x9000)],
            shared_memory: [(1, memory("00:01 7")), (2, memory("00:01 7")), (3, memory("00:01 8"))].into(),
            first_touches: vec![touch(1, 1, 0x1000), touch(2, 2, 0x2000), touch(3, 2, 0x9000), touch(4, 2, 0x3000)],
            ..Profile::default()
        };
        let of = |process| {
            only(&profile, process, &shared_with_others(&profile, process)).first_touches.iter().map(|touch| touch.id).collect::<Vec<Id>>()
        };
        assert_eq!((of(1), of(2)), (vec![], vec![3, 4]));
    }
}
