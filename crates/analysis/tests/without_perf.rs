//! First touches by sweeps and by counts of page faults: perf is forbidden, or too few faults were recorded.

use crate::samples::{A, B, BYTES, FAST, Run, SLOW, TICK, judged, object, run, thread};
use crate::simulated::{MIB, MS, S};
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::*;

/// Thread 0 writes each object once, before all threads use their blocks.
fn initialise_in_thread_0(run: &mut Run) {
    let mut own: Vec<(TimerSample, SampledAccess)> = run.profile.samples.drain(..).zip(run.profile.sampled_accesses.drain(..)).collect();
    own.retain(|(sample, _)| sample.thread != 0 || sample.cpu_ns > 200 * MS);
    // 64 MiB in 64 ms, twice: 16 ticks each.
    let writing = |tick: u64| {
        let (id, base) = if tick < 16 { (1, A) } else { (2, B) };
        let round = (tick % 16) * BYTES / 16 / 8 + 1000;
        let around = Some(SampledLoop { end: 0x500, entry: base, progress: Some(Progress { value: round, step: 1 }), left: None });
        let time_ns = S / 2 + tick * TICK;
        let (state, site) = (SampleState::Computing, Some(20));
        let sample = TimerSample {
            id: 0,
            thread: 0,
            time_ns,
            cpu: 0,
            cpu_ns: tick * TICK,
            weight: 1.0,
            site,
            state,
            around,
            unknown: 0,
            elsewhere: 0.0,
        };
        let kind = AccessKind::Write;
        (sample, SampledAccess { sample: 0, object: id, address: base + round * 8, bytes: 8, words: 1.0, kind, site, stride: Some(8) })
    };
    let all: Vec<(TimerSample, SampledAccess)> = (0..32).map(writing).chain(own).collect();
    for (number, (sample, access)) in all.into_iter().enumerate() {
        let id = Id::try_from(number).unwrap() + 1;
        run.profile.samples.push(TimerSample { id, ..sample });
        run.profile.sampled_accesses.push(SampledAccess { sample: id, ..access });
    }
}

/// Check that first touches are derived from sweeps only where the kernel could not report them: thread 0 writes each object once, and
/// then all threads use their blocks.
#[test]
fn first_touches_without_perf() {
    let mut run = run(7, [FAST, SLOW], 2);
    run.profile.first_touches.clear();
    run.profile.evidence.push(Evidence { source: "touch".into(), available: false, samples: 0, detail: "perf is forbidden".into() });
    let unseen = judged(&run);
    assert!(unseen.findings.is_empty() && unseen.objects.iter().all(|object| !object.judged), "{:?}", unseen.findings);
    initialise_in_thread_0(&mut run);
    let analysis = judged(&run);
    let kinds: Vec<FindingKind> = analysis.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::SerialFirstTouch; 2], "{:?}", analysis.not_judged);
    let a = analysis.objects.iter().find(|object| object.name == "A").unwrap();
    assert_eq!(a.first_touch.by_thread[0], 1.0);
    assert!((10..=18).contains(&a.first_touch.samples), "sweeps are counted, not the records made of them: {}", a.first_touch.samples);
    assert!(
        analysis.notes.iter().any(|note| note.to_string().contains("32 of 2011 samples saw memory being initialised")),
        "{:?}",
        analysis.notes
    );
}

/// Pages of both objects.
const PAGES: u64 = 2 * BYTES / 4096;

/// A run without perf, with these counts of page faults of thread 0 and of each other thread.
fn without_perf(faults: [u64; 2], initialise: impl Fn(&mut Run)) -> Run {
    let mut run = run(7, [FAST, SLOW], 2);
    run.profile.first_touches.clear();
    run.profile.evidence.push(Evidence { source: "touch".into(), available: false, samples: 0, detail: "perf is forbidden".into() });
    initialise(&mut run);
    run.profile.threads.iter_mut().for_each(|thread| thread.all_faults = Some(faults[usize::from(thread.id > 0)]));
    run.profile.machine.huge_page_bytes = 2 * MIB;
    run.profile.machine.transparent_huge_pages = "madvise".into();
    answer_with_pages_of(&mut run, 4096);
    run
}

/// The kernel says of four addresses of each object how large the page there is.
fn answer_with_pages_of(run: &mut Run, page_bytes: u64) {
    let page = |(id, base): (Id, u64), i: u64| Page {
        process: 1,
        object: Some(id),
        address: base + i * BYTES / 4,
        time_ns: S,
        node: 0,
        page_bytes,
    };
    run.profile.pages = [(1, A), (2, B)].into_iter().flat_map(|object| (0..4).map(move |i| page(object, i))).collect();
}

/// As `initialise_in_thread_0`, with code that no two samples show in one loop.
fn initialise_in_short_loops(run: &mut Run) {
    initialise_in_thread_0(run);
    run.profile.samples[..32].iter_mut().for_each(|sample| sample.around = None);
}

fn found(run: &Run) -> Vec<FindingKind> {
    judged(run).findings.iter().map(|finding| finding.kind).collect()
}

