//! Functions and lines of code: what an address resolves to, and what a search looks for.

use std::path::PathBuf;

/// One function at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Demangled, without parameters; `None` if neither DWARF nor a symbol names it.
    pub function: Option<String>,
    /// The source file as passed to the compiler, made absolute if DWARF has the directory.
    pub file: Option<PathBuf>,
    /// For the first entry the line of the address; for the others the line of the inlined call.
    pub line: Option<u32>,
    /// Its place in that line, in bytes from 1.
    pub column: Option<u32>,
    /// Whether the function was inlined into the next entry.
    pub inlined: bool,
}

/// A function at a line, as in [`crate::Resolved`]; innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub function: String,
    pub file: String,
    pub line: u32,
}
