//! The part of a run that does not depend on where the large objects are: code that does not access them.
//!
//! A timer sample stands for CPU time. It counts as time at memory if the loop around it accesses an object that is larger than a core's cache, and as
//! computing if all its operands are known and none is in such an object: registers, stacks, and what fits in caches. Where more time is spent at
//! large objects that were not judged (a mapped file), nothing is said: what it depends on is not known. Samples in the kernel, of threads that wait, in an MPI
//! library (it polls for messages), and of code whose operands are not all known count as neither.
//!
//! A thread that works alone takes all of its time; threads of a team take theirs together, so their mean counts.

use crate::Target;
use crate::coverage::Coverage;
use crate::evidence::accesses_by_sample;
use crate::groups::Group;
use crate::judge::Subject;
use crate::phases::Phases;
use crate::threads::Threads;
use firsttouch_model::mpi::is_mpi_library;
use firsttouch_model::rows::{Id, Profile, SampleState, TimerSample};
use firsttouch_model::traffic::Computing;
use hashbrown::HashSet;
use std::collections::BTreeMap;

/// With fewer samples, the part is not known.
const LEAST_SAMPLES: u64 = 50;
/// Where more threads work than there are CPUs, ticks do not fall into all code alike: of 20 %, 13 to 15 % were seen (`tests/programs/truth/computing`
/// with four threads on two CPUs; 19.5 % with two threads). This is the standard error that covers it.
const CROWDED: f64 = 0.035;

/// CPU time, in ticks: computing, and at memory.
type Ticks = [f64; 2];

/// `None` if there are too few samples, or none at memory.
pub fn computing(
    profile: &Profile,
    target: &Target,
    threads: &Threads,
    groups: &[Group],
    subjects: &[Subject],
    phases: &Phases,
) -> Option<Computing> {
    let of = |is_wanted: &dyn Fn(&Subject) -> bool| -> HashSet<Id> {
        let wanted = subjects.iter().filter(|subject| is_wanted(subject));
        wanted.flat_map(|subject| &groups[subject.group].members).map(|member| profile.objects[*member].id).collect()
    };
    let large = of(&|subject| subject.counts);
    let open = of(&|subject| !subject.counts && !subject.reason.as_ref().is_some_and(Coverage::is_cached));
    let (mut at_open, mut at_large) = (0.0, 0.0);
    let (mut alone, mut teams) = ([0.0; 2], BTreeMap::<usize, Ticks>::new());
    let mut samples = 0;
    for (sample, own) in profile.samples.iter().zip(accesses_by_sample(profile)) {
        if sample.weight <= 0.0 || sample.state != SampleState::Computing {
            continue;
        }
        let Some(thread) = threads.index(sample.thread).filter(|thread| !threads.list[*thread].idle) else { continue };
        let is_at_memory = own.iter().any(|access| large.contains(&access.object));
        if !is_at_memory && own.iter().any(|access| open.contains(&access.object)) {
            at_open += sample.weight;
            continue;
        }
        if !is_at_memory && (sample.unknown > 0 || is_in_mpi(profile, sample)) {
            continue;
        }
        samples += 1;
        let ticks = if phases.is_serial(threads.list[thread].process, sample.time_ns, sample.time_ns) {
            &mut alone
        } else {
            teams.entry(thread).or_default()
        };
        ticks[usize::from(is_at_memory)] += sample.weight;
        at_large += if is_at_memory { sample.weight } else { 0.0 };
    }
    if at_open > at_large {
        return None;
    }
    let cpus: usize = profile.machine.node_cpus.values().map(Vec::len).sum();
    let teams: Vec<Ticks> = teams.into_values().collect();
    let crowded = if teams.len() > cpus { CROWDED } else { 0.0 };
    share(alone, &teams).filter(|_| samples >= LEAST_SAMPLES).map(|share| Computing {
        share,
        // Samples of one loop come together, so the spread counts as that of half as many.
        standard_error: (2.0 * share * (1.0 - share) / samples as f64).sqrt().hypot(crowded),
        samples,
        was_local: target.virtual_machine || target.nodes < 2,
    })
}

/// Whether a rank exchanges messages or, mostly, waits for the other ranks: MPI libraries poll, so their time is that of threads that wait.
fn is_in_mpi(profile: &Profile, sample: &TimerSample) -> bool {
    let frames = sample.site.and_then(|site| profile.sites.get(&site)).map_or(&[][..], |site| &site.frames);
    frames.first().and_then(|frame| frame.module.as_deref()).is_some_and(is_mpi_library)
}

fn share(alone: Ticks, teams: &[Ticks]) -> Option<f64> {
    let mean = |which: usize| teams.iter().map(|ticks| ticks[which]).sum::<f64>() / teams.len().max(1) as f64;
    let [computing, at_memory] = [0, 1].map(|which| alone[which] + mean(which));
    (at_memory > 0.0).then(|| computing / (computing + at_memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the time of threads of a team counts once, and that without time at memory nothing is known.
    #[test]
    fn teams_work_at_the_same_time() {
        assert_eq!(share([0.0, 0.0], &[[10.0, 30.0], [10.0, 30.0]]), Some(0.25));
        assert_eq!(share([20.0, 0.0], &[[0.0, 20.0], [0.0, 20.0], [0.0, 20.0]]), Some(0.5));
        assert_eq!(share([5.0, 15.0], &[]), Some(0.25));
        assert_eq!((share([5.0, 0.0], &[]), share([0.0; 2], &[[3.0, 0.0]])), (None, None));
    }
}
