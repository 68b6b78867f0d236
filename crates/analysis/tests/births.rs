//! What is not known: first touches before the recorded birth of an object (by a former owner, by itself, by the parent process), and rows
//! that could not be written.

use crate::simulated::*;
use firsttouch_analysis::{Verdict, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::rows::{Object, ObjectKind, Process, Profile};

fn findings(profile: &Profile) -> Vec<(String, String)> {
    found(&analyse(profile, &target(2), &FakeSources(TouchCause::Loop)))
}

fn one(finding: &str) -> Vec<(String, String)> {
    vec![("A".to_owned(), finding.to_owned())]
}

/// Thread 0 touches, the others use.
fn serial() -> Profile {
    World::new(8, vec![Thing::new("A", 64, Who::One(0), Who::Block(0, 8))]).profile(3)
}

/// Check that first touches before the birth of a mapping, which only looks at it show, are a former owner's only if such an owner was seen.
#[test]
fn mappings_without_an_agent_need_a_former_owner() {
    let mut profile = serial();
    let mapping = &mut profile.objects[0];
    (mapping.kind, mapping.call, mapping.site, mapping.thread) = (ObjectKind::Mapping, None, None, None);
    mapping.born_ns = 150 * MS;
    assert_eq!(findings(&profile), one("serial-first-touch"));
    let former = Object { id: 7, name: Some("F".to_owned()), born_ns: 0, died_ns: Some(140 * MS), ..profile.objects[0].clone() };
    profile.objects.push(former);
    assert_eq!(findings(&profile), one("recycled-memory"));
}

/// Check that memory which a child inherited by fork has the first touches that its parent made before, and no later ones.
#[test]
fn inherited_memory_was_touched_by_the_parent() {
    let fork = 150 * MS;
    let mut profile = serial();
    profile.processes.push(Process { id: 2, pid: 200, parent: Some(1), exe: None, born_ns: fork, died_ns: None });
    profile.threads[1..].iter_mut().for_each(|thread| (thread.process, thread.born_ns) = (2, fork));
    let inherited = Object { id: 1, process: 2, born_ns: fork, ..profile.objects[0].clone() };
    profile.objects.push(inherited);
    profile.windows.iter_mut().for_each(|window| window.object = 1);
    // Thread 0 has no part of its own in the child's use.
    profile.accesses.iter_mut().for_each(|access| access.thread = access.thread.max(1));
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert_eq!(found(&analysis), one("serial-first-touch"));
    assert!(analysis.findings[0].message.contains("shared by 2 processes"), "{}", analysis.findings[0].message);
    // What the parent touched after the fork is not the child's.
    let mut late = profile.clone();
    late.first_touches.iter_mut().for_each(|touch| touch.time_ns += 2 * fork);
    assert_eq!(findings(&late), []);
    // What the child wrote is its own: each thread its part.
    let mut written = profile.clone();
    let copies: Vec<_> = profile.first_touches.to_vec();
    let address = profile.objects[0].address;
    for mut touch in copies {
        touch.id += 1_000_000;
        touch.process = 2;
        touch.time_ns = fork + 10 * MS;
        touch.thread = i64::try_from(((touch.address - address) / (8 * MIB)).max(1)).unwrap_or(1);
        touch.mapped_bytes = Some(4096);
        written.first_touches.push(touch);
    }
    assert_eq!(findings(&written), []);
}

/// Check that a profile which could not be written to its end is not judged, and says why and how much is missing.
#[test]
fn incomplete_profiles_are_not_judged() {
    let mut profile = serial();
    assert_eq!(findings(&profile), one("serial-first-touch"));
    profile.meta.set("write_failure", "cannot write profile a.ftp: disk is full");
    profile.meta.set("missing_rows", "12");
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert!(analysis.findings.is_empty());
    let Verdict::NotJudged(causes) = analysis.verdict() else { panic!("{:?}", analysis.verdict()) };
    assert!(causes[0].to_string().starts_with("the recording was not completed, 12 rows are missing: cannot write profile a.ftp"));
}
