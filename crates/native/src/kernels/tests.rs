use super::raw::{RawOptions, RawResult};
use super::*;

const KERNELS: [Kernel; 5] = [Kernel::Dgemv, Kernel::DgemvTuned, Kernel::Dmvm, Kernel::Chase, Kernel::Iso3dfd];
const OPERATIONS: [Operation; 7] =
    [Operation::Copy, Operation::Scale, Operation::Add, Operation::Triad, Operation::Read, Operation::Write, Operation::Schoenauer];

fn all_kernels() -> impl Iterator<Item = Kernel> {
    let streams = OPERATIONS.into_iter().flat_map(|operation| [false, true].map(|temporal| Stream { operation, temporal }));
    KERNELS.into_iter().chain(streams.map(Kernel::Stream))
}

fn small(kernel: Kernel) -> KernelRun {
    KernelRun {
        kernel,
        sizes: match kernel {
            Kernel::Iso3dfd => [33, 29, 27],
            Kernel::Stream(_) => [100_003, 1, 1],
            Kernel::Chase => [4099, 1, 1],
            _ => [67, 131, 1],
        },
        blocks: [0; 3],
        iterations: 2,
        repetitions: 3,
        threads: 3,
        initialisation: Initialisation::default(),
        schedule: Schedule::default(),
        form: Form::default(),
        huge_pages: false,
    }
}

/// Check every kernel's answer for each initialisation, schedule, team size and form this CPU has.
#[test]
fn answers_are_right() {
    let schedules = [
        Schedule::Static { chunk: None },
        Schedule::Static { chunk: Some(2) },
        Schedule::Dynamic { chunk: None },
        Schedule::Dynamic { chunk: Some(1000) },
        Schedule::Guided { chunk: Some(3) },
    ];
    let forms = [Form::Portable, Form::Avx2, Form::Avx512];
    for kernel in all_kernels() {
        for initialisation in [Initialisation::Serial, Initialisation::Parallel, Initialisation::Mismatched, Initialisation::Blocked] {
            for (schedule, threads) in schedules.into_iter().zip([3, 1, 4, 7, 2]) {
                for form in forms {
                    let run = KernelRun { initialisation, schedule, threads, form, ..small(kernel) };
                    let outcome = match run.run() {
                        Err(KernelError::Form { .. }) => continue,
                        outcome => outcome.unwrap_or_else(|error| panic!("{run:?}: {error}")),
                    };
                    assert_eq!(outcome.threads, threads);
                    assert!(outcome.worst_error <= 1e-4 && outcome.seconds.len() == 3, "{run:?} {outcome:?}");
                    assert!(outcome.seconds.iter().all(|s| *s > 0.0), "{run:?} {outcome:?}");
                }
            }
        }
    }
}

/// Check iso3dfd against the double-precision reference on odd and smallest grids with blocks of every shape, and that it takes no more
/// memory than `Run::bytes` says.
#[test]
fn iso3dfd_is_right_on_any_grid_and_block() {
    for sizes in [[17, 17, 17], [18, 31, 19], [49, 20, 33], [65, 24, 17], [32, 32, 48], [17, 18, 90]] {
        for blocks in [[0, 0, 0], [1, 1, 1], [5, 3, 7], [16, 4, 2], [1000, 1000, 1000], [15, 9, 1]] {
            for form in [Form::Portable, Form::Avx2, Form::Avx512] {
                let run = KernelRun { sizes, blocks, form, repetitions: 2, ..small(Kernel::Iso3dfd) };
                match run.run() {
                    Err(KernelError::Form { .. }) => {}
                    outcome => {
                        let outcome = outcome.unwrap_or_else(|error| panic!("{run:?}: {error}"));
                        assert!(outcome.worst_error < 1e-5 && outcome.bytes <= run.bytes(), "{run:?}: {outcome:?} of {}", run.bytes());
                    }
                }
            }
        }
    }
}

/// Check sizes at the edges of vectors, unrolled loops and blocks.
#[test]
fn sizes_at_edges_are_right() {
    for size in (1..70).chain([4095, 4096, 4097, 8191]) {
        for operation in OPERATIONS {
            for temporal in [false, true] {
                let run = KernelRun { sizes: [size, 1, 1], repetitions: 1, ..small(Kernel::Stream(Stream { operation, temporal })) };
                run.run().unwrap_or_else(|error| panic!("{run:?}: {error}"));
            }
        }
        for kernel in [Kernel::Dgemv, Kernel::DgemvTuned, Kernel::Dmvm] {
            for sizes in [[size.min(70), 5, 1], [5, size, 1]] {
                let run = KernelRun { sizes, repetitions: 1, ..small(kernel) };
                run.run().unwrap_or_else(|error| panic!("{run:?}: {error}"));
            }
        }
    }
}

/// Check that dependent loads take time: a compiler must not remove them.
#[test]
fn a_chain_takes_time() {
    for threads in [1, 2] {
        let run = KernelRun { sizes: [2048, 1, 1], iterations: 1_000_000, threads, ..small(Kernel::Chase) };
        let outcome = run.run().unwrap();
        assert!(outcome.seconds.iter().all(|seconds| *seconds > 1e-10), "{outcome:?}");
    }
}

/// Check that options out of range are refused, also where products overflow.
#[test]
fn bad_options_are_refused() {
    for kernel in all_kernels() {
        let good = small(kernel);
        for run in [
            KernelRun { sizes: [0, 20, 20], ..good },
            KernelRun { sizes: [20, 0, 20], ..good },
            KernelRun { sizes: [u64::MAX; 3], ..good },
            KernelRun { sizes: [1 << 31, 1 << 30, 1], ..good },
            KernelRun { iterations: 0, ..good },
            KernelRun { repetitions: 0, ..good },
            KernelRun { threads: u32::MAX, ..good },
        ] {
            assert_eq!(run.run(), Err(KernelError::Options { kernel: kernel.name() }), "{run:?}");
        }
    }
    for sizes in [[16, 20, 20], [20, 16, 20], [20, 20, 16]] {
        assert!(KernelRun { sizes, ..small(Kernel::Iso3dfd) }.run().is_err(), "{sizes:?}");
    }
    assert!(KernelRun { sizes: [2, 1, 1], ..small(Kernel::Chase) }.run().is_err(), "fewer lines than threads");
}

/// Check that failing to allocate is an error, not a crash.
#[test]
fn no_memory_is_an_error() {
    for kernel in [Kernel::Dgemv, Kernel::Dmvm, Kernel::Stream(Stream { operation: Operation::Triad, temporal: false }), Kernel::Chase] {
        let run = KernelRun { sizes: [1 << 54, 1, 1], ..small(kernel) };
        assert_eq!(run.run(), Err(KernelError::Memory { kernel: kernel.name() }), "{run:?}");
    }
}

/// Check the sizes of the structs shared with C.
#[test]
fn structs_mirror_c() {
    assert_eq!((size_of::<RawOptions>(), size_of::<RawResult>()), (96, 224));
}
