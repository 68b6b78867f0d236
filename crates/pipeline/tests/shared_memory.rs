//! Live views judge each process alone: memory that it shares with others.
#![allow(clippy::unwrap_used)]

use firsttouch_analysis::{Missing, NotJudgedReason};
use firsttouch_model::rows::{Object, Process, SharedMemory};
use firsttouch_pipeline::{AnalysisRequest, analyse_window, read_profile};
use std::path::Path;

/// Check that the first touches of memory that processes share are said to be unknown for that reason: of `corpus/serial_loop.c`, as if two of its threads
/// were another process that maps the same memory.
#[test]
fn memory_of_several_processes_says_so() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/profiles/serial_loop.ftp");
    let mut profile = read_profile(&file).unwrap();
    let largest = profile.objects.iter().max_by_key(|object| object.bytes).unwrap().clone();
    let own = Object { id: 1_000_000, process: 1, ..largest.clone() };
    let memory = SharedMemory { memory: "00:01 7".into(), offset: 0, present: None };
    profile.shared_memory = [(largest.id, memory.clone()), (own.id, memory)].into();
    profile.processes.push(Process { id: 1, ..profile.processes[0].clone() });
    profile.threads[2..].iter_mut().for_each(|thread| thread.process = 1);
    profile.windows.iter_mut().filter(|window| window.object == largest.id).for_each(|window| window.object = own.id);
    profile.sampled_accesses.iter_mut().filter(|access| access.object == largest.id).for_each(|access| access.object = own.id);
    profile.objects.push(own);
    let request = AnalysisRequest::parse(Some("virtual:2"), None).unwrap();
    let analysis = analyse_window(&mut profile, 1, 0, &request).unwrap();
    let object = analysis.objects.iter().find(|object| object.id == 1_000_000).unwrap();
    assert_eq!(object.reason, Some(NotJudgedReason::TouchesNotSeen(Missing::SharedMemory)), "{object:?}");
}