/// Check that sweeps by threads with too few page faults are no first touches: memory that a former owner or the kernel had touched.
#[test]
fn sweeps_need_page_faults() {
    assert_eq!(found(&without_perf([PAGES, PAGES], initialise_in_thread_0)), [FindingKind::SerialFirstTouch; 2]);
    let analysis = judged(&without_perf([100, PAGES], initialise_in_thread_0));
    assert!(analysis.findings.is_empty() && analysis.objects.iter().all(|object| !object.judged), "{:?}", analysis.findings);
}

/// Check that the thread with nearly all page faults touched what it wrote before others used it, and that nothing is concluded if others
/// have faults too, if counts are missing, or if huge pages may explain them.
#[test]
fn one_thread_has_all_page_faults() {
    let run = without_perf([PAGES, 20], initialise_in_short_loops);
    assert_eq!(found(&run), [FindingKind::SerialFirstTouch; 2], "{:?}", judged(&run).not_judged);
    let lines: Vec<Option<u32>> = judged(&run).objects.iter().map(|object| object.first_touch.at[0].line).collect();
    assert_eq!(lines, [Some(20); 2], "the code that only thread 0 runs");
    for (faults, why) in [([PAGES, PAGES / 10], "others touched memory"), ([PAGES / 2, 20], "too few faults for the memory")] {
        assert_eq!(found(&without_perf(faults, initialise_in_short_loops)), [], "{why}");
    }
    // 20 faults can place 40 MiB.
    for page_bytes in [2 * MIB, 0] {
        let mut run = without_perf([PAGES, 20], initialise_in_short_loops);
        answer_with_pages_of(&mut run, page_bytes);
        assert_eq!(found(&run), [], "pages of {page_bytes} bytes");
    }
    assert_eq!(found(&without_perf([PAGES, 20], |_| ())), [], "nothing shows how the memory was filled");
    for ended in [None, Some(20)] {
        let mut run = without_perf([PAGES, 20], initialise_in_short_loops);
        run.profile.threads.push(Thread { died_ns: Some(S / 10), all_faults: ended, ..thread(9) });
        assert_eq!(found(&run), [], "a thread that ended before its count was read");
    }
}

/// Check that a sweep over memory of a former object shows no first touch, if others have page faults too: they may have touched the former one.
#[test]
fn sweeps_over_recycled_memory() {
    let recycled = without_perf([PAGES, PAGES], |run| {
        initialise_in_thread_0(run);
        for (id, address) in [(1, A), (2, B)] {
            run.profile.objects.push(Object { id: 2 + id, site: Some(20), died_ns: Some(S / 4), ..object(id, "former", address) });
            run.profile.objects.iter_mut().filter(|object| object.id == id).for_each(|object| object.born_ns = S / 4);
        }
    });
    assert_eq!(found(&recycled), []);
}

/// Check that memory which belonged to another object before, and that only thread 0 can have touched, is recycled, and that memory which
/// was filled while thread 0 was in one system call was filled by the kernel.
#[test]
fn former_owners_and_the_kernel() {
    let recycled = without_perf([PAGES, 20], |run| {
        initialise_in_short_loops(run);
        for (id, address) in [(1, A), (2, B)] {
            run.profile.objects.push(Object { id: 2 + id, site: Some(20), died_ns: Some(S / 4), ..object(id, "former", address) });
            run.profile.objects.iter_mut().filter(|object| object.id == id).for_each(|object| object.born_ns = S / 4);
        }
    });
    assert_eq!(found(&recycled), [FindingKind::RecycledMemory; 2], "{:?}", judged(&recycled).not_judged);
    let read = without_perf([PAGES, 20], |run| {
        initialise_in_short_loops(run);
        run.profile.sampled_accesses.retain(|access| access.sample > 32);
        run.profile.samples[..32].iter_mut().for_each(|sample| sample.state = SampleState::InKernel);
    });
    assert_eq!(found(&read), [FindingKind::IoFirstTouch; 2], "{:?}", judged(&read).not_judged);
}

/// Check that sweeps also show first touches whose faults fell into a burst of which few were recorded, and that they do not where the
/// faults would have been recorded: then a former owner had touched the memory.
#[test]
fn first_touches_within_a_burst() {
    for (weight, is_hidden) in [(4000.0, true), (31.0, false)] {
        let mut run = run(7, [FAST, SLOW], 2);
        initialise_in_thread_0(&mut run);
        let elsewhere = FirstTouch { address: 0x30_0000_0000, weight, time_ns: S / 2, ..run.profile.first_touches[0].clone() };
        run.profile.first_touches = vec![elsewhere];
        run.profile.evidence.push(Evidence { source: "touch".into(), available: true, samples: 1, detail: String::new() });
        let analysis = judged(&run);
        let found: Vec<FindingKind> = analysis.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(found, if is_hidden { vec![FindingKind::SerialFirstTouch; 2] } else { vec![] }, "{weight}");
        assert!(is_hidden || analysis.objects.iter().all(|object| !object.judged));
    }
}
