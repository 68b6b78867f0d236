//! Names for the addresses in a profile: functions, lines, static arrays, the variables that allocations are assigned to, and the
//! construct that first touched memory.
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
mod module;
mod names;
mod ownership;
mod resolved;
mod search;
mod source;
mod statics;
mod symbolizer;
mod variable;

pub use cause::touch_cause;
pub use names::readable_function;
pub use ownership::user_frame;
pub use resolved::{Line, Resolved};
pub use search::{LineSearch, build_id};
pub use source::SourceCache;
pub use statics::{StaticObject, StaticObjects, static_objects};
pub use symbolizer::Symbolizer;
pub use variable::{variable_at_allocation, variable_near};
