//! Sites in the code: call stacks and their frames.

use super::Id;

/// A call stack, leaf first.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    pub id: Id,
    pub process: Id,
    pub frames: Vec<Frame>,
}

/// One frame. Before symbolisation only `address`, `module` and `offset` are known. Inlined functions are frames of their
/// own (`inlined`), innermost first, that share the address of the function they were inlined into.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Absolute code address. Leaf of a page fault: the faulting instruction; leaf of a watch hit: the instruction AFTER
    /// the access; callers: return addresses.
    pub address: u64,
    /// Path of the ELF file.
    pub module: Option<String>,
    /// Offset into that file.
    pub offset: Option<u64>,
    pub inlined: bool,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}
