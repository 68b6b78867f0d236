//! The live objects of a process.

use crate::sink::Sink;
use firsttouch_model::rows::{Id, Object, ObjectKind, SharedMemory};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What memory an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Of one process, or of a file.
    #[default]
    Own,
    /// Mapped to be shared; /proc was not asked yet of what.
    Unknown {
        present: Option<u32>,
    },
    Shared(SharedMemory),
}

impl Memory {
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// What part of it was present before the program mapped it ([`SharedMemory::present`]).
    #[must_use]
    pub fn present(&self) -> Option<u32> {
        match self {
            Self::Own => None,
            Self::Unknown { present } => *present,
            Self::Shared(shared) => shared.present,
        }
    }

    /// The memory behind a piece that begins so many bytes after the object.
    #[must_use]
    pub fn from(&self, bytes: u64) -> Self {
        match self {
            Self::Shared(shared) => Self::Shared(SharedMemory { offset: shared.offset.saturating_add(bytes), ..shared.clone() }),
            other => other.clone(),
        }
    }
}

/// An object that exists now.
#[derive(Clone, Debug)]
pub struct LiveObject {
    pub id: Id,
    pub kind: ObjectKind,
    pub memory: Memory,
    pub call: Option<&'static str>,
    pub name: Option<String>,
    pub bytes: u64,
    pub born_ns: u64,
    pub site: Option<Id>,
    pub thread: Option<Id>,
    /// A window was held on it, or its pages were queried.
    pub has_evidence: bool,
    /// Sweeps of page queries made so far.
    pub page_sweeps: u32,
    /// When the same pages are queried again, and the pause after that.
    pub revisit: Option<(u64, u64)>,
    /// Its memory policy as last read.
    pub policy: Option<Arc<str>>,
    pub(super) written: bool,
}

impl LiveObject {
    /// The group of objects that the program presumably treats alike: those allocated at the same site. An object without a site is
    /// a group of its own (a negative id).
    #[must_use]
    pub fn group(&self) -> Id {
        self.site.unwrap_or(-1 - self.id)
    }

    /// Accesses to it are watched, and its pages looked up.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        matches!(self.kind, ObjectKind::Heap | ObjectKind::Anonymous | ObjectKind::Static | ObjectKind::Mapping)
    }

    /// Samples of registers count accesses to it. A mapped file counts too, so that its part of the accesses is known: first touches do not
    /// place its pages, so it is not judged.
    #[must_use]
    pub fn is_named_in_samples(&self) -> bool {
        self.is_sampled() || self.kind == ObjectKind::File
    }

    /// What its memory is was found out. Shared memory is memory, also if it has the name of a file. The row is written again.
    pub(super) fn found(&mut self, shared: Option<SharedMemory>) {
        if shared.is_some() {
            self.kind = ObjectKind::Anonymous;
            self.written = false;
        }
        self.memory = shared.map_or(Memory::Own, Memory::Shared);
    }

    /// Its size changed: its row is written again.
    pub(super) fn resize(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.written = false;
    }

    pub(super) fn write(&self, process: Id, address: u64, died_ns: Option<u64>, sink: &mut Sink) {
        let row = Object {
            id: self.id,
            process,
            kind: self.kind,
            call: self.call.map(str::to_owned),
            name: self.name.clone(),
            address,
            bytes: self.bytes,
            born_ns: self.born_ns,
            died_ns,
            site: self.site,
            thread: self.thread,
        };
        sink.write(|w| w.object(&row));
        if let Memory::Shared(shared) = &self.memory {
            sink.write(|w| w.shared_memory(self.id, shared));
        }
    }
}

/// The live objects of one process, by address, not overlapping.
#[derive(Default)]
pub struct LiveObjects {
    pub by_address: BTreeMap<u64, LiveObject>,
}

impl LiveObjects {
    /// Starts of the objects that overlap a range.
    pub(super) fn overlapping(&self, address: u64, bytes: u64) -> Vec<u64> {
        let end = address.saturating_add(bytes);
        let mut starts: Vec<u64> = self.by_address.range(address..end).map(|(&a, _)| a).collect();
        if let Some((&before, object)) = self.by_address.range(..address).next_back()
            && before.saturating_add(object.bytes) > address
        {
            starts.push(before);
        }
        starts
    }
}
