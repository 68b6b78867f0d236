//! Valid profiles of any size: what a run of 100 s would leave, with as many rows, threads and objects as asked for. The same [`Size`] gives the
//! same rows.
//!
//! The objects take turns in what their threads do ([`Pattern`]), so a report has something to find in each.

mod accesses;
mod beside;
mod pattern;
mod random;
mod scenery;
mod touches;
mod write;

pub use beside::Beside;
pub use pattern::Pattern;
pub use write::write;

use firsttouch_model::rows::Profile;

/// The evidence of accesses that a profile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Windows with their accesses.
    Watch,
    /// Timer samples with their accesses.
    Sample,
}

/// How much a profile holds.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// A third each: first touches, windows (or samples), and their accesses.
    pub rows: usize,
    pub threads: usize,
    pub objects: usize,
    pub by: By,
}

const SECOND: u64 = 1_000_000_000;
/// The program begins, initialises, and uses its memory until the end.
const START: u64 = 1_000 * SECOND;
const USED_FROM: u64 = START + 10 * SECOND;
const END: u64 = START + 100 * SECOND;
const PAGE: u64 = 4096;

/// Makes a profile.
#[must_use]
pub fn profile(size: &Size) -> Profile {
    let mut profile = scenery::scenery(size);
    touches::add(&mut profile, size);
    match size.by {
        By::Watch => accesses::add_windows(&mut profile, size),
        By::Sample => accesses::add_samples(&mut profile, size),
    }
    profile
}

impl Size {
    /// Rows of each of the three large tables.
    fn third(&self) -> usize {
        (self.rows / 3).max(1)
    }

    /// First touches of each object.
    fn touches_an_object(&self) -> usize {
        (self.third() / self.objects).max(1)
    }

    /// Pages of each object: twice its first touches, and at least 1 MiB.
    fn pages(&self) -> u64 {
        (self.touches_an_object() as u64 * 2).max(256)
    }
}
