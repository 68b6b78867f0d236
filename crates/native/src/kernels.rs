//! The bundled kernels (native/kernels).

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// c = A * b, row-major; sizes: rows, columns.
    Dgemv,
    /// The same with the inner loop tuned.
    DgemvTuned,
    /// y += A * x, all iterations in one parallel region; sizes: rows, columns.
    Dmvm,
    /// Loops over arrays; sizes: elements.
    Stream(Stream),
    /// Dependent loads; sizes: cache lines; an iteration is one load.
    Chase,
    /// The wave equation; sizes: n1 (the fastest), n2, n3; an iteration is one time step.
    Iso3dfd,
}

/// STREAM's loops, and those that only read and only write. Stores bypass the caches unless `temporal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    pub operation: Operation,
    pub temporal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Copy,
    Scale,
    Add,
    Triad,
    Read,
    Write,
    /// d = a + b * c: three reads for one write.
    Schoenauer,
}

/// Who touches the arrays first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Initialisation {
    /// The main thread.
    Serial,
    /// Each thread what it will use under a static schedule.
    #[default]
    Parallel,
    /// Each thread what the thread half a team away will use.
    Mismatched,
    /// Blocks of 2 MiB by the threads in turn.
    Blocked,
}

/// How work is handed to threads; a chunk counts rows, blocks of 4,096 elements, or blocks of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    Static { chunk: Option<u32> },
    Dynamic { chunk: Option<u32> },
    Guided { chunk: Option<u32> },
}

impl Default for Schedule {
    fn default() -> Self {
        Self::Static { chunk: None }
    }
}

/// Which instructions the inner loops use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    Best,
    Portable,
    Avx2,
    Avx512,
}

/// One run of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub kernel: Kernel,
    /// The kernel says of what; unused ones are 1.
    pub sizes: [u64; 3],
    /// Blocks of iso3dfd; 0: its own choice.
    pub blocks: [u64; 3],
    /// In one timed repetition.
    pub iterations: u64,
    pub repetitions: u64,
    /// Team size; 0: the OpenMP runtime's choice.
    pub threads: u32,
    pub initialisation: Initialisation,
    pub schedule: Schedule,
    pub form: Form,
    /// Ask for transparent huge pages.
    pub huge_pages: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Seconds an iteration, of each repetition.
    pub seconds: Vec<f64>,
    /// The team size that ran.
    pub threads: u32,
    pub form: Form,
    /// Largest relative deviation of the answer.
    pub worst_error: f64,
    /// Memory of all arrays.
    pub bytes: u64,
    /// CPUs on which the threads ran at the end.
    pub cpus: Vec<u32>,
    /// Nodes of pages at equal distances in the main array, from its beginning; none where the kernel does not tell.
    pub page_nodes: Vec<Option<u32>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum KernelError {
    Options { kernel: &'static str },
    Memory { kernel: &'static str },
    Wrong { kernel: &'static str, element: u64, error: f64 },
    Form { form: Form },
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options { kernel } => write!(
                f,
                "cannot run {kernel}: sizes, iterations and repetitions must be at least 1 (more than 16 points each way for iso3dfd, a line a thread for chase), and the arrays must fit an address space"
            ),
            Self::Memory { kernel } => write!(f, "cannot run {kernel}: there is no memory for its arrays; choose smaller sizes"),
            Self::Wrong { kernel, element, error } => {
                write!(f, "{kernel} computed a wrong answer: element {element} deviates by {error:e}")
            }
            Self::Form { form } => write!(f, "cannot run with {} instructions: this CPU lacks them; leave out --simd", form.name()),
        }
    }
}

impl std::error::Error for KernelError {}

impl Operation {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
            Self::Read => "read",
            Self::Write => "write",
            Self::Schoenauer => "schoenauer",
        }
    }

    /// Arrays read and arrays written.
    #[must_use]
    pub fn arrays(self) -> (u32, u32) {
        match self {
            Self::Copy | Self::Scale => (1, 1),
            Self::Add | Self::Triad => (2, 1),
            Self::Read => (1, 0),
            Self::Write => (0, 1),
            Self::Schoenauer => (3, 1),
        }
    }
}

impl Form {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Best => "the best",
            Self::Portable => "portable",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
        }
    }
}

