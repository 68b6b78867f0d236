//! The serial times of a process: before the birth of its second thread, and between OpenMP's parallel regions (OMPT). Runtimes without
//! OMPT (GNU's) report no regions; then all time after the birth of the second thread counts as parallel. Threads that hardly work do not count: the helpers of
//! a library are born before the team, and Python's `Queue` starts one at the end of a process, whose work was not serial for that reason.

use crate::activity::{IDLE, LEAST_BUSY_NS};
use firsttouch_model::rows::{Id, Profile, Thread};
use std::collections::BTreeMap;

/// The parallel time of one process.
#[derive(Clone, Debug, Default)]
struct RegionTeams {
    /// Birth of its second thread, ns; None if it never had one.
    second: Option<u64>,
    /// Parallel regions (start, end) in ns, merged and sorted; empty if they were not recorded.
    regions: Vec<(u64, u64)>,
}

/// Serial and parallel phases of each process.
#[derive(Debug, Default)]
pub struct Phases {
    teams: BTreeMap<Id, RegionTeams>,
}

impl Phases {
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let mut births: BTreeMap<Id, Vec<u64>> = BTreeMap::new();
        let mut busiest: BTreeMap<Id, u64> = BTreeMap::new();
        for thread in &profile.threads {
            let most = busiest.entry(thread.process).or_default();
            *most = thread.cpu_ns.unwrap_or(0).max(*most);
        }
        let works = |thread: &Thread| {
            let most = busiest[&thread.process] as f64;
            most < LEAST_BUSY_NS || thread.omp_number.is_some() || thread.cpu_ns.is_none_or(|own| own as f64 >= IDLE * most)
        };
        for thread in profile.threads.iter().filter(|thread| works(thread)) {
            births.entry(thread.process).or_default().push(thread.born_ns);
        }
        let mut teams: BTreeMap<Id, RegionTeams> = BTreeMap::new();
        for (process, mut times) in births {
            times.sort_unstable();
            teams.insert(process, RegionTeams { second: times.get(1).copied(), regions: Vec::new() });
        }
        // If some regions are missing, time outside the recorded ones may be parallel.
        if !profile.lost.iter().any(|lost| lost.source == "regions") {
            let mut regions: Vec<_> = profile.regions.iter().filter(|region| region.team_size > 1).collect();
            regions.sort_by_key(|region| region.begin_ns);
            for region in regions {
                let Some(team) = teams.get_mut(&region.process) else { continue };
                let end = region.end_ns.unwrap_or(u64::MAX);
                match team.regions.last_mut() {
                    Some((_, last)) if *last >= region.begin_ns => *last = end.max(*last),
                    _ => team.regions.push((region.begin_ns, end)),
                }
            }
        }
        Self { teams }
    }

    /// Whether the process ran serially during the whole of this time.
    #[must_use]
    pub fn is_serial(&self, process: Id, start: u64, end: u64) -> bool {
        let Some(team) = self.teams.get(&process) else { return false };
        let Some(second) = team.second else { return false };
        if end <= second {
            return true;
        }
        let next = team.regions.partition_point(|(_, last)| *last < start);
        !team.regions.is_empty() && team.regions.get(next).is_none_or(|(begin, _)| *begin > end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::rows::{Lost, Region};

    fn thread(id: Id, process: Id, born_ns: u64) -> Thread {
        Thread { id, process, tid: 1, born_ns, ..Thread::default() }
    }

    /// Check that a helper of a library, or a thread that hardly works at the end, is no second thread, and that threads of unknown times, of OpenMP teams and of
    /// short runs are.
    #[test]
    fn helpers_are_no_team() {
        let serial = |ms: [Option<u64>; 3], omp_number: Option<u32>, at: u64| {
            let cpu_ns = |thread: Thread, ms: Option<u64>| Thread { cpu_ns: ms.map(|ms| ms * 1_000_000), ..thread };
            let main = cpu_ns(thread(0, 1, 0), ms[0]);
            let helper = Thread { omp_number, ..cpu_ns(thread(1, 1, 100), ms[1]) };
            let profile = Profile { threads: vec![main, helper, cpu_ns(thread(2, 1, 500), ms[2])], ..Profile::default() };
            Phases::new(&profile).is_serial(1, at, at + 10)
        };
        let with_team = [Some(900), Some(2), Some(700)];
        assert!(serial(with_team, None, 200) && !serial(with_team, None, 600));
        assert!(!serial(with_team, Some(1), 200), "a team of OpenMP has begun");
        assert!(!serial([Some(900), None, Some(700)], None, 200), "it may have worked");
        assert!(!serial([Some(90), Some(1), Some(70)], None, 200), "a short run");
        assert!(!serial([Some(900), Some(2), Some(3)], None, 50), "one thread is the whole team");
    }

    fn region(begin_ns: u64, end_ns: Option<u64>, team_size: u32) -> Region {
        Region { id: begin_ns as Id, process: 1, begin_ns, end_ns, site: None, team_size, thread: None }
    }

    /// Check windows before the second thread, in a gap between regions, across a border, and without any information.
    #[test]
    fn serial_time_is_recognised() {
        let threads = vec![thread(0, 1, 0), thread(1, 1, 100), thread(2, 2, 0)];
        let mut profile = Profile { threads, ..Profile::default() };
        let serial = |profile: &Profile, process, start, end| Phases::new(profile).is_serial(process, start, end);
        assert!(serial(&profile, 1, 10, 100));
        assert!(!serial(&profile, 1, 50, 101) && !serial(&profile, 1, 500, 600), "without regions, all after the birth is the team's");
        assert!(!serial(&profile, 2, 10, 20) && !serial(&profile, 9, 10, 20), "one thread is the whole team");
        profile.regions = vec![region(200, Some(300), 4), region(250, Some(400), 4), region(440, Some(450), 1), region(500, None, 4)];
        for (start, end, truth) in
            [(120, 199, true), (120, 200, false), (390, 410, false), (401, 499, true), (401, 500, false), (900, 950, false)]
        {
            assert_eq!(serial(&profile, 1, start, end), truth, "{start}-{end}");
        }
        profile.lost = vec![Lost { source: "regions".into(), reason: "only the first are kept".into(), count: 1 }];
        assert!(!serial(&profile, 1, 401, 499) && serial(&profile, 1, 10, 20));
    }
}
