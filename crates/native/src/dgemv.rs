//! DGEMV (native/kernels/dgemv.c).

use std::fmt;

const ELEMENT_BYTES: u64 = size_of::<f64>() as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initialisation {
    /// The main thread touches everything first.
    Serial,
    /// Every thread touches first the rows it will use.
    Parallel,
}

/// How rows are handed to threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    Static,
    Dynamic { chunk: u64 },
}

/// c = A * b with an m x n matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dgemv {
    pub rows: u64,
    pub columns: u64,
    /// Products in one timed repetition.
    pub iterations: u64,
    pub repetitions: u64,
    /// Team size; 0: the OpenMP runtime's choice.
    pub threads: u32,
    pub initialisation: Initialisation,
    pub schedule: Schedule,
}

/// A value over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DgemvResult {
    /// Seconds a product.
    pub seconds: Spread,
    /// The team size that ran.
    pub threads: u32,
    /// Largest relative deviation from the closed form.
    pub worst_error: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DgemvError {
    Options,
    Memory { bytes: u64 },
    Wrong { row: u64, error: f64 },
}

impl fmt::Display for DgemvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options => write!(
                f,
                "cannot run dgemv: sizes, iterations, repetitions and chunk must be at least 1, and the matrix must fit an address space"
            ),
            Self::Memory { bytes } => {
                write!(f, "cannot run dgemv: no memory for {bytes} bytes; choose smaller --m and --n")
            }
            Self::Wrong { row, error } => {
                write!(f, "dgemv computed a wrong answer: row {row} deviates by {error:e} from the closed form")
            }
        }
    }
}

impl std::error::Error for DgemvError {}

impl Dgemv {
    /// Memory of A, b and c: also the bytes one product moves, if no cache holds A. Saturates for absurd sizes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let elements = self.rows.saturating_mul(self.columns).saturating_add(self.rows).saturating_add(self.columns);
        elements.saturating_mul(ELEMENT_BYTES)
    }

    /// Floating-point operations of one product: a multiplication and an addition an element.
    #[must_use]
    pub fn flops(&self) -> f64 {
        2.0 * self.rows as f64 * self.columns as f64
    }

    /// Runs the benchmark and checks its answer.
    ///
    /// # Errors
    /// Options out of range, no memory, or a wrong answer.
    pub fn run(&self) -> Result<DgemvResult, DgemvError> {
        let (dynamic, chunk) = match self.schedule {
            Schedule::Static => (0, 1),
            Schedule::Dynamic { chunk } => (1, chunk),
        };
        let options = RawOptions {
            rows: self.rows,
            columns: self.columns,
            iterations: self.iterations,
            repetitions: self.repetitions,
            chunk,
            threads: self.threads,
            parallel_init: u32::from(self.initialisation == Initialisation::Parallel),
            dynamic,
            reserved: 0,
        };
        let mut result = RawResult::default();
        // SAFETY: both structs mirror native/kernels/dgemv.h (sizes are tested), outlive the call, and the function
        // validates the options before it uses them.
        let status = unsafe { ft_dgemv_run(&raw const options, &raw mut result) };
        match status {
            0 => Ok(DgemvResult {
                seconds: Spread { min: result.seconds_min, median: result.seconds_median, max: result.seconds_max },
                threads: result.threads,
                worst_error: result.worst_error,
            }),
            1 => Err(DgemvError::Options),
            2 => Err(DgemvError::Memory { bytes: self.bytes() }),
            _ => Err(DgemvError::Wrong { row: result.wrong_row, error: result.worst_error }),
        }
    }
}

/// `struct ft_dgemv_options`
#[repr(C)]
struct RawOptions {
    rows: u64,
    columns: u64,
    iterations: u64,
    repetitions: u64,
    chunk: u64,
    threads: u32,
    parallel_init: u32,
    dynamic: u32,
    reserved: u32,
}

/// `struct ft_dgemv_result`
#[repr(C)]
#[derive(Default)]
struct RawResult {
    seconds_min: f64,
    seconds_median: f64,
    seconds_max: f64,
    worst_error: f64,
    wrong_row: u64,
    threads: u32,
    reserved: u32,
}

unsafe extern "C" {
    fn ft_dgemv_run(options: *const RawOptions, result: *mut RawResult) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Dgemv = Dgemv {
        rows: 67,
        columns: 31,
        iterations: 2,
        repetitions: 3,
        threads: 4,
        initialisation: Initialisation::Serial,
        schedule: Schedule::Static,
    };

    /// Check every combination of initialisation, schedule and team size against the closed form.
    #[test]
    fn answers_are_right() {
        for initialisation in [Initialisation::Serial, Initialisation::Parallel] {
            for schedule in [Schedule::Static, Schedule::Dynamic { chunk: 1 }, Schedule::Dynamic { chunk: 1000 }] {
                for (threads, rows, columns) in [(1, 67, 31), (4, 67, 31), (4, 3, 1), (7, 1, 5)] {
                    let dgemv = Dgemv { initialisation, schedule, threads, rows, columns, ..SMALL };
                    let result = dgemv.run().unwrap();
                    assert_eq!(result.threads, threads);
                    assert!(result.worst_error < 1e-12, "{dgemv:?} {result:?}");
                    let seconds = result.seconds;
                    assert!(0.0 < seconds.min && seconds.min <= seconds.median && seconds.median <= seconds.max);
                }
            }
        }
    }

    /// Check that options out of range are refused, also where products overflow.
    #[test]
    fn bad_options_are_refused() {
        for dgemv in [
            Dgemv { rows: 0, ..SMALL },
            Dgemv { columns: 0, ..SMALL },
            Dgemv { iterations: 0, ..SMALL },
            Dgemv { repetitions: 0, ..SMALL },
            Dgemv { rows: u64::MAX, columns: u64::MAX, ..SMALL },
            Dgemv { rows: 1 << 31, columns: 1 << 30, ..SMALL },
            Dgemv { schedule: Schedule::Dynamic { chunk: 0 }, ..SMALL },
        ] {
            assert_eq!(dgemv.run(), Err(DgemvError::Options), "{dgemv:?}");
        }
    }

    /// Check that memory that cannot be had is an error, not a crash.
    #[test]
    fn no_memory_is_an_error() {
        let dgemv = Dgemv { rows: 1 << 29, columns: 1 << 30, ..SMALL };
        assert!(matches!(dgemv.run(), Err(DgemvError::Memory { .. })));
    }

    /// Check the sizes of the structs shared with C.
    #[test]
    fn structs_mirror_c() {
        assert_eq!((size_of::<RawOptions>(), size_of::<RawResult>()), (56, 48));
    }
}
