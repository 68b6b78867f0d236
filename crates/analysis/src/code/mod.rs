//! The source text of a program, read as far as a fix needs it: to show a change of the source, it must be certain that the change keeps what
//! the program computes. Anything that is not recognised gives no answer, never a guess.
//!
//! | file | answers |
//! |---|---|
//! | `tokens.rs` | the words of C and C++, with their lines |
//! | `syntax.rs`, `expression.rs` | statements and expressions |
//! | `regions.rs` | which statements, functions and OpenMP directives are around a line? |
//! | `direction.rs` | does a loop go through an array from its end to its beginning? |
//! | `polynomial.rs` | are two subscripts different in different rounds of a loop? |
//! | `rounds.rs`, `effects.rs`, `header.rs`, `scope.rs` | may the rounds of a C or C++ loop run on several threads? |
//! | `pure.rs` | does a function of the program only compute a value? |
//! | `fortran.rs` | the same for Fortran |
//! | `rust.rs` | the words of Rust, and which statement gives a variable its value |

pub(crate) mod direction;
pub(crate) mod expression;
pub(crate) mod fortran;
pub(crate) mod polynomial;
pub(crate) mod regions;
pub(crate) mod rounds;
pub(crate) mod rust;
pub(crate) mod syntax;
pub(crate) mod tokens;

mod effects;
mod header;
mod pure;
mod scope;

use crate::Sources;

/// Longer files are not read.
const MOST_LINES: u32 = 20_000;
/// Lines this long are generated.
const LONGEST_LINE: usize = 2000;

/// All lines of a file; `None` if it is not available, or too long.
pub(crate) fn lines_of(sources: &dyn Sources, file: &str) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for number in 1..=MOST_LINES {
        let Some(line) = sources.line(file, number) else { break };
        if line.len() > LONGEST_LINE {
            return None;
        }
        lines.push(line);
    }
    (!lines.is_empty() && lines.len() < MOST_LINES as usize).then_some(lines)
}
