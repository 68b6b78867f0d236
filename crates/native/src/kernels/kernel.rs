//! What each kernel computes, and its cost.

use super::raw;

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

/// STREAM's loops, Schoenauer's triad, a loop that only reads and one that only writes. Stores bypass the caches unless `temporal`.
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

/// The cost of one element of a kernel. All rates are computed from this table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// What an element is.
    pub element: &'static str,
    /// Bytes that the program loads and stores, in arrays larger than the caches.
    pub bytes: f64,
    /// Bytes moved to and from memory: a store through the caches reads its line first.
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

    pub(super) fn variant(self) -> u32 {
        match self {
            Self::DgemvTuned => 1,
            Self::Stream(Stream { operation, temporal }) => operation as u32 + if temporal { raw::TEMPORAL } else { 0 },
            _ => 0,
        }
    }

    pub(super) fn function(self) -> raw::Function {
        match self {
            Self::Dgemv | Self::DgemvTuned => raw::ft_dgemv,
            Self::Dmvm => raw::ft_dmvm,
            Self::Stream(_) => raw::ft_stream,
            Self::Chase => raw::ft_chase,
            Self::Iso3dfd => raw::ft_iso3dfd,
        }
    }
}
