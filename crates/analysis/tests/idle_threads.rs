//! Programs with threads that do nothing, and with several processes: who takes a place, and what that changes in the verdict.

use crate::simulated::*;
use firsttouch_analysis::{Analysis, Target, analyse};
use firsttouch_model::rows::{Process, Profile};
use firsttouch_model::{NodeId, Pin, TouchCause};

/// Four threads work on an array that the first of them initialised; of `threads` threads, the others never do anything.
fn profile(threads: usize) -> Profile {
    let mut profile = World::new(threads, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 4))]).profile(3);
    for thread in &mut profile.threads {
        thread.cpu_ns = Some(if thread.id < 4 { 9 * S } else { 0 });
    }
    profile
}

fn judged(profile: &Profile, target: &Target) -> Analysis {
    analyse(profile, target, &FakeSources(TouchCause::Loop))
}

fn nodes(analysis: &Analysis) -> Vec<u32> {
    analysis.threads.iter().map(|thread| thread.node).collect()
}

fn notes(analysis: &Analysis) -> String {
    analysis.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn serial(name: &str) -> (String, String) {
    (name.to_owned(), "serial-first-touch".to_owned())
}

/// Check that helper threads do not hide a defect: if all threads took places, those that work would all be on one node.
#[test]
fn helpers_hide_no_defect() {
    let all = Target { place_all_threads: true, ..target(2) };
    let with_helpers = profile(8);
    let analysis = judged(&with_helpers, &target(2));
    assert_eq!(nodes(&analysis), [0, 0, 1, 1, 0, 0, 0, 0]);
    assert_eq!(analysis.threads.iter().map(|thread| thread.idle).collect::<Vec<_>>(), [[false; 4], [true; 4]].concat());
    assert_eq!(found(&analysis), [serial("A")]);
    assert!(notes(&analysis).contains("4 of 8 threads did next to nothing and took no place on virtual:2"), "{}", notes(&analysis));
    assert!(notes(&analysis).contains("--place-all-threads"));
    let alone = judged(&profile(4), &target(2));
    assert_eq!((alone.remote_fraction, alone.remote_interval), (analysis.remote_fraction, analysis.remote_interval));
    assert!(!notes(&alone).contains("took no place"));

    let old = judged(&with_helpers, &all);
    assert_eq!((nodes(&old), found(&old)), (vec![0, 0, 0, 0, 1, 1, 1, 1], vec![]));
    assert!(old.threads.iter().all(|thread| !thread.idle) && !notes(&old).contains("took no place"));
}

/// Check that a list of nodes counts idle threads and threads that work one after the other, in the order of creation, as that of `firsttouch run` does.
#[test]
fn a_list_names_all_threads() {
    let list = |nodes: &[u32]| Target { pin: Pin::Nodes(nodes.iter().copied().map(NodeId).collect()), ..target(2) };
    let mut with_helpers = profile(8);
    with_helpers.threads.iter_mut().for_each(|thread| thread.cpu_ns = Some(if thread.id == 0 { 0 } else { 9 * S }));
    assert_eq!(nodes(&judged(&with_helpers, &list(&[0, 0, 1, 1, 0, 1, 0, 1]))), [0, 0, 1, 1, 0, 1, 0, 1]);
    let one = |name, user| Thing { until: 5 * S, ..Thing::new(name, 64, Who::One(0), user) };
    let later = Thing { from: 5 * S, ..Thing::new("B", 64, Who::One(0), Who::One(1)) };
    let in_turn = World::new(2, vec![one("A", Who::One(0)), later]).profile(3);
    assert_eq!(nodes(&judged(&in_turn, &list(&[0, 1]))), [0, 1]);
    assert_eq!(nodes(&judged(&in_turn, &list(&[1, 0]))), [1, 0]);
}

/// Check that threads take places if it is not known whether they work.
#[test]
fn unknown_threads_take_places() {
    let mut unknown = profile(8);
    unknown.threads.iter_mut().for_each(|thread| thread.cpu_ns = None);
    assert_eq!(nodes(&judged(&unknown, &target(2))), [0, 0, 0, 0, 1, 1, 1, 1]);
}

/// Check that idle threads are named on the recorded machine, where no one is placed, and that no note is about places there.
#[test]
fn recorded_nodes_stay() {
    let mut recorded = profile(8);
    recorded.machine.node_cpus = [(0, vec![0, 1, 2, 3]), (1, vec![4, 5, 6, 7])].into();
    for thread in 0..8 {
        recorded.thread_cpus.insert((thread, 7 - thread as u32), firsttouch_model::rows::Seen { samples: 9, looks: 9 });
    }
    let analysis = judged(&recorded, &Target { virtual_machine: false, ..target(2) });
    assert_eq!(nodes(&analysis), [1, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(analysis.threads.iter().filter(|thread| thread.idle).count(), 4);
    assert!(!notes(&analysis).contains("took no place"));
}

/// Check that the threads of each of two processes stay on one node, so that what one thread initialised for its process is near.
#[test]
fn processes_keep_their_memory_near() {
    let things = vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 2)), Thing::new("B", 64, Who::One(2), Who::Block(2, 2))];
    let mut ranks = World::new(4, things).profile(3);
    ranks.processes.push(Process { id: 2, pid: 200, parent: None, exe: None, born_ns: 0, died_ns: None });
    ranks.threads.iter_mut().filter(|thread| thread.id > 1).for_each(|thread| thread.process = 2);
    ranks.objects[1].process = 2;
    ranks.first_touches.iter_mut().filter(|touch| touch.thread > 1).for_each(|touch| touch.process = 2);
    let analysis = judged(&ranks, &target(2));
    assert_eq!((nodes(&analysis), found(&analysis)), (vec![0, 0, 1, 1], vec![]));
    assert!(analysis.remote_fraction.unwrap() < 0.01 && notes(&analysis).contains("each of the 2 processes are on one node"));
    let spread = judged(&ranks, &Target { place_all_threads: true, ..target(2) });
    assert_eq!(nodes(&spread), [0, 1, 0, 1]);
    let mut both = found(&spread);
    both.sort();
    assert_eq!(both, [serial("A"), serial("B")]);
    assert!(!notes(&spread).contains("on one node"));
}
