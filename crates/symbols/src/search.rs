//! The reverse lookup: from a source line to addresses in a file, for another build of the program.

use crate::debug_file::{Links, default_roots};
use crate::elf::with_elf;
use crate::module::Module;
use crate::resolved::Line;
use firsttouch_model::error::Result;
use std::path::Path;

/// Looks up code by lines.
pub struct LineSearch {
    module: Module,
}

impl LineSearch {
    /// # Errors
    /// When the file cannot be read as a module.
    pub fn open(module: &Path) -> Result<Self> {
        Ok(Self { module: Module::load(module, &default_roots())? })
    }

    /// The file offsets of code whose innermost function, and the functions it is inlined into, are at these lines: half-open ranges.
    /// Source files are compared by the last part of their path.
    pub fn find(&mut self, lines: &[Line]) -> Vec<(u64, u64)> {
        self.module.find(lines)
    }

    /// The code of the call at an offset, which is at these lines, and of its copies: compilers copy a call into several paths through a
    /// function. Empty if the file does not tell it from other calls in its line.
    pub fn copies(&mut self, offset: u64, lines: &[Line]) -> Vec<(u64, u64)> {
        self.module.copies(offset, lines)
    }

    /// Whether an offset is code at these lines.
    pub fn is_at(&mut self, offset: u64, lines: &[Line]) -> bool {
        self.module.is_at(offset, lines)
    }
}

/// The build id in hexadecimal digits; `None` if the file has none or cannot be read.
#[must_use]
pub fn build_id(module: &Path) -> Option<String> {
    let id = with_elf(module, |elf| Links::read(elf).build_id).ok().flatten()?;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}