/// What an element of a kernel costs: the one table all rates come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// What an element is.
    pub element: &'static str,
    /// Bytes the program names, if no cache holds the arrays.
    pub bytes: f64,
    /// Bytes that move: a store that goes through the caches reads its line first.
    pub moved: f64,
    pub flops: f64,
}

impl Kernel {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dgemv | Self::DgemvTuned => "dgemv",
            Self::Dmvm => "dmvm",
            Self::Stream(stream) => stream.operation.name(),
            Self::Chase => "chase",
            Self::Iso3dfd => "iso3dfd",
        }
    }

    #[must_use]
    pub fn cost(self) -> Cost {
        match self {
            Self::Dgemv | Self::DgemvTuned | Self::Dmvm => Cost { element: "matrix element", bytes: 8.0, moved: 8.0, flops: 2.0 },
            Self::Stream(Stream { operation, temporal }) => {
                let (read, written) = operation.arrays();
                let bytes = 8.0 * f64::from(read + written);
                let flops = match operation {
                    Operation::Copy | Operation::Write => 0.0,
                    Operation::Scale | Operation::Add | Operation::Read => 1.0,
                    Operation::Triad | Operation::Schoenauer => 2.0,
                };
                Cost { element: "element", bytes, moved: bytes + if temporal { 8.0 * f64::from(written) } else { 0.0 }, flops }
            }
            Self::Chase => Cost { element: "load", bytes: 64.0, moved: 64.0, flops: 0.0 },
            Self::Iso3dfd => Cost { element: "point", bytes: 16.0, moved: 16.0, flops: 61.0 },
        }
    }

    fn variant(self) -> u32 {
        match self {
            Self::DgemvTuned => 1,
            Self::Stream(Stream { operation, temporal }) => operation as u32 + if temporal { TEMPORAL } else { 0 },
            _ => 0,
        }
    }

    fn function(self) -> unsafe extern "C" fn(*const RawOptions, *mut f64, *mut RawResult) -> i32 {
        match self {
            Self::Dgemv | Self::DgemvTuned => ft_dgemv,
            Self::Dmvm => ft_dmvm,
            Self::Stream(_) => ft_stream,
            Self::Chase => ft_chase,
            Self::Iso3dfd => ft_iso3dfd,
        }
    }
}

/// Points at each side of iso3dfd's grid that keep their values.
const BORDER: u64 = 8;

impl Run {
    /// Elements that one iteration computes.
    #[must_use]
    pub fn elements(&self) -> f64 {
        let [a, b, c] = self.sizes;
        match self.kernel {
            Kernel::Dgemv | Kernel::DgemvTuned | Kernel::Dmvm => a as f64 * b as f64,
            Kernel::Stream(_) => a as f64,
            Kernel::Chase => 1.0,
            Kernel::Iso3dfd => [a, b, c].into_iter().map(|n| n.saturating_sub(2 * BORDER) as f64).product(),
        }
    }

