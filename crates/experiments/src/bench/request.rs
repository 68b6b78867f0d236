//! The requested kernel and sizes. Sizes default to multiples of the last-level cache.

use super::{BenchResult, KernelWork, schedule_name};
use firsttouch_native::{Form, Initialisation, Kernel, KernelRun, Operation, Schedule, Stream};
use firsttouch_system::topology;
use std::path::Path;

/// An array of a default size takes at most the free memory divided by this.
const PART_OF_MEMORY: u64 = 10;
/// Last-level cache size to assume if it is unknown, bytes.
pub const DEFAULT_CACHE_BYTES: u64 = 32 << 20;

/// A kernel with its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    Dgemv {
        m: u64,
        n: u64,
        tuned: bool,
    },
    Dmvm {
        m: u64,
        n: u64,
    },
    Stream {
        operation: Operation,
        /// Doubles in each array; by default four times the last-level cache.
        elements: Option<u64>,
        /// Whether stores go through the caches.
        temporal: bool,
    },
    Chase {
        /// Cache lines of all chains; by default eight times the last-level cache.
        lines: Option<u64>,
    },
    Iso3dfd {
        points: [u64; 3],
        /// Points of a block; the kernel chooses sizes that are `None`.
        blocks: [Option<u64>; 3],
    },
}

#[derive(Clone, Debug)]
pub struct Request {
    pub problem: Problem,
    pub iterations: u64,
    pub repetitions: u64,
    pub initialisation: Initialisation,
    pub schedule: Schedule,
    pub form: Form,
    pub huge_pages: bool,
    /// Team sizes; empty for the OpenMP runtime's default.
    pub teams: Vec<u32>,
    /// The placement with which this process was started, as the user wrote it.
    pub placement: Option<String>,
}

impl Request {
    /// The kernel's options for the default team, and the result before any team has run.
    pub(super) fn prepare(&self, available_bytes: u64) -> (KernelRun, BenchResult) {
        let named = self.problem.sizes(available_bytes);
        let mut sizes = [1; 3];
        for (size, (_, value)) in sizes.iter_mut().zip(&named) {
            *size = *value;
        }
        let blocks = match self.problem {
            Problem::Iso3dfd { blocks, .. } => blocks.map(|points| points.unwrap_or(0)),
            _ => [0; 3],
        };
        let run = KernelRun {
            kernel: self.problem.kernel(),
            sizes,
            blocks,
            iterations: self.iterations,
            repetitions: self.repetitions,
            threads: 0,
            initialisation: self.initialisation,
            schedule: self.schedule,
            form: self.form,
            huge_pages: self.huge_pages,
        };
        let cost = run.kernel.cost();
        let result = BenchResult {
            kernel: run.kernel.name().to_owned(),
            init: initialisation_name(self.initialisation).to_owned(),
            schedule: schedule_name(self.schedule),
            form: String::new(),
            place: self.placement.clone(),
            shape: self.problem.shape(&named),
            sizes: named.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(self.problem.asked_blocks()).collect(),
            bytes: 0,
            huge_pages: self.huge_pages,
            iterations: self.iterations,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            work: KernelWork {
                element: cost.element.to_owned(),
                elements: run.elements(),
                bytes: cost.bytes,
                moved: cost.moved,
                flops: cost.flops,
                iteration: self.problem.iteration().to_owned(),
            },
            teams: Vec::new(),
        };
        (run, result)
    }
}

impl Problem {
    fn kernel(self) -> Kernel {
        match self {
            Self::Dgemv { tuned: true, .. } => Kernel::DgemvTuned,
            Self::Dgemv { .. } => Kernel::Dgemv,
            Self::Dmvm { .. } => Kernel::Dmvm,
            Self::Stream { operation, temporal, .. } => Kernel::Stream(Stream { operation, temporal }),
            Self::Chase { .. } => Kernel::Chase,
            Self::Iso3dfd { .. } => Kernel::Iso3dfd,
        }
    }

