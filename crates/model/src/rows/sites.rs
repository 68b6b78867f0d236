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
    /// the access; callers: return addresses. Of interpreted code: see [`Frame::interpreted_address`].
    pub address: u64,
    /// Path of the ELF file.
    pub module: Option<String>,
    /// Offset into that file.
    pub offset: Option<u64>,
    pub inlined: bool,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// Where the call or the access is in that line, in bytes from 1, as the debug information says; of compiled code only.
    pub column: Option<u32>,
}

impl Frame {
    /// What takes the place of the address in interpreted code, so that the calls of a line are distinct: the number of the instruction,
    /// counted from 1, and above it the column (counted from 1) where its expression begins in the line; 0 for what is not known.
    #[must_use]
    pub fn interpreted_address(instruction: Option<u32>, column: Option<u16>) -> u64 {
        let instruction = instruction.and_then(|instruction| instruction.checked_add(1)).unwrap_or(0);
        u64::from(column.unwrap_or(0)) << 32 | u64::from(instruction)
    }

    /// The column of the expression in a line of interpreted code, in bytes from 0.
    #[must_use]
    pub fn interpreted_column(&self) -> Option<usize> {
        usize::try_from(self.address >> 32).ok()?.checked_sub(1)
    }
}

/// A source file as it was when the profile was symbolised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceFile {
    pub bytes: u64,
    /// Unix time, ns.
    pub modified_ns: i64,
}
