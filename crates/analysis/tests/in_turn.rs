//! Threads that follow each other, one at a time: on which node each of them runs is chance.

use crate::samples::{FAST, SLOW, judged_of, run, thread};
use crate::simulated::{FakeSources, target};
use firsttouch_analysis::{NotJudgedReason, Target, analyse};
use firsttouch_model::rows::*;
use firsttouch_model::{Pin, TouchCause};

const WORKERS: u64 = 40;

/// A run in which one thread at a time uses what the first thread filled: `threads` of them, one after the other.
fn in_turn(threads: u64) -> Profile {
    let mut profile = run(3, [FAST, SLOW], 4).profile;
    let kept: Vec<Id> = profile.samples.iter().filter(|sample| sample.thread == 1).map(|sample| sample.id).collect();
    profile.samples.retain(|sample| sample.thread == 1);
    profile.sampled_accesses.retain(|access| kept.binary_search(&access.sample).is_ok());
    profile.threads.truncate(1);
    let [first, last] = [0, profile.samples.len() - 1].map(|at| profile.samples[at].time_ns);
    let life = (last - first) / threads + 1;
    let of = |time_ns: u64| (time_ns - first) / life;
    profile.threads.extend((0..threads).map(|number| {
        let born_ns = first + number * life;
        Thread { parent: Some(0), born_ns, died_ns: Some(born_ns + life - 1), cpu_ns: Some(life), ..thread(1 + number as Id) }
    }));
    for sample in &mut profile.samples {
        let number = of(sample.time_ns);
        (sample.thread, sample.cpu_ns) = (1 + number as Id, sample.time_ns - first - number * life);
    }
    profile
}

/// Check that memory of one thread that short ones use in turn is not judged, and that memory which one other thread uses is: that thread stays.
#[test]
fn memory_used_in_turn_is_not_judged() {
    let profile = in_turn(WORKERS);
    let many = judged_of(&profile);
    assert!(many.findings.is_empty(), "{:?}", many.findings);
    assert_eq!(many.remote_interval, Some([0.0, 1.0]));
    for object in &many.objects {
        assert_eq!(object.reason, Some(NotJudgedReason::InTurn { threads: WORKERS as usize }));
    }
    let one = judged_of(&in_turn(1));
    assert!(one.objects.iter().all(|object| object.judged) && one.findings.len() == 2, "{:?}", one.findings);
    // The user says where threads run: all on one node.
    let placed = analyse(&profile, &Target { pin: Pin::Compact, cores_per_node: 2, ..target(2) }, &FakeSources(TouchCause::Loop));
    assert!(placed.objects.iter().all(|object| object.judged) && placed.remote_fraction == Some(0.0), "{:?}", placed.remote_fraction);
}
