//! Lines of a large object that stay in a core's cache, and receive most of the accesses: the accumulators of loops in the heap of a virtual machine.

use crate::samples::{B, FAST, Run, SLOW, THREADS, TICK, judged, run_at};
use firsttouch_model::rows::{AccessKind, SampledAccess};

/// Accumulators that each round reads and writes.
const ACCUMULATORS: usize = 3;

/// A run in whose samples each thread also uses lines of B: `line` gives them by thread, number of the sample, and accumulator.
fn with_lines(line: impl Fn(u64, u64, u64) -> u64) -> Run {
    let mut run = run_at(7, [FAST, SLOW], 5, [1.0; THREADS], None, TICK);
    let mut own = run.profile.sampled_accesses.iter().peekable();
    let (mut all, mut numbers) = (Vec::new(), [0; THREADS]);
    for sample in &run.profile.samples {
        let thread = usize::try_from(sample.thread).unwrap();
        let mut last = None;
        while let Some(access) = own.next_if(|access| access.sample == sample.id) {
            last = Some(access);
            all.push(access.clone());
        }
        numbers[thread] += 1;
        let number = numbers[thread];
        all.extend(last.into_iter().flat_map(|access| {
            (0..ACCUMULATORS as u64).map(|which| SampledAccess {
                object: 2,
                address: B + line(thread as u64, number, which) * 64,
                kind: AccessKind::Write,
                stride: None,
                ..access.clone()
            })
        }));
    }
    run.profile.sampled_accesses = all;
    run
}

/// Check that such lines change neither the share nor the remote share of what the loops read, whether they are the same for all the run or others after
/// a while, and that the coverage shows them.
#[test]
fn lines_in_a_cache_do_not_count() {
    let plain = judged(&run_at(7, [FAST, SLOW], 5, [1.0; THREADS], None, TICK));
    let share = |analysis: &firsttouch_analysis::Analysis, name: &str| {
        let object = analysis.objects.iter().find(|object| object.name == name).expect("the object");
        (object.access_share.expect("a share"), object.remote_fraction.expect("a figure"))
    };
    let same = |thread: u64, _: u64, which: u64| thread * 8 + which;
    let in_turn = |thread: u64, number: u64, which: u64| (thread * 1000 + number / 10) * 8 + which;
    for run in [with_lines(same), with_lines(in_turn)] {
        let analysis = judged(&run);
        for name in ["A", "B"] {
            let ((expected, remote), (found, of_it)) = (share(&plain, name), share(&analysis, name));
            assert!(
                (expected - found).abs() < 0.03 && (remote - of_it).abs() < 0.03,
                "{name}: {found} for {expected}, {of_it} for {remote}"
            );
        }
        let coverage = analysis.coverage.as_ref().expect("accesses");
        assert!(coverage.cached > 0.5, "{coverage:?}");
    }
}

/// Check that lines which several threads write count: they move from core to core.
#[test]
fn shared_counters_count() {
    let analysis = judged(&with_lines(|_, _, which| which));
    let coverage = analysis.coverage.as_ref().expect("accesses");
    assert!(coverage.cached < 0.01, "{coverage:?}");
}

/// Check that lines which are used at random count, also where each round uses several: of 1 MiB, twice the least that is looked at.
#[test]
fn random_lines_count() {
    let random = |thread: u64, number: u64, which: u64| {
        let mixed = (thread << 40 ^ number << 8 ^ which).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) % 16_384
    };
    let analysis = judged(&with_lines(random));
    let coverage = analysis.coverage.as_ref().expect("accesses");
    assert!(coverage.cached < 0.01, "{coverage:?}");
}
