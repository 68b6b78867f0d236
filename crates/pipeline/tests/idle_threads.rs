//! Idle threads, from a recorded profile to its plan.
#![allow(clippy::unwrap_used)]

use firsttouch_model::Pin;
use firsttouch_model::rows::{Process, Profile, Thread};
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest, read_profile};
use firsttouch_plan::{Plan, Policy, RunNodes, apply};
use std::path::Path;

/// `corpus/serial_loop.c` with its four threads, and 3 helpers born before the workers that did nothing.
fn profile() -> Profile {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/profiles/serial_loop.ftp");
    let mut profile = read_profile(&file).unwrap();
    let main = profile.threads[0].clone();
    let helper = |id| Thread { id, born_ns: main.born_ns + 1, parent: Some(0), cpu_ns: Some(0), ..main.clone() };
    profile.threads.extend((4..7).map(helper));
    profile
}

fn plan(request: &AnalysisRequest) -> Plan {
    AnalysedProfile::new(profile(), request).unwrap().plan("serial_loop.ftp").unwrap().plan
}

/// The threads that own the parts of the first planned object.
fn owners(plan: &Plan) -> Vec<u32> {
    match plan.entries.first().map(|entry| &entry.policy) {
        Some(Policy::Blocked(blocks)) => blocks.threads.clone(),
        other => panic!("{other:?} in\n{plan}"),
    }
}

/// Check that a plan numbers threads by birth, names the idle ones, and spreads the others.
#[test]
fn plans_place_threads_that_work() {
    let request = || AnalysisRequest::parse(Some("virtual:2"), None).unwrap();
    let placed = plan(&request());
    assert_eq!((placed.threads.count, &placed.threads.idle[..], &placed.threads.pin), (7, &[1, 2, 3][..], &Some(Pin::Spread)));
    assert_eq!(owners(&placed), [0, 4, 5, 6]);
    assert!(placed.to_string().contains("idle = [1, 2, 3]"), "{placed}");
    let here = apply(&placed, &RunNodes { nodes: vec![0, 1], ..RunNodes::default() });
    assert_eq!((here.threads, here.idle), (vec![0, 0, 1, 1], vec![1, 2, 3]));

    let all = request().placing_all_threads();
    assert_eq!(all.options(), ["--machine", "virtual:2", "--place-all-threads"]);
    let all = plan(&all);
    assert_eq!((all.threads.count, &all.threads.idle[..], &all.threads.pin), (7, &[][..], &Some(Pin::Spread)));
    assert_eq!(apply(&all, &RunNodes { nodes: vec![0, 1], ..RunNodes::default() }).threads, [0, 0, 0, 0, 1, 1, 1]);
}

/// Check that a plan does not pin the threads of a process that stays on one node, because a run would put all processes there.
#[test]
fn plans_pin_no_ranks() {
    let mut ranks = profile();
    ranks.threads.truncate(4);
    ranks.processes.push(Process { id: 1, ..ranks.processes[0].clone() });
    ranks.threads[2..].iter_mut().for_each(|thread| thread.process = 1);
    let pin = |request: AnalysisRequest| AnalysedProfile::new(ranks.clone(), &request).unwrap().plan("ranks.ftp").unwrap().plan.threads.pin;
    let request = || AnalysisRequest::parse(Some("virtual:2"), None).unwrap();
    assert_eq!(pin(request()), None);
    assert_eq!(pin(request().placing_all_threads()), Some(Pin::Spread));
}
