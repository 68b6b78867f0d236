//! The arguments of `firsttouch bench`.

use clap::{Args, Subcommand, ValueEnum};
use firsttouch_native::Schedule;
use std::path::PathBuf;

/// Measure the speed of a bundled kernel with its data placed well or badly
#[derive(Debug, Args)]
#[command(
    long_about = "Runs a bundled OpenMP kernel, checks its answer, and shows its speed over several repetitions. The threads that touch the \
        data first (--init) determine the nodes of the data; --scaling varies the number of threads.",
    after_help = "Examples:\n  \
        firsttouch bench dgemv --init serial\n  \
        firsttouch bench triad --scaling 1,2,4,8 --svg triad.svg\n  \
        firsttouch bench triad --place spread:4\n  \
        firsttouch bench triad --place '--cpunodebind 0 --membind 1'\n  \
        firsttouch bench iso3dfd --n1 528 --n2 528 --n3 528 --iterations 10\n  \
        firsttouch profile -- firsttouch bench dgemv --init serial --threads 8",
    disable_help_subcommand = true
)]
pub struct Bench {
    #[command(subcommand)]
    pub kernel: Kernel,
}

#[derive(Debug, Subcommand)]
pub enum Kernel {
    Dgemv(Dgemv),
    Dmvm(Dmvm),
    /// STREAM copy: c = a
    Copy(Stream),
    /// STREAM scale: b = s * c
    Scale(Stream),
    /// STREAM add: c = a + b
    Add(Stream),
    /// STREAM triad: a = b + s * c
    Triad(Stream),
    /// Read only: the sum of an array
    Read(Stream),
    /// Write only: fill an array
    Write(Stream),
    /// Schoenauer's triad: d = a + b * c, three reads for one write
    Schoenauer(Stream),
    Chase(Chase),
    Iso3dfd(Iso3dfd),
}

/// Options of every kernel.
#[derive(Debug, Args)]
pub struct KernelOptions {
    /// Which threads touch the data first
    #[arg(long, value_enum, default_value_t = Init::Parallel)]
    pub init: Init,
    /// OpenMP schedule of the loops: static, dynamic or guided, each with an optional CHUNK (rows, blocks of 4096 elements, blocks of the
    /// grid)
    #[arg(long, default_value = "static", value_name = "KIND[,CHUNK]", value_parser = parse_schedule)]
    pub schedule: Schedule,
    /// Number of threads [default: OMP_NUM_THREADS, or one per CPU]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65536), conflicts_with = "scaling")]
    pub threads: Option<u32>,
    /// Measure with each of these numbers of threads, and show the speed-up over the first
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub scaling: Vec<u32>,
    /// Place threads and memory like 'firsttouch run': a value of its --pin, or its options in quotes
    #[arg(long, value_name = "EXPR|'OPTIONS'", allow_hyphen_values = true)]
    pub place: Option<String>,
    /// The placement that this process was started with
    #[arg(long, hide = true, allow_hyphen_values = true)]
    pub placed: Option<String>,
    /// Number of timed repetitions
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub repetitions: u64,
    /// Instruction set of the inner loops
    #[arg(long, value_enum, default_value_t = Simd::Auto)]
    pub simd: Simd,
    /// Request transparent huge pages
    #[arg(long)]
    pub huge_pages: bool,
    /// Print the results as JSON (schema firsttouch.bench/1)
    #[arg(long)]
    pub json: bool,
    /// Draw the speed by number of threads to FILE (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Multiply a matrix by a vector (c = A * b, row-major, one block of rows per thread)
#[derive(Debug, Args)]
#[command(
    long_about = "Multiplies an m x n matrix by a vector (c = A * b, row-major) with OpenMP and checks the answer. With --init serial, one \
        thread initialises the data; with --init parallel, each thread initialises its own rows. This determines the nodes of the data. Times \
        are for one product; min, median and max are over the repetitions.",
    after_help = "Examples:\n  \
        firsttouch bench dgemv --init serial\n  \
        firsttouch bench dgemv --init parallel --threads 8 --m 20000 --n 20000\n  \
        firsttouch bench dgemv --tuned --scaling 1,2,4\n  \
        firsttouch bench dgemv --init parallel --schedule dynamic,16 --json"
)]
pub struct Dgemv {
    /// Rows of the matrix
    #[arg(long, default_value_t = 8000, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub m: u64,
    /// Columns of the matrix
    #[arg(long, default_value_t = 8000, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub n: u64,
    /// Products in one repetition
    #[arg(long, default_value_t = 10, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub iterations: u64,
    /// Use an inner loop that reaches the hardware's limit instead of the textbook loop
    #[arg(long)]
    pub tuned: bool,
    #[command(flatten)]
    pub options: KernelOptions,
}