    fn sizes(self, available_bytes: u64) -> Vec<(&'static str, u64)> {
        match self {
            Self::Dgemv { m, n, .. } | Self::Dmvm { m, n } => vec![("m", m), ("n", n)],
            Self::Stream { elements, .. } => {
                vec![("elements", elements.unwrap_or_else(|| array_bytes(4 * last_level_cache(), available_bytes) / 8))]
            }
            Self::Chase { lines } => vec![("lines", lines.unwrap_or_else(|| array_bytes(8 * last_level_cache(), available_bytes) / 64))],
            Self::Iso3dfd { points: [n1, n2, n3], .. } => vec![("n1", n1), ("n2", n2), ("n3", n3)],
        }
    }

    fn asked_blocks(self) -> impl Iterator<Item = (String, u64)> {
        let blocks = if let Self::Iso3dfd { blocks, .. } = self { blocks } else { [None; 3] };
        ["n1_block", "n2_block", "n3_block"].into_iter().zip(blocks).filter_map(|(name, points)| Some((name.to_owned(), points?)))
    }

    fn shape(self, sizes: &[(&'static str, u64)]) -> String {
        let numbers: Vec<String> = sizes.iter().map(|(_, value)| value.to_string()).collect();
        let numbers = numbers.join(" x ");
        match self {
            Self::Stream { temporal: true, .. } => format!("{numbers} elements, stores through the caches"),
            Self::Stream { .. } => format!("{numbers} elements"),
            Self::Chase { .. } => format!("{numbers} lines"),
            _ => numbers,
        }
    }

    /// The name of an iteration in the results.
    fn iteration(self) -> &'static str {
        match self {
            Self::Dgemv { .. } | Self::Dmvm { .. } => "product",
            Self::Stream { .. } => "sweep",
            Self::Chase { .. } => "load",
            Self::Iso3dfd { .. } => "time step",
        }
    }
}

fn initialisation_name(initialisation: Initialisation) -> &'static str {
    match initialisation {
        Initialisation::Serial => "serial",
        Initialisation::Parallel => "parallel",
        Initialisation::Mismatched => "mismatched",
        Initialisation::Blocked => "blocked",
    }
}

/// Bytes of an array of a default size of `bytes`, limited by the free memory.
fn array_bytes(bytes: u64, available_bytes: u64) -> u64 {
    if available_bytes == 0 { bytes } else { bytes.min(available_bytes / PART_OF_MEMORY) }.max(64 * 64)
}

/// The largest cache of the machine, bytes.
fn last_level_cache() -> u64 {
    let topology = topology::read(Path::new("/")).ok();
    let caches = topology.iter().flat_map(|topology| &topology.caches);
    caches.map(|cache| cache.size_bytes).max().filter(|bytes| *bytes > 0).unwrap_or(DEFAULT_CACHE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(problem: Problem) -> Request {
        Request {
            problem,
            iterations: 3,
            repetitions: 2,
            initialisation: Initialisation::Serial,
            schedule: Schedule::Dynamic { chunk: Some(4) },
            form: Form::Best,
            huge_pages: false,
            teams: Vec::new(),
            placement: None,
        }
    }

    /// Check the sizes, blocks and words for a requested problem.
    #[test]
    fn problems_have_sizes() {
        let (run, result) = request(Problem::Iso3dfd { points: [40, 33, 29], blocks: [None, Some(5), None] }).prepare(0);
        assert_eq!((run.sizes, run.blocks), ([40, 33, 29], [0, 5, 0]));
        assert_eq!((result.shape.as_str(), result.sizes.get("n2_block"), result.sizes.len()), ("40 x 33 x 29", Some(&5), 4));
        assert_eq!((result.init.as_str(), result.schedule.as_str()), ("serial", "dynamic,4"));
        let (_, copy) = request(Problem::Stream { operation: Operation::Copy, elements: Some(1000), temporal: true }).prepare(0);
        assert_eq!(copy.shape, "1000 elements, stores through the caches");
        let (chase, _) = request(Problem::Chase { lines: None }).prepare(64 << 20);
        assert!(chase.sizes[0] * 64 <= (64 << 20) / PART_OF_MEMORY);
    }
}
