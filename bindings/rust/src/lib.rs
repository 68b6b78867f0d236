//! Arrays placed on NUMA nodes by the partition of the threads that use them, and verified: libfirsttouch for Rust.
//!
//! ```
//! use firsttouch_alloc::{FtVec, Partition, verify};
//!
//! let partition = Partition::blocked();
//! let mut a: FtVec<f64> = FtVec::zeroed(1_000_000, &partition)?; // no page is touched
//! a.fill(1.0); // whoever sets an element, its page is on the node of its part
//! assert_eq!(verify(&a, &partition)?.share, Some(1.0));
//! # Ok::<(), firsttouch_alloc::Error>(())
//! ```
//!
//! Memory that the kernel does not place is given all the same: [`last_doubt`] says what was not done. Linux only.

mod error;
mod partition;
mod raw;
mod team;
mod vec;
mod verify;

pub use error::Error;
pub use partition::{MAX_PARTS, Partition, static_bounds};
pub use team::Team;
pub use vec::{FtVec, Pages, Replicated, Zeroable};
pub use verify::{Verdict, expect, localise, place, report, verify};

use std::ffi::{CStr, c_char};

/// What the last call of this thread that had a doubt could not do or assumed, and what to do about it.
pub fn last_doubt() -> Option<String> {
    // SAFETY: the text is this thread's and holds until its next call.
    unsafe { text(raw::ft_last_doubt()) }
}

/// Forgets the last doubt of this thread.
pub fn clear_doubt() {
    // SAFETY: the function has no arguments.
    unsafe { raw::ft_clear_doubt() };
}

/// The nodes with memory that this process may use, in ascending order.
pub fn nodes() -> Vec<i32> {
    // SAFETY: no number is written with a capacity of 0, and at most `numbers.len()` are in the second call.
    unsafe {
        let mut numbers = vec![0; raw::ft_nodes(std::ptr::null_mut(), 0)];
        let count = raw::ft_nodes(numbers.as_mut_ptr(), numbers.len());
        numbers.truncate(count);
        numbers
    }
}

/// The version of the C library in use.
pub fn library_version() -> String {
    // SAFETY: the text is a constant of the library.
    unsafe { text(raw::ft_version()) }.unwrap_or_default()
}

/// # Safety
///
/// `pointer` must be null or a C string that lives until the call returns.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: as this function's contract.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}