    /// Memory of all arrays. Saturates for absurd sizes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let [a, b, c] = self.sizes;
        match self.kernel {
            Kernel::Dgemv | Kernel::DgemvTuned | Kernel::Dmvm => {
                a.saturating_mul(b).saturating_add(a).saturating_add(b).saturating_mul(size_of::<f64>() as u64)
            }
            Kernel::Stream(Stream { operation, .. }) => {
                let (read, written) = operation.arrays();
                a.saturating_mul(size_of::<f64>() as u64).saturating_mul(u64::from(read + written))
            }
            Kernel::Chase => a.saturating_mul(64),
            Kernel::Iso3dfd => {
                let row = a.saturating_add(31) / 16 * 16;
                let plane = row.saturating_mul(b).saturating_add(1983);
                plane.saturating_mul(c).saturating_mul(3 * size_of::<f32>() as u64)
            }
        }
    }

    /// Runs the kernel and checks its answer.
    ///
    /// # Errors
    /// Options out of range, no memory, instructions this CPU lacks, or a wrong answer.
    pub fn run(&self) -> Result<Outcome, KernelError> {
        self.run_counted(&Repetitions::default())
    }

    /// The same; how many repetitions are done can be asked meanwhile.
    ///
    /// # Errors
    /// As [`Run::run`].
    pub fn run_counted(&self, counted: &Repetitions) -> Result<Outcome, KernelError> {
        let kernel = self.kernel.name();
        let (schedule, chunk) = match self.schedule {
            Schedule::Static { chunk } => (0, chunk),
            Schedule::Dynamic { chunk } => (1, chunk),
            Schedule::Guided { chunk } => (2, chunk),
        };
        let options = RawOptions {
            sizes: self.sizes,
            blocks: self.blocks,
            iterations: self.iterations,
            repetitions: self.repetitions,
            chunk: chunk.unwrap_or(0).into(),
            threads: self.threads,
            initialisation: self.initialisation as u32,
            schedule,
            form: self.form as u32,
            variant: self.kernel.variant(),
            huge_pages: self.huge_pages.into(),
        };
        let count = usize::try_from(self.repetitions).map_err(|_| KernelError::Options { kernel })?;
        let mut seconds = Vec::new();
        seconds.try_reserve_exact(count).map_err(|_| KernelError::Memory { kernel })?;
        seconds.resize_with(count, AtomicU64::default);
        let seconds = counted.times.get_or_init(|| seconds);
        let mut result = RawResult { worst_error: 0.0, wrong_at: 0, bytes: 0, threads: 0, form: 0, cpus: [0; 16], page_nodes: [-1; 64] };
        if seconds.len() < count {
            return Err(KernelError::Options { kernel });
        }
        // SAFETY: the structs mirror native/kernels/kernel.h (sizes are tested), `seconds` has room for every repetition (an AtomicU64
        // has the size and alignment of a double, and may be written through a shared pointer), all outlive the call, and the
        // function validates the options before it uses them.
        let status = unsafe { self.kernel.function()(&raw const options, seconds.as_ptr().cast_mut().cast(), &raw mut result) };
        match status {
            0 => Ok(Outcome {
                seconds: seconds.iter().take(count).map(|time| f64::from_bits(time.load(Ordering::Relaxed))).collect(),
                threads: result.threads,
                form: match result.form {
                    2 => Form::Avx2,
                    3 => Form::Avx512,
                    _ => Form::Portable,
                },
                worst_error: result.worst_error,
                bytes: result.bytes,
                cpus: (0..1024).filter(|cpu| result.cpus[*cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect(),
                page_nodes: result.page_nodes.iter().map(|node| u32::try_from(*node).ok()).collect(),
            }),
            1 => Err(KernelError::Options { kernel }),
            2 => Err(KernelError::Memory { kernel }),
            4 => Err(KernelError::Form { form: self.form }),
            _ => Err(KernelError::Wrong { kernel, element: result.wrong_at, error: result.worst_error }),
        }
    }
}

/// The repetitions of one run that are done, for another thread to ask about.
#[derive(Debug, Default)]
pub struct Repetitions {
    /// The bits of each one's seconds; 0 until it is done.
    times: OnceLock<Vec<AtomicU64>>,
}

impl Repetitions {
    #[must_use]
    pub fn done(&self) -> usize {
        self.times.get().map_or(0, |times| times.iter().take_while(|time| time.load(Ordering::Relaxed) != 0).count())
    }
}

/// `FT_STREAM_TEMPORAL`
const TEMPORAL: u32 = 16;

/// `struct ft_kernel_options`
#[repr(C)]
struct RawOptions {
    sizes: [u64; 3],
    blocks: [u64; 3],
    iterations: u64,
    repetitions: u64,
    chunk: u64,
    threads: u32,
    initialisation: u32,
    schedule: u32,
    form: u32,
    variant: u32,
    huge_pages: u32,
}

/// `struct ft_kernel_result`
#[repr(C)]
struct RawResult {
    worst_error: f64,
    wrong_at: u64,
    bytes: u64,
    threads: u32,
    form: u32,
    cpus: [u64; 16],
    page_nodes: [i8; 64],
}

unsafe extern "C" {
    fn ft_dgemv(options: *const RawOptions, seconds: *mut f64, result: *mut RawResult) -> i32;
    fn ft_dmvm(options: *const RawOptions, seconds: *mut f64, result: *mut RawResult) -> i32;
    fn ft_stream(options: *const RawOptions, seconds: *mut f64, result: *mut RawResult) -> i32;
    fn ft_chase(options: *const RawOptions, seconds: *mut f64, result: *mut RawResult) -> i32;
    fn ft_iso3dfd(options: *const RawOptions, seconds: *mut f64, result: *mut RawResult) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: [Kernel; 5] = [Kernel::Dgemv, Kernel::DgemvTuned, Kernel::Dmvm, Kernel::Chase, Kernel::Iso3dfd];
    const OPERATIONS: [Operation; 7] =
        [Operation::Copy, Operation::Scale, Operation::Add, Operation::Triad, Operation::Read, Operation::Write, Operation::Schoenauer];

    fn all_kernels() -> impl Iterator<Item = Kernel> {
        let streams = OPERATIONS.into_iter().flat_map(|operation| [false, true].map(|temporal| Stream { operation, temporal }));
        KERNELS.into_iter().chain(streams.map(Kernel::Stream))
    }

    fn small(kernel: Kernel) -> Run {
        Run {
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
                        let run = Run { initialisation, schedule, threads, form, ..small(kernel) };
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

    /// Check iso3dfd against the double-precision reference on odd and smallest grids with blocks of every shape.
    #[test]
    fn iso3dfd_is_right_on_any_grid_and_block() {
        for sizes in [[17, 17, 17], [18, 31, 19], [49, 20, 33], [65, 24, 17], [32, 32, 48]] {
            for blocks in [[0, 0, 0], [1, 1, 1], [5, 3, 7], [16, 4, 2], [1000, 1000, 1000], [15, 9, 1]] {
                for form in [Form::Portable, Form::Avx2, Form::Avx512] {
                    let run = Run { sizes, blocks, form, repetitions: 2, ..small(Kernel::Iso3dfd) };
                    match run.run() {
                        Err(KernelError::Form { .. }) => {}
                        outcome => assert!(outcome.unwrap_or_else(|error| panic!("{run:?}: {error}")).worst_error < 1e-5),
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
                    let run = Run { sizes: [size, 1, 1], repetitions: 1, ..small(Kernel::Stream(Stream { operation, temporal })) };
                    run.run().unwrap_or_else(|error| panic!("{run:?}: {error}"));
                }
            }
            for kernel in [Kernel::Dgemv, Kernel::DgemvTuned, Kernel::Dmvm] {
                for sizes in [[size.min(70), 5, 1], [5, size, 1]] {
                    let run = Run { sizes, repetitions: 1, ..small(kernel) };
                    run.run().unwrap_or_else(|error| panic!("{run:?}: {error}"));
                }
            }
        }
    }

    /// Check that loads that wait for each other take time: a compiler must not leave them out.
    #[test]
    fn a_chain_takes_time() {
        for threads in [1, 2] {
            let run = Run { sizes: [2048, 1, 1], iterations: 1_000_000, threads, ..small(Kernel::Chase) };
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
                Run { sizes: [0, 20, 20], ..good },
                Run { sizes: [20, 0, 20], ..good },
                Run { sizes: [u64::MAX; 3], ..good },
                Run { sizes: [1 << 31, 1 << 30, 1], ..good },
                Run { iterations: 0, ..good },
                Run { repetitions: 0, ..good },
                Run { threads: u32::MAX, ..good },
            ] {
                assert_eq!(run.run(), Err(KernelError::Options { kernel: kernel.name() }), "{run:?}");
            }
        }
        for sizes in [[16, 20, 20], [20, 16, 20], [20, 20, 16]] {
            assert!(Run { sizes, ..small(Kernel::Iso3dfd) }.run().is_err(), "{sizes:?}");
        }
        assert!(Run { sizes: [2, 1, 1], ..small(Kernel::Chase) }.run().is_err(), "fewer lines than threads");
    }

    /// Check that memory that cannot be had is an error, not a crash.
    #[test]
    fn no_memory_is_an_error() {
        for kernel in [Kernel::Dgemv, Kernel::Dmvm, Kernel::Stream(Stream { operation: Operation::Triad, temporal: false }), Kernel::Chase]
        {
            let run = Run { sizes: [1 << 54, 1, 1], ..small(kernel) };
            assert_eq!(run.run(), Err(KernelError::Memory { kernel: kernel.name() }), "{run:?}");
        }
    }

    /// Check the sizes of the structs shared with C.
    #[test]
    fn structs_mirror_c() {
        assert_eq!((size_of::<RawOptions>(), size_of::<RawResult>()), (96, 224));
    }
}
