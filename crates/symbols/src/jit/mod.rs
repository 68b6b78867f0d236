//! Names of code that a program generated while it ran (Java, Node, Python, LLVM), as its runtime writes them for perf: the map
//! /tmp/perf-PID.map ([`perf_map`]) and jitdump ([`jitdump`]). Both parsers are pure, bounded, and tolerate any input.

pub mod jitdump;
mod names;
pub mod perf_map;
mod pieces;

pub use pieces::{CodePieces, MOST_LOOKED_AT, Parsed, Piece, SourceLine};

/// Functions kept of one file. A long run of a large server compiles some 100,000.
pub const MOST_PIECES: usize = 1_000_000;
/// Lines kept of one file.
pub const MOST_LINES: usize = 4_000_000;
/// Longer names are cut off, characters.
const LONGEST_NAME: usize = 512;
/// Larger functions do not exist: the entry is damaged.
const LARGEST_PIECE: u64 = 1 << 30;
