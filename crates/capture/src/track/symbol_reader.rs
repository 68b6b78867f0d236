//! Reads symbol tables on a thread of its own. That of a C library with debug information takes 70 ms: within that time, a program that allocates a
//! million times a second fills the agent's ring, and what it writes then is lost.

use super::modules::UnreadModule;
use firsttouch_symbols::StaticObjects;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread::{Builder, JoinHandle};

/// The static arrays of a module, or nothing if its file cannot be read.
pub(super) fn read_statics(path: &Path, min_bytes: u64) -> Option<StaticObjects> {
    firsttouch_symbols::static_objects(path, min_bytes).ok()
}

/// As large as that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// A module whose static arrays are being read. One at a time, so that those of processes that end meanwhile are not read at all.
#[derive(Default)]
pub(super) struct SymbolReader {
    /// `None`: its process replaced its program.
    module: Option<UnreadModule>,
    thread: Option<JoinHandle<Option<StaticObjects>>>,
}

impl SymbolReader {
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.thread.is_some()
    }

    /// Whether it has read what it was asked for, or was asked for nothing.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Begins to read a module's static arrays. Without a thread for it, it is read here; then, and if none is read, it returns them.
    pub fn begin(&mut self, module: UnreadModule, min_bytes: u64) -> Option<(UnreadModule, StaticObjects)> {
        let path = module.path.clone();
        match Builder::new().stack_size(STACK_BYTES).spawn(move || read_statics(&path, min_bytes)) {
            Ok(thread) => {
                (self.module, self.thread) = (Some(module), Some(thread));
                None
            }
            Err(_) => read_statics(&module.path, min_bytes).map(|statics| (module, statics)),
        }
    }

    /// Waits for the module that is being read.
    pub fn take(&mut self) -> Option<(UnreadModule, StaticObjects)> {
        let statics = self.thread.take()?.join().unwrap_or_else(|panic| resume_unwind(panic));
        Some((self.module.take()?, statics?))
    }

    /// The process replaced its program.
    pub fn forget(&mut self, pid: i32) {
        self.module.take_if(|module| module.pid == pid);
    }
}
