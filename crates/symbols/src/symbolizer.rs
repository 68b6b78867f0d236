//! From offsets in modules to functions and lines.

use crate::debug_file::default_roots;
use crate::module::Module;
use crate::resolved::Resolved;
use hashbrown::HashMap;
use std::path::{Path, PathBuf};

/// Resolves file offsets in ELF modules. A module is read once, when it is first needed; unreadable modules are remembered.
#[derive(Default)]
pub struct Symbolizer {
    modules: HashMap<PathBuf, Option<Module>>,
    debug_roots: Vec<PathBuf>,
}

impl Symbolizer {
    /// A symbolizer that looks for separate debug files where distributions store them (`/usr/lib/debug`).
    #[must_use]
    pub fn new() -> Self {
        Self::with_debug_roots(default_roots())
    }

    /// A symbolizer that looks for separate debug files below other directories.
    #[must_use]
    pub fn with_debug_roots(debug_roots: Vec<PathBuf>) -> Self {
        Self { modules: HashMap::new(), debug_roots }
    }

    /// The functions around an address of the instruction at `offset` into the file `module`: the innermost inlined function
    /// first, the one that contains the instruction last. Empty if nothing is known.
    pub fn resolve(&mut self, module: &Path, offset: u64) -> Vec<Resolved> {
        self.module(module).map_or_else(Vec::new, |module| module.resolve(offset))
    }

    /// The functions that ended with a jump to `inner`, a function of another module, and that the stack does not show above the call at `offset`;
    /// they are marked as inlined there.
    pub fn jumped(&mut self, module: &Path, offset: u64, inner: &str) -> Vec<Resolved> {
        self.module(module).map_or_else(Vec::new, |module| module.jumped(offset, inner))
    }

    /// The function that a library called, whose address the call at `offset` passed to it, and that ended with a jump to `inner`, a function of another
    /// module: the offset of the jump, and the functions around it as those of `resolve`.
    pub fn jumped_from_library(&mut self, module: &Path, offset: u64, inner: &str) -> Option<(u64, Vec<Resolved>)> {
        self.module(module)?.jumped_from_library(offset, inner)
    }

    /// Whether the module has line information for its own code. If not, compile it with `-g` or install its debug symbols.
    pub fn has_line_info(&mut self, module: &Path) -> bool {
        self.module(module).is_some_and(|module| module.has_line_info)
    }

    /// Whether the module has no symbol table, so that only exported functions have names. False for a file that cannot be read.
    pub fn is_stripped(&mut self, module: &Path) -> bool {
        self.module(module).is_some_and(|module| module.is_stripped)
    }

    fn module(&mut self, path: &Path) -> Option<&mut Module> {
        if !self.modules.contains_key(path) {
            let module = Module::load(path, &self.debug_roots).ok();
            self.modules.insert(path.to_owned(), module);
        }
        self.modules.get_mut(path)?.as_mut()
    }
}
