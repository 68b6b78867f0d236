//! Small files below a root, and the kernel's formats for values: lists, sizes, choices.
//!
//! Files that users name have a largest size ([`read_bounded`]).
//!
//! For a file that cannot be parsed, [`Root`] returns an error; [`Reader`] goes on without it and records a doubt.

mod bounded;
mod list;
mod reader;
mod root;
mod value;

pub use bounded::{read_bounded, read_bounded_text, too_large};
pub use list::{LARGEST, ListError, parse_list};
pub use reader::{Reader, short};
pub use root::Root;
pub use value::{chosen, size_bytes};

use crate::proc::auxv;
use std::path::Path;

/// The base page of x86-64 and of most arm64 systems; assumed if the kernel does not say.
pub const USUAL_PAGE_BYTES: u64 = 4096;

/// The size of a base page, from the auxiliary vector of this process.
pub fn page_bytes(root: &Path) -> Option<u64> {
    auxv::page_bytes(&Root::new(root).bytes("proc/self/auxv")?)
}