/// Multiply a matrix by a vector repeatedly (y += A * x) in one parallel region
#[derive(Debug, Args)]
#[command(
    long_about = "Adds the product of an m x n matrix and a vector to another vector, repeatedly within one parallel region, and \
        checks the answer. Long runs show the effect of automatic NUMA balancing. Times are for one product.",
    after_help = "Examples:\n  \
        firsttouch bench dmvm --init serial --iterations 200\n  \
        firsttouch bench dmvm --init serial --iterations 2000 --repetitions 10 --json"
)]
pub struct Dmvm {
    /// Rows of the matrix
    #[arg(long, default_value_t = 8000, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub m: u64,
    /// Columns of the matrix
    #[arg(long, default_value_t = 8000, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub n: u64,
    /// Products in one repetition
    #[arg(long, default_value_t = 20, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub iterations: u64,
    #[command(flatten)]
    pub options: KernelOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    firsttouch bench triad\n  \
    firsttouch bench copy --elements 100000000 --temporal\n  \
    firsttouch bench triad --init serial --scaling 1,2,4,8 --json\n\n\
    Stores bypass the caches (non-temporal), so the bytes counted are the bytes moved. With --temporal, stores go through the caches, \
    which read each line before it is written; both numbers are shown.")]
pub struct Stream {
    /// Number of doubles in each array [default: four times the last-level cache, at most a tenth of the free memory]
    #[arg(long, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub elements: Option<u64>,
    /// Sweeps over the arrays in one repetition
    #[arg(long, default_value_t = 5, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub iterations: u64,
    /// Store through the caches
    #[arg(long)]
    pub temporal: bool,
    #[command(flatten)]
    pub options: KernelOptions,
}

/// Follow a chain of pointers to measure memory latency
#[derive(Debug, Args)]
#[command(
    long_about = "Follows a chain of pointers, one per cache line, in an order that prefetchers cannot predict. The result is the full latency \
        of a load. Each thread has its own chain. With --huge-pages, address translation hardly adds to the figure.",
    after_help = "Examples:\n  firsttouch bench chase --threads 1\n  firsttouch bench chase --threads 1 --lines 256 --huge-pages"
)]
pub struct Chase {
    /// Number of cache lines (64 bytes) in all chains together [default: eight times the last-level cache]
    #[arg(long, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub lines: Option<u64>,
    /// Loads per thread in one repetition
    #[arg(long, default_value_t = 2_000_000, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub iterations: u64,
    #[command(flatten)]
    pub options: KernelOptions,
}

/// Solve the acoustic wave equation (finite differences, 16th order, single precision)
#[derive(Debug, Args)]
#[command(
    long_about = "Solves the acoustic wave equation in three dimensions with finite differences: 16th order in space, second order in time, \
        single precision, cache blocking. The 8 points at each border are constant. Times are for one time step; the points inside \
        the borders are counted.",
    after_help = "Examples:\n  \
        firsttouch bench iso3dfd\n  \
        firsttouch bench iso3dfd --n1 448 --n2 2016 --n3 1056 --n1-block 448 --n2-block 24 --n3-block 96 --schedule dynamic\n  \
        firsttouch bench iso3dfd --init serial --scaling 1,2,4 --json"
)]
pub struct Iso3dfd {
    /// Points along the fastest dimension, including the borders
    #[arg(long, default_value_t = 272, value_parser = at_least::<17>, allow_negative_numbers = true)]
    pub n1: u64,
    /// Points along the middle dimension, including the borders
    #[arg(long, default_value_t = 272, value_parser = at_least::<17>, allow_negative_numbers = true)]
    pub n2: u64,
    /// Points along the slowest dimension, including the borders
    #[arg(long, default_value_t = 272, value_parser = at_least::<17>, allow_negative_numbers = true)]
    pub n3: u64,
    /// Points of a cache block along the fastest dimension [default: n1 in equal parts of at most 272]
    #[arg(long, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub n1_block: Option<u64>,
    /// Points of a cache block along the middle dimension [default: 8]
    #[arg(long, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub n2_block: Option<u64>,
    /// Points of a cache block along the slowest dimension [default: 128, fewer if there would be too few blocks for the threads]
    #[arg(long, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub n3_block: Option<u64>,
    /// Time steps in one repetition
    #[arg(long, default_value_t = 10, value_parser = at_least::<1>, allow_negative_numbers = true)]
    pub iterations: u64,
    #[command(flatten)]
    pub options: KernelOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Init {
    /// The main thread touches all data
    Serial,
    /// Each thread touches what it will use under a static schedule
    Parallel,
    /// Each thread touches what the thread half a team away will use
    Mismatched,
    /// The threads touch blocks of 2 MiB in turn
    Blocked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Simd {
    /// The best instruction set of this CPU
    Auto,
    Portable,
    Avx2,
    Avx512,
}

/// A whole number, at least `LEAST`.
fn at_least<const LEAST: u64>(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|number| *number >= LEAST).ok_or_else(|| format!("expected a whole number of at least {LEAST}"))
}

fn parse_schedule(text: &str) -> Result<Schedule, String> {
    let (kind, chunk) = match text.split_once(',') {
        None => (text, None),
        Some((kind, chunk)) => match chunk.parse::<u32>() {
            Ok(chunk) if (1..=i32::MAX as u32).contains(&chunk) => (kind, Some(chunk)),
            _ => return Err(format!("expected a number from 1 to {} after '{kind},', found '{chunk}'", i32::MAX)),
        },
    };
    match kind {
        "static" => Ok(Schedule::Static { chunk }),
        "dynamic" => Ok(Schedule::Dynamic { chunk }),
        "guided" => Ok(Schedule::Guided { chunk }),
        _ => Err("expected static, dynamic or guided, with or without ,CHUNK".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which schedules are accepted.
    #[test]
    fn schedules_are_read() {
        assert_eq!(parse_schedule("static"), Ok(Schedule::Static { chunk: None }));
        assert_eq!(parse_schedule("static,4"), Ok(Schedule::Static { chunk: Some(4) }));
        assert_eq!(parse_schedule("dynamic"), Ok(Schedule::Dynamic { chunk: None }));
        assert_eq!(parse_schedule("dynamic,16"), Ok(Schedule::Dynamic { chunk: Some(16) }));
        assert_eq!(parse_schedule("guided,2"), Ok(Schedule::Guided { chunk: Some(2) }));
        for text in ["", "auto", "dynamic,", "dynamic,0", "dynamic,-1", "dynamic,x", "dynamic,1,2", "dynamic,2147483648"] {
            assert!(parse_schedule(text).is_err(), "{text}");
        }
    }
}
