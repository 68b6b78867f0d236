//! Arrays that a program allocates anew in each step, in the memory of former ones: most of them have no record of a first touch, because the
//! pages are there already, or because few faults were recorded.

use crate::samples::{computing, read_of, thread};
use crate::simulated::{FakeSources, MIB, MS, Random, S, Who, target};
use firsttouch_analysis::{Analysis, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::*;

const BYTES: u64 = 16 * MIB;
const PAGE: u64 = 4096;
const ADDRESS: u64 = 0x10_0000_0000;
const STEP: u64 = 500 * MS;
const STEPS: u64 = 12;
const SAMPLES_A_STEP: u64 = 60;

/// Four threads use, in each step, an array of their own making at one place.
struct Steps {
    /// Which thread touches each page first; of the first array, and of the later ones (`None`: the pages are there already).
    first: Who,
    later: Option<Who>,
    /// How many faults a record stands for while the later arrays are touched.
    period: u64,
    has_periods: bool,
    /// The first array is another one than the later ones.
    is_other: bool,
}

impl Steps {
    fn judged(&self) -> Analysis {
        let mut random = Random(7);
        let user = Who::Block(0, 4);
        let frame = |line: u32| Frame { address: 0x1000 * u64::from(line), file: Some("a.c".into()), line: Some(line), ..Frame::default() };
        let site = |id: Id| (id, Site { id, process: 0, frames: vec![frame(id as u32)] });
        let mut profile = Profile {
            processes: vec![Process { id: 0, pid: 10, parent: None, exe: None, born_ns: 0, died_ns: None }],
            threads: (0..4).map(|id| Thread { user_faults: Some(50_000), all_faults: Some(50_000), ..thread(id) }).collect(),
            sites: [98, 99, 100, 101].map(site).into(),
            evidence: ["sample", "touch"]
                .map(|source| Evidence { source: source.into(), available: true, samples: 1, detail: String::new() })
                .into(),
            ..Profile::default()
        };
        profile.meta.set("start_ns", "0");
        profile.meta.set("end_ns", &(STEPS * STEP).to_string());
        for step in 0..STEPS {
            let born_ns = step * STEP;
            profile.objects.push(Object {
                id: step as Id + 1,
                process: 0,
                kind: ObjectKind::Heap,
                call: Some("malloc".into()),
                name: Some(if step == 0 && self.is_other { "former" } else { "field" }.into()),
                address: ADDRESS,
                bytes: BYTES,
                born_ns,
                died_ns: Some(born_ns + STEP - MS),
                site: Some(if step == 0 && self.is_other { 98 } else { 99 }),
                thread: Some(0),
            });
            let (period, touch) = if step == 0 { (8, Some(&self.first)) } else { (self.period, self.later.as_ref()) };
            let Some(touch) = touch else { continue };
            let start = random.below(period) * PAGE;
            for offset in (start..BYTES).step_by((period * PAGE) as usize) {
                profile.first_touches.push(FirstTouch {
                    id: profile.first_touches.len() as Id,
                    process: 0,
                    time_ns: born_ns + 20 * MS * offset / BYTES + 1,
                    thread: touch.at(offset, BYTES, 0)[0] as Id,
                    cpu: 0,
                    address: ADDRESS + offset,
                    weight: period as f64,
                    by_kernel: false,
                    site: Some(100),
                    mapped_bytes: Some(0),
                    node: None,
                });
            }
        }
        for number in 0..STEPS * SAMPLES_A_STEP {
            let (step, within) = (number / SAMPLES_A_STEP, number % SAMPLES_A_STEP);
            let offset = random.below(BYTES / 8) * 8;
            let user = user.at(offset, BYTES, 0)[0] as Id;
            let (id, time_ns) = (number as Id + 1, step * STEP + 100 * MS + within * 5 * MS);
            profile.samples.push(computing(id, user, time_ns, number * 4 * MS, 101));
            profile.sampled_accesses.push(read_of(id, step as Id + 1, ADDRESS + offset, 101));
        }
        if self.has_periods {
            profile.fault_periods =
                vec![FaultPeriod { time_ns: 0, faults: 8, part: None }, FaultPeriod { time_ns: S / 4, faults: self.period, part: None }];
        }
        analyse(&profile, &target(2), &FakeSources(TouchCause::Loop))
    }
}

/// Check that arrays whose first touches hardly show in a storm of faults have the places of an earlier array at the same site: well placed if
/// each thread touched its part, half remote if one thread touched all.
#[test]
fn arrays_in_a_storm_are_like_their_predecessors() {
    for (touch, low, high) in [(Who::Block(0, 4), 0.0, 0.02), (Who::One(0), 0.4, 0.6), (Who::Block(2, 2), 0.3, 0.7)] {
        let steps = Steps { first: touch.clone(), later: Some(touch.clone()), period: 2048, has_periods: true, is_other: false };
        let analysis = steps.judged();
        let [object] = analysis.objects.as_slice() else { panic!("{:?}", analysis.objects) };
        assert!(object.judged, "{touch:?}: {:?}", object.reason);
        let remote = object.remote_fraction.unwrap();
        assert!((low..=high).contains(&remote), "{touch:?}: {remote}");
        assert_eq!(analysis.findings.is_empty(), high < 0.1, "{:?}", analysis.findings);
    }
}

/// Check that memory which is used again, in a time when every fault is recorded and none comes, keeps the places of its former owner, though few
/// faults were recorded before.
#[test]
fn calm_shows_that_pages_are_old() {
    let recycled = |has_periods| Steps { first: Who::One(0), later: None, period: 1, has_periods, is_other: true };
    let mut steps = recycled(true);
    steps.first = Who::One(0);
    let analysis = steps.judged();
    let field = analysis.objects.iter().find(|object| object.name == "field").unwrap();
    assert!(field.judged, "{:?}", field.reason);
    let [finding] = analysis.findings.iter().filter(|finding| finding.object == Some(field.id)).collect::<Vec<_>>()[..] else {
        panic!("{:?}", analysis.findings)
    };
    assert_eq!(finding.kind, FindingKind::RecycledMemory);
    let remote = field.remote_fraction.unwrap();
    assert!((remote - 0.5).abs() < 0.1, "{remote}");
}

/// Check that buffers which two threads allocate in turn, each for itself, are well placed, also where the pages of one thread's are those of former
/// blocks, touched while every fault was recorded, and the other's are touched anew while few are.
#[test]
fn buffers_of_two_threads_in_turn() {
    const SMALL: u64 = 147 * PAGE;
    const PERIOD: u64 = 31;
    let site = |id: Id| {
        let frame = Frame { address: 0x1000 * id as u64, file: Some("a.c".into()), line: Some(id as u32), ..Frame::default() };
        (id, Site { id, process: 0, frames: vec![frame] })
    };
    let mut profile = Profile {
        processes: vec![Process { id: 0, pid: 10, parent: None, exe: None, born_ns: 0, died_ns: None }],
        threads: (0..2).map(|id| Thread { user_faults: Some(5000), all_faults: Some(5000), ..thread(id) }).collect(),
        sites: [98, 99, 100, 101].map(site).into(),
        evidence: ["sample", "touch"]
            .map(|source| Evidence { source: source.into(), available: true, samples: 1, detail: String::new() })
            .into(),
        fault_periods: vec![FaultPeriod { time_ns: 0, faults: 1, part: None }, FaultPeriod { time_ns: STEP, faults: PERIOD, part: None }],
        ..Profile::default()
    };
    profile.meta.set("start_ns", "0");
    profile.meta.set("end_ns", &(STEPS * STEP).to_string());
    let mut random = Random(11);
    for (step, maker) in (0..STEPS).flat_map(|step| [(step, 0), (step, 1)]) {
        let (born_ns, address) = (step * STEP + maker * MS, ADDRESS + maker * (1 << 30));
        profile.objects.push(Object {
            id: profile.objects.len() as Id + 1,
            process: 0,
            kind: ObjectKind::Heap,
            call: Some("malloc".into()),
            name: Some(if step == 0 { "former" } else { "buffer" }.into()),
            address,
            bytes: SMALL,
            born_ns,
            died_ns: Some(born_ns + STEP - 10 * MS),
            site: Some(if step == 0 { 98 } else { 99 }),
            thread: Some(maker as Id),
        });
        let weight = match (step, maker) {
            (0, _) => 1,
            (_, 0) => PERIOD,
            _ => continue,
        };
        for offset in (random.below(weight) * PAGE..SMALL).step_by((weight * PAGE) as usize) {
            profile.first_touches.push(FirstTouch {
                id: profile.first_touches.len() as Id,
                process: 0,
                time_ns: born_ns + 20 * MS * offset / SMALL + 1,
                thread: maker as Id,
                cpu: 0,
                address: address + offset,
                weight: weight as f64,
                by_kernel: false,
                site: Some(100),
                mapped_bytes: Some(0),
                node: None,
            });
        }
    }
    for number in 0..STEPS * SAMPLES_A_STEP {
        let (step, within, maker) = (number / SAMPLES_A_STEP, number % SAMPLES_A_STEP, number % 2);
        let id = number as Id + 1;
        profile.samples.push(computing(id, maker as Id, step * STEP + 100 * MS + within * 5 * MS, number * 4 * MS, 101));
        let address = ADDRESS + maker * (1 << 30) + random.below(SMALL / 8) * 8;
        profile.sampled_accesses.push(read_of(id, (2 * step + maker) as Id + 1, address, 101));
    }
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    let buffer = analysis.objects.iter().find(|object| object.name == "buffer").expect("the buffers are one object");
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
    assert!(buffer.remote_fraction.is_some_and(|remote| remote < 0.02), "{buffer:?}");
}
