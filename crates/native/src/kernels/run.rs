//! One run of a kernel: its options, its outcome, its errors.

use super::kernel::{Kernel, Stream};
use super::raw::{RawOptions, RawResult};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Who touches the arrays first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Initialisation {
    /// The main thread.
    Serial,
    /// Each thread: what it will use under a static schedule.
    #[default]
    Parallel,
    /// Each thread: what the thread half a team away will use.
    Mismatched,
    /// Blocks of 2 MiB, dealt to the threads in turn.
    Blocked,
}

/// How work is assigned to threads; a chunk counts rows, blocks of 4,096 elements, or blocks of the grid.
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

/// One run of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRun {
    pub kernel: Kernel,
    /// Meaning by [`Kernel`]; unused ones are 1.
    pub sizes: [u64; 3],
    /// Block sizes of iso3dfd; 0: the kernel chooses.
    pub blocks: [u64; 3],
    /// In one timed repetition.
    pub iterations: u64,
    pub repetitions: u64,
    /// Team size; 0: the OpenMP runtime chooses.
    pub threads: u32,
    pub initialisation: Initialisation,
    pub schedule: Schedule,
    pub form: Form,
    /// Ask for transparent huge pages.
    pub huge_pages: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct KernelResult {
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
    /// Nodes of pages at equal distances in the main array, from its beginning; `None` if the kernel does not report one.
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

/// Points at each side of iso3dfd's grid that keep their values.
const BORDER: u64 = 8;

impl KernelRun {
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
                // The layout of iso3dfd.c with the longest vectors, whose bricks are the largest: 16 x 4 x 8 points.
                let row = (a.saturating_sub(1) / 16 + 2) | 1;
                let slab = b.div_ceil(4).saturating_mul(row).saturating_add(1).saturating_mul(16 * 4 * 8);
                let field = slab.saturating_mul(c.div_ceil(8)).saturating_add(2 * 304);
                field.saturating_mul(3 * size_of::<f32>() as u64)
            }
        }
    }

    /// Runs the kernel and checks its answer.
    ///
    /// # Errors
    /// Options out of range, no memory, instructions this CPU lacks, or a wrong answer.
    pub fn run(&self) -> Result<KernelResult, KernelError> {
        self.run_counted(&Repetitions::default())
    }

    /// The same; `counted` tells other threads how many repetitions are complete.
    ///
    /// # Errors
    /// As [`Run::run`].
    pub fn run_counted(&self, counted: &Repetitions) -> Result<KernelResult, KernelError> {
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
            0 => Ok(KernelResult {
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

/// The completed repetitions of one run, readable by other threads.
#[derive(Debug, Default)]
pub struct Repetitions {
    /// The seconds of each repetition as bits; 0 until it is complete.
    times: OnceLock<Vec<AtomicU64>>,
}

impl Repetitions {
    #[must_use]
    pub fn done(&self) -> usize {
        self.times.get().map_or(0, |times| times.iter().take_while(|time| time.load(Ordering::Relaxed) != 0).count())
    }
}
