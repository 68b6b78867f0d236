//! Names for the addresses in a profile: functions, lines, static arrays, the variables that allocations are assigned to, and the
//! construct that first touched memory.
//!
//! | module | question |
//! |---|---|
//! | `symbolizer.rs`, `functions.rs`, `frames.rs`, `module.rs`, `debug_file.rs` | which function and line is at an address? |
//! | `tail_calls.rs` | which function ended with a jump, so that the stack does not show it? |
//! | `names.rs`, `ownership.rs` | how is a function called in reports, and which frame of a stack is the user's own? |
//! | `statics.rs`, `common_blocks.rs`, `declarations.rs` | which static arrays does a file have? |
//! | `variable/` | which variable is an allocation assigned to? |
//! | `source_code.rs`, `search.rs` | lines of source files; the address of a line |
//! | `cause.rs` | which construct touched memory first (`memset`, `calloc`, a constructor)? |
//!
//! ELF and DWARF are read with `object`, `gimli` and `addr2line`. `blazesym` can look up addresses too, but version 0.2.7
//! panics on damaged line tables, maps files (a rebuild during symbolisation kills the reader), and does not read variables.

mod cause;
mod common_blocks;
mod debug_file;
mod declarations;
mod dwarf;
mod elf;
pub mod frames;
mod functions;
pub mod jit;
mod module;
mod names;
mod ownership;
mod resolved;
mod search;
mod source_code;
mod statics;
mod symbolizer;
mod tail_calls;
mod variable;

pub use cause::touch_cause;
pub use elf::file_part;
pub use names::readable_function;
pub use ownership::{is_own_module, is_python_library, library_buffer, user_frame};
pub use resolved::{Line, Resolved};
pub use search::{LineSearch, build_id};
pub use source_code::{Reader, SourceCache, source_file};
pub use statics::{StaticObject, StaticObjects, static_objects};
pub use symbolizer::Symbolizer;
pub use variable::python::{PythonValue, python_value};
pub use variable::{CONTAINER, variable_at_allocation, variable_at_column, variable_near};
