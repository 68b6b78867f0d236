//! Processes that outlive the recorded one: which of them go on with the program's work. A helper that sleeps (an agent, a tracker, a daemon without
//! requests) does not: what it did while it was recorded is all that counts.

use firsttouch_model::rows::{Id, Process, Profile, SampleState};
use hashbrown::HashMap;

/// A process shows that it idles in this time at least, and in this part of the recording.
const LEAST_SEEN_NS: u64 = 500_000_000;
const LEAST_PART: f64 = 0.5;
/// It used less than this part of it, and has fewer samples that computed.
const IDLE: f64 = 0.02;
const FEW_SAMPLES: usize = 3;

/// The processes that outlive the recorded one, without those that were recorded and idled. Those that were not recorded may work.
#[must_use]
pub fn working(profile: &Profile) -> u64 {
    if profile.meta.processes_left == 0 {
        return 0;
    }
    let seen = Seen::of_processes(profile);
    let idle =
        profile.processes.iter().filter(|process| process.died_ns.is_none() && idles(profile, process, seen.get(&process.id))).count();
    profile.meta.processes_left.saturating_sub(idle as u64)
}

/// What was seen of a process's threads.
struct Seen {
    /// `None` if the CPU time of one of them is not known.
    used_ns: Option<u64>,
    /// Samples that computed.
    samples: usize,
}

impl Seen {
    fn of_processes(profile: &Profile) -> HashMap<Id, Self> {
        let mut all: HashMap<Id, Self> = HashMap::new();
        let mut process_of: HashMap<Id, Id> = HashMap::new();
        for thread in &profile.threads {
            let own = all.entry(thread.process).or_insert(Self { used_ns: Some(0), samples: 0 });
            own.used_ns = own.used_ns.zip(thread.cpu_ns).map(|(sum, used)| sum.saturating_add(used));
            process_of.insert(thread.id, thread.process);
        }
        for sample in profile.samples.iter().filter(|sample| matches!(sample.state, SampleState::Computing | SampleState::Undecoded)) {
            if let Some(own) = process_of.get(&sample.thread).and_then(|process| all.get_mut(process)) {
                own.samples += 1;
            }
        }
        all
    }
}

fn idles(profile: &Profile, process: &Process, threads: Option<&Seen>) -> bool {
    let end = profile.meta.end_ns.unwrap_or(process.born_ns);
    let seen = end.saturating_sub(process.born_ns);
    if seen < LEAST_SEEN_NS || (seen as f64) < LEAST_PART * profile.meta.wall_s() * 1e9 {
        return false;
    }
    let used = threads.and_then(|threads| Some((threads.used_ns?, threads.samples)));
    used.is_some_and(|(ns, samples)| (ns as f64) < IDLE * seen as f64 && samples < FEW_SAMPLES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::Thread;

    const MS: u64 = 1_000_000;

    /// A program of a second that leaves a process, born at this time, which used so much CPU time.
    fn left(born_ms: u64, cpu_ms: Option<u64>) -> Profile {
        let process = |id, born_ms: u64, died_ms: Option<u64>| Process {
            id,
            pid: 10,
            parent: None,
            exe: None,
            born_ns: born_ms * MS,
            died_ns: died_ms.map(|ms| ms * MS),
        };
        let thread = Thread { id: 2, process: 2, tid: 10, born_ns: born_ms * MS, cpu_ns: cpu_ms.map(|ms| ms * MS), ..Thread::default() };
        let processes = vec![process(1, 0, Some(990)), process(2, born_ms, None)];
        let mut profile = Profile { processes, threads: vec![thread], ..Profile::default() };
        (profile.meta.start_ns, profile.meta.end_ns, profile.meta.processes_left) = (Some(0), Some(1000 * MS), 1);
        profile
    }

    /// Check that a daemon that slept while it was recorded does not count, and that one does that worked, that was seen for a short time only, whose CPU
    /// time is not known, or that was not recorded.
    #[test]
    fn sleeping_daemons_do_not_count() {
        assert_eq!(working(&left(80, Some(0))), 0);
        assert_eq!(working(&left(80, Some(50))), 1, "it worked");
        assert_eq!(working(&left(700, Some(0))), 1, "its launcher ended soon");
        assert_eq!(working(&left(80, None)), 1);
        let mut unseen = left(80, Some(0));
        unseen.meta.processes_left = 2;
        assert_eq!(working(&unseen), 1);
    }
}
